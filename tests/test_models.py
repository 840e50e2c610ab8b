"""Landscapes of one's own: a loss, an architecture and a chain defined outside the package get everything it has."""

import math

import numpy as np
import pytest
import sympy
from scipy import integrate

import landscape
from landscape import Architecture, BinaryChain, Chain, ParameterError, PlainLoss, SymmetricChain
from landscape.definitions import read_definition
from landscape.modules import load

ABOVE, BELOW = BinaryChain(0.5, 0.8), BinaryChain(0.2, 0.3)


def differences(function, points, h=1e-6):
    """Central differences of a function from (n, d) to (n, ...)."""
    steps = h * np.eye(points.shape[1])
    return np.stack([(function(points + step) - function(points - step)) / (2 * h) for step in steps], axis=1)


def check_derivatives(found, points):
    """Kernels of gradient and Hessian against differences of the loss and of the gradient."""
    gradient, hessian = found.gradient(points), found.hessian(points)
    assert np.allclose(gradient, differences(found.loss, points), rtol=1e-6, atol=1e-7)
    assert np.allclose(hessian, differences(found.gradient, points), rtol=1e-5, atol=1e-5)
    assert np.array_equal(hessian, hessian.transpose(0, 2, 1))


# --- plain losses ---------------------------------------------------------------------------------------

LOSSES = {
    "polynomial": (["x"], "x^4/4 - x^2/2 + x/10"),
    "absolute value": (["w"], "(abs(w) - 1)^2 + w"),
    "nested kinks": (["x", "y"], "abs(abs(x) - 1) + max(x*y, y^2, 0.3) + relu(x - y)/2"),
    "conditions": (["x", "y"], "where(x > y, exp(x - y) - 1, x - y) + y^2"),
    "transcendental": (["x", "y", "z"], "sin(x)*cosh(y/2) + atan(z) + erf(x*z) + tanh(x + y) + softplus(y*z)"),
    "six": (list("abcdfg"), "a*b*c + d^2*f - g*(a + 1/(2 + d^2)) + sqrt(1 + f^2) + log(3 + g^2)"),
    "logistic": (["x"], "0.3*log(1 + exp(x)) + 0.7*log(1 + exp(-x))"),
}


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_of_any_loss(name):
    names, loss = LOSSES[name]
    found = PlainLoss.from_symbolic(name, loss, names)
    check_derivatives(found, np.random.default_rng(1).uniform(-1.5, 1.5, size=(50, len(names))))


def test_the_expression_and_its_text_give_the_same_module():
    x, y = sympy.symbols("x y", real=True)
    text = PlainLoss.from_symbolic("one", "x^2*abs(y) + max(x, y)", ["x", "y"])
    expression = PlainLoss.from_symbolic("one", x**2 * sympy.Abs(y) + sympy.Max(x, y), [x, y])
    assert text.text == expression.text and text.kernels is expression.kernels


def test_names_that_occur_in_kernels_are_no_trouble():
    """Temporaries, keywords, modules and arguments of the kernels as names of parameters."""
    names = ["x0", "t0", "lambda_", "theta", "signs", "np"]
    loss = "+".join(f"({name}^2 - 1)^2*{i + 1}" for i, name in enumerate(names)) + "+ x0*t0*(x0*t0 + 1)"
    found = PlainLoss.from_symbolic("names", loss, names)
    points = np.random.default_rng(0).uniform(-2, 2, size=(100, 6))
    direct = sum((points[:, i] ** 2 - 1) ** 2 * (i + 1) for i in range(6)) + points[:, 0] * points[:, 1] * (points[:, 0] * points[:, 1] + 1)
    assert np.allclose(found.loss(points), direct, rtol=1e-13)


def test_repeated_subexpressions_with_a_parameter_named_like_a_temporary():
    c, x0 = sympy.symbols("c x0", real=True)
    found = PlainLoss.from_symbolic("shadow", c * x0**2 + c * (x0**4 - x0**2), [c, x0])
    assert found.loss([(1, 2)])[0] == 16


def test_logistic_losses_keep_their_digits():
    found = PlainLoss.from_symbolic("logistic", "0.3*log(1 + exp(x)) + 0.7*log(1 + exp(-x))", ["x"])
    for x in (30.0, 745.0, 800.0, 1e4):
        assert found.loss([x])[0] == pytest.approx(0.3 * x, rel=1e-12) and found.loss([-x])[0] == pytest.approx(0.7 * x, rel=1e-12)
        assert found.gradient([x])[0, 0] == pytest.approx(0.3, rel=1e-12)
        assert np.isfinite(found.hessian([x])).all()


