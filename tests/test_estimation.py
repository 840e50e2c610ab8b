"""Estimates of chains from sequences: intervals that cover, tests that keep their level and have power, files as people write them."""

import math

import numpy as np
import pytest
from conftest import strict

from landscape import BinaryChain, ParameterError, SymmetricChain
from landscape.estimation import estimate, read_sequences


def second_order(length, seed):
    """A chain on two symbols that follows the symbol before the last one."""
    random = np.random.default_rng(seed)
    draws, found = random.random(length), [0, 1]
    for draw in draws:
        found.append(found[-2] if draw < 0.6 else 1 - found[-2])
    return found


@pytest.mark.parametrize("chain", [BinaryChain(0.2, 0.3), BinaryChain(0.5, 0.8), SymmetricChain(5, 0.9)], ids=repr)
def test_intervals_cover_as_often_as_they_say(chain):
    paths = chain.sample(600, 300, seed=1)
    true = {"p": chain.p} | ({"q": chain.q} if isinstance(chain, BinaryChain) else {})
    for name, value in true.items():
        covered = np.mean([(rate := estimate(path).rates[name]).low <= value <= rate.high for path in paths])
        assert covered == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / 300))


@pytest.mark.parametrize("chain", [BinaryChain(0.2, 0.3), SymmetricChain(3, 0.6)], ids=repr)
def test_a_first_order_chain_is_called_something_else_as_often_as_the_level_says(chain):
    found = [estimate(path).tests for path in chain.sample(2_000, 400, seed=2)]
    for name in found[0]:
        values = np.array([tests[name].p_value for tests in found])
        for level in (0.05, 0.5):
            assert np.mean(values < level) == pytest.approx(level, abs=4.5 * math.sqrt(level * (1 - level) / 400))


def test_what_the_theory_does_not_cover_is_said():
    assert "order two" in " ".join(estimate(second_order(3_000, 0)).warnings)
    drifting = [*BinaryChain(0.2, 0.3).sample(2_000, seed=3)[0], *BinaryChain(0.6, 0.3).sample(2_000, seed=4)[0]]
    assert "not stationary" in " ".join(estimate(drifting).warnings)
    around = np.cumsum(np.random.default_rng(5).choice([0, 1, 2], 3_000, p=[0.2, 0.6, 0.2])) % 3
    assert "not symmetric" in " ".join(estimate(around).warnings)
    assert estimate(BinaryChain(0.5, 0.8).sample(4_000, seed=6)[0]).warnings == ()
    assert all("Too few" in warning for warning in estimate([0, 1, 1, 0, 0, 1, 0]).warnings)
    never = estimate([0, 1] * 50)
    assert never.rates["p"].value == 1.0 and never.rates["p"].low == pytest.approx(50 / (50 + 1.959964**2), rel=1e-6)
    assert any("p = 1" in warning for warning in never.warnings)


def test_the_estimate_is_that_of_maximum_likelihood_by_hand():
    found = estimate([[0, 1, 1, 0], [1, 0, 0]])
    assert found.transitions.tolist() == [[1, 1], [2, 1]]
    assert (found.rates["p"].value, found.rates["q"].value) == (0.5, 2 / 3)
    assert found.chain == BinaryChain(0.5, 2 / 3)
    words = estimate(["sun", "rain", "rain", "sun", "sun"])
    assert words.symbols == ("rain", "sun") and words.transitions.tolist() == [[1, 1], [1, 1]]
    many = estimate([2, 0, 1, 1, 0, 2, 2])
    assert many.chain == SymmetricChain(3, 4 / 6) and set(many.tests) == {"order", "halves", "symmetry"}
    shifted = estimate(np.array([7, 9, 9, 7]))
    assert shifted.symbols == (7, 9)


def test_the_statistic_is_twice_the_logarithm_of_the_likelihood_ratio():
    path = BinaryChain(0.3, 0.6).sample(500, seed=7)[0]
    counts = np.zeros((2, 2, 2))
    for a, b, c in zip(path, path[1:], path[2:]):
        counts[a, b, c] += 1
    second = counts / counts.sum(axis=2, keepdims=True)
    first = counts.sum(axis=0) / counts.sum(axis=(0, 2))[:, None]
    ratio = 2 * sum(counts[i] * math.log(second[i] / first[i[1:]]) for i in np.ndindex(2, 2, 2))
    test = estimate(path).tests["order"]
    assert test.statistic == pytest.approx(ratio, rel=1e-9) and test.degrees == 2


@pytest.mark.parametrize("bad", [[], [1], [1, 1, 1], "0101", [0.5, 0.1], [[0, 1], 1], [[0, 1], ["a", "b"]], 3, [0, 0, 1], [None, 1]])
def test_what_is_no_sequence_is_refused(bad):
    with pytest.raises(ParameterError):
        estimate(bad)


@pytest.mark.parametrize("level", [0, 1, 2, "x", math.nan])
def test_levels_are_checked(level):
    with pytest.raises(ParameterError):
        estimate([0, 1, 0], level)


@pytest.mark.parametrize(("text", "expected"), [
    ("0110\n", [list("0110")]), ("0 1 1 0", [list("0110")]), ("0,1;1\t0\n\n", [list("0110")]), ("0\n1\n1\n0\n", [list("0110")]),
    ("0110\n10\n", [list("0110"), list("10")]), ("sun rain\nrain sun", [["sun", "rain"], ["rain", "sun"]]), ("\ufeff01\r\n", [list("01")]),
    ("ACGT\nTTGA\n", [list("ACGT"), list("TTGA")]),
])
def test_files_as_people_write_them(tmp_path, text, expected):
    (tmp_path / "s.txt").write_text(text, encoding="utf-8", newline="")
    assert read_sequences(tmp_path / "s.txt") == expected


def test_the_command(call, tmp_path):
    path = tmp_path / "s.txt"
    path.write_text("".join(map(str, BinaryChain(0.5, 0.8).sample(3_000, seed=8)[0])))
    code, out, _ = call("estimate", path, "--json")
    found = strict(out)
    assert code == 0 and found["chain"]["kind"] == "BinaryChain" and found["warnings"] == []
    assert found["rates"]["p"]["low"] < 0.5 < found["rates"]["p"]["high"] and found["regime"] == "above"
    code, out, _ = call("estimate", path)
    assert code == 0 and "p = 0." in out and "order one" in out
    for content, word in ((b"\xff\xfe0", "UTF-8"), (b"", "symbols"), (b"1111", "different")):
        path.write_bytes(content)
        code, out, err = call("estimate", path)
        assert code == 2 and not out and word in err and len(err.strip().splitlines()) == 1, err
    assert call("estimate", tmp_path / "none.txt")[0] == 2
    assert call("estimate", path, "--level", "1.5")[0] == 2
