"""What declared measures and pictures mean, on made-up histories of two experiments with different clocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from reproduce.algorithms.base import FedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.declare.artifact import Artifact, Code, Curves, Last, Measure, no_panels
from reproduce.declare.experiment import Experiment, Panel
from reproduce.problem import Quadratic
from reproduce.report import drawing, metrics
from reproduce.report.histories import Histories
from reproduce.systems import System

EXPERIMENTS = (
    Experiment({"algorithm": "short", "tail": 2}, Quadratic(2, 2), System(), FedAvg(0.1), Rounds(5, dense_last=1)),
    Experiment({"algorithm": "long"}, Quadratic(2, 2), System(), FedAvg(0.1), Rounds(9, dense_last=3)),
)


def histories() -> Histories:
    """accuracy = round + 1; the label `tail` is missing from one experiment, so that pandas makes floats of it."""
    rows = [
        {**e.labels, "seed": 0, "round": r, "time": np.nan, "metric": "accuracy", "key": "", "value": r + 1.0,
         "status": "ok"}
        for e in EXPERIMENTS for r in range(e.clock.rounds + 1)
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    assert frame["tail"].dtype == float
    return Histories(frame, "paper", experiments=EXPERIMENTS)


def panels(scale: str) -> tuple[Panel, ...]:
    return (Panel("p", EXPERIMENTS, (0,)),)


def artifact(*cells: Measure, draw: Curves | None = None, **options: Any) -> Artifact:
    return Artifact("fedacs", "fig1", "T", panels if draw else no_panels, cells, draw, **options)


def test_a_number_of_evaluations_is_read_from_a_field_of_the_experiment_or_from_a_label() -> None:
    found = metrics.cells(artifact(Last("accuracy", "clock.dense_last")), histories())
    assert dict(zip(found["algorithm"], found["value"], strict=True)) == {"short": 6.0, "long": 9.0}
    found = metrics.cells(artifact(Last("accuracy", "tail")), histories())
    assert dict(zip(found["algorithm"], found["value"], strict=True)) == {"short": 5.5}
    assert "tail" in found


def test_labels_that_are_dropped_are_not_in_the_cells() -> None:
    found = metrics.cells(artifact(Last("accuracy", "tail"), drop=("tail",)), histories())
    assert list(found.columns) == ["algorithm", "seed", "metric", "value"]


def test_curves_of_some_rounds_with_an_addition() -> None:
    picture = Curves((), "all", every=3, also=Code("pictures:log_distance"))
    fig = drawing.draw(artifact(draw=picture), histories(), pd.DataFrame())
    lines = {line.get_label(): line for line in fig.axes[0].get_lines()}
    np.testing.assert_array_equal(np.asarray(lines["long"].get_xdata()), [0, 3, 6, 9])
    assert fig.axes[0].get_yscale() == "log", "what `also` names was called with the axes"