def test_only_the_branch_that_is_chosen_is_evaluated():
    found = PlainLoss.from_symbolic("piecewise", "where(x > 0, x*log(x), x^2)", ["x"], box={"x": (-1, 2)})
    values = found.loss([[0.0], [-1e-300], [1e-300], [-2.0]])
    assert np.isfinite(values).all() and values[3] == 4
    assert found.gradient([[-2.0]])[0, 0] == -4


# --- refusals -------------------------------------------------------------------------------------------

X, PLAIN, POSITIVE = sympy.Symbol("x", real=True), sympy.Symbol("x"), sympy.Symbol("x", positive=True)


def test_a_symbol_without_assumptions_is_taken_for_real():
    found = PlainLoss.from_symbolic("plain", PLAIN**2, [PLAIN])
    assert found.gradient([3.0])[0, 0] == 6
    assert PlainLoss.from_symbolic("by name", PLAIN**2, ["x"]).gradient([3.0])[0, 0] == 6


@pytest.mark.parametrize(
    "loss, parameters, wrong",
    [
        (PLAIN**2 + X, [X], "'x'"),  # one name, two symbols
        (PLAIN**2, [X], "'x'"),
        (sympy.Abs(POSITIVE), [POSITIVE], "no other assumption"),
        (X**2 + sympy.Symbol("y"), [X], "'y'"),
        (sympy.I * X, [X], "real and finite"),
        (sympy.floor(X), [X], "kernel"),
        (sympy.Function("f")(X), [X], "kernel"),
        ("x^2 + y", ["x"], "y"),
        ("x^2", [], "one to six"),
        ("x^2", list("abcdefg"), "one to six"),
        ("x^2", ["x", "x"], "one to six"),
        ("x^2", ["not a name"], "one to six"),
        ("log(x - 5)", ["x"], "real number"),
        ("log(-1 - x^2)", ["x"], "real"),
        ("where(x > 0, 1 + x, x)", ["x"], "continuous"),
        ("x^2*sign(x - 1)", ["x"], "continuous"),
        ("__import__('os').system('true')", ["x"], "'expression' parameter of refused"),
    ],
    ids=str,
)
def test_what_cannot_be_used_is_refused_with_a_reason(loss, parameters, wrong):
    with pytest.raises(ParameterError, match=wrong):
        PlainLoss.from_symbolic("refused", loss, parameters)


def test_architectures_are_refused_that_do_not_fit():
    with pytest.raises(ParameterError, match="1 symbols"):
        Architecture.from_symbolic("crooked", ["x"], logits=[["x", "0"]]).on(ABOVE).kernels
    with pytest.raises(ParameterError, match="both"):
        Architecture.from_symbolic("nothing", ["x"])
    with pytest.raises(ParameterError, match="2 symbols"):
        Architecture.from_symbolic("two", ["x"], logits=[["x", "0"], ["0", "x"]]).on(SymmetricChain(3, 0.4)).kernels


def test_a_module_that_was_tampered_with_is_written_anew():
    found = PlainLoss.from_symbolic("tampered", "x^2 + 17*x", ["x"])
    path = found.kernels.__file__
    with open(path, "a", encoding="utf-8") as file:
        file.write("\nraise SystemExit('tampered')\n")
    load.cache_clear()
    assert PlainLoss.from_symbolic("tampered", "x^2 + 17*x", ["x"]).loss([1.0])[0] == 18


# --- architectures and chains of one's own ---------------------------------------------------------------


def test_the_canonical_gap_by_the_general_route_is_the_canonical_architecture():
    own = Architecture.from_symbolic("own", ["e", "w"], gap="e^2*(1 + 2*w*abs(w))")
    starts = np.random.default_rng(3).uniform(-2, 2, size=(400, 2))
    for chain in (ABOVE, BELOW):
        for kernel in (landscape.loss, landscape.gradient, landscape.hessian):
            assert np.allclose(kernel(chain, starts, own), kernel(chain, starts), rtol=1e-11, atol=1e-13)
        assert (landscape.flow(chain, starts, own).labels == landscape.limit(chain, starts)).all()
        kinds = {(found.kind, found.dimension) for found in landscape.critical_sets(chain, own)}
        assert {("global minima", 1), ("local minima", 1), ("maxima", 1)} <= kinds


