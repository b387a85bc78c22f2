"""What the benchmark `images` rests on: accuracies without a part of the test images, and the variance of a lead."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.images import GROUPS, variances, watched
from reproduce.runs import plan
from reproduce.runs.job import begin, finish, frame
from reproduce.settings import settings

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
    for seeds, images in ((2, 20), (5, 40), (7, 30)):
        values = draw.normal(size=(seeds, 1)) + 3 * draw.normal(size=images) + draw.normal(size=(seeds, images))
        whole, less = values.mean(1), (values.sum(1, keepdims=True) - values) / (images - 1)
        assert variances(whole, less) == pytest.approx(crossed(values), rel=1e-9)


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
