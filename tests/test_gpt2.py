"""GPT-2 of the transformers library through `gpt2_names`: exact gaps without layer norm and GELU, tied weights, what it says with them."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from torch import nn  # noqa: E402

import landscape  # noqa: E402
from landscape import BinaryChain, ParameterError, SymmetricChain, gpt2_names, pytorch  # noqa: E402
from landscape.projection import project  # noqa: E402
from landscape.weights import weights_of  # noqa: E402
from validation.gpt2 import GPT2Sizes, names  # noqa: E402

STARTS = [(1.0, -1.0), (0.7, 0.4), (-1.3, -0.6), (-0.5, 1.2)]


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def gpt2(width=4, layers=1, symbols=2, tied=True, heads=1, seed=0):
    """A `GPT2LMHeadModel` at its own random start, with biases that are not zero; in double precision."""
    torch.manual_seed(seed)
    config = transformers.GPT2Config(
        vocab_size=symbols, n_positions=16, n_embd=width, n_layer=layers, n_head=heads, bos_token_id=0, eos_token_id=0, resid_pdrop=0.0,
        embd_pdrop=0.0, attn_pdrop=0.0, tie_word_embeddings=tied,
    )
    model = transformers.GPT2LMHeadModel(config).double()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("bias"):
                weight.normal_()
    return model


def in_the_theory(model):
    """The same model with ReLU and without layer norms."""
    for block in model.transformer.h:
        block.ln_1 = block.ln_2 = nn.Identity()
        block.mlp.act = nn.ReLU()
    model.transformer.ln_f = nn.Identity()
    return model


def logit_of_one(model, symbols):
    found = model(torch.as_tensor(symbols)).logits.detach().numpy()
    return found[..., 1] - found[..., 0]


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize(("e", "w"), STARTS)
def test_without_layer_norm_and_gelu_it_has_the_canonical_gap(width, e, w):
    model = gpt2(width)
    pytorch.canonical_(model, e, w, names=gpt2_names(), generator=seeded())
    logits = logit_of_one(in_the_theory(model), [[0, 1, 1, 0, 1]])[0]
    constant = -(e**2) / 2 * (1.0 if e > 0 else 1 + 4 * w * abs(w))
    assert logits == pytest.approx(constant + e**2 * (1 + 2 * w * abs(w)) * np.array([0, 1, 1, 0, 1]), abs=1e-12)


def test_many_symbols_have_their_gap():
    for e, w in STARTS:
        model = gpt2(8, symbols=5)
        pytorch.simplex_(model, e, w, names=gpt2_names(), generator=seeded())
        logits = in_the_theory(model)(torch.arange(5)[:, None]).logits[:, 0].detach().numpy()
        kappa = landscape.architecture("canonical").kappa(SymmetricChain(5, 0.9), [(e, w)])[0]
        assert np.diag(logits) - logits[~np.eye(5, dtype=bool)].mean() == pytest.approx(np.full(5, kappa), abs=1e-12)


def test_tied_weights_stay_tied_and_layer_norms_as_they_are():
    model = gpt2(8)
    with torch.no_grad():
        model.transformer.ln_f.weight.normal_()
    kept = {name: weight.clone() for name, weight in model.named_parameters() if ".ln_" in name}
    pointers = {name: weight.data_ptr() for name, weight in model.named_parameters(remove_duplicate=False)}
    pytorch.around_(model, names=gpt2_names(), generator=seeded())
    assert {name: weight.data_ptr() for name, weight in model.named_parameters(remove_duplicate=False)} == pointers
    assert model.lm_head.weight is model.transformer.wte.weight
    for name, weight in model.named_parameters():
        if ".ln_" in name:
            assert torch.equal(weight, kept[name])
        else:
            assert bool(weight.any()) != name.endswith("bias"), name
    # before a layer norm, which takes the mean away, alpha has as many +1 as -1
    assert project(model, gpt2_names()).alpha.sum() == 0.0


def test_an_untied_head_and_other_layers():
    model = gpt2(4, layers=2, tied=False)
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    pytorch.canonical_(model, 0.5, -1.2, names=gpt2_names(1, tied=False), head=1.5, generator=seeded())
    found = project(model, gpt2_names(1, tied=False))
    assert (found.e[0], found.head[0]) == pytest.approx((found.canonical[0, 0], 3 * found.canonical[0, 0])) and found.canonical[0] == pytest.approx([0.5, -1.2])
    assert all(torch.equal(weight, before[name]) for name, weight in model.named_parameters() if ".h.0." in name)
    with pytest.raises(ParameterError, match="'head' parameter"):
        pytorch.canonical_(gpt2(), 0.5, -1.2, names=gpt2_names(), head=1.5)
    with pytest.raises(ParameterError, match="Got 'transformer.h.3."):
        pytorch.canonical_(gpt2(), names=gpt2_names(3))
    assert weights_of("test", gpt2(4, layers=2), gpt2_names()).unnamed[0] == "transformer.h.1.ln_1.weight"
    assert weights_of("test", gpt2(), gpt2_names()).unnamed == ()


@pytest.mark.parametrize(("e", "w"), STARTS)
def test_what_was_put_in_is_found_again(e, w):
    model = gpt2(8, heads=2)
    names_of = gpt2_names(heads=2)
    pytorch.canonical_(model, e, w, names=names_of, attention=0.1, generator=seeded(3))
    for source in (model, model.state_dict()):
        found = project(source, names_of)
        assert found.canonical[0] == pytest.approx([e, w], abs=1e-12) and found.c[0] == pytest.approx(-e / 2) and found.residual[0] < 1e-12


def test_layer_norm_fixes_the_length_of_the_stream():
    """On the slice, with layer norms, the gap is 2 e sqrt(d) times the sign that MLP and skip connection together give the stream."""
    for e, w, side in ((1.0, -1.0, -1.0), (1.0, 0.1, 1.0), (-0.6, -1.0, -1.0)):
        model = gpt2(8)
        pytorch.canonical_(model, e, w, names=gpt2_names(), generator=seeded())
        assert np.diff(logit_of_one(model, [[0, 1]]))[0] == pytest.approx(side * 2 * abs(e) * math.sqrt(8), rel=0.02)


def test_a_diagnosis_says_what_it_cannot_say():
    model, chain = gpt2(8), BinaryChain(0.5, 0.8)
    pytorch.around_(model, names=gpt2_names(), generator=seeded())
    (unknown,) = landscape.diagnose(model, chain, names=gpt2_names(), flow=False)
    assert unknown.stage == "unknown" and unknown.loss is None and unknown.canonical == "global"
    assert any("layer norm" in note for note in unknown.notes) and any("gelu" in note for note in unknown.notes)
    logits = lambda symbols: model(torch.from_numpy(symbols)).logits  # noqa: E731
    (measured,) = landscape.diagnose(model, chain, names=gpt2_names(), logits=logits, flow=False, sequences=500)
    symbols = chain.sample(17, 4000, seed=3)
    with torch.no_grad():
        expected = nn.functional.cross_entropy(logits(symbols[:, :-1]).flatten(0, 1), torch.from_numpy(symbols[:, 1:]).flatten()).item()
    assert measured.loss == pytest.approx(expected, abs=0.02) and measured.loss > chain.bigram_loss and measured.stage != "unknown"


def test_a_path_is_recorded_on_the_way():
    model, chain = gpt2(4).float(), BinaryChain(0.5, 0.8)
    pytorch.around_(model, names=gpt2_names(), generator=seeded())
    watch = landscape.PathRecorder(model, every=5, names=gpt2_names())
    stepper = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(11):
        symbols = torch.from_numpy(chain.sample(16, 8, seed=1))
        loss = model(symbols, labels=symbols).loss
        watch(loss)
        stepper.zero_grad()
        loss.backward()
        stepper.step()
    path = watch.dataset()
    assert path["step"].values.tolist() == [0, 5, 10] and np.isfinite(path["e"]).all() and np.ptp(path["e"].values) > 1e-3
    assert np.isfinite(path["loss"]).all() and model.lm_head.weight is model.transformer.wte.weight


def test_a_saved_model_is_diagnosed(call, tmp_path):
    from tests.conftest import strict

    model = gpt2(4)
    pytorch.canonical_(model, 1.0, -1.0, names=gpt2_names(), generator=seeded())
    lines = [f"{key} = {list(value) if isinstance(value, tuple) else value!r}".replace("'", '"') for key, value in vars(gpt2_names()).items() if value not in (None, (), False)]
    (tmp_path / "names.toml").write_text("\n".join(lines))
    model.save_pretrained(tmp_path)  # safetensors, the tied head left out
    torch.save(model.state_dict(), tmp_path / "model.pt")
    for name in ("model.safetensors", "model.pt"):
        code, out, err = call("diagnose", tmp_path / name, "--p", ".5", "--q", ".8", "--names", tmp_path / "names.toml", "--no-flow", "--json")
        told = strict(out)["models"][0]
        assert code == 0 and (told["e"], told["w"], told["canonical"], told["loss"]) == (pytest.approx(1.0), pytest.approx(-1.0), "global", None)


# --- many at once -----------------------------------------------------------------------------------------------


def test_models_side_by_side_are_the_librarys():
    model = GPT2Sizes(length=8, dimension=4).build(3)
    pytorch.around_(model, names=names(), generator=seeded())
    symbols = torch.from_numpy(BinaryChain(0.5, 0.8).sample(9, 15, seed=0)).reshape(3, 5, 9)
    losses = model.losses(symbols)
    losses.mean(dim=(1, 2)).sum().backward()
    for k in range(3):
        single = GPT2Sizes(length=8, dimension=4).single()
        single.load_state_dict({name.replace("/", "."): weight[k] for name, weight in model.state_dict().items()}, strict=False)
        single.tie_weights()
        expected = nn.functional.cross_entropy(single(symbols[k, :, :-1]).logits.flatten(0, 1), symbols[k, :, 1:].flatten(), reduction="none")
        assert losses[k].flatten().detach().numpy() == pytest.approx(expected.detach().numpy(), abs=1e-6)
        expected.mean().backward()
        for name, weight in single.named_parameters():
            own = dict(model.named_parameters())[name.replace(".", "/")].grad[k]
            assert torch.allclose(own, weight.grad, atol=1e-6), name
    assert weights_of("test", model, names()).unnamed == ()
