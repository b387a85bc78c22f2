"""Other readings of the same curves: what each does to a curve, and that declared ones give the committed cells."""

from pathlib import Path

import pandas as pd
import pytest

from reproduce.errors import UserError
from reproduce.pages.quotes import cells, reread
from reproduce.report import metrics
from reproduce.report.metrics import Reading, read_as

ROOT = Path(__file__).parents[2]
CURVE = [10.0, 60.0, 20.0, 50.0, 40.0, 45.0]


def frame(metric: str = "accuracy") -> pd.DataFrame:
    rows = {"algorithm": "a", "seed": 0, "round": range(1, 7), "time": range(1, 7), "metric": metric, "key": ""}
    return pd.DataFrame({**rows, "value": CURVE, "status": "ok"})


@pytest.mark.parametrize(
    ("reading", "value"),
    [
        (Reading(), 42.5),
        (Reading(tail=1), 45.0),
        (Reading(tail=4), 38.75),
        (Reading(best=True), 60.0),
        (Reading(hit=1), 42.5),
    ],
)
def test_which_evaluations_an_accuracy_is_of(reading: Reading, value: float) -> None:
    with read_as(reading):
        assert metrics.last(frame(), "accuracy", 2)["value"].tolist() == [value]
    assert metrics.last(frame(), "accuracy", 2)["value"].tolist() == [42.5]


def test_a_distance_is_read_as_declared() -> None:
    with read_as(Reading(tail=1, best=True)):
        assert metrics.last(frame("distance"), "distance", 2)["value"].tolist() == [42.5]


@pytest.mark.parametrize(
    ("reading", "smooth", "hit"),
    [
        (Reading(), 1, 2),  # 60 in round 2
        (Reading(), 3, 6),  # (50 + 40 + 45) / 3
        (Reading(hit=1), 3, 2),
        (Reading(hit=3), 1, 6),
        (Reading(hit=3), 2, 6),  # smoothed once, not twice
    ],
)
def test_when_a_target_is_reached(reading: Reading, smooth: int, hit: int) -> None:
    with read_as(reading):
        curve = metrics.smooth(frame(), smooth) if smooth > 1 else frame()
        assert metrics.first_reaching(curve, "accuracy", 45.0)["value"].tolist() == [hit]


def test_the_mean_curve_reaches_a_target_once_for_all_seeds() -> None:
    """By hand: the means of two curves are 20, 30 and 60, and the seeds are at 50 in rounds 1 and 3, on average 2."""
    low, high = [0.0, 10.0, 80.0], [50.0, 50.0, 40.0]
    rows = pd.concat([frame().head(3).assign(seed=seed, value=curve) for seed, curve in enumerate((low, high))])
    assert metrics.first_reaching(rows, "accuracy", 50)["value"].tolist() == [3, 1]
    with read_as(Reading(pooled=True)):
        found = metrics.first_reaching(rows, "accuracy", 50)
    assert found[["seed", "value", "censored"]].to_numpy().tolist() == [[-1, 3, False]]


def test_cells_are_read_again_from_the_stored_curves() -> None:
    """As declared they are the committed ones; a best evaluation is none below the mean of ten, in no cell."""
    declared, best = (reread("reduced/fedagrac_fig2", ROOT, **how).rows for how in ({}, {"best": True}))
    committed = cells("reduced/fedagrac_fig2").rows
    # Both are kept from earlier calls, with strings of the kind that was asked for there: Arrow's or Python's.
    pd.testing.assert_frame_equal(declared, committed, check_dtype=False, check_column_type=False)
    gaps = (best["value"] - committed["value"])[committed["metric"] == "last10"]
    assert gaps.min() > 0
    with pytest.raises(UserError, match="unknown artifact 'fedagrac_fig'"):
        reread("reduced/fedagrac_fig", ROOT)
    with pytest.raises(UserError, match="no stored curves"):
        reread("reduced/defedavg_setup", ROOT)
