"""The memory that a cluster is asked for: what algorithms keep, and what committed results had."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from runs import run

from reproduce.play.benchmarks import find, reason
from reproduce.play.names import NAMES
from reproduce.play.specs import Spec
from reproduce.runs import costs, plan, results

BENCHMARK = find("fedagrac-steps", "smoke")


def numbers(state: Any) -> Iterator[int]:
    """How many numbers each tensor of a state has."""
    if isinstance(state, torch.Tensor):
        yield state.numel()
    elif isinstance(state, dict):
        for value in state.values():
            yield from numbers(value)
    elif isinstance(state, list | tuple):
        for value in state:
            yield from numbers(value)


@pytest.mark.parametrize("name", [n for n in NAMES if not reason(Spec(n), BENCHMARK)])
def test_what_an_algorithm_keeps_for_its_clients_is_known(name: str) -> None:
    experiment = BENCHMARK.experiment(Spec(name))
    (played,) = run([experiment])
    vectors = sum(numbers(played.state)) / played.env.parameters
    assert experiment.algorithm.per_client == int(vectors // played.env.clients)


@pytest.mark.parametrize("scale", ["reduced", "paper"])
def test_a_job_that_was_trained_is_asked_for_no_less_than_it_had(scale: str) -> None:
    for job in plan.jobs(scale):
        if Path(job.output).is_file():
            peak = max(run.training.get("peak_memory", 0) for run in results.standing(job).there)
            assert costs.megabytes(scale, job.paper, job.name) >= peak / 1e6
