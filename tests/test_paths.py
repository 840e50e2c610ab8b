"""Recording a training's path: which steps, what coordinates, files, and the figure over a basin map."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import xarray  # noqa: E402

from landscape import BinaryChain, ParameterError, PathRecorder, SymmetricChain, pytorch  # noqa: E402
from landscape.gallery.path import draw_path  # noqa: E402
from landscape.projection import project  # noqa: E402
from tests.small_models import Small, names_of  # noqa: E402
from validation import data  # noqa: E402
from validation.transformer import Transformer, TransformerConfig  # noqa: E402

CHAIN = BinaryChain(0.5, 0.8)


def trained(steps=25, every=10, config=TransformerConfig(length=16, dtype="float64"), chain=CHAIN, members=2):
    """A recorded training of an ensemble, and the projections at each step."""
    model = Transformer(config, members)
    start = pytorch.canonical_ if config.symbols is None else pytorch.simplex_
    start(model, np.linspace(1.0, -0.8, members), -1.0, noise=0.01, generator=torch.Generator().manual_seed(0))
    watch, seen = PathRecorder(model, every=every), []
    batches = data.batches([chain] * members, [data.stream(0, k, "training") for k in range(members)], 16, 8)
    stepper = torch.optim.SGD(model.parameters(), lr=0.3)
    for step in range(steps):
        losses = model.losses(next(batches)).mean(dim=(1, 2))
        seen.append((project(model), losses.detach().numpy().copy()))
        assert watch(losses) == (step % every == 0)
        stepper.zero_grad()
        losses.sum().backward()
        stepper.step()
    return watch, seen


def of_rows():
    """The path of a model with a row for each symbol."""
    model = Small()
    watch = PathRecorder(model, names=names_of(model))
    watch()
    return watch.dataset()


def test_each_record_is_the_projection_and_the_loss_of_its_step():
    watch, seen = trained()
    path = watch.dataset()
    assert path["step"].values.tolist() == [0, 10, 20] and dict(path.sizes) == {"step": 3, "model": 2, "entry": 4}
    for row, step in enumerate((0, 10, 20)):
        found, losses = seen[step]
        for name in ("c", "w1", "w2", "a", "b", "u", "residual", "head", "alpha"):
            assert np.array_equal(path[name].values[row], getattr(found, name)), name
        assert np.array_equal(np.stack([path["e"].values[row], path["w"].values[row]], axis=1), found.canonical)
        assert np.array_equal(path["loss"].values[row], losses)
    assert np.abs(path["e"].diff("step")).min() > 1e-4  # it moved
    assert (path.attrs["positions"], path.attrs["width"], path.attrs["hidden"]) == (16, 4, 16)
    assert all("long_name" in path[name].attrs for name in path.data_vars)


def test_a_given_direction_of_the_other_sign_means_the_same():
    model = Transformer(TransformerConfig(dtype="float64"), 1)
    pytorch.canonical_(model, 0.7, -0.9, alpha=[1, -1, 1, 1], noise=0.01, generator=torch.Generator().manual_seed(1))
    paths = []
    for alpha in ([1, -1, 1, 1], [-1, 1, -1, -1]):
        watch = PathRecorder(model, alpha=alpha)
        watch(0.5)
        paths.append(watch.dataset())
    xarray.testing.assert_allclose(*paths, atol=1e-14)


def test_the_step_can_be_given_and_the_loss_left_out():
    model = Small()
    watch = PathRecorder(model, every=100, names=names_of(model))
    assert [watch(step=step) for step in (0, 50, 200)] == [True, False, True]
    path = watch.dataset()
    assert path["step"].values.tolist() == [0, 200] and np.isnan(path["loss"]).all() and path.sizes["model"] == 1


def test_a_path_is_written_and_read_back(tmp_path):
    watch, _ = trained(steps=3, every=1)
    watch.write(tmp_path / "path.nc")
    with xarray.open_dataset(tmp_path / "path.nc", engine="h5netcdf") as read:
        xarray.testing.assert_identical(read.load(), watch.dataset())


def test_refusals(tmp_path):
    model = Transformer(TransformerConfig(), 2)
    watch = PathRecorder(model)
    with pytest.raises(ParameterError, match="at least once"):
        watch.dataset()
    for call, match in (
        (lambda: watch(np.ones(3)), "one for each of 2 models"), (lambda: watch(step=-1), "'step'"), (lambda: PathRecorder(model, every=0), "'every'"),
        (lambda: PathRecorder(Small()), "'names'"), (lambda: PathRecorder(model, alpha=[1, 2, 3, 4]), "'alpha'"),
        (lambda: draw_path(CHAIN, xarray.Dataset({"e": ("x", [1.0])}), tmp_path / "a.png"), "'path'"),
        (lambda: draw_path(CHAIN, trained(steps=1)[0].dataset(), tmp_path / "a.jpg"), "'file'"),
        (lambda: draw_path(CHAIN, trained(steps=1)[0].dataset(), tmp_path / "a.png", architecture="untied"), "'architecture'"),
        (lambda: draw_path(CHAIN, of_rows(), tmp_path / "a.png", architecture="transverse"), "another metric"),
        (lambda: draw_path(BinaryChain(1.0, 0.5), trained(steps=1)[0].dataset(), tmp_path / "a.png"), "'p'"),
    ):
        with pytest.raises(ParameterError, match=match):
            call()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_path_is_drawn(tmp_path, suffix):
    watch, _ = trained(steps=12, every=3)
    watch.write(tmp_path / "path.nc")
    draw_path(CHAIN, tmp_path / "path.nc", tmp_path / f"path.{suffix}")
    assert (tmp_path / f"path.{suffix}").stat().st_size > 10_000


def test_a_path_of_many_symbols_is_drawn(tmp_path):
    config, chain = TransformerConfig(length=16, symbols=5, dtype="float64"), SymmetricChain(5, 0.9)
    watch, _ = trained(steps=4, every=2, config=config, chain=chain, members=1)
    draw_path(chain, watch.dataset(), tmp_path / "path.png")
    assert (tmp_path / "path.png").stat().st_size > 10_000


def test_what_is_drawn_is_the_path(monkeypatch, tmp_path):
    from landscape import plots

    drawn = []
    monkeypatch.setattr(plots, "routes", lambda axis, found: drawn.extend(found))
    watch, _ = trained(steps=12, every=3)
    path = watch.dataset()
    draw_path(CHAIN, path, tmp_path / "path.png")
    assert len(drawn) == 2
    for k, route in enumerate(drawn):
        assert np.array_equal(route.e, path["e"].values[:, k]) and np.array_equal(route.w, path["w"].values[:, k])
        assert np.array_equal(route.steps, path["step"]) and np.array_equal(route.losses, path["loss"].values[:, k])


@pytest.mark.parametrize("architecture", ["reduced", "transverse"])
def test_the_map_by_flow_has_the_speed_of_the_positions(monkeypatch, tmp_path, architecture):
    from landscape.gallery import path as module

    asked = {}
    original = module.basin_map

    def coarse(landscape, **options):
        asked.update(options, speeds=landscape.speeds, name=landscape.name)
        return original(landscape, **options | {"e": options["e"][::8], "w": options["w"][::8]})

    monkeypatch.setattr(module, "basin_map", coarse)
    monkeypatch.setattr(module, "label_map", lambda landscape, labels, nodes: original_map(landscape, labels, {name: values[::8] for name, values in nodes.items()}))
    from landscape.gallery.general import label_map as original_map

    watch, _ = trained(steps=2, every=1)
    draw_path(CHAIN, watch.dataset(), tmp_path / "path.png", architecture=architecture)
    speeds = (1.0, 1 / 16, *[1.0] * (3 if architecture == "reduced" else 4))
    assert asked["name"] == architecture and asked["speeds"] == speeds
    assert asked["fixed"] == ({} if architecture == "reduced" else {"u": pytest.approx(np.median(watch.dataset()["u"].values[0]))})
