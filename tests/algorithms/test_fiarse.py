"""FIARSE and pruning-greedy against a naive NumPy loop on masked logistic regression, in float64. On texts: shards of
thresholds, AdamW under masks, levels, and what cannot be run."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from runs import run
from runs import run as play_all
from softmax import Floats, gradient, logits
from torch.nn.functional import cross_entropy

from reproduce.algorithms.base import DistinctClients, FedAvg
from reproduce.algorithms.fiarse import FIARSE, group, held, maskable, thresholds
from reproduce.algorithms.narrower import HeteroFL, ScaleFL
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Fixed
from reproduce.data.embedded import GaussianClasses
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClientSplits, Env
from reproduce.engine.layout import layout_of
from reproduce.engine.scheduler import Run
from reproduce.errors import UserError
from reproduce.models.declared import Softmax
from reproduce.papers.fiarse import runs
from reproduce.papers.fiarse import settings as scales
from reproduce.partitions.dirichlet import BalancedDirichlet
from reproduce.problem import Classification
from reproduce.settings import settings
from reproduce.streams import rng
from reproduce.systems import Epochs, System
from reproduce.systems.clients import SplitCapacity
from tests.models.test_roberta import answer, library, slopes

FEATURES, CLASSES, CLIENTS, ROUNDS, LR = 7, 3, 8, 5, 0.8
SIZES = (1.0, 0.5, 0.25, 0.04)
PROBLEM = Classification(
    GaussianClasses(CLASSES, FEATURES, 40, 16, 1.0, 3),
    Softmax(FEATURES, CLASSES),
    BalancedDirichlet(0.5),
    clients=CLIENTS,
    batches=Fixed(4),
    weights="uniform",
    test_partition=True,
)


def finished(algorithm: FedAvg, rounds: int = ROUNDS, seed: int = 1) -> Run:
    system = System(Epochs(2), capacity=SplitCapacity(SIZES))
    experiment = Experiment({"algorithm": "a"}, PROBLEM, system, algorithm, Rounds(rounds))
    (run,) = play_all([experiment], [seed], dtype=torch.float64)
    return run


def theta_of(x: Floats, size: float) -> float:
    """The k-th largest magnitude; everything is held at size 1."""
    k = max(1, int(np.floor(size * len(x))))
    return 0.0 if size == 1 else float(np.sort(np.abs(x))[::-1][k - 1])


def naive(run: Run, mask: str, biased: bool, count: str, momentum: float, participants: int) -> tuple[Floats, int]:
    """Algorithm 1 coordinate by coordinate; also how many weights left their mask during a local run."""
    task: Any = run.env.split
    features, labels = task.device_data.train_x.numpy(), task.device_data.labels
    x: Floats = task.initial().numpy().copy()
    left = 0
    for t in range(ROUNDS):
        clients = rng("sampling", run.seed, t).choice(np.arange(CLIENTS), size=participants, replace=False)
        deltas, holders = [], []
        for i in clients:
            theta = theta_of(x, SIZES[i * len(SIZES) // CLIENTS])
            start = np.abs(x) >= theta
            y, velocity = x.copy(), np.zeros(len(x))
            mine = task.indices[i]
            batches = [mine[b : b + 4] for b in range(0, len(mine), 4)] * 2
            for batch in batches:
                m = np.abs(y) >= theta if mask == "dynamic" else start
                g = gradient(y * m, features[batch], labels[batch]) * m
                if biased and theta > 0:
                    g = g * (1 + 2 * np.abs(y) * theta / (np.abs(y) + theta) ** 2)
                velocity = momentum * velocity + g
                y = y - LR * velocity
            left += int((start & (np.abs(y) < theta)).sum())
            deltas.append(x - y)
            holders.append(start)
        new = x.copy()
        for j in range(len(x)):
            n = sum(bool(d[j] != 0) for d in deltas) if count == "nonzero" else sum(bool(h[j]) for h in holders)
            if n:
                new[j] = x[j] - sum(d[j] for d in deltas) / n
        x = new
    return x, left


CASES = [
    ("dynamic", True, "nonzero", 0.0),
    ("dynamic", False, "nonzero", 0.0),
    ("dynamic", True, "mask", 0.5),
    ("frozen", False, "nonzero", 0.0),
    ("frozen", False, "mask", 0.5),
]


@pytest.mark.parametrize(("mask", "biased", "count", "momentum"), CASES)
@pytest.mark.parametrize("participants", [3, 8])
def test_runs_equal_the_naive_loop(mask: str, biased: bool, count: str, momentum: float, participants: int) -> None:
    algorithm = FIARSE(
        LR,
        DistinctClients(participants, average=True),
        momentum=momentum,
        mask=mask,  # type: ignore[arg-type]
        amplify=biased,
        count=count,  # type: ignore[arg-type]
    )
    run = finished(algorithm)
    expected, left = naive(run, mask, biased, count, momentum, participants)
    np.testing.assert_allclose(run.state["x"].numpy(), expected, rtol=0, atol=1e-12)
    assert left > 0 or mask == "frozen"  # else a dynamic mask would have nothing to show
    assert np.abs(expected - run.env.split.initial().numpy()).max() > 0.1


def test_recorded_accuracies_are_those_of_the_extracted_models() -> None:
    """Per size on the whole test set, per client on its own; the sweep at the end only."""
    run = finished(FIARSE(LR, DistinctClients(4, average=True), sweep=(0.125, 0.5)))
    task: Any = run.env.split
    x, test, labels = run.state["x"].numpy(), task.device_data.test_x.numpy(), task.device_data.test_labels
    history = run.state["history"]
    final = {(metric, key): value for t, _, metric, key, value in history if t == ROUNDS}

    def right(size: float, where: NDArray[np.int64]) -> float:
        effective = x * (np.abs(x) >= theta_of(x, size))
        return 100 * float((logits(effective, test[where]).argmax(1) == labels[where]).mean())

    union = np.concatenate(task.test_indices)
    assert len(union) == 48
    for size in (*SIZES, 0.125):
        assert final["accuracy", f"{size:.10g}"] == pytest.approx(right(size, union))
    own = [right(SIZES[i // 2], task.test_indices[i]) for i in range(CLIENTS)]
    for i in range(CLIENTS):
        assert final["client_accuracy", str(i)] == pytest.approx(own[i])
    for s, size in enumerate(SIZES):
        assert final["local_accuracy", f"{size:.10g}"] == pytest.approx(np.mean(own[2 * s : 2 * s + 2]))
    assert {t for t, _, metric, key, _ in history if metric == "client_accuracy" or key == "0.125"} == {ROUNDS}
    assert len(set(own)) > 2


SETTING = scales.TOPICS
STILL = replace(SETTING.problem, model=replace(SETTING.problem.model, dropout=0.0))
"""Without dropout, whose masks the library would draw otherwise."""
FOUR = runs.SIZES["four"]
RATE, BETAS = 0.01, (0.9, 0.95)


def played(algorithm: FedAvg, problem: Any = STILL, sizes: tuple[float, ...] = FOUR, rounds: int = 2) -> Run:
    system = System(Epochs(1), capacity=SplitCapacity(sizes))
    return run(
        [Experiment({"algorithm": "a"}, problem, system, algorithm, Rounds(rounds, rounds))], [1], torch.float64
    )[0]


def test_each_shard_has_a_threshold_of_its_own() -> None:
    """The k-th largest magnitude of the shard; what no shard has is held by all."""
    env = Env(ClientSplits(settings(), torch.float64).get(STILL, 0), None, 0)
    x, where = env.initial(), maskable(env)
    for gamma, theta in zip(FOUR, thresholds(env, x, FOUR, scales.TEXT_SHARDS), strict=True):
        mask, free = held(env, x, theta), torch.ones(env.parameters, dtype=torch.bool)
        for (begin,) in scales.TEXT_SHARDS:
            mine = torch.cat([mask[where[n]] for n in where if n.startswith(begin)])
            values = torch.cat([x[where[n]].abs() for n in where if n.startswith(begin)])
            kept = len(mine) if gamma == 1 else max(1, math.floor(gamma * len(mine)))
            least = values.topk(kept).values[-1]
            assert torch.equal(mine, values >= (0 if gamma == 1 else least))
            assert mine.sum() == kept or least == 0, "biases start at zero, all alike"
        for name in where:
            free[where[name]] = False
        assert mask[free].all()
        assert {n.split(".")[0] for n, w in env.blocks.items() if free[w].all()} == {
            "embeddings",
            "encoder",
            "classifier",
        }
    assert group("embeddings.word_embeddings.weight", scales.TEXT_SHARDS) == "embeddings.word"
    assert {group(name, runs.SHARDS) for name in scales.RESNET10N.maskable} == {"conv1", "layer3", "layer4"}


@pytest.mark.parametrize("amplify", [True, False])
def test_runs_equal_the_librarys_model_and_optimiser(amplify: bool) -> None:
    """Two rounds: masks at every step, eq. 3, `torch.optim.AdamW` of each client, the mean over who moved."""
    algorithm = FIARSE(RATE, DistinctClients(5, average=True), betas=BETAS, scope=scales.TEXT_SHARDS, amplify=amplify)
    found = played(algorithm)
    env, task = found.env, found.env.split
    arena: Any = task.device_data  # type: ignore[union-attr]
    model, x = STILL.model, env.initial()
    sizes = {n: w.stop - w.start for n, w in env.blocks.items()}
    for t in range(2):
        updates = []
        for i in rng("sampling", found.seed, t).choice(8, size=5, replace=False):
            theta = thresholds(env, x, [FOUR[i // 2]], scales.TEXT_SHARDS)[0]
            every = torch.cat([v.expand(size) for v, size in zip(theta, sizes.values(), strict=True)])
            y = x.clone().requires_grad_()
            optimiser = torch.optim.AdamW([y], lr=RATE, betas=BETAS, eps=1e-8, weight_decay=0.0)
            mine = task.indices[i]  # type: ignore[union-attr]
            for batch in (mine[b : b + 10] for b in range(0, len(mine), 10)):
                mask = (y.detach().abs() >= every).double()
                network = library(model, y.detach() * mask)
                logits = answer(network, arena.train_x[torch.from_numpy(batch)], model.padding)
                g = slopes(model, network, cross_entropy(logits, arena.train_y[torch.from_numpy(batch)])) * mask
                size = y.detach().abs()
                factor = torch.where(every > 0, 2 * size * every / (size + every) ** 2, 0.0)
                y.grad = g * (1 + factor) if amplify else g
                optimiser.step()
            updates.append(y.detach() - x)
        moved = torch.stack(updates)
        count = (moved != 0).sum(0)
        x = torch.where(count > 0, x + moved.sum(0) / count.clamp(min=1), x)
    torch.testing.assert_close(found.state["x"], x, rtol=0, atol=1e-8)
    assert (x - env.initial()).abs().max() > 0.01
    words = layout_of(model).named(x - env.initial())["embeddings.word_embeddings.weight"]
    assert not words[0].any(), "padding"


def test_where_all_hold_everything_the_methods_are_one() -> None:
    common: dict[str, Any] = {"lr": RATE, "participation": DistinctClients(5, average=True), "betas": BETAS}
    methods = {
        "heterofl": HeteroFL(**common),
        "fedrolex": HeteroFL(rolling=True, **common),
        "scalefl": ScaleFL(levels=((1.0, 1, 1.0),), **common),
        "fiarse": FIARSE(count="mask", scope=scales.TEXT_SHARDS, **common),
        "pruning_greedy": FIARSE(count="mask", mask="frozen", amplify=False, **common),
    }
    ends = {}
    for name, method in methods.items():
        problem = SETTING.problem
        if name == "scalefl":
            problem = replace(problem, model=problem.model.with_exits((2,)))
        ends[name] = played(method, problem, (1.0,)).state["x"]
    for end in ends.values():
        torch.testing.assert_close(end, ends["heterofl"], rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("algorithm", "problem", "said"),
    [
        (FedAvg(), replace(STILL, model=STILL.model.with_exits((1, 2))), "FedAvg trains one classifier, .* 2 exits"),
        (HeteroFL(), replace(STILL, model=STILL.model.with_exits((1, 2))), "HeteroFL trains one classifier"),
        (FIARSE(), runs.network(scales.IMAGE_BLOBS, "scalefl"), "FIARSE trains one classifier"),
        (ScaleFL(levels=((1.0, 1, 1.0),)), STILL, "a RoBERTa has none"),
        (FIARSE(scope=scales.TEXT_SHARDS[1:]), STILL, "no shard of the thresholds has the stage 'embeddings.position"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_said_in_one_line(algorithm: Any, problem: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        played(algorithm, problem, (1.0,))
