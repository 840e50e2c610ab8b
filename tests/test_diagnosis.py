"""Diagnosis: exact losses, stages that are true of trained models, evidence, checkpoints that are read and those that are not."""

import itertools
import os
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import landscape  # noqa: E402
from landscape import BinaryChain, ParameterError, SymmetricChain, diagnose, pytorch  # noqa: E402
from landscape.checkpoints import read_checkpoint  # noqa: E402
from landscape.forward import expected_loss, models_of  # noqa: E402
from landscape.weights import weights_of  # noqa: E402
from tests.conftest import ROOT, strict  # noqa: E402
from tests.small_models import Small, names_of  # noqa: E402
from validation.starts import gaussian_  # noqa: E402
from validation.transformer import Transformer, TransformerConfig  # noqa: E402

ABOVE, BELOW = BinaryChain(0.5, 0.8), BinaryChain(0.2, 0.3)
NONE = TransformerConfig(length=8, attention="none", dtype="float64")


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def at_best_bias(chain, e, w, config=NONE, **more):
    """A model on the slice with the bias that is best there."""
    kappa = e**2 * (1 + 2 * w * abs(w))
    constant = -(e**2) / 2 * (1.0 if e > 0 else 1 + 4 * w * abs(w))
    return pytorch.canonical_(Transformer(config, 1), e, w, bias=chain.best_bias(kappa) - constant, **more)


# --- the model in NumPy ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [{}, {"tied": False}, {"heads": 2}, {"symbols": 5}, {"symbols": 2, "tied": False}, {"attention": "none"}, {"attention": "linear", "heads": 2}, {"score_scale": 0.7}])
def test_logits_are_those_of_the_transformer(kind):
    config = TransformerConfig(length=9, hidden=7, dtype="float64", **kind)
    model = gaussian_(Transformer(config, 3), 0.8, generator=seeded())
    with torch.no_grad():
        model.bias.normal_(generator=seeded(1))
    symbols = torch.randint(0, config.symbols or 2, (3, 5, 9), generator=seeded(2))
    expected = model(symbols).detach().numpy()
    for k, each in enumerate(models_of(weights_of("test", model))):
        logits = each.logits(symbols[k].numpy())
        found = logits if config.symbols else logits[..., 1] - logits[..., 0]
        assert found == pytest.approx(expected[k], abs=1e-12)


def test_the_expected_loss_is_that_of_all_sequences():
    """Without attention: against every sequence of three symbols with its probability, through the torch model."""
    for chain, config in ((ABOVE, NONE), (SymmetricChain(3, 0.8), TransformerConfig(length=2, attention="none", symbols=3, dtype="float64"))):
        model = gaussian_(Transformer(config, 1), 0.9, generator=seeded(3))
        every = np.array(list(itertools.product(range(chain.states), repeat=3)))
        weights = chain.joint_law[every[:, 0], every[:, 1]] * chain.transition[every[:, 1], every[:, 2]]
        losses = model.losses(torch.from_numpy(every)[None]).detach().numpy()[0].mean(axis=1)
        state = {name: tensor[:, :2] if name == "positions" else tensor for name, tensor in model.state_dict().items()}
        assert expected_loss(models_of(weights_of("test", state))[0], chain) == pytest.approx(weights @ losses, abs=1e-13)


@pytest.mark.parametrize("chain", [ABOVE, BELOW], ids=str)
@pytest.mark.parametrize(("e", "w"), [(1.0, -1.0), (0.7, 0.4), (-1.3, -0.6), (-0.5, 1.2)])
def test_on_the_slice_loss_and_gap_are_those_of_the_landscape(chain, e, w):
    (found,) = diagnose(at_best_bias(chain, e, w), chain, flow=False)
    point = landscape.classify(chain, [(e, w)])[0]
    assert (found.loss, found.kappa) == pytest.approx((point.loss, point.kappa), abs=1e-12) and found.loss_error == 0.0
    assert (found.e, found.w, found.across, found.residual) == pytest.approx((e, w, 0.0, 0.0), abs=1e-14)
    assert (found.canonical, found.margin, found.distance) == (
        point.label, pytest.approx(point.margin, abs=1e-12) if point.margin else None, pytest.approx(point.distance, abs=1e-12) if point.distance else None,
    )
    assert found.rank == 1 and found.attention == 0.0 and found.transverse is None


