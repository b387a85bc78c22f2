"""Fig. 1 of FedaGrac on random instances: the closed affine rounds against the engine's paths."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from reproduce.papers.fedagrac import measures, runs, theory
from reproduce.report.histories import Source, load

ROOT = Path(__file__).parent.parent


def test_the_declared_numbers_are_those_of_the_regression() -> None:
    noise, found = np.random.RandomState(0), theory.problem()
    for client, (width, slope, intercept) in enumerate(((2.1, 1.2, 2.6), (0.55, -2.9, 0.7))):
        x = np.linspace(-width, width, 100)
        y = slope * x + intercept + 0.1 * noise.standard_normal(100)
        np.testing.assert_allclose(found.minimisers[client], np.polyfit(x, y, 1), rtol=1e-12)
        rows = np.stack([x, np.ones_like(x)], axis=1)
        np.testing.assert_allclose(found.hessians[client], 2 * rows.T @ rows / 100, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("algorithm", [*theory.RIVALS, "fedagrac"])
def test_rounds_are_those_of_the_engine(algorithm: str) -> None:
    """On the reference instance, whose trained paths are committed, by whichever linear algebra it was declared."""
    files = sorted((ROOT / "results" / "paper" / "fedagrac").glob("fig1*.parquet"))
    histories = load([Source("fig1", file) for file in files], "paper")
    histories = replace(histories, experiments=runs.fig1("paper")[0].experiments)
    e, h = theory.problem().minima(), np.array(theory.problem().hessians)
    path = theory.server_paths(algorithm, e[None], h[None])[:, 0]
    np.testing.assert_allclose(path, measures.server_path(histories, algorithm), atol=1e-5)
    cells = pd.read_csv(ROOT / "results" / "paper" / "cells" / "fedagrac_fig1.csv")
    told = cells[(cells["algorithm"] == algorithm) & (cells["metric"] == "max_perpendicular_deviation")]["value"]
    assert theory.deviations(algorithm, e[None], h[None])[0] == pytest.approx(float(told.iloc[0]), abs=1e-6)


def test_random_instances_are_the_same_every_time_and_differ() -> None:
    e, h = theory.random_quadratics(50)
    again, _ = theory.random_quadratics(50)
    np.testing.assert_array_equal(e, again)
    assert len(np.unique(e[:, 0, 0])) == 50
    assert (np.linalg.eigvalsh(h) > 0).all()
    assert (theory.RATE * np.linalg.eigvalsh(h) < 2).all(), "local steps converge"