def test_logits_of_the_canonical_model_with_its_bias():
    """The bias as a parameter: its critical sets are those of the minimised loss, maxima turn to saddles."""
    gap, bias = "e^2*(1 + 2*w*abs(w))", "b"
    own = Architecture.from_symbolic("logits", ["e", "w", "b"], logits=[["0", bias], ["0", f"{gap} + {bias}"]])
    found = own.on(ABOVE)
    check_derivatives(found, np.random.default_rng(2).uniform(-1.5, 1.5, size=(30, 3)))
    at_best = min(found.loss(np.array([[0.7, -1.2, b] for b in np.linspace(-4, 4, 8001)])))
    assert at_best == pytest.approx(landscape.loss(ABOVE, (0.7, -1.2))[0], abs=1e-6)
    ends = landscape.flow(found, [(1, -1, 0), (0.3, 0.5, 0), (0, 1, 0)])
    assert ends.words == ["global", "local", "local"]
    assert landscape.classify(ABOVE, (1, -1, 0), own)[0].kappa == pytest.approx(-1.0)


def test_untied_has_no_bad_minimum():
    own = Architecture.from_symbolic("untied", ["e", "c", "w"], gap="e*c*(1 + 2*w*abs(w))")
    starts = np.random.default_rng(4).uniform(-2, 2, size=(1000, 3))
    for chain in (ABOVE, BELOW):
        found = landscape.flow(chain, starts, own)
        assert set(found.words) == {"global"}
        assert np.allclose(own.kappa(chain, found.ends), chain.kappa_star, rtol=1e-6)


LAZY = "log(1 + exp(kappa)) - (1 - r)*kappa"


def test_a_new_chain_gets_loss_sets_maps_and_exact_limits():
    """A symmetric two-state chain by its φ_S: that of `SymmetricChain(2, r)`, whose kernels are derived apart."""
    lazy, known = Chain.from_symbolic("lazy", LAZY, values={"r": 0.8}), SymmetricChain(2, 0.8)
    gaps = np.linspace(-30, 30, 41)
    for name in ("phi", "phi_prime", "phi_second"):
        assert np.allclose(getattr(lazy, name)(gaps), getattr(known, name)(gaps), rtol=1e-12, atol=1e-14)
    assert lazy.kappa_star == pytest.approx(known.kappa_star, rel=1e-12) and lazy.regime == known.regime == "above"
    assert lazy.bigram_loss == pytest.approx(known.bigram_loss) and lazy.unigram_loss == pytest.approx(math.log(2))
    starts = np.random.default_rng(6).uniform(-2, 2, size=(300, 2))
    exact = landscape.limit(lazy, starts)
    assert (landscape.flow(lazy, starts).labels == exact).all() and len(set(exact)) == 2
    assert landscape.fractions(landscape.basin_map(lazy, e=(-2, 2, 101), w=(-2, 2, 101)))["local"] == pytest.approx(0.557, abs=0.01)
    own = Architecture.from_symbolic("own", ["e", "w"], gap="e^2*(1 + 2*w*abs(w))")
    assert (landscape.flow(lazy, starts, own).labels == exact).all()
    with pytest.raises(ParameterError, match="symbols"):
        landscape.flow(lazy, [(1.0,)], Architecture.from_symbolic("l", ["x"], logits=[["x", "0"], ["0", "x"]]))


