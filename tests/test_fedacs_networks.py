"""The network experiments of FedACS: what is recorded, and what the tables make of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from runs import run as play_all

from reproduce.algorithms.base import FedAvg, WeightedDraws
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Shuffled
from reproduce.declare.experiment import Experiment
from reproduce.models.declared import Softmax
from reproduce.partitions.dirichlet import CappedDirichlet
from reproduce.partitions.labels import ClassPerClient
from reproduce.problem import Classification
from reproduce.streams import rng
from reproduce.systems import System, link, work


def test_accuracy_by_class_and_work_are_recorded() -> None:
    """The class accuracies are those of the final model, and their weighted mean is the accuracy; the work is what the
    sampled clients, arrived or not, went through."""
    problem = Classification("digits", Softmax(64, 10), ClassPerClient(), clients=10, batches=Shuffled(20))
    system = System(work.PerClient(tuple(range(1, 11)), "epochs"), link.Same(0.5))
    clock = Rounds(4, every=2, work=True, by_class=True)
    runs = play_all([Experiment({}, problem, system, FedAvg(0.1, WeightedDraws(4)), clock)], [3])
    run = runs[0]
    task = run.env.split
    x, y = task.device_data.test_x.flatten(1), task.device_data.test_y
    weight, bias = run.state["x"].split([640, 10])
    right = ((x @ weight.view(10, 64).T + bias).argmax(1) == y).numpy()
    rows = {(r, m, k): v for r, _, m, k, v in run.state["history"]}
    for c in range(10):
        assert np.isclose(rows[4, "class_accuracy", str(c)], 100 * right[y.numpy() == c].mean())
    assert np.isclose(rows[4, "accuracy", ""], 100 * right.mean())
    assert (1, "accuracy", "") not in rows
    expected, sizes = 0.0, task.samples
    for r in range(4):
        drawn = set(rng("sampling", 3, r).choice(10, size=4, p=task.weights).tolist())
        expected += sum((m + 1) * sizes[m] for m in drawn)
    assert rows[4, "work", ""] == expected
    assert torch.isfinite(run.state["x"]).all()


WORKS = work.Epochs(0.5), work.Steps(1)
"""The same where a client's samples are two batches at most."""


@pytest.mark.parametrize("split", [False, True])
def test_the_worst_client_and_the_spread_are_those_of_the_final_model(split: bool) -> None:
    """Sample by sample: of a split test set a client has its part; else each of its samples counts as much as the share
    of the test samples of its label that are right. A part of an epoch trains what as many steps do."""
    partition = CappedDirichlet(0.3)
    problem = Classification("digits", Softmax(64, 10), partition, 6, Shuffled(500), test_partition=split)
    clock = Rounds(3, every=3, by_client=True)
    half, one = (Experiment({"a": i}, problem, System(w), FedAvg(0.1), clock) for i, w in enumerate(WORKS))
    run, same = play_all([half, one], [3])
    assert torch.equal(run.state["x"], same.state["x"])
    task, data = run.env.split, run.env.split.device_data
    weight, bias = run.state["x"].split([640, 10])
    right = ((data.test_x.flatten(1) @ weight.view(10, 64).T + bias).argmax(1) == data.test_y).numpy()
    if split:
        each = [100 * right[part].mean() for part in task.test_indices if len(part)]
    else:
        shares = [right[data.test_labels == c].mean() for c in range(10)]
        each = [100 * np.mean([shares[label] for label in data.labels[part]]) for part in task.indices]
    rows = {m: v for r, _, m, _, v in run.state["history"] if r == 3}
    assert rows["worst_client"] == pytest.approx(min(each))
    assert rows["client_spread"] == pytest.approx(np.std(each))
    assert np.std(each) > 1, "the test tests something"
