"""FIARSE and pruning-greedy against a naive NumPy loop on masked logistic regression, in float64."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from runs import run as play_all
from softmax import Floats, gradient, logits

from reproduce.algorithms.base import DistinctClients, FedAvg
from reproduce.algorithms.fiarse import FIARSE
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Fixed
from reproduce.data.embedded import GaussianClasses
from reproduce.declare.experiment import Experiment
from reproduce.engine.scheduler import Run
from reproduce.models.declared import Softmax
from reproduce.partitions.dirichlet import BalancedDirichlet
from reproduce.problem import Classification
from reproduce.streams import rng
from reproduce.systems import Epochs, System
from reproduce.systems.clients import SplitCapacity

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
