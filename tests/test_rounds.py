"""The round clock: a run that ends with its target."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from runs import run

from reproduce.algorithms.base import FedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.engine.cohort import Run
from reproduce.experiment import Experiment
from reproduce.problems import Classification
from reproduce.problems.batches import Shuffled
from reproduce.problems.models import Softmax
from reproduce.problems.partitions import IID
from reproduce.systems import Steps, System

PROBLEM = Classification("digits", Softmax(64, 10), IID(), clients=5, batches=Shuffled(10), train_samples=400)


def trained(*clocks: Rounds) -> list[Run]:
    experiments = [Experiment({"n": i}, PROBLEM, System(work=Steps(3)), FedAvg(0.02), c) for i, c in enumerate(clocks)]
    return run(experiments, dtype=torch.float64)


def accuracies(run: Run) -> list[float]:
    return [v for _, _, metric, _, v in run.state["history"] if metric == "accuracy"]


@pytest.mark.parametrize("every", [1, 3])
def test_a_run_ends_with_the_first_evaluation_at_its_target(every: int) -> None:
    clock = Rounds(20, every=every)
    whole = trained(clock)[0]
    target = sorted(accuracies(whole))[len(accuracies(whole)) // 2]
    first = next(i for i, a in enumerate(accuracies(whole)) if a >= target)
    short, missed = trained(replace(clock, until=("accuracy", target)), replace(clock, until=("accuracy", 101.0)))
    assert 0 < first < len(accuracies(whole)) - 1
    assert accuracies(short) == accuracies(whole)[: first + 1]
    assert short.state["round"] == every * first
    assert accuracies(missed) == accuracies(whole)
    assert short.done
    assert missed.done


def test_a_resumed_run_remembers_that_it_was_there() -> None:
    run = trained(Rounds(20, until=("accuracy", 0.0)))[0]
    assert run.state["round"] == 0
    again = Run(run.experiment, 0, run.env, {k: v for k, v in run.state.items() if k != "done"})
    assert list(again.play()) == []


@pytest.mark.parametrize("wrong", [{"rounds": -1}, {"every": 0}, {"dense_last": -2}, {"trace": -1}])
def test_numbers_that_make_no_rounds_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="none of them may be negative, nor every 0"):
        Rounds(**{"rounds": 3, **wrong})
