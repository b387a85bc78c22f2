"""What other test images would change in a verdict: accuracies without a part of them, the variance of a lead, which
runs are trained again for it, and what follows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from reproduce.__main__ import main
from reproduce.declare.experiment import Experiment
from reproduce.pages import images
from reproduce.pages.images import RESULTS, Decided, near, variances, watched
from reproduce.runs import plan
from reproduce.runs.job import begin, finish, frame
from reproduce.settings import settings
from reproduce.verdicts import images as record
from reproduce.verdicts.checks import canon
from reproduce.verdicts.images import GROUPS, Line, with_error
from reproduce.verdicts.verdict import Measured

JOBS = {
    "fedacs": "image-blobs-dynamic", "dynamic_init": "weights-gaussian", "fedagrac": "fig3-cnn2-async",
    "fiarse": "four-image-blobs", "defedavg": "rounds-gaussian-iid-n2-k5",
}  # fmt: skip


def crossed(values: np.ndarray) -> tuple[float, float, float]:
    """The variances of the mean of [seed, image], number by number: two-way analysis of variance, random effects."""
    seeds, images = values.shape
    mean = values.mean()
    between = images * sum((values[s].mean() - mean) ** 2 for s in range(seeds)) / (seeds - 1)
    among = seeds * sum((values[:, i].mean() - mean) ** 2 for i in range(images)) / (images - 1)
    rest = sum(
        (values[s, i] - values[s].mean() - values[:, i].mean() + mean) ** 2 for s in range(seeds) for i in range(images)
    )
    rest /= (seeds - 1) * (images - 1)
    total = seeds * images
    return between / total, among / total, max(between, among, between + among - rest) / total


def test_variances_are_those_of_a_two_way_analysis() -> None:
    draw = np.random.default_rng(0)
    for seeds, n in ((2, 20), (5, 40), (7, 30)):
        values = draw.normal(size=(seeds, 1)) + 3 * draw.normal(size=n) + draw.normal(size=(seeds, n))
        whole, less = values.mean(1), (values.sum(1, keepdims=True) - values) / (n - 1)
        assert variances(whole, less) == pytest.approx(crossed(values), rel=1e-9)


def test_the_error_of_a_median_is_that_of_the_median_without_each_group() -> None:
    """Of seeds of which one collapsed, and of which images say something else: that is in the mean alone."""
    shifts = np.random.default_rng(2).normal(size=GROUPS)
    less = 50 + np.outer([1.0, 1.0, 1.0, 1.0, 90.0], shifts)
    assert images.of_median(less) == pytest.approx((GROUPS - 1) * shifts.std(ddof=1) / math.sqrt(GROUPS))
    assert images.added(less.mean(1), less) > 10 * images.of_median(less)


def test_the_variance_of_both_is_that_of_means_over_other_seeds_and_images() -> None:
    """Without a bias, though seeds and images share their noise."""
    draw = np.random.default_rng(1)
    found, means = [], []
    for _ in range(4000):
        values = 2 * draw.normal(size=(6, 1)) + 4 * draw.normal(size=GROUPS) + draw.normal(size=(6, GROUPS))
        less = (values.sum(1, keepdims=True) - values) / (GROUPS - 1)
        found.append(variances(values.mean(1), less)[2])
        means.append(values.mean())
    assert np.mean(found) == pytest.approx(4 / 6 + 16 / GROUPS + 1 / (6 * GROUPS), rel=0.05)
    assert np.var(means) == pytest.approx(np.mean(found), rel=0.1)


@pytest.mark.parametrize("paper", JOBS)
def test_every_accuracy_on_test_images_is_known_without_each_group(paper: str) -> None:
    """And the runs are what they are when nobody watches."""
    job = plan.job("smoke", paper, JOBS[paper])
    experiments, seeds = job.experiments[:3], job.panel.seeds[:1]
    cohort = watched(experiments, seeds)
    whole, *less = cohort.frames()
    assert whole.equals(frame(finish(begin(experiments, seeds, settings()))))
    assert len(less) == GROUPS
    for run, known in zip(cohort.runs, cohort.less, strict=True):
        history = run.state["history"]
        assert set(known) <= {r for r, row in enumerate(history) if "accuracy" in row[2]}
        assert {r for r, row in enumerate(history) if row[2] == "accuracy" and not row[3]} <= set(known)
        images = len(run.env.task.arena.test_labels)
        left = images - np.bincount(np.random.default_rng(0).permutation(images) % GROUPS, minlength=GROUPS)
        # Every image is in all numbers but one. Sessions look at some labels only, of which there are other counts.
        exact = not hasattr(run.experiment.clock, "sessions")
        for row, numbers in known.items():
            average = np.average(numbers, weights=left)
            assert average == pytest.approx(history[row][4], abs=1e-9 if exact else 0.5)
            assert np.ptp(numbers) > 0 or history[row][4] in (0, 100)


# --- which runs decide ------------------------------------------------------------------------------------------------

SCALES = ("reduced", "paper")
claims = cache(near)


def mine(cells: pd.DataFrame, labels: Mapping[str, Any]) -> np.ndarray:
    """The cells that no label tells from those of a run."""
    same = [(cells[c] == canon(label)).to_numpy() for c, label in labels.items() if c in cells and c != "num_clients"]
    return np.logical_and.reduce(same)


@pytest.mark.parametrize("scale", SCALES)
def test_the_number_that_decides_is_made_of_the_runs_that_are_trained_again(scale: str) -> None:
    """And of no others, unless it is the best of them, as every cost of a transfer; for every claim that is asked."""
    for v in claims(scale):
        decided = Decided(v, scale)
        cells = decided.cells(RESULTS)
        number = decided.numbers(cells)
        assert len(number) == decided.measured.n
        labels = [e.labels for _, each in decided.runs for those in each.values() for e in those]
        by = 1e3 * ~np.logical_or.reduce([mine(cells, each) for each in labels])
        if "best of" not in decided.measured.setting and decided.measured.what != "cost":
            others = cells.assign(low=cells["low"] + by, high=cells["high"] + by)
            pd.testing.assert_frame_equal(decided.numbers(others), number)


def test_the_error_over_images_is_that_of_the_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images that shift one side of a lead by known amounts, in all seeds alike."""
    v = next(v for v in claims("reduced") if v.paper == "dynamic_init" and v.measured and v.measured.what == "lead")
    shifts = np.random.default_rng(0).normal(size=GROUPS)
    decided = Decided(v, "reduced")
    artifact, _ = decided.runs[0]
    ahead = decided.measured.setting.split(", ")[-1].split(" ahead of ")[0]
    whole = images.stored(artifact, "reduced").frame

    class Known:
        def __init__(self, experiments: list[Experiment], seeds: tuple[int, ...]) -> None:
            self.experiments = experiments

        def frames(self) -> list[pd.DataFrame]:
            labels = {tuple(map(str, e.labels.values())): e for e in self.experiments}
            columns = list(self.experiments[0].labels)
            rows = whole[[tuple(map(str, row)) in labels for row in whole[columns].itertuples(index=False)]]
            side = np.logical_or.reduce([(rows[c] == ahead).to_numpy() for c in columns])
            moved = side & rows["metric"].str.startswith("accuracy").to_numpy()
            return [rows, *(rows.assign(value=rows["value"] + shift * moved) for shift in shifts)]

    monkeypatch.setattr(images, "watched", Known)
    expected = (GROUPS - 1) * shifts.std(ddof=1) / math.sqrt(GROUPS)
    assert decided.line() == Line(v.id, decided.measured.setting, decided.measured.n, pytest.approx(expected, rel=1e-6))


