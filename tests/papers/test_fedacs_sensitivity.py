"""What the sensitivity figure of FedACS changes: each choice does what its name says, and nothing twice."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from runs import run

from reproduce.algorithms.base import FedAvg, WeightedDraws
from reproduce.algorithms.fedacs import FadingFedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.declare.experiment import SCALES, Experiment, changed
from reproduce.papers.fedacs import choices, measures
from reproduce.papers.fedacs.variants import DrawnTwice
from reproduce.partitions.labels import IID
from reproduce.problem import Quadratic
from reproduce.report.histories import Histories
from reproduce.systems import System, work

FASHION = choices.panels("reduced")[0]


def chosen(answer: str) -> Experiment:
    """FedACS on Fashion-MNIST under a choice."""
    found = [e for e in FASHION.experiments if (e.labels["answer"], e.labels["algorithm"]) == (answer, "fedacs")]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("scale", SCALES)
def test_every_choice_is_another_run(scale: str) -> None:
    for p in choices.panels(scale):
        assert len({e.digest for e in p.experiments}) == len(p.experiments)


def test_the_network_with_larger_kernels_is_the_one_of_the_public_code() -> None:
    """21,840 parameters (docs/papers/fedacs.md); nothing else differs from the other choices of the network."""
    panels = {p.name: p for p in choices.panels("reduced")}
    panel, others = panels["sensitivity-mnist-network"], panels["sensitivity-mnist"].experiments
    base = {e.labels["algorithm"]: replace(e, labels={}) for e in others if e.labels["answer"] == choices.DEFAULT}
    for e in panel.experiments:
        plain = base[str(e.labels["algorithm"])]
        larger = e.labels["answer"] == "5x5 kernels"
        assert e.problem.model.parameters == 21_840 if larger else replace(e, labels={}) == plain
        assert changed(replace(e, labels={}), {"problem.model": plain.problem.model}) == plain


def test_who_is_drawn_twice_trains_twice() -> None:
    """One client that is always drawn twice: the mean of two local runs from the same model, the first of them that
    of the plain algorithm; without a second one nothing differs."""
    once = {"problem.clients": 1, "problem.partition": IID(), "clock.rounds": 1, "system": System(work.Steps(2))}
    plain = changed(next(iter(choices.panels("smoke")[0].experiments)), {**once, "labels": {}})
    rate = plain.algorithm.lr

    def end(made: type[FedAvg], k: int) -> torch.Tensor:
        (found,) = run([changed(plain, {"algorithm": made(rate, WeightedDraws(k))})])
        return found.state["x"]

    assert torch.equal(end(DrawnTwice, 1), end(FedAvg, 1))
    assert torch.equal(end(FedAvg, 2), end(FedAvg, 1))
    assert not torch.allclose(end(DrawnTwice, 2), end(FedAvg, 2))
    assert float((end(DrawnTwice, 2) - end(FedAvg, 2)).abs().max()) < 0.1


def test_a_fading_rate() -> None:
    """One client with the minimiser (1, 1), two steps per round: the error shrinks by (1 - 0.1 * 0.8^r)^2."""
    problem = Quadratic(1, 2, minimisers=((1.0, 1.0),))
    experiment = Experiment({}, problem, System(work.Steps(2)), FadingFedAvg(0.1, decay=0.2), Rounds(3))
    (found,) = run([experiment])
    left = np.prod([(1 - 0.1 * 0.8**r) ** 2 for r in range(3)])
    np.testing.assert_allclose(found.state["x"].numpy(), 1 - left, rtol=1e-6)


def test_classes_are_told_apart_by_who_owns_them() -> None:
    """Against sums by hand: two late rounds count, and with the last classes the halves change their places."""
    late = {0: 10.0, 1: 20.0, 2: 60.0, 3: 80.0}
    told = {"dataset": "toy", "rate": 1.0, "algorithm": "fedacs", "tail": 2}
    assert all(e.clock.by_class for panel in choices.traded("smoke") for e in panel.experiments)
    measured = {**told, "seed": 0, "metric": "class_accuracy"}
    rows = [
        {**measured, "slow_own": slow, "round": r, "key": str(k), "value": v + r - 2.5}
        for slow, r, (k, v) in itertools.product(choices.ASSIGNED, (1, 2, 3), late.items())
    ]
    rows += [{**row, "metric": "accuracy", "key": "", "value": 1.0} for row in rows]
    found = measures.traded(Histories(pd.DataFrame(rows).assign(time=0.0, status="ok"), "smoke"))
    halves = found[found["metric"] != "final_accuracy"].set_index(["slow_own", "metric"])["value"].to_dict()
    assert halves == {
        ("the first classes", "slow_class_accuracy"): 15.0, ("the first classes", "fast_class_accuracy"): 70.0,
        ("the last classes", "slow_class_accuracy"): 70.0, ("the last classes", "fast_class_accuracy"): 15.0,
    }  # fmt: skip
