"""The one table of symbols. Every name has one set of assumptions, so that no two symbols share a name."""

from sympy import Symbol

# The chain.
p = Symbol("p", positive=True)
q = Symbol("q", positive=True)
states = Symbol("S", positive=True)

# Logits: the gap κ and the bias b that is minimised out.
kappa = Symbol("kappa", real=True)
bias = Symbol("b", real=True)
logit_zero = Symbol("ell_0", real=True)
logit_one = Symbol("ell_1", real=True)

# The canonical parameters, the signs of their branches, and their sizes within a branch.
e = Symbol("e", real=True)
w = Symbol("w", real=True)
sign_e = Symbol("sigma_e", real=True)
sign_w = Symbol("sigma_w", real=True)
size_e = Symbol("epsilon", positive=True)
size_w = Symbol("omega", positive=True)

# The two constants to which a vocabulary comes down: κ = A e² (1 + c w|w|).
scale = Symbol("A", positive=True)
curvature = Symbol("c", positive=True)
curvature_across = Symbol("c_x", positive=True)  # c on the other side of e = 0

# Dimensions of the layers.
width = Symbol("d", positive=True)
hidden = Symbol("r", positive=True)

# Sign of κ*, which is that of -φ′(0).
target = Symbol("tau", real=True)

# φ′ and φ″ at the current gap, where the chain is left open.
slope = Symbol("phi_1", real=True)
bend = Symbol("phi_2", real=True)

# The logarithmic coordinate s = log(c w²) along the separatrix.
log_ratio = Symbol("s", real=True)
