"""Loss landscapes of one-layer transformers on Markov data: derived, mapped, and checked by training.

>>> import landscape
>>> chain = landscape.BinaryChain(p=0.5, q=0.8)
>>> basins = landscape.basin_map(chain, e=(-2, 2, 401), w=(-2, 2, 401))
>>> [start.label for start in landscape.classify(chain, [(1, -1), (0.3, 0.5)])]
['global', 'local']

Names are imported on first use: importing the package loads neither SymPy nor Numba nor xarray.
"""

from __future__ import annotations

import importlib

__version__ = "0.1.0"

_HOMES = {
    "BinaryChain": "chains",
    "SymmetricChain": "chains",
    "Chain": "chains",
    "Landscape": "landscapes",
    "PlainLoss": "landscapes",
    "Ends": "outcomes",
    "Trajectory": "trajectories",
    "Label": "outcomes",
    "Outcome": "outcomes",
    "Classification": "outcomes",
    "CriticalSet": "outcomes",
    "ParameterError": "parameters",
    "Architecture": "architectures",
    "architecture": "architectures",
    "loss": "architectures",
    "gradient": "architectures",
    "hessian": "architectures",
    "limit": "architectures",
    "flow": "flows",
    "trajectory": "flows",
    "critical_sets": "critical",
    "classify": "critical",
    "basin_map": "basins",
    "fractions": "basins",
    "compare": "basins",
    "label_starts": "basins",
    "stream_map": "large_maps",
    "separatrix": "basins",
    "arrival_time": "times",
    "recommend": "initialise",
    "safe_starts": "initialise",
    "start_probabilities": "probabilities",
    "p_global": "probabilities",
    "p_local": "probabilities",
    "probability_map": "probabilities",
    "estimate": "estimation",
    "read_sequences": "estimation",
    "limit_point": "times",
    "WeightNames": "weight_names",
    "gpt2_names": "weight_names",
    "project": "projection",
    "diagnose": "diagnosis",
    "PathRecorder": "paths",
    "draw_path": "gallery.path",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str):
    if name in _HOMES:
        value = getattr(importlib.import_module(f"landscape.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'landscape' has no attribute {name!r}")


def __dir__():
    return sorted(set(globals()) | set(_HOMES))
