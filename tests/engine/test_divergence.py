"""What becomes of runs whose numbers overflow: a recorded status; the runs beside them go on."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from runs import run

from reproduce.algorithms.base import received
from reproduce.algorithms.os_sampling import FLOOR, inclusion, lengths
from reproduce.declare.experiment import Experiment
from reproduce.runs import plan

DECLARED = {
    f"{type(e.algorithm).__name__}-{type(e.clock).__name__}-{'network' if e.problem.model else 'quadratic'}": e
    for job in plan.jobs("smoke")
    for e in job.experiments
    if e.clock.length(e) < 100
}
"""An experiment of each algorithm under each clock that it is declared with."""
LIMIT = 1e38
"""Nearly the largest number of float32."""


def faster(experiment: Experiment, rate: float) -> Experiment:
    return replace(experiment, algorithm=replace(experiment.algorithm, lr=rate))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", DECLARED)
def test_a_run_that_overflows_ends_and_those_beside_it_go_on(name: str) -> None:
    """At 1e19 the squares of a norm overflow before the numbers do, at 1e38 the numbers; models may survive the former
    where rates fall or updates are masked."""
    declared = DECLARED[name]
    alone, overflown, beyond = run([declared, faster(declared, 1e19), faster(declared, LIMIT)])
    assert beyond.state["status"] == "diverged"
    assert overflown.done
    assert (alone.done, alone.state["status"]) == (True, "ok")


def test_lost_updates_add_nothing_even_where_they_are_no_numbers() -> None:
    updates = torch.tensor([[1.0, 2.0], [torch.nan, torch.inf], [3.0, 5.0]], dtype=torch.float64)
    assert received(torch.tensor([0.5, 0.0, 2.0], dtype=torch.float64), updates).tolist() == [6.5, 11.0]
    assert received(torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64), updates).isfinite().sum() == 0


def test_norms_that_overflow_are_followed_to_their_limit() -> None:
    """With u_m -> infinity for some clients, these share what is expected, and the rest is left out."""
    rows = torch.tensor([[3.0, 4.0], [3e38, 3e38], [torch.nan, 0.0], [0.0, 0.0]])
    assert lengths(rows[:1]).tolist() == [5.0]
    assert lengths(rows).tolist() == [0.0, 1.0, 1.0, 0.0]
    u = np.maximum(lengths(rows), FLOOR)
    growing = inclusion(np.array([5.0, 1e15, 1e15, 1e-3]), 1)
    np.testing.assert_allclose(inclusion(u, 1), growing, atol=1e-11)
