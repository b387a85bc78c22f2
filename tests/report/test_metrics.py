"""From training curves to numbers, and other readings of the same curves."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from reproduce.errors import UserError
from reproduce.pages.page_numbers import cells, reread
from reproduce.report import metrics
from reproduce.report.metrics import Reading, read_as


def history(
    values: Sequence[float], *, seed: int = 0, metric: str = "accuracy", key: str = "", status: str = "", **labels: Any
) -> pd.DataFrame:
    """A run as results files hold it: its status stands in every row (default: diverged if a value says so)."""
    rounds = np.arange(1, len(values) + 1)
    return pd.DataFrame(labels, index=range(len(values))).assign(
        seed=seed, round=rounds, time=rounds * 2.5, metric=metric, key=key, value=np.asarray(values, float),
        status=status or ("ok" if np.isfinite(np.asarray(values, float)).all() else "diverged"),
    )  # fmt: skip


class TestMetrics:
    frame = pd.concat(
        [
            history([10, 50, 40, 60, 80], seed=0, algorithm="a"),
            history([10, 20, 30, 40, 45], seed=1, algorithm="a"),
            history([30, 70, np.nan, np.nan, np.nan], seed=0, algorithm="b"),
            history([1, 2, 4, 8, 16], seed=0, algorithm="a", metric="work"),
            history([1, 1, 1, 1, 1], seed=1, algorithm="a", metric="work"),
            history([5, 5, 5, 5, 5], seed=0, algorithm="b", metric="work"),
            history([7, 9], seed=0, algorithm="a", metric="sized", key="1/4"),
            history([5, 6], seed=0, algorithm="a", metric="sized", key="1/64"),
        ],
        ignore_index=True,
    )

    def values(self, cells: pd.DataFrame) -> list[float]:
        assert [*cells["algorithm"]] == ["a", "a", "b"]
        assert [*cells["seed"]] == [0, 1, 0]
        return [round(v, 6) for v in cells["value"]]

    def test_last(self) -> None:
        got = metrics.last(self.frame, "accuracy", 2, name="final")
        assert self.values(got) == pytest.approx([70, 42.5, np.nan], nan_ok=True)
        assert list(got.columns) == ["algorithm", "seed", "metric", "value"]
        assert set(got["metric"]) == {"final"}
        assert self.values(metrics.last(self.frame, "accuracy", 99))[:2] == pytest.approx([48, 29])

    def test_the_value_of_a_round(self) -> None:
        assert self.values(metrics.plateau(self.frame, "accuracy", 2, 2)) == [50, 20, 70]
        got = self.values(metrics.plateau(self.frame, "accuracy", 3, 3))
        assert got == pytest.approx([40, 30, np.nan], nan_ok=True)
        with pytest.raises(ValueError, match="not evaluated in rounds 6 to 6"):
            metrics.plateau(self.frame, "accuracy", 6, 6)
        with pytest.raises(ValueError, match="no metric 'loss' in the histories; there are: accuracy, sized, work"):
            metrics.plateau(self.frame, "loss", 1, 1)

    def test_a_run_that_diverged_has_the_numbers_from_before(self) -> None:
        """Its last evaluation may be finite: it ended in the middle of a round."""
        b = ((self.frame["algorithm"] == "b") & (self.frame["metric"] == "accuracy")).to_numpy()
        ended = self.frame[~b | np.isfinite(self.frame["value"])]
        for frame in (self.frame, ended):
            assert self.values(metrics.plateau(frame, "accuracy", 1, 2)) == [30, 15, 50]
            for first, final in ((1, 3), (2, 4), (1, 9)):
                assert np.isnan(metrics.plateau(frame, "accuracy", first, final)["value"].iloc[2])
            assert np.isnan(metrics.last(frame, "accuracy")["value"].iloc[2])
            assert self.values(metrics.first_reaching(frame, "accuracy", 45)) == [2, 5, 2]
            assert metrics.smooth(frame, 2)["value"].iloc[10:12].tolist() == [30, 50]

    def test_diverged_runs_alone_do_not_say_where_a_window_ends(self) -> None:
        """The end of the last of them is where it diverged; rounds that none of them saw have no number."""
        early = history([20, 40, 60], status="diverged", algorithm="a")
        assert np.isnan(metrics.plateau(early, "accuracy", 1, 9)["value"].item())
        seeds = pd.concat([history([*range(30, 81, 10)], seed=s, status="diverged", algorithm="a") for s in range(3)])
        for first, final in ((6, 10), (7, 10)):
            assert metrics.plateau(seeds, "accuracy", first, final)["value"].isna().tolist() == [True] * 3
        assert metrics.plateau(seeds, "accuracy", 5, 6)["value"].tolist() == [75] * 3
        assert metrics.plateau(seeds, "accuracy", 7, 7)["value"].isna().tolist() == [True] * 3
        assert metrics.plateau(seeds, "accuracy", 6, 6)["value"].tolist() == [80] * 3

    def test_which_cells_are_of_runs_that_diverged(self) -> None:
        """Whatever the metric and the key, and by when."""
        work = metrics.last(self.frame, "work")
        assert metrics.diverged(work, self.frame).tolist() == [False, False, True]
        ended = self.frame.drop(index=self.frame.index[self.frame["value"].isna()])
        assert metrics.diverged(work, ended, 2).tolist() == [False] * 3
        assert metrics.diverged(work, ended, 3).tolist() == [False, False, True]

    def test_first_reaching(self) -> None:
        got = metrics.first_reaching(self.frame, "accuracy", 45)
        assert self.values(got) == [2, 5, 2]  # b reaches it before it diverges
        assert not got["censored"].any()
        got = metrics.first_reaching(self.frame, "accuracy", 75)
        assert self.values(got) == [5, 5, 5]
        assert [*got["censored"]] == [False, True, True]
        got = metrics.first_reaching(self.frame, "accuracy", 45, horizon=4)
        assert self.values(got) == [2, 4, 2]
        assert [*got["censored"]] == [False, True, False]

    def test_a_target_that_is_met_exactly_counts(self) -> None:
        """1164 of 2000 right answers are 58.2 %, and 100 times the share is a little less in floating point."""
        met = self.frame.assign(value=100 * (1164 / 2000))
        assert met["value"].iloc[0] < 58.2
        assert not metrics.first_reaching(met, "accuracy", 58.2)["censored"].any()
        assert metrics.first_reaching(met, "accuracy", 58.2001)["censored"].all()

    def test_the_time_at_the_target(self) -> None:
        got = metrics.first_reaching(self.frame, "accuracy", 75, x="time")
        assert self.values(got) == [12.5, 12.5, 12.5]
        assert [*got["censored"]] == [False, True, True]
        assert set(got["metric"]) == {"time_to_target"}

    def test_smooth(self) -> None:
        got = metrics.smooth(self.frame, 2)
        assert list(got["value"][:5]) == [10, 30, 45, 50, 70]
        assert list(got["value"][5:7]) == [10, 15]  # the next seed starts afresh
        assert got["value"][10:15].isna().tolist() == [False, False, True, True, True]
        pd.testing.assert_frame_equal(got.drop(columns="value"), self.frame.drop(columns="value"))

    def test_carried_to_a_grid(self) -> None:
        """Against a walk over the times; a curve that diverged is not continued."""
        frame = self.frame.assign(time=self.frame["round"] ** 2 * 0.5)  # 0.5, 2, 4.5, 8, 12.5
        got = metrics.carried(frame[frame["metric"] == "accuracy"], 0.5, 14.0)
        times = [j * 0.5 for j in range(29)]
        for (name, seed), rows in got.groupby(["algorithm", "seed"]):
            told = frame[(frame[["algorithm", "seed", "metric"]] == [name, seed, "accuracy"]).all(axis=1)]
            known = [t for t in times if t >= 0.5 and (name == "a" or t <= told["time"].max())]
            assert rows["time"].tolist() == known
            newest = [told[told["time"] <= t].iloc[-1] for t in known]
            assert rows["round"].tolist() == [row["round"] for row in newest]
            assert rows["value"].tolist() == pytest.approx([row["value"] for row in newest], nan_ok=True)

    def test_the_bound_of_a_run_is_its_own(self) -> None:
        short = history([10, 20], seed=2, algorithm="a")
        frame = pd.concat([self.frame, short], ignore_index=True)
        cells = [metrics.first_reaching(frame, "accuracy", 60, per_run=each) for each in (False, True)]
        found = [c.set_index(["algorithm", "seed"]) for c in cells]
        assert [f.loc[("a", 2), "value"] for f in found] == [5, 2]
        assert [f.loc[("a", 1), "value"] for f in found] == [5, 5]
        assert all(f.loc[("a", 2), "censored"] for f in found)

    def test_over_seeds(self) -> None:
        cells = pd.DataFrame({"algorithm": "a", "metric": "m", "seed": [0, 1, 2], "value": [1.0, 3.0, np.inf]})
        got = metrics.over_seeds(cells).iloc[0]
        assert (got["mean"], got["seeds"], got["runs"], got["censored"]) == (2, 2, 3, False)
        assert got["std"] == pytest.approx(np.sqrt(2))


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
