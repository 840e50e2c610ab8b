"""What came of predictions: where a run ended, how often a predictor was right, and the verdict on an arm or a finding."""

from __future__ import annotations

import math
from dataclasses import dataclass

from landscape.chains import Chain
from landscape.parameters import ParameterError


@dataclass(frozen=True)
class Accuracy:
    """How often one predictor was right.

    Attributes
    ----------
    right : int
        Runs that ended where it said.
    decided : int
        Runs that ended at the bigram or at the unigram loss.
    interval : (float, float)
        95 % interval of the share of the decided runs on which it was right.
    confusion : dict of str to dict of str to int
        Number of runs by what was predicted and what was observed.
    """

    right: int
    decided: int
    interval: tuple[float, float]
    confusion: dict[str, dict[str, int]]


@dataclass(frozen=True)
class Verdict:
    """How often the judged prediction came true in one arm, and how often every predictor was right.

    Where nothing was predicted, `predicted` is empty.
    """

    arm: str
    predicted: dict[str, int]
    observed: dict[str, int]
    agree: int
    runs: int
    interval: tuple[float, float]
    below_bigram: int
    passed: bool
    predictors: dict[str, Accuracy]

    @property
    def word(self) -> str:
        """The verdict in one word."""
        return "explored" if self.passed and not self.predicted else _word(self.passed)


def _word(passed: bool) -> str:
    return "confirmed" if passed else "REFUTED"


@dataclass(frozen=True)
class Finding:
    """A prediction that is not of the limits of an arm's runs: what was said, how close is close, and what was seen."""

    statement: str
    tolerance: str
    observed: str
    passed: bool

    @property
    def word(self) -> str:
        """The verdict in one word."""
        return _word(self.passed)


def wilson(successes: int, runs: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """The 95 % Wilson score interval of a proportion."""
    if runs == 0:
        return 0.0, 1.0
    share = successes / runs
    centre = share + z * z / (2 * runs)
    spread = z * math.sqrt(share * (1 - share) / runs + z * z / (4 * runs * runs))
    scale = 1 + z * z / runs
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def real_limit(loss: float | None, chain: Chain, tolerance: float = 0.1) -> str:
    """Where a training ended, by its held-out loss in nats.

    Returns
    -------
    {"global", "local", "between", "diverged"}
        Within `tolerance` of the unigram-bigram difference of the bigram loss, or of the unigram loss, or of
        neither; "diverged" if the loss is not finite (None in a record).

    Raises
    ------
    ParameterError
        At the threshold, where the two losses agree and there is nothing to tell apart.
    """
    if loss is None or not math.isfinite(loss):
        return "diverged"
    if chain.target_sign == 0:
        raise ParameterError("chain", "real_limit", "off its threshold, where unigram and bigram losses agree", chain)
    share = (loss - chain.bigram_loss) / (chain.unigram_loss - chain.bigram_loss)
    if abs(share) <= tolerance:
        return "global"
    return "local" if abs(share - 1.0) <= tolerance else "between"


def judge(arm, results: list[dict]) -> Verdict:
    """Compare the real limits with the predicted ones.

    A run also fails its arm if at any evaluation its held-out loss is more than 4 standard errors below the
    chain's entropy rate: no model can be better.
    """
    def tally(key):
        words = [result[key] for result in results]
        return {word: words.count(word) for word in sorted(set(words))}

    names = results[0].get("predictions", {}) if results else {}
    predictors = {
        name: accuracy([result["predictions"][name] for result in results], [result["observed"] for result in results]) for name in names
    }
    judged = bool(results) and "predicted" in results[0]
    said = [result["predicted"] if judged else "" for result in results]
    first = accuracy(said, [result["observed"] for result in results])
    between = sum(result["observed"] == "between" for result in results)
    below = sum(_falls_below(arm.chain.entropy_rate, result) for result in results)
    ran_away = any(result["observed"] == "diverged" for result in results)
    right = first.right >= arm.least * first.decided and between <= arm.undecided * len(results)
    passed = (right or not judged) and not ran_away and below == 0
    return Verdict(
        arm=arm.name, predicted=tally("predicted") if judged else {}, observed=tally("observed"), agree=first.right, runs=len(results),
        interval=wilson(first.right, len(results)), below_bigram=below, passed=passed, predictors=predictors,
    )


def accuracy(predicted: list[str], observed: list[str]) -> Accuracy:
    """How often predictions came true."""
    confusion: dict[str, dict[str, int]] = {}
    for said, seen in zip(predicted, observed, strict=True):
        row = confusion.setdefault(said, {})
        row[seen] = row.get(seen, 0) + 1
    right = sum(row.get(said, 0) for said, row in confusion.items() if said in ("global", "local"))
    decided = sum(seen in ("global", "local") for seen in observed)
    return Accuracy(right, decided, wilson(right, decided), confusion)


def _falls_below(floor: float, result: dict) -> bool:
    """Whether a held-out loss of a run is more than 4 standard errors below `floor`."""
    measured = zip(result["held_out"], result["held_out_error"], strict=True)
    return any(None not in pair and pair[0] < floor - 4 * pair[1] for pair in measured)