def test_what_is_measured_with_attention_has_the_error_that_is_said():
    """64 sequences against 20,000, by their own standard errors; and where there is no attention, against the exact loss."""
    model = gaussian_(Transformer(TransformerConfig(length=12, dtype="float64"), 1), 1.0, generator=seeded(5))
    (many,) = diagnose(model, ABOVE, flow=False, sequences=20_000, seed=1)
    few = [diagnose(model, ABOVE, flow=False, sequences=200, seed=seed)[0] for seed in range(40)]
    scores = np.array([(each.loss - many.loss) / each.loss_error for each in few])
    assert 0.7 < scores.std() < 1.4 and abs(scores.mean()) < 0.6 and few[0].loss_error > 10 * many.loss_error > 0.0
    with torch.no_grad():
        model.value.zero_()
    (exact,) = diagnose(model, ABOVE, flow=False)
    by_hand = diagnose(model, ABOVE, flow=False, logits=lambda symbols: model(torch.from_numpy(symbols)[None])[0], sequences=4000)[0]
    assert exact.loss_error == 0.0 and by_hand.loss == pytest.approx(exact.loss, abs=max(5 * by_hand.loss_error, 1e-9))
    assert by_hand.kappa == pytest.approx(exact.kappa, abs=0.05 * abs(exact.kappa) + 1e-3)


# --- stages --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chain", [ABOVE, BELOW], ids=str)
def test_a_share_of_the_difference_decides(chain):
    """Between the losses the bias is best, and the gap runs from 0 to the optimal one."""
    w = -1.5 if chain is ABOVE else 0.5
    shares, stages = [], []
    for part in np.linspace(0.02, 1.0, 24):
        e = np.sqrt(part * chain.kappa_star / (1 + 2 * w * abs(w)))
        (found,) = diagnose(at_best_bias(chain, e, w), chain, flow=False)
        assert found.share == pytest.approx((found.loss - chain.bigram_loss) / (chain.unigram_loss - chain.bigram_loss), abs=1e-12)
        shares.append(found.share)
        stages.append(found.stage)
    assert (np.diff(shares) < 0).all() and set(stages) == {"plateau", "on its way", "global"}
    assert all(stage == ("global" if share <= 0.1 else "plateau" if share >= 0.9 else "on its way") for stage, share in zip(stages, shares))


def test_the_plateau_holds_above_the_threshold_and_not_below():
    for chain, w, canonical, transverse in ((ABOVE, 0.5, "local", "local"), (BELOW, -1.5, "local", "global")):
        model = at_best_bias(chain, -0.05, w, noise=1e-3, generator=seeded(1))
        (found,) = diagnose(model, chain)
        assert (found.stage, found.canonical, found.transverse) == ("plateau", canonical, transverse), chain
        assert found.words.startswith("It is at the unigram plateau.") and ("but the flow of `transverse`" in found.words) == (canonical != transverse)


def test_the_flow_has_the_speed_of_the_positions():
    """Local for small e > 0 iff w > -1 / sqrt(3 + 4 s) with s = 1 / N (derivations/reduced-critical-sets.md): -0.5345 for N = 8."""
    found = [diagnose(at_best_bias(ABOVE, 0.01, w), ABOVE)[0].transverse for w in (-0.52, -0.55)]
    assert found == ["local", "global"]


def test_every_model_of_an_ensemble_is_diagnosed():
    model = pytorch.canonical_(Transformer(TransformerConfig(length=8), 3), [1.0, 0.3, 0.2], [-1.0, 0.5, -0.9], noise=0.01, generator=seeded())
    with torch.no_grad():
        model.embedding[2, 0] = float("nan")
    found = diagnose(model, ABOVE)
    assert [each.stage for each in found][2] == "not finite" and [each.canonical for each in found] == ["global", "local", "invalid"]
    assert "weights that are not finite" in found[2].words and found[2].loss is None
    assert found[1].words.startswith("It is on its way, still above the unigram loss.") and 0.0 < found[1].loss_error < 1e-3


