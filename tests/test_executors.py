"""Flows on executors: the same numbers as in threads, from processes and from a Dask cluster that loses a worker."""

import multiprocessing
import os
import signal
import subprocess
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from conftest import strict

import landscape
from landscape import Architecture, BinaryChain, executors, flows

STARTS = np.random.default_rng(0).uniform(-2, 2, size=(1_000, 2))
CHAIN = BinaryChain(0.5, 0.8)


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes of a Dask cluster on this machine."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as made:
        yield made


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(flows, "PART", 100)


def same(found, expected):
    assert all(np.array_equal(vars(found)[name], values, equal_nan=True) for name, values in vars(expected).items())


def test_processes_and_a_cluster_give_the_numbers_of_threads(small_parts, cluster):
    own = Architecture.from_symbolic("own", ["e", "w"], gap="e^2*(1 + 2*w*abs(w))").on(CHAIN)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool, executors.scheduler(cluster.scheduler_address) as dask:
        for executor, model in ((pool, landscape.architecture("canonical").on(CHAIN)), (dask, own)):
            told = []
            same(landscape.flow(model, STARTS, executor=executor, progress=lambda *at: told.append(at)), landscape.flow(model, STARTS))
            assert told[-1] == (1_000, 1_000) and len(told) == 10


def test_work_survives_a_worker_that_is_killed(cluster):
    own = ["sh", "-c", "sleep 0.1; echo $PPID"]  # slow, and tells the process of the worker
    with executors.scheduler(cluster.scheduler_address) as executor:
        found = []
        for number, told in executors.done(executor, subprocess.check_output, [(own,)] * 20):
            found.append((number, int(told)))
            if len(found) == 2:
                os.kill(found[0][1], signal.SIGKILL)
    assert sorted(number for number, _ in found) == list(range(20))
    lost, workers = found[0][1], {worker for _, worker in found}
    assert lost not in {worker for _, worker in found[10:]} and workers > {lost}


def test_equal_parts_are_not_merged(cluster):
    with executors.scheduler(cluster.scheduler_address) as executor:
        drawn = [result for _, result in executors.done(executor, os.urandom, [(8,)] * 8)]
    assert len(set(drawn)) == 8


def test_the_first_error_ends_the_work():
    def work(number):
        time.sleep(0.01)
        if number == 0:
            raise RuntimeError("lost")
        return number

    with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match="lost"):
        list(executors.done(pool, work, [(number,) for number in range(1_000)]))


def test_no_starts_and_bad_ones(small_parts):
    with ThreadPoolExecutor(1) as pool:
        assert landscape.flow(CHAIN, np.empty((0, 2)), executor=pool).labels.size == 0
        starts = [(np.nan, 1.0), (1.0, -1.0)]
        same(landscape.flow(CHAIN, starts, executor=pool), landscape.flow(CHAIN, starts))


LINE = ("basins", "--p", ".5", "--q", ".8", "--method", "flow", "--e", "-2", "2", "21", "--w", "-2", "2", "21", "--json")


def test_the_command_line(call, cluster):
    code, out, _ = call(*LINE, "--scheduler", cluster.scheduler_address)
    assert code == 0 and strict(out)["counts"] == strict(call(*LINE)[1])["counts"]


def test_no_scheduler_there_is_said_in_one_line(run_python, tmp_path):
    for address in ("nonsense", "tcp://127.0.0.1:1"):
        said = run_python("-m", "landscape", *LINE, "--scheduler", address, "--out", tmp_path / "map.nc", check=False)
        assert said.returncode == 2 and not said.stdout and "'--scheduler'" in said.stderr and len(said.stderr.strip().splitlines()) == 1
    said = run_python("-m", "landscape", "basins", "--p", ".5", "--q", ".8", "--scheduler", "tcp://127.0.0.1:1", check=False)
    assert said.returncode == 2 and "--method flow" in said.stderr and not list(tmp_path.iterdir())
