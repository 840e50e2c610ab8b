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

# The reduced parameters in orthonormal coordinates: position, both MLP weights, the embedding's part across the manifold.
position = Symbol("c_p", real=True)
first_weight = Symbol("w_1", real=True)
second_weight = Symbol("w_2", real=True)
across = Symbol("u", real=True)

# Whether ReLU lets the stream through after a 0 and after a 1; the speed of the position relative to the others.
gate_zero = Symbol("A_0", real=True)
gate_one = Symbol("A_1", real=True)
pace = Symbol("s_c", positive=True)
ratio = Symbol("rho", real=True)  # -c/e; with attention the Riccati variable, a multiple of a
variance = Symbol("v", positive=True)  # σ(b)σ(-b) at the bias of the plateau

# Attention: the parameter a, the factor f = 1 + a e² and its sign and size, the sizes of the four matrices, the inner
# product of the value matrix's row vector with α, the multiple μ = e/√d of α in the embedding. The head of its own.
attention = Symbol("a", real=True)
factor = Symbol("f", real=True)
sign_f = Symbol("sigma_f", real=True)
size_f = Symbol("f_0", positive=True)
query_size, key_size, value_size, output_size = (Symbol(f"g_{name}", real=True) for name in "QKVO")
value_along = Symbol("nu", real=True)
multiple = Symbol("mu", real=True)
head = Symbol("c_h", real=True)

# The flow with attention: m = e² - 4a², the argument z of Airy's functions, z^(-3/2) far out, and half the width R of what ends
# on the plane; the first zero of Ai.
difference = Symbol("m", real=True)
airy_argument = Symbol("z", real=True)
far = Symbol("x", positive=True)
reach = Symbol("R", real=True)
first_zero = Symbol("z_1", real=True)
second_invariant, lower_end, upper_end = (Symbol(name, real=True) for name in ("J", "J_1", "J_2"))  # of a start; at the ends ∓R
excess = Symbol("X", real=True)  # E - E_sad
slope_factor = Symbol("B", real=True)  # 1 + 2w|w|

# Symbols at the position n and at a position i before it; the number of positions so far.
symbol_here = Symbol("x_n", real=True)
symbol_there = Symbol("x_i", real=True)
position_there = Symbol("i", positive=True, integer=True)
so_far = Symbol("n", positive=True, integer=True)

# The transformer on the manifold in orthonormal coordinates (e, w_1, w_2 and the head as above): three positions, the four
# attention matrices, and inside it the residual streams, the attention weights, the symbols and whether ReLU is open.
positions = tuple(Symbol(f"p_{n}", real=True) for n in (1, 2, 3))
query, key, value, output = (Symbol(name, real=True) for name in "QKVO")
streams = tuple(Symbol(f"y_{n}", real=True) for n in (1, 2, 3))
weights = tuple(Symbol(f"rho_{n}", real=True) for n in (1, 2, 3))
symbols_seen = tuple(Symbol(f"x_{n}", real=True) for n in (1, 2, 3))
opened = Symbol("H", real=True)

# One array of a network on the manifold: the number of its entries, its coordinate, its gradient and momentum there, the
# moments of Adam; rate, momentum, decay and epsilon of the optimiser; sizes of two entries of α.
entries = Symbol("n_i", positive=True)
coordinate = Symbol("theta", real=True)
coordinate_slope = Symbol("gamma", real=True)
velocity = Symbol("V_m", real=True)
first_moment = Symbol("M_1", real=True)
second_moment = Symbol("M_2", positive=True)
rate = Symbol("eta", positive=True)
momentum = Symbol("beta", positive=True)
decay = Symbol("lambda", positive=True)
guard = Symbol("epsilon_A", positive=True)
entry_sizes = tuple(Symbol(f"alpha_{n}", positive=True) for n in (1, 2))

# The full model: the gate of ReLU on the plateau, W_O W_V along α, the number of positions; the chain's second eigenvalue
# and how many steps back a symbol is.
gate = Symbol("A_y", real=True)
stretch = Symbol("t", real=True)
count = Symbol("N", positive=True)
memory = Symbol("lambda_2", real=True)
mean_memory = Symbol("rho_N", real=True)
lag = Symbol("k", nonnegative=True)

# Times along an orbit: ξ = log(w²/w_0²) counted from a point of it, where e² = u_0, B = B_0 and cw² = r_0; ζ = κ - κ*;
# the four constants of φ′(κ* + ζ); E - E_sad; the change of e² along the orbit.
growth = Symbol("xi", real=True)
square = Symbol("u_0", nonnegative=True)
factor_here = Symbol("B_0", real=True)
ratio_here = Symbol("r_0", nonnegative=True)
beyond = Symbol("zeta", real=True)
slope_constants = tuple(Symbol(f"a_{n}", positive=True) for n in range(4))
height = Symbol("m_s", positive=True)
rise = Symbol("Delta_u", real=True)

# S symbols at the corners of a simplex: which hidden units a symbol opens (1: its own, -1: those of all others), the product
# w_1 w_2, the number of open units on the plateau, the size of a class of symbols with one embedding; the sums of the logits
# of each symbol after itself and of all logits; λ_2 to the n.
own = Symbol("sigma_x", real=True)
mixed = Symbol("m", real=True)
open_units = Symbol("h_S", positive=True)
together = Symbol("s_C", positive=True)
own_logits = Symbol("ell_own", real=True)
all_logits = Symbol("ell_all", real=True)