def test_an_untied_model_is_judged_by_its_own_landscape():
    config = TransformerConfig(length=8, attention="none", tied=False, dtype="float64")
    for head, label in ((1.0, "global"), (-0.4, "global")):
        (found,) = diagnose(pytorch.canonical_(Transformer(config, 1), 0.5, 0.3, head=head), ABOVE)
        assert found.untied == landscape.classify(ABOVE, [(0.5, head, 0.3)], "untied")[0].label == label
        assert found.canonical is None and found.transverse is None and "`untied`" in found.words


def test_many_symbols():
    chain = SymmetricChain(5, 0.9)
    config = TransformerConfig(length=8, symbols=5, attention="none", dtype="float64")
    e = np.sqrt(chain.kappa_star / landscape.architecture("canonical").kappa(chain, [(1.0, -1.5)])[0])
    (found,) = diagnose(pytorch.simplex_(Transformer(config, 1), e, -1.5, generator=seeded()), chain)
    assert found.stage == "global" and found.loss == pytest.approx(chain.bigram_loss, abs=1e-12) and found.loss_error == 0.0
    assert found.kappa == pytest.approx(chain.kappa_star, abs=1e-12) and found.rank == 4 and found.across is None
    (weak,) = diagnose(pytorch.simplex_(Transformer(config, 1), 0.05, -0.1, generator=seeded()), chain)
    assert weak.stage == "plateau" and weak.canonical == "local" and "rank 4" in weak.words


def test_many_symbols_with_a_head_of_their_own():
    chain, config = SymmetricChain(5, 0.9), TransformerConfig(length=8, symbols=5, attention="none", tied=False, dtype="float64")
    model = pytorch.simplex_(Transformer(config, 2), [0.9, -0.4], -0.7, generator=seeded())
    with torch.no_grad():
        model.head.mul_(torch.tensor([1.5, -2.0])[:, None, None])
    found = diagnose(model, chain)
    expected = landscape.classify(chain, [(0.9, 1.35, -0.7), (-0.4, 0.8, -0.7)], "untied")
    assert [each.untied for each in found] == [each.label for each in expected] and [each.canonical for each in found] == [None, None]
    assert [each.kappa for each in found] == pytest.approx([each.kappa for each in expected], abs=1e-12)


def test_two_states_of_the_symmetric_chain_are_the_binary_chain():
    model = at_best_bias(BinaryChain(0.8, 0.8), 1.0, -1.0)
    assert diagnose(model, SymmetricChain(2, 0.8), flow=False) == diagnose(model, BinaryChain(0.8, 0.8), flow=False)


def test_at_the_threshold_there_is_one_loss():
    (found,) = diagnose(at_best_bias(BinaryChain(0.4, 0.6), 0.01, 0.1), BinaryChain(0.4, 0.6), flow=False)
    assert found.stage == "global" and found.share is None


def test_a_model_of_ones_own():
    torch.manual_seed(0)
    model = Small(fused=True, transposed=True)
    names = names_of(model)
    pytorch.canonical_(model, 0.9, -1.2, names=names, noise=0.01, generator=seeded(2))
    (found,) = diagnose(model, ABOVE, names=names, sequences=400)
    (measured,) = diagnose(model, ABOVE, names=names, logits=lambda symbols: model(torch.from_numpy(symbols)), sequences=400)
    for name, value in vars(found).items():  # NumPy's model of the theory is this model
        assert getattr(measured, name) == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value), name
    assert diagnose(model.state_dict(), ABOVE, names=names, sequences=400)[0] == found and found.notes == ()
    assert found.canonical == "global" and found.transverse is None  # two rows move in another metric
    with torch.no_grad():
        model.up.bias[0] = 0.1
    (unknown,) = diagnose(model, ABOVE, names=names)
    assert (unknown.stage, unknown.loss, unknown.kappa) == ("unknown", None, None) and unknown.canonical == "global"
    assert any("biases" in note for note in unknown.notes) and any("logits=" in note for note in unknown.notes)
    assert diagnose(model, ABOVE, names=names, logits=lambda symbols: model(torch.from_numpy(symbols)))[0].stage != "unknown"


