"""Training an ensemble against a plain PyTorch loop for one model, by turns in one run; prints the ratio of medians."""

import statistics
import time

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402

from landscape import BinaryChain  # noqa: E402
from validation import data  # noqa: E402
from validation.starts import gaussian_  # noqa: E402
from validation.training import AdamW, Schedule, train  # noqa: E402
from validation.transformer import Transformer, TransformerConfig, stack  # noqa: E402

pytestmark = pytest.mark.benchmark
CHAIN, STEPS, BATCH = BinaryChain(0.5, 0.8), 8, 16


def plain_losses(weights, symbols, fused):
    """Mean loss of one model, written down as the architecture reads."""
    inputs = symbols[:, :-1]
    stream = inputs.unsqueeze(-1) * weights["embedding"] + weights["positions"]
    queries, keys, values = (stream @ weights[name].T for name in ("query", "key", "value"))
    if fused:
        found = F.scaled_dot_product_attention(*(part.unsqueeze(1) for part in (queries, keys, values)), is_causal=True).squeeze(1)
    else:
        future = torch.ones(inputs.shape[1], inputs.shape[1], dtype=torch.bool).triu(1)
        scores = queries @ keys.mT / keys.shape[-1] ** 0.5
        found = scores.masked_fill(future, -torch.inf).softmax(-1) @ values
    stream = stream + found @ weights["output"].T
    stream = stream + torch.relu(stream @ weights["inner"].T) @ weights["outer"].T
    logits = stream @ weights["embedding"] + weights["bias"]
    return F.binary_cross_entropy_with_logits(logits, symbols[:, 1:].to(logits.dtype))


def plain_training(model, batches, fused):
    """Train a copy of one model; its losses."""
    weights = {name: torch.nn.Parameter(tensor[0].clone()) for name, tensor in model.state_dict().items()}
    stepper = torch.optim.AdamW(weights.values(), lr=2e-3, betas=(0.9, 0.95), weight_decay=0.01)
    losses = []
    for _ in range(STEPS):
        stepper.zero_grad(set_to_none=True)
        loss = plain_losses(weights, next(batches)[0], fused)
        loss.backward()
        stepper.step()
        losses.append(loss.item())
    return losses


def on_threads(count, action):
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        return action()
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(("length", "members", "repeats"), [(1024, 16, 5), (64, 56, 5)])
def test_an_ensemble_against_a_plain_loop(length, members, repeats):
    config = TransformerConfig(length=length)
    models = [gaussian_(Transformer(config), 0.02, generator=data.torch_generator(data.stream(0, k, "weights"))) for k in range(members)]
    schedule = Schedule(steps=STEPS, batch=BATCH, log_every=1, evaluate_every=STEPS, held_out=2)

    def source(count):
        return data.batches([CHAIN] * count, [data.stream(0, k, "training") for k in range(count)], length, BATCH)

    def together():
        unseen = data.held_out([CHAIN] * members, [data.stream(0, k, "held_out") for k in range(members)], length, 2)
        return train(stack(models), source(members), unseen, AdamW(2e-3), schedule).training[0]

    threads = torch.get_num_threads()
    ways = {"the ensemble": together}
    for fused, name in ((True, "fused attention"), (False, "masked softmax")):
        for count in sorted({1, threads}):
            ways[f"plain, {name}, threads {count}"] = (
                lambda fused=fused, count=count: on_threads(count, lambda: plain_training(models[0], source(1), fused))
            )
    found = {name: action() for name, action in ways.items()}  # compiles too
    for losses in found.values():  # what is timed is the training of one model
        assert losses == pytest.approx(found["the ensemble"], abs=1e-5)
    seconds = {name: [] for name in ways}
    for _ in range(repeats):
        for name, action in ways.items():
            began = time.perf_counter()
            action()
            seconds[name].append(time.perf_counter() - began)
    rates = {name: STEPS * (members if name == "the ensemble" else 1) / statistics.median(times) for name, times in seconds.items()}
    print(f"\nN = {length}, {members} models, in model-iterations/s")
    for name, rate in rates.items():
        print(f"  {name}: {rate:.1f}" + ("" if name == "the ensemble" else f"; the ensemble is {rates['the ensemble'] / rate:.1f} times as fast"))
