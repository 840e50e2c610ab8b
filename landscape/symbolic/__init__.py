"""The mathematics: everything that imports SymPy and derives what the kernels compute.

Typed in are layers, chains and ansätze; every gap, gradient, critical set and invariant is computed.
"""
