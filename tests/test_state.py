"""A run's state has no entry that its clock, its algorithm or the engine does not declare."""

from __future__ import annotations

import pytest
from runs import run

from reproduce.declare.experiment import Experiment
from reproduce.engine.cohort import STATE
from reproduce.runs import plan
from reproduce.runs.plan import Job


def declared(experiment: Experiment) -> set[str]:
    bases = (*type(experiment.algorithm).__mro__, *type(experiment.clock).__mro__)
    return {*STATE, *(name for base in bases for name in vars(base).get("memory", ()))}


@pytest.mark.parametrize("job", plan.jobs("smoke"), ids=lambda job: f"{job.paper}-{job.name}")
def test_every_entry_is_declared(job: Job) -> None:
    for played in run(job.experiments, job.panel.seeds[:1]):
        found, known = set(played.state), declared(played.experiment)
        assert found <= known, played.experiment.labels
        assert "x" in found
