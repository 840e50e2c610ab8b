"""Trainings on executors: the records of serial training, whoever trained them, and resumed whoever was lost."""

import dataclasses
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from landscape import executors  # noqa: E402
from tests.validation.test_suite import shortened  # noqa: E402
from validation import experiments, records  # noqa: E402
from validation.experiments import base  # noqa: E402

RUNS = 5  # one more than are trained together


@pytest.fixture(scope="module")
def experiment():
    found = shortened(experiments.find("init_around"), True)
    return dataclasses.replace(found, arms=lambda _: found.arms(True)[:2])


def conducted(experiment, folder, executor=None):
    return base.conduct(experiment, quick=True, seed=3, folder=folder, runs=RUNS, executor=executor)


@pytest.fixture(scope="module")
def serial(experiment, tmp_path_factory):
    return conducted(experiment, tmp_path_factory.mktemp("serial"))


def same(found, expected):
    """The same runs to the rounding of training one together with others; no run of it another's twin."""
    for name, runs in expected.results.items():
        for run, other in zip(found.results[name], runs, strict=True):
            assert run["point"] == other["point"]
            np.testing.assert_allclose(run["held_out"], other["held_out"], rtol=1e-5)
            np.testing.assert_allclose(run["training"], other["training"], rtol=1e-5)
        assert len({tuple(run["training"]) for run in found.results[name]}) == RUNS


def test_processes_train_what_one_process_does(experiment, serial, tmp_path):
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        same(conducted(experiment, tmp_path, pool), serial)


def test_a_cluster_goes_on_where_it_was_cut_off(experiment, serial, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    save, saved = records.save, []

    def failing(*arguments):
        if len(saved) == 6:
            raise KeyboardInterrupt
        saved.append(save(*arguments))

    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with executors.scheduler(cluster.scheduler_address) as executor:
            monkeypatch.setattr(records, "save", failing)
            with pytest.raises(KeyboardInterrupt):
                conducted(experiment, tmp_path, executor)
            monkeypatch.setattr(records, "save", save)
            kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("run-*.json")}
            assert len(kept) == 6
            same(conducted(experiment, tmp_path, executor), serial)
    assert all(path.stat().st_mtime_ns == changed for path, changed in kept.items())