def test_a_new_architecture_gets_flow_sets_maps_and_plots(tmp_path):
    """κ = x y on a chain below the threshold: the hyperbola x y = κ* of global minima and the strict saddle 0."""
    own = Architecture.from_symbolic("product", ["x", "y"], gap="x*y", box={"x": (-3, 3), "y": (-3, 3)})
    sets = landscape.critical_sets(BELOW, own)
    assert [(found.kind, found.dimension, found.index, found.nullity) for found in sets] == [
        ("global minima", 1, 0, 1), ("global minima", 1, 0, 1), ("saddles", 0, 1, 0)
    ]
    assert sets[0].loss == pytest.approx(BELOW.bigram_loss) and sets[2].loss == pytest.approx(BELOW.unigram_loss)
    made = landscape.basin_map(BELOW, own, x=(-2, 2, 41), y=(-2, 2, 41))
    x, y = np.meshgrid(made["x"], made["y"], indexing="ij")
    side = np.sign(np.round(x + y, 12))
    assert (made["label"].values[side != 0] == landscape.Label.GLOBAL).all()
    assert set(made["label"].values[side == 0]) <= {landscape.Label.SADDLE, landscape.Label.UNDECIDED}
    assert len({int(a) for a in made["attractor"].values[side > 0]}) == 1
    assert set(made["attractor"].values[side > 0]) != set(made["attractor"].values[side < 0])
    from landscape import gallery

    gallery.draw_map(own.on(BELOW), made["label"].values, {"x": made["x"].values, "y": made["y"].values}, tmp_path / "map.png", made)
    ways = [landscape.trajectory(BELOW, start, own) for start in ((1, 0.2), (1, -1), (-0.5, 0.1))]
    assert [way.label for way in ways] == ["global", "saddle", "global"]
    for way in ways:
        states = way.sample()[1]
        assert np.ptp(states[:, 0] ** 2 - states[:, 1] ** 2) < 1e-6  # what balancedness conserves
    gallery.draw_trajectories(ways, tmp_path / "ways.pdf")
    assert (tmp_path / "map.png").stat().st_size > 10_000 and (tmp_path / "ways.pdf").stat().st_size > 5_000
    state = integrate.solve_ivp(lambda t, z: -landscape.gradient(BELOW, z, own)[0], (0, 3), (1, 0.2), rtol=1e-10, atol=1e-12).y[:, -1]
    assert landscape.trajectory(BELOW, (1, 0.2), own, t_max=3, tolerance=0)(3.0) == pytest.approx(state, abs=1e-7)


def test_exact_limits_are_refused_where_there_is_no_rule():
    own = Architecture.from_symbolic("product", ["x", "y"], gap="x*y")
    for ask in (
        lambda: landscape.limit(BELOW, (1, 1), own), lambda: landscape.basin_map(BELOW, own, method="exact", x=(0, 1, 3), y=(0, 1, 3)),
        lambda: landscape.classify(BELOW, (1, 1), own, method="exact"),
    ):
        with pytest.raises(ParameterError, match="'flow'"):
            ask()
    with pytest.raises(ParameterError, match="separatrix"):
        landscape.separatrix(BELOW, own)
    found = landscape.classify(BELOW, (1, 1), own)[0]
    assert found.label == "global" and found.margin is None and found.kappa == 1


# --- files ----------------------------------------------------------------------------------------------


def write(tmp_path, text):
    path = tmp_path / "own.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_files_define_losses_architectures_and_chains(tmp_path):
    loss = read_definition(write(tmp_path, 'parameters = ["x"]\nloss = "x^2"\nminimum = 0\n[box]\nx = [-1, 3]\n')).loss
    assert loss.box == {"x": (-1, 3)} and loss.minimum == 0 and loss.loss([3.0])[0] == 9
    both = read_definition(write(
        tmp_path, f'parameters = ["e", "w"]\ngap = "e^2*(1+2*w*abs(w))"\n[chain]\nphi = "{LAZY}"\nvalues = {{r = 0.8}}\n'
    ))
    assert landscape.flow(both.chain, (1, -1), both.architecture).words == ["global"]
    table = read_definition(write(tmp_path, 'parameters = ["x"]\nlogits = [["x", "0"], ["0", "x"]]\n')).architecture
    assert landscape.flow(BELOW, [(0.5,)], table).outcomes[0] == 0


@pytest.mark.parametrize(
    "text, wrong",
    [
        ("parameters = [", "TOML"),
        ('parameters = ["x"]\n', "'loss'"),
        ('parameters = ["x"]\nloss = "x"\ngap = "x"\n', "one of"),
        ('parameters = ["x"]\nloss = 3\n', "right type"),
        ('parameters = ["x"]\nloss = "x^2"\nfrobnicate = 1\n', "frobnicate"),
        ('parameters = ["x"]\nloss = "x^2"\n[box]\nx = 3\n', "pairs"),
        ('parameters = ["x"]\nloss = "x^2"\n[box]\ny = [0, 1]\n', "'box'"),
        ('parameters = ["x"]\nloss = "open(x)"\n', "open"),
        ('parameters = ["x"]\nlogits = [[1, 2]]\n', "quotes"),
        ('parameters = ["x"]\ngap = "x"\n[chain]\nname = "n"\n', "'phi'"),
    ],
)
def test_files_that_cannot_be_used_are_refused_with_a_reason(tmp_path, text, wrong):
    with pytest.raises(ParameterError, match=wrong):
        read_definition(write(tmp_path, text))