@pytest.mark.parametrize("config", [{"norm": True}, {"layers": 2}])
def test_what_the_theory_does_not_have_is_said(config):
    (found,) = diagnose(gaussian_(Transformer(TransformerConfig(length=8, **config), 1), generator=seeded()), ABOVE, flow=False)
    assert found.stage == "unknown" and any("have no role" in note for note in found.notes)


def test_a_symbol_that_did_not_occur_leaves_the_loss_unknown():
    chain = BinaryChain(1e-6, 0.5)
    model = pytorch.canonical_(Transformer(TransformerConfig(length=4, dtype="float64"), 1), 1.0, -1.0, attention=0.1)
    (found,) = diagnose(model, chain, flow=False, sequences=2)
    assert found.stage == "unknown" and found.loss is None and any("did not occur" in note for note in found.notes)


def test_diagnose_refuses():
    model = Transformer(TransformerConfig(length=8), 2)
    for call, match in (
        (lambda: diagnose(model, SymmetricChain(5, 0.3)), "'states' parameter of diagnose must be 2"), (lambda: diagnose(model, 3), "'chain'"),
        (lambda: diagnose(model, BinaryChain(1.0, 0.3)), "strictly between"), (lambda: diagnose(model, ABOVE, sequences=1), "'sequences'"),
        (lambda: diagnose(model, ABOVE, logits=lambda x: x), "side by side"), (lambda: diagnose({}, ABOVE), "'names'"),
        (lambda: diagnose(model.member(0), ABOVE, logits=lambda x: np.zeros((2, 2))), "a function that gives shape"),
    ):
        with pytest.raises(ParameterError, match=match):
            call()


# --- checkpoints --------------------------------------------------------------------------------------------------


