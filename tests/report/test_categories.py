"""Heat maps and dots: what stands in a box, where a dot is, what diverged or missed its target."""

import numpy as np
import pandas as pd
import pytest

from reproduce.report import captions, categories
from reproduce.report.histories import Histories
from tests.report.test_figures import HALF_OF_TWO, _style, artifact, one, runs

__all__ = ["_style"]


def test_heat_map_prints_its_values() -> None:
    _fig, ax = one()
    frame = pd.DataFrame(
        [
            {"eta": e, "lam": lam, "seed": s, "value": np.nan if e * lam > 0.4 else 100 * e + lam + s}
            for e in (0.5, 0.1)
            for lam in (1.0, 0.01, 0.1)
            for s in (0, 1)
            if (e, lam) != (0.1, 0.1)
        ]
    )
    categories.heatmap(ax, frame, x="lam", y="eta", names={"lam": "λ"})
    shown = {t.get_position(): t.get_text() for t in ax.texts}
    assert shown == {(0, 0): "10.5", (2, 0): "11.5", (0, 1): "50.5", (1, 1): "50.6", (2, 1): "div."}
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0.01", "0.1", "1"]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["0.1", "0.5"]
    assert ax.get_ylim()[0] < ax.get_ylim()[1]  # upwards
    assert ax.get_xlabel() == "λ"
    inks = {t.get_text(): t.get_color() for t in ax.texts}
    assert (inks["10.5"], inks["50.6"]) == ("white", "black")
    assert len(ax.patches) == 1  # the hatched box of the diverged runs


def test_a_box_marks_the_mean_of_some_of_its_seeds() -> None:
    fig, ax = one()
    frame = pd.DataFrame({"x": [1, 1, 2, 2], "y": 1, "seed": [0, 1, 0, 1], "value": [3.0, 4.0, 5.0, np.nan]})
    categories.heatmap(ax, frame, x="x", y="y")
    assert [t.get_text() for t in ax.texts] == ["3.5", "5.0†"]
    assert captions.diverged(fig)
    said = captions.caption(artifact(), Histories(runs(), "paper"), fig)
    assert "Means are without the seeds that diverged." in said
    categories.heatmap(ax := one()[1], frame.dropna(), x="x", y="y")
    assert not captions.diverged(ax.figure)


def test_dots() -> None:
    _fig, ax = one()
    last = runs(("fedavg", "moon"), seeds=2).query("round == 20")
    rows = pd.concat([last.assign(kind="a"), last[last["algorithm"] == "moon"].assign(kind="b", censored=True)])
    categories.dots(ax, rows, row="kind", rows=["a", "b"], order=["fedavg", "moon"])
    marks = [line for line in ax.get_lines() if line.get_gid() == "dots" and np.isfinite(line.get_xdata()).any()]
    dots = [(x, m.get_marker(), y) for m in marks for x, y in zip(*m.get_data(), strict=True)]
    first, second, alone = sorted((d for d in dots if np.isfinite(d[0])), key=lambda d: d[2])
    assert (first[:2], second[:2]) == ((20.5, "s"), (30.5, "X"))
    assert first[2] < 0 < second[2], "beside one another"
    assert alone == (30.5, ">", 1), "alone in its line of the plot: on it"
    bars = [line for line in ax.get_lines() if line.get_marker() == "None" and len(set(line.get_ydata())) == 1]
    ends = [tuple(bar.get_xdata()) for bar in bars if np.isfinite(bar.get_xdata()).all()]
    assert ends == [pytest.approx((m - HALF_OF_TWO, m + HALF_OF_TWO)) for m in (20.5, 30.5)], "bounds have none"
    seeds = [x for c in ax.collections for x, _ in c.get_offsets()]
    assert sorted(seeds) == [20, 21, 30, 30, 31, 31]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a", "b"]


def test_the_legend_of_dots_has_marks_not_arrows() -> None:
    """Also of a series that missed the target in the first line of the plot, or in all."""
    _fig, ax = one()
    last = runs(("fedavg", "moon"), seeds=2).query("round == 20").assign(kind="a", censored=True)
    categories.dots(ax, last, row="kind", rows=["a"], order=["fedavg", "none", "moon"])
    handles, labels = ax.get_legend_handles_labels()
    assert labels == ["FedAvg", "MOON"], "every name once"
    assert [handle.get_marker() for handle in handles] == ["s", "X"]


def test_groups_of_lines_are_parted_and_their_heads_bold() -> None:
    _fig, ax = one()
    last = runs(("fedavg",)).query("round == 20")
    rows = pd.concat([last.assign(kind=kind) for kind in ("a", "a2", "b", "b2")])
    groups = {"a": "a", "a2": "a", "b": "b", "b2": "b"}
    categories.dots(ax, rows, row="kind", rows=list(groups), order=["fedavg"], groups=groups)
    assert [t.get_fontweight() for t in ax.get_yticklabels()] == ["bold", "normal", "bold", "normal"]
    assert [line.get_ydata()[0] for line in ax.get_lines() if list(line.get_xdata()) == [0, 1]] == [1.5]


def test_heat_maps_that_are_compared_share_their_scale() -> None:
    frame = pd.DataFrame({"x": [1, 2], "y": [1, 1], "value": [3.0, 4.0]})
    for limits in ((0.0, 10.0), None):
        _fig, ax = one()
        categories.heatmap(ax, frame, x="x", y="y", limits=limits, label="accuracy (%)")
        assert ax.get_images()[0].get_clim() == (limits or (3.0, 4.0))
        assert ax.get_images()[0].colorbar.ax.get_ylabel() == "accuracy (%)"
