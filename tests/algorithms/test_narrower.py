"""HeteroFL, FedRolex and FjORD against NumPy loops on a perceptron, ScaleFL against a plain loop; float64."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from runs import run
from torch import Tensor

from reproduce.algorithms.base import DistinctClients, FedAvg
from reproduce.algorithms.narrower import FjORD, HeteroFL, ScaleFL
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Fixed
from reproduce.data.embedded import GaussianClasses
from reproduce.declare.experiment import Experiment
from reproduce.engine.layout import layout_of
from reproduce.engine.scheduler import Run
from reproduce.errors import UserError
from reproduce.models.declared import MLP, Perceptron, ResNet
from reproduce.papers.fiarse import runs
from reproduce.papers.fiarse import settings as scales
from reproduce.partitions.labels import IID
from reproduce.problem import Classification
from reproduce.runs import plan
from reproduce.streams import rng
from reproduce.systems import Epochs, System
from reproduce.systems.clients import SplitCapacity

Floats = NDArray[np.float64]
Weights = dict[str, Floats]
FEATURES, HIDDEN, CLASSES, CLIENTS, ROUNDS, LR = 5, (6, 9), 3, 8, 4, 0.5
SIZES = (1.0, 0.36, 0.16, 0.04)
PROBLEM = Classification(
    GaussianClasses(CLASSES, FEATURES, 40, 16, 1.0, 3),
    Perceptron(FEATURES, HIDDEN, CLASSES),
    IID(),
    clients=CLIENTS,
    batches=Fixed(4),
    weights="uniform",
)


def finished(algorithm: FedAvg, problem: Any = PROBLEM, sizes: tuple[float, ...] = SIZES, rounds: int = ROUNDS) -> Run:
    system = System(Epochs(2), capacity=SplitCapacity(sizes))
    return run([Experiment({"algorithm": "a"}, problem, system, algorithm, Rounds(rounds))], [1], torch.float64)[0]


def named(flat: Floats, shapes: dict[str, tuple[int, ...]]) -> Weights:
    found, at = {}, 0
    for name, shape in shapes.items():
        found[name] = flat[at : at + math.prod(shape)].reshape(shape)
        at += math.prod(shape)
    return found


def kept(width: float, shift: int) -> dict[str, tuple[list[int], ...]]:
    """Indices along each axis of each parameter: units shift, shift + 1, ... of every hidden layer, cyclically."""
    units = [list(range(FEATURES))]
    for n in HIDDEN:
        k = math.ceil(round(width * n, 9))
        units.append([(shift + s) % n for s in range(k)] if k < n else list(range(n)))
    units.append(list(range(CLASSES)))
    found: dict[str, tuple[list[int], ...]] = {}
    for i, (inputs, outputs) in enumerate(itertools.pairwise(units), start=1):
        found |= {f"fc{i}.weight": (outputs, inputs), f"fc{i}.bias": (outputs,)}
    return found


def layers(w: Weights, x: Floats) -> list[Floats]:
    """The inputs of all layers, and the logits."""
    found = [x]
    for i in (1, 2, 3):
        z = found[-1] @ w[f"fc{i}.weight"].T + w[f"fc{i}.bias"]
        found.append(np.maximum(z, 0) if i < 3 else z)
    return found


def softmax(z: Floats) -> Floats:
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def gradient(w: Weights, x: Floats, wanted: Floats) -> Weights:
    """Of the mean cross-entropy with the distributions `wanted`, by hand."""
    *inputs, logits = layers(w, x)
    back, grads = (softmax(logits) - wanted) / len(x), {}
    for i in (3, 2, 1):
        grads |= {f"fc{i}.weight": back.T @ inputs[i - 1], f"fc{i}.bias": back.sum(0)}
        back = back @ w[f"fc{i}.weight"] * (inputs[i - 1] > 0)
    return grads


def naive(of: Run, rolling: bool, ordered: bool, participants: int) -> Floats:
    """Every coordinate is averaged over those whose network has it, one by one."""
    task: Any = of.env.split
    shapes = PROBLEM.model.shapes
    x, features = task.initial().numpy().copy(), task.device_data.train_x.numpy()
    labels = np.eye(CLASSES)[task.device_data.labels]
    for t in range(ROUNDS):
        total = {n: np.zeros(s) for n, s in shapes.items()}
        count = {n: np.zeros(s) for n, s in shapes.items()}
        for i in rng("sampling", of.seed, t).choice(np.arange(CLIENTS), size=participants, replace=False):
            size = SIZES[i * len(SIZES) // CLIENTS]
            at = kept(math.sqrt(size), t if rolling else 0)
            y = {n: w[np.ix_(*at[n])] for n, w in named(x, shapes).items()}
            start = {n: w.copy() for n, w in y.items()}
            mine = task.indices[i]
            batches = [mine[b : b + 4] for b in range(0, len(mine), 4)] * 2
            smaller = sorted(s for s in SIZES if s <= size)
            draws = rng("width", of.seed, t, i).integers(len(smaller), size=len(batches))
            for batch, draw in zip(batches, draws, strict=True):
                grads = gradient(y, features[batch], labels[batch])
                if ordered:
                    narrow = kept(math.sqrt(smaller[draw]), 0)
                    said = softmax(layers(y, features[batch])[-1])
                    inner = gradient({n: w[np.ix_(*narrow[n])] for n, w in y.items()}, features[batch], said)
                    for n, g in inner.items():
                        grads[n][np.ix_(*narrow[n])] += g
                y = {n: w - LR * grads[n] for n, w in y.items()}
            for n in shapes:
                total[n][np.ix_(*at[n])] += y[n] - start[n]
                count[n][np.ix_(*at[n])] += 1
        moves = [np.where(count[n] > 0, total[n] / np.maximum(count[n], 1), 0).ravel() for n in shapes]
        x = x + np.concatenate(moves)
    return x


@pytest.mark.parametrize("participants", [3, 8])
@pytest.mark.parametrize("method", ["heterofl", "fedrolex", "fjord"])
def test_runs_equal_the_naive_loop(method: str, participants: int) -> None:
    draw = DistinctClients(participants, average=True)
    rolling = method == "fedrolex"
    algorithm = FjORD(LR, draw) if method == "fjord" else HeteroFL(LR, draw, rolling=rolling)
    found = finished(algorithm)
    expected = naive(found, rolling, method == "fjord", participants)
    np.testing.assert_allclose(found.state["x"].numpy(), expected, rtol=0, atol=1e-12)
    assert np.abs(expected - found.env.initial().numpy()).max() > 0.1


SMOKE = scales.IMAGE_BLOBS
WITH_EXITS = runs.network(SMOKE, "scalefl")
FOUR = runs.SIZES["four"]
LEVELS = {size: (exits, width) for size, exits, width in SMOKE.levels if size in FOUR}


def exit_logits(p: dict[str, Tensor], x: Tensor, exits: int, width: float) -> list[Tensor]:
    """The smoke network with its exits, layer by layer."""

    def conv(x: Tensor, layer: str, norm: str, stride: int = 1, padding: int = 1) -> Tensor:
        z = F.conv2d(x, p[f"{layer}.weight"], stride=stride, padding=padding) / width
        mean, var = z.mean((0, 2, 3), keepdim=True), z.var((0, 2, 3), correction=0, keepdim=True)
        scale, shift = (p[f"{norm}.{kind}"].view(1, -1, 1, 1) for kind in ("weight", "bias"))
        return (z - mean) / (var + 1e-5).sqrt() * scale + shift

    found, x = [], conv(x, "conv1", "bn1").relu()
    for block, stride, head in (("layer1.0", 1, "exit1"), ("layer2.0", 2, "fc"))[:exits]:
        y = conv(conv(x, f"{block}.conv1", f"{block}.bn1", stride).relu(), f"{block}.conv2", f"{block}.bn2")
        x = conv(x, f"{block}.downsample.0", f"{block}.downsample.1", stride, 0) if stride == 2 else x
        x = (x + y).relu()
        found.append(F.linear(x.mean((2, 3)), p[f"{head}.2.weight"], p[f"{head}.2.bias"]))
    return found


def sliced(p: dict[str, Tensor], exits: int, width: float) -> dict[str, Tensor]:
    """The part of a level: axes of 8 and 16 are channels; the second block and `fc` go with the second exit."""
    names = [n for n in p if exits == 2 or not n.startswith(("layer2", "fc"))]
    return {n: p[n][tuple(slice(int(width * k + 1e-9) if k in (8, 16) else k) for k in p[n].shape)] for n in names}


def loss_of(logits: list[Tensor], y: Tensor, beta: float) -> Tensor:
    parts, last = [], (logits[-1] / 3).softmax(1)
    for j, z in enumerate(logits, start=1):
        apart = (last * (last.log() - (z / 3).log_softmax(1))).sum() / z.numel()
        parts.append(j * (F.cross_entropy(z, y) + (beta * 9 * apart if j < len(logits) else 0)))
    return torch.stack(parts).sum() / sum(range(1, len(logits) + 1))


def test_scalefl_equals_the_plain_loop() -> None:
    """Distillation begins in the second of three rounds."""
    levels = tuple((size, *LEVELS[size]) for size in FOUR)
    algorithm = ScaleFL(0.1, DistinctClients(5, average=True), levels=levels, from_round=1, distill=0.7)
    found = finished(algorithm, WITH_EXITS, FOUR, rounds=3)
    task: Any = found.env.split
    x = task.initial().clone()
    for t in range(3):
        whole = layout_of(WITH_EXITS.model).named(x)
        total = {n: torch.zeros_like(w) for n, w in whole.items()}
        count = {n: torch.zeros_like(w) for n, w in whole.items()}
        for i in rng("sampling", found.seed, t).choice(np.arange(8), size=5, replace=False):
            exits, width = LEVELS[FOUR[i // 2]]
            start = sliced(whole, exits, width)
            y = {n: w.clone() for n, w in start.items()}
            mine = task.indices[i]
            for batch in [mine[b : b + 10] for b in range(0, len(mine), 10)] * 2:
                leaves = {n: w.detach().requires_grad_() for n, w in y.items()}
                logits = exit_logits(leaves, task.device_data.train_x[batch], exits, width)
                loss = loss_of(logits, task.device_data.train_y[batch], 0.7 if t >= 1 else 0.0)
                grads = torch.autograd.grad(loss, list(leaves.values()))
                y = {n: w - 0.1 * g for (n, w), g in zip(y.items(), grads, strict=True)}
            for n in y:
                sliced(total, exits, width)[n].add_(y[n] - start[n])
                sliced(count, exits, width)[n].add_(1)
        moved = [(total[n] / count[n].clamp(min=1)).flatten() for n in whole]
        x = x + torch.cat(moved)
    torch.testing.assert_close(found.state["x"], x, rtol=0, atol=1e-10)


@pytest.mark.parametrize("scale", scales.SCALES)
def test_scalefl_distils_in_the_rounds_after_a_quarter(scale: str) -> None:
    """As the published code (git-disl/scale-fl), which counts rounds from 0 and asks for more than T / 4."""
    found = [e for job in plan.jobs(scale) for e in job.experiments if isinstance(e.algorithm, ScaleFL)]
    assert found
    for e in found:
        total, whole, sizes = e.clock.rounds, e.problem.model, e.system.capacity.sizes
        rules = [e.algorithm.inner(whole, sizes, 1.0, t).inner for t in range(total)]
        assert [r.distill > 0 for r in rules] == [e.algorithm.distill > 0 and t > 0.25 * total for t in range(total)]


LEVELS_18 = {
    1 / 64: 170_410, 1 / 16: 697_268, 1 / 4: 2_717_316, 1.0: 11_182_952, 0.04: 430_501, 0.16: 1_766_303,
    0.36: 4_021_083, 0.64: 7_129_540,
}  # fmt: skip


def test_levels_of_scalefl_have_the_sizes() -> None:
    for setting in scales.SCALES["paper"].settings.values():
        whole: Any = runs.network(setting, "scalefl").model
        sizes = {size: whole.cut(exits, width).parameters for size, exits, width in setting.levels}
        if whole.classes == 10:
            assert sizes == LEVELS_18
        assert all(
            sizes[size] / ResNet(classes=whole.classes).parameters == pytest.approx(size, rel=0.1) for size in sizes
        )


@pytest.mark.parametrize(
    ("algorithm", "problem", "said"),
    [
        (ScaleFL(levels=((1.0, 1, 1.0),)), WITH_EXITS, "no level for clients of size 0.25"),
        (ScaleFL(levels=tuple((s, 1, 0.5) for s in FOUR)), SMOKE.problem, "a ResNet has none"),
        (FjORD(), replace(PROBLEM, model=MLP(5, 4, 3)), "no narrower"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_said_in_one_line(algorithm: Any, problem: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        finished(algorithm, problem, (1.0, 0.25))