# --- what follows -----------------------------------------------------------------------------------------------------

LEAD = Measured("lead", "percent", "", 1.0, 0.4, 1.6, (0.0, math.inf), True, False, 6)


@pytest.mark.parametrize(("error", "says"), [(0.0, "for"), (0.3, "for"), (0.5, "open"), (50.0, "open")])
def test_seeds_and_images_are_independent_errors(error: float, says: str) -> None:
    half = 2.093024 * error  # the 97.5 % quantile of t with 19 degrees of freedom
    (low, high), said = with_error(LEAD, error, 1)
    assert (low, high) == pytest.approx((1 - math.hypot(0.6, half), 1 + math.hypot(0.6, half)), rel=1e-6)
    assert said == says
    assert with_error(LEAD, error, 2)[0][0] <= low


def test_images_never_decide_what_seeds_left_open() -> None:
    for low, high in ((-0.1, 1.6), (-2.0, 3.0)):
        for error in (0.0, 0.1, 1.0):
            assert with_error(replace(LEAD, low=low, high=high), error, 1)[1] == "open"


def test_lines_are_of_the_seeds_that_decide_today(tmp_path: Path) -> None:
    v = claims("reduced")[0]
    assert v.measured is not None
    line = Line(v.id, v.measured.setting, v.measured.n, 0.125)
    file = tmp_path / "images.csv"
    record.add(file, [replace(line, claim="a/b"), replace(line, error=9.0)])
    record.add(file, [line])
    assert record.lines(file) == {v.id: line, "a/b": replace(line, claim="a/b")}
    assert record.error(v.id, v.measured, file) == line.error
    for other in (replace(line, seeds=line.seeds + 1), replace(line, setting="another")):
        record.add(file, [other])
        assert record.error(v.id, v.measured, file) is None


def test_a_damaged_record_is_said_and_not_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "images.csv"
    file.write_text("claim,setting,seeds,error\na/b,,six,0.1\n")
    assert record.lines(file) == {}
    assert f"not used: {file}" in capsys.readouterr().err


def test_verify_prints_what_is_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    v = next(v for v in claims("reduced") if v.images)
    assert main(["verify", "reduced", v.artifact]) == 0
    assert "over seeds and test images" in " ".join(capsys.readouterr().out.split())
