"""Figures: what is drawn, with which marks, and that equal figures are equal files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from reproduce.declare import Artifact, no_panels
from reproduce.experiment import Experiment, Panel
from reproduce.report import figures
from reproduce.report.histories import Histories
from reproduce.report.names import heading, pretty
from reproduce.report.render import render
from tests.unplayed import Unplayed

SEVEN = ("fedacs", "fedavg", "ca_fedavg", "fedvarp", "fednova", "fedau", "os")


@pytest.fixture(autouse=True)
def _style() -> Iterator[None]:
    with figures.style():
        yield


def runs(algorithms: tuple[str, ...] = ("fedavg", "moon"), seeds: int = 3, points: int = 21) -> pd.DataFrame:
    """Curves whose value is 10 x number of the algorithm + round + seed."""
    rows = [
        {"algorithm": a, "seed": s, "round": r, "time": r * (1 + 0.1 * s), "value": 10.0 * k + r + s, "status": "ok"}
        for k, a in enumerate(algorithms)
        for s in range(seeds)
        for r in range(points)
    ]
    return pd.DataFrame(rows)


def one() -> tuple[Figure, Any]:
    fig, axes = figures.sheet()
    return fig, axes[0, 0]


class TestLines:
    @pytest.mark.parametrize(
        "names",
        [
            SEVEN,
            ("proposed", "continuous", "previous", "average", "random_pilot"),
            ("defedavg_niid", "fedavg", "favano", "fedbuff", "asysg"),
            ("fedagrac", "fedavg", "fednova", "scaffold", "fedprox", "fedlin"),
            ("fiarse", "heterofl", "fedrolex", "scalefl", "fjord", "pruning_greedy", "fiarse_layerwise"),
            ("fedacs", "fiarse", "fedavg", "heterofl"),
            ("1/64", "1/16", "1/4", "1.0", "0.04", "0.16", "0.36", "0.64"),
        ],
    )
    def test_series_differ_in_colour_and_in_grey(self, names: tuple[str, ...]) -> None:
        found = figures.lines(names)
        assert len({line.color for line in found.values()}) == len(names)
        assert len({line.marker for line in found.values()}) == len(names)
        assert len({(str(line.dashes), line.marker) for line in found.values()}) == len(names)

    def test_a_series_keeps_its_line(self) -> None:
        assert figures.lines(SEVEN)["fedavg"] == figures.lines(("fedavg", "moon"))["fedavg"]
        assert figures.lines(("heterofl", "fiarse"))["fiarse"].first

    def test_more_series_than_lines(self) -> None:
        assert len(figures.lines(map(str, range(20)))) == 20


class TestCurves:
    def test_mean_and_band(self) -> None:
        _fig, ax = one()
        figures.curves(ax, runs(), band="minmax")
        assert [line.get_label() for line in ax.get_lines()] == ["FedAvg", "MOON"]
        np.testing.assert_allclose(ax.get_lines()[1].get_ydata(), 10 + np.arange(21) + 1)
        low, high = self.band(ax, 0)
        assert (low, high) == (0, 22)

    def test_standard_deviation(self) -> None:
        _fig, ax = one()
        figures.curves(ax, runs(seeds=2), band="sd")
        low, high = self.band(ax, 0)
        assert high == pytest.approx(20.5 + np.sqrt(0.5))
        assert low == pytest.approx(0.5 - np.sqrt(0.5))

    def band(self, ax: Any, k: int) -> tuple[float, float]:
        y = ax.collections[k].get_paths()[0].vertices[:, 1]
        return y.min(), y.max()

    def test_no_band(self) -> None:
        _fig, ax = one()
        figures.curves(ax, runs(), band=None)
        figures.curves(ax, runs(seeds=1), band="sd")
        assert not ax.collections
        with pytest.raises(ValueError, match="band 'range'"):
            figures.curves(ax, runs(), band="range")

    def test_order_and_selection(self) -> None:
        _fig, ax = one()
        figures.curves(ax, runs(SEVEN), order=("os", "none", "fedavg"))
        assert [line.get_label() for line in ax.get_lines()] == ["OS", "FedAvg"]

    def test_a_line_stops_where_a_seed_diverges(self) -> None:
        fig, ax = one()
        frame = runs(("fedavg",))
        late = (frame["seed"] == 1) & (frame["round"] >= 7)
        figures.curves(ax, frame.assign(value=frame["value"].where(~late)))
        line, cross = ax.get_lines()
        assert list(line.get_xdata()) == list(range(7))
        assert (cross.get_xdata()[0], cross.get_marker()) == (6, "x")
        figures.stamp(fig, "paper")
        assert "Cross: from here on a seed has no value" in fig.texts[0].get_text()
        fig, ax = one()
        figures.curves(ax, frame.assign(status=np.where(late, "diverged", "ok")))
        assert list(ax.get_lines()[0].get_xdata()) == list(range(7))

    def test_a_run_that_never_had_a_value_is_named(self) -> None:
        _fig, ax = one()
        figures.curves(ax, runs(("fedavg",)).assign(value=np.nan))
        assert [line.get_label() for line in ax.get_lines()] == ["FedAvg (diverged)"]

    def test_times_that_differ_between_seeds(self) -> None:
        _fig, ax = one()
        figures.curves(ax, runs(("fedavg",), seeds=2), x="time")
        line = ax.get_lines()[0]
        x, y = line.get_xdata(), line.get_ydata()
        assert (x[0], x[-1]) == (0, 20)  # as far as both were followed
        np.testing.assert_allclose(y, (x + (x / 1.1 + 1)) / 2)


class TestPictures:
    def test_heat_map_prints_its_values(self) -> None:
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
        figures.heatmap(ax, frame, x="lam", y="eta", names={"lam": "λ"})
        shown = {t.get_position(): t.get_text() for t in ax.texts}
        assert shown == {(0, 0): "10.5", (2, 0): "11.5", (0, 1): "50.5", (1, 1): "50.6", (2, 1): "div."}
        assert [t.get_text() for t in ax.get_xticklabels()] == ["0.01", "0.1", "1"]
        assert [t.get_text() for t in ax.get_yticklabels()] == ["0.1", "0.5"]
        assert ax.get_ylim()[0] < ax.get_ylim()[1]  # upwards
        assert ax.get_xlabel() == "λ"
        inks = {t.get_text(): t.get_color() for t in ax.texts}
        assert (inks["10.5"], inks["50.6"]) == ("white", "black")
        assert len(ax.patches) == 1  # the hatched box of the diverged runs

    def test_bars(self) -> None:
        _fig, ax = one()
        last = runs().query("round == 20").assign(group="iid")
        figures.bars(ax, last, x="group")
        assert [p.get_height() for p in ax.patches] == [21, 31]
        assert len({p.get_hatch() for p in ax.patches}) == 2

    def test_missing_panel(self) -> None:
        _fig, ax = one()
        figures.missing(ax, "needs svhn")
        assert ax.texts[0].get_text() == "not run: needs svhn"
        assert not any(tick.tick1line.get_visible() or tick.label1.get_visible() for tick in ax.xaxis.get_major_ticks())

    def test_a_missing_panel_leaves_the_ticks_of_its_neighbours(self) -> None:
        fig, axes = figures.sheet(1, 2, sharex=True, sharey=True)
        axes[0, 0].plot([0, 1], [5, 7])
        figures.missing(axes[0, 1], "needs svhn")
        fig.draw_without_rendering()
        for axis in (axes[0, 0].xaxis, axes[0, 0].yaxis):
            assert len(axis.get_major_ticks()) > 2
            assert all(tick.label1.get_visible() for tick in axis.get_major_ticks())

    def test_legend_once_and_above_the_stamp(self) -> None:
        for order in ("legend first", "stamp first"):
            fig, axes = figures.sheet(1, 3)
            before = fig.get_figheight()
            for ax in axes[0]:
                figures.curves(ax, runs(SEVEN))
            steps = [
                lambda f=fig: figures.legend(f),
                lambda f=fig: figures.stamp(f, "smoke", ["a", "b"], (3, 3), "x"),
            ]
            for step in steps if order == "legend first" else reversed(steps):
                step()
            fig.draw_without_rendering()
            assert len(fig.legends[0].get_texts()) == 7
            legend, stamp = fig.legends[0].get_window_extent(), fig.texts[0].get_window_extent()
            panels = min(ax.get_tightbbox().y0 for ax in axes[0])
            assert 0 <= stamp.y0 < stamp.y1 <= legend.y0 + 1 < legend.y1 <= panels + 1
            assert fig.get_figheight() > before
            assert stamp.x1 <= fig.bbox.x1
            assert fig.texts[0].get_text().startswith("Smoke scale: a; b; shows that everything runs")
            assert fig.texts[0].get_text().endswith("3 seeds. x")

    def test_long_stamps_stay_on_the_page(self) -> None:
        fig, ax = one()
        figures.stamp(fig, "reduced", ["W" * 8] * 60, (1, 1))
        fig.draw_without_rendering()
        box = fig.texts[0].get_window_extent()
        assert box.y0 >= 0
        assert box.y1 <= ax.get_tightbbox().y0 + 1


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    fig, axes = figures.sheet(1, 3, sharey=True)
    for ax in axes[0][:2]:
        figures.curves(ax, runs(SEVEN))
        ax.set(xlabel="Round", ylabel="Accuracy (%)", title="α = 0.1")
    figures.missing(axes[0, 2], histories.reason("c") or "")
    figures.legend(fig)
    return fig


class Nothing:
    requires: tuple[str, ...] = ()


def artifact(**more: Any) -> Artifact:
    cells = pd.DataFrame({"algorithm": ["a"], "seed": 0, "metric": "m", "value": 1.0})
    return Artifact("p", "fig1", "A figure", more.pop("panels", no_panels), lambda histories: cells, draw, **more)


def test_render_writes_equal_files_with_embedded_fonts(tmp_path: Path) -> None:
    first, second = (render(artifact(), "reduced", tmp_path / k, [("c", None, "needs svhn")]) for k in "12")
    assert [f.relative_to(tmp_path / "1").as_posix() for f in first] == [
        "results/reduced/cells/p_fig1.csv", "figures/reduced/p_fig1.pdf", "figures/reduced/p_fig1.png",
    ]  # fmt: skip
    for a, b in zip(first, second, strict=True):
        assert a.read_bytes() == b.read_bytes()
    pdf = first[1].read_bytes()
    assert pdf.startswith(b"%PDF")
    assert b"/FontFile2" in pdf  # TrueType, embedded
    assert b"/Type3" not in pdf
    assert b"CreationDate" not in pdf
    assert sorted(p.name for p in first[1].parent.iterdir()) == ["p_fig1.pdf", "p_fig1.png"]
    width = int.from_bytes(first[2].read_bytes()[16:20], "big")
    assert width == 7.0 * 200


def test_a_figure_without_any_results_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    panel = Panel("c", (Experiment({}, Nothing(), None, None, Unplayed()),), (0,))
    said = []
    monkeypatch.setattr(figures, "missing", lambda ax, reason: said.append(reason))
    files = render(artifact(panels=lambda scale: (panel,)), "smoke", tmp_path, [("c", None, "needs svhn")])
    assert said == ["needs svhn"]
    assert files[2].stat().st_size > 1000


def test_a_figure_needs_a_draw_function(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="p/fig1: a figure needs a draw function"):
        render(replace(artifact(), draw=None), "smoke", tmp_path)


def test_the_users_matplotlibrc_does_not_show() -> None:
    import matplotlib as mpl

    with mpl.rc_context({"axes.facecolor": "red", "font.size": 30}), figures.style():
        assert mpl.rcParams["axes.facecolor"] == "white"
        assert mpl.rcParams["pdf.fonttype"] == 42


def test_names_in_print() -> None:
    assert pretty("ca_fedavg") == "CA-FedAvg"
    assert pretty("1/64") == "1/64"
    assert pretty(1.0) == "1"
    assert pretty("fedavg", {"fedavg": "ours"}) == "ours"
    assert heading("test_accuracy_percent") == "Test accuracy (%)"
    assert heading("time_to_target_s") == "Time to target (s)"
    assert re.match("Label distribution$", heading("label_distribution"))