class Hostile:
    """Unpickled, it makes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.fixture
def state(tmp_path):
    model = at_best_bias(ABOVE, 1.0, -1.1)
    torch.save(model.state_dict(), tmp_path / "model.pt")
    return model, tmp_path / "model.pt"


def test_a_checkpoint_is_diagnosed(call, state):
    model, path = state
    code, out, err = call("diagnose", path, "--p", ".5", "--q", ".8", "--json", "--no-flow")
    told, expected = strict(out)["models"][0], diagnose(model, ABOVE, flow=False)[0]
    assert code == 0 and err == "" and told["stage"] == expected.stage and told["loss"] == expected.loss and told["words"] == expected.words
    assert set(told) == set(vars(expected))
    code, out, err = call("diagnose", path, "--p", ".5", "--q", ".8", "--no-flow")
    assert code == 0 and out == expected.words + "\n"


@pytest.mark.parametrize("key", ["state_dict", "model_state_dict", "model"])
def test_a_state_may_be_nested(tmp_path, state, key):
    torch.save({"step": 3, "optimizer": {"lr": 0.1}, key: state[0].state_dict()}, tmp_path / "nested.pt")
    found = read_checkpoint(tmp_path / "nested.pt")
    assert found.keys() == state[0].state_dict().keys() and all(torch.equal(found[name], tensor) for name, tensor in state[0].state_dict().items())


@pytest.mark.parametrize("protocol", ["torch", "pickle", "nested"])
def test_a_hostile_pickle_is_refused_and_not_executed(call, tmp_path, protocol):
    touched, path = tmp_path / "touched", tmp_path / "model.pt"
    if protocol == "pickle":
        path.write_bytes(pickle.dumps({"embedding": Hostile(touched)}))
    else:
        torch.save({"embedding": Hostile(touched)} if protocol == "torch" else {"model": {"a": torch.ones(2)}, "more": Hostile(touched)}, path)
    code, out, err = call("diagnose", path, "--p", ".5", "--q", ".8")
    assert code == 2 and out == "" and err.count("\n") == 1 and "'CHECKPOINT'" in err and "tensors alone" in err
    assert not touched.exists() and sorted(tmp_path.iterdir()) == [path]
    if protocol == "pickle":  # the file is hostile indeed
        pickle.loads(path.read_bytes())
        assert touched.exists()


@pytest.mark.parametrize("content", [b"", b"x", b"\x80\x04N.", b"PK\x03\x04", os.urandom(200)])
@pytest.mark.parametrize("suffix", ["pt", "bin"])
def test_what_is_no_checkpoint_is_refused(call, tmp_path, content, suffix):
    path = tmp_path / f"model.{suffix}"
    path.write_bytes(content)
    code, out, err = call("diagnose", path, "--p", ".5", "--q", ".8")
    assert code == 2 and out == "" and err.count("\n") == 1 and "'CHECKPOINT'" in err


@pytest.mark.parametrize(("options", "named"), [
    (("--p", ".5"), "--q"), (("--p", "1", "--q", ".5"), "--p"), (("--states", "5", "--p", ".8"), "--states"),
    (("--p", ".5", "--q", ".8", "--names", "nothing.toml"), "--names"), (("--p", ".5", "--q", ".8", "--seed", "-1"), "--seed"),
])
def test_bad_values_name_their_option(call, state, options, named):
    code, out, err = call("diagnose", state[1], *options)
    assert code == 2 and out == "" and err.count("\n") == 1 and named in err


def test_names_on_the_command_line(call, tmp_path):
    torch.manual_seed(0)
    model = Small(head="scalar", fused=True)
    names = names_of(model)
    pytorch.canonical_(model, 1.0, -1.0, names=names, alpha=[1, 1, -1, -1])
    torch.save(model.state_dict(), tmp_path / "model.pt")
    lines = [f"{key} = {list(value) if isinstance(value, tuple) else value!r}".replace("'", '"') for key, value in vars(names).items() if value not in (None, (), False)]
    (tmp_path / "names.toml").write_text("\n".join(lines))
    arguments = ("diagnose", tmp_path / "model.pt", "--p", ".5", "--q", ".8", "--no-flow", "--json")
    code, out, err = call(*arguments)
    assert code == 2 and "--names" in err
    code, out, err = call(*arguments, "--names", tmp_path / "names.toml")
    told = strict(out)["models"][0]
    assert code == 0 and (told["e"], told["w"], told["kappa"]) == pytest.approx((1.0, -1.0, -1.0))
    (tmp_path / "names.toml").write_text("\n".join(lines).replace("up.weight", "top.weight"))
    code, out, err = call(*arguments, "--names", tmp_path / "names.toml")
    assert code == 2 and err.count("\n") == 1 and "--names" in err and "top.weight" in err


def test_safetensors(call, state, tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    try:
        from safetensors.torch import save_file
    except ImportError:
        path.write_bytes(b"x")
    else:
        save_file(state[0].state_dict(), path)
        code, out, err = call("diagnose", path, "--p", ".5", "--q", ".8", "--no-flow", "--json")
        assert code == 0 and strict(out)["models"][0]["loss"] == diagnose(state[0], ABOVE, flow=False)[0].loss
        (tmp_path / "bad.safetensors").write_bytes(b"x")
        assert call("diagnose", tmp_path / "bad.safetensors", "--p", ".5", "--q", ".8")[0] == 2
    monkeypatch.setitem(__import__("sys").modules, "safetensors.torch", None)
    code, out, err = call("diagnose", path, "--p", ".5", "--q", ".8")
    assert code == 2 and out == "" and err.count("\n") == 1 and "safetensors package" in err


def test_no_source_loads_a_pickle():
    """torch.load is called once, with weights_only=True, and pickle nowhere."""
    for folder in ("landscape", "validation"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            assert "weights_only=" + "False" not in text and "import pickle" not in text, path
            calls = text.count("torch.load(")
            assert calls == text.count("weights_only=True)") and calls == (path.name == "checkpoints.py"), path
