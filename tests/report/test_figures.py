"""Figures: what is drawn, with which marks, and that equal figures are equal files."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from table_cells import render
from written import Unplayed

from reproduce.declare.artifact import Artifact, no_panels
from reproduce.declare.experiment import Experiment, Panel
from reproduce.report import captions, entries, figures
from reproduce.report.histories import Histories, Source

HALF = 2.484138  # of the 95 % t-interval of three values with standard deviation 1: 4.302653 / sqrt(3)
HALF_OF_TWO = 6.353102  # of two values that are 1 apart: 12.706205 / 2
SEVEN = ("fedacs", "fedavg", "ca_fedavg", "fedvarp", "fednova", "fedau", "os")


@pytest.fixture(autouse=True)
def _style() -> Iterator[None]:
    with figures.style():
        yield


def runs(algorithms: tuple[str, ...] = ("fedavg", "moon"), seeds: int = 3, points: int = 21) -> pd.DataFrame:
    """Curves whose value is 10 x number of the algorithm + round + seed."""
    rows = [
        {"algorithm": a, "seed": s, "round": r, "time": r * (1 + 0.1 * s), "value": 10.0 * k + r + s}
        for k, a in enumerate(algorithms)
        for s in range(seeds)
        for r in range(points)
    ]
    return pd.DataFrame(rows).assign(metric="gap", status="ok")


def one() -> tuple[Figure, Any]:
    fig, axes = figures.sheet()
    return fig, axes[0, 0]


class TestCurves:
    def test_mean_and_interval(self) -> None:
        _fig, ax = one()
        figures.curves(ax, runs(), spread="band")
        assert [line.get_label() for line in ax.get_lines()] == ["FedAvg", "MOON"]
        np.testing.assert_allclose(ax.get_lines()[1].get_ydata(), 10 + np.arange(21) + 1)
        assert self.band(ax, 0) == pytest.approx((1 - HALF, 21 + HALF))
        figures.curves(ax, runs(seeds=2), spread="band")
        assert self.band(ax, 2) == pytest.approx((0.5 - HALF_OF_TWO, 20.5 + HALF_OF_TWO))

    def band(self, ax: Any, k: int) -> tuple[float, float]:
        y = ax.collections[k].get_paths()[0].vertices[:, 1]
        return y.min(), y.max()

    def test_a_logarithmic_axis_shows_the_same_means_and_intervals(self) -> None:
        """And not those of logarithms, which seaborn would take."""
        frame = runs(("fedavg",)).assign(value=lambda rows: 100 * 10.0 ** rows["seed"])
        drawn = []
        for scale in ("linear", "log"):
            _fig, ax = one()
            ax.set_yscale(scale)
            figures.curves(ax, frame.assign(metric="distance"), spread="band")
            drawn.append([*ax.get_lines()[0].get_ydata(), self.band(ax, 0)[1]])
        np.testing.assert_allclose(*drawn)
        assert drawn[1][:-1] == pytest.approx([3700.0] * 21)

    def test_bars_stand_on_the_line(self) -> None:
        _fig, ax = one()
        figures.curves(ax, runs(("fedavg",), seeds=2), spread="bars")
        line = dict(zip(*ax.get_lines()[0].get_data(), strict=True))
        (bars,) = ax.collections
        segments = bars.get_segments()
        assert len(segments) == 11
        for (x, low), (_, high) in segments:
            assert (low + high) / 2 == pytest.approx(line[x])
            assert high - low == pytest.approx(2 * HALF_OF_TWO)

    def test_seeds_that_agree_have_an_interval_without_length(self) -> None:
        """Where sums of floats would have a mean beside it, and a bar of negative length."""
        _fig, ax = one()
        frame = runs(("fedavg",), seeds=7).assign(value=lambda rows: rows["round"] / 10)
        figures.curves(ax, frame, spread="bars")
        for (x, low), (_, high) in ax.collections[0].get_segments():
            assert (low, high) == pytest.approx((x / 10, x / 10))

    @pytest.mark.parametrize("scale", ["linear", "log"])
    def test_bars_of_the_ends_stand_beside_the_axes_and_not_at_values_of_x(self, scale: str) -> None:
        _fig, ax = one()
        ax.set_xscale(scale)
        figures.curves(ax, runs(SEVEN).query("algorithm != 'fedvarp' or round <= 9"), spread="end", start=1)
        places = [line.get_transform().transform(line.get_xydata()) for line in ax.get_lines()]
        inside = [at for at in places if (at[:, 0] <= ax.bbox.x1).any()]
        ends = [ax.transData.inverted().transform(at)[:, 0] for at in inside]
        assert len(places) == 3 * len(inside) == 21
        assert [max(x).round(9) for x in ends] == [20, 20, 20, 9, 20, 20, 20]
        assert ax.get_xlim()[1] < 22
        bars = [line for line in ax.get_lines() if line.get_gid() == "end"][::2]
        assert bars[3].get_ydata() == pytest.approx([30 + 9 + 1 - HALF, 30 + 9 + 1 + HALF])

    def test_intervals_end_where_the_values_of_the_metric_do(self) -> None:
        _fig, ax = one()
        rows = [("fedavg", 0, 0, 0.0), ("fedavg", 1, 0, 10.0), ("fedavg", 0, 1, 95.0), ("fedavg", 1, 1, 100.0)]
        frame = pd.DataFrame(rows, columns=["algorithm", "seed", "round", "value"])
        figures.curves(ax, frame.assign(metric="accuracy"), spread="band")
        assert self.band(ax, 0) == (0, 100)
        figures.curves(ax, frame.assign(metric="gap"), spread="band")
        assert self.band(ax, 1) == pytest.approx((5 - 10 * HALF_OF_TWO, 97.5 + 5 * HALF_OF_TWO))
        figures.curves(ax, frame.assign(metric="accuracy"), spread="bars")
        assert ax.collections[-1].get_segments()[-1][1][1] == 100

    def test_no_interval(self) -> None:
        fig, ax = one()
        figures.curves(ax, runs(seeds=1), spread="band")
        assert not ax.collections
        assert "interval" not in " ".join(captions.caption(artifact(), Histories(runs(seeds=1), "paper"), fig))
        with pytest.raises(ValueError, match="err_style"):
            figures.curves(ax, runs(), spread="range")  # type: ignore[arg-type]

    def test_a_line_stops_where_a_seed_has_no_value_any_more(self) -> None:
        fig, ax = one()
        frame = runs(("fedavg",))
        late = (frame["seed"] == 1) & (frame["round"] >= 7)
        figures.curves(ax, frame.assign(value=frame["value"].where(~late)), spread="band")
        line, cross = ax.get_lines()
        assert list(line.get_xdata()) == list(range(7))
        assert (cross.get_xdata()[0], cross.get_marker()) == (6, "x")
        histories = Histories(frame, "paper")
        assert "Cross: from here on a seed has no finite value." in captions.caption(artifact(), histories, fig)

    def test_a_line_of_runs_that_end_at_their_target_ends_with_the_first_and_without_a_cross(self) -> None:
        fig, ax = one()
        frame = runs(("fedavg",)).query("round <= 9 + 3 * seed").assign(status="ok")
        figures.curves(ax, frame, spread="band")
        (line,) = ax.get_lines()
        assert list(line.get_xdata()) == list(range(10))
        assert "Cross" not in " ".join(captions.caption(artifact(), Histories(frame, "paper"), fig))
        figures.curves(ax, frame, start=10, spread="band")
        assert (ax.get_lines()[1].get_label(), len(ax.get_lines()[1].get_xdata())) == ("FedAvg", 0)

    @pytest.mark.parametrize("end", [0, 7])
    def test_the_mean_is_that_of_the_seeds_that_did_not_diverge(self, end: int) -> None:
        """Results say `diverged` of the whole run, and end with it: here after its first row, or after eight."""
        fig, axes = figures.sheet(1, 2)
        frame = runs(("proposed", "previous")).query(f"seed != 1 or round <= {end}")
        frame = frame.assign(status=np.where(frame["seed"] == 1, "diverged", "ok"))
        figures.curves(axes[0, 0], frame, start=1, spread="band")
        axes[0, 0].set_title("CIFAR-10")
        figures.curves(axes[0, 1], runs(("proposed",)), spread="band")
        lines = axes[0, 0].get_lines()
        assert [line.get_label() for line in lines] == ["proposed (1 of 3 diverged)", "previous (1 of 3 diverged)"]
        assert list(lines[0].get_xdata()) == list(range(1, 21))
        np.testing.assert_allclose(lines[0].get_ydata(), np.arange(1, 21) + (0 + 2) / 2)
        half = 2 * HALF_OF_TWO  # the seeds that are left are 0 and 2
        assert self.band(axes[0, 0], 0) == pytest.approx((2 - half, 21 + half))
        said = captions.caption(artifact(), Histories(frame, "paper"), fig)
        assert "Means are without the seeds that diverged." in said
        assert captions.diverged(fig)

    def test_nothing_is_drawn_where_all_seeds_diverged(self) -> None:
        fig, ax = one()
        figures.curves(ax, runs(("fedavg",)).assign(status="diverged"), spread="band")
        (line,) = ax.get_lines()
        assert (line.get_label(), len(line.get_xdata())) == ("FedAvg (diverged)", 0)
        assert not captions.diverged(fig), "there is no mean"


def test_what_stands_around_the_panels() -> None:
    """From above: what is said, panels, legend, whatever comes first; nothing outside the page, and the panels keep
    their height."""
    heights, legend = set(), [captions.legend]
    said = [lambda f: captions.say(f, "W" * 8 + " a long line" * 60), lambda f: captions.remark(f, "not drawn")]
    for steps in ([], said, legend, [*said, *legend], [*legend, *said]):
        fig, axes = figures.sheet(1, 3)
        for ax in axes[0]:
            figures.curves(ax, runs(SEVEN), spread="band")
        for step in steps:
            step(fig)
        figures.lay_out(fig)
        heights.add(round(axes[0, 0].get_window_extent().height / fig.dpi, 1))
        below, above = fig.bbox.y0, fig.bbox.y1
        if fig.legends:
            box = fig.legends[0].get_window_extent()
            assert len(fig.legends[0].get_texts()) == 7
            assert below <= box.y0
            below = box.y1
        if fig.texts:
            box = fig.texts[0].get_window_extent()
            assert max(box.x1 / fig.bbox.x1, box.y1 / above) <= 1
            above = box.y0
        boxes = [ax.get_tightbbox() for ax in axes[0]]
        assert below <= min(box.y0 for box in boxes) < max(box.y1 for box in boxes) <= above
    assert len(heights) == 1, heights


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    fig, axes = figures.sheet(1, 2, sharey=True)
    for ax in axes[0]:
        figures.curves(ax, runs(SEVEN), spread="band")
        ax.set(xlabel="Round", ylabel="Accuracy (%)", title="α = 0.1")
    captions.absent(fig, [("c", dict(histories.missing)["c"])])
    captions.legend(fig)
    return fig


class Nothing:
    requires: tuple[str, ...] = ()


NO_RESULTS = [Source("c", Path("none"), "no results yet")]


def artifact(**more: Any) -> Artifact:
    cells = pd.DataFrame({"algorithm": ["a"], "seed": 0, "metric": "m", "value": 1.0})
    return Artifact("fiarse", "fig1", "A figure", more.pop("panels", no_panels), lambda histories: cells, draw, **more)


def test_render_writes_equal_files_with_embedded_fonts(tmp_path: Path) -> None:
    first, second = (render(artifact(), "reduced", tmp_path / k, NO_RESULTS) for k in "12")
    assert [f.relative_to(tmp_path / "1").as_posix() for f in first] == [
        "results/reduced/cells/fiarse_fig1.csv", "figures/reduced/fiarse_fig1.pdf", "figures/reduced/fiarse_fig1.png",
        "figures/reduced/fiarse_fig1.txt", "figures/reduced/fiarse_fig1.tex",
    ]  # fmt: skip
    for a, b in zip(first, second, strict=True):
        assert a.read_bytes() == b.read_bytes()
    pdf = first[1].read_bytes()
    assert pdf.startswith(b"%PDF")
    assert b"/FontFile2" in pdf  # TrueType, embedded
    assert b"/Type3" not in pdf
    assert b"CreationDate" not in pdf
    assert sorted(p.name for p in first[1].parent.iterdir()) == sorted(f.name for f in first[1:])
    width = int.from_bytes(first[2].read_bytes()[16:20], "big")
    assert width == 7.0 * 200


def test_the_caption_is_beside_the_picture_and_not_in_it(tmp_path: Path) -> None:
    made = artifact(stamp="Bands: 5 % & more.", notes=("A remark.",))
    text, tex = (file.read_text() for file in render(made, "reduced", tmp_path, NO_RESULTS)[3:])
    caption, *notes = text.splitlines()
    whole = "Lines: mean over seeds; bands: its 95 % t-interval. Bands: 5 % & more."
    assert caption == f"A figure. Reduced scale; the same as at paper scale. {whole}"
    assert r"Bands: 5 \% \& more." in tex
    assert notes == ["A remark.", "Not run: c.", notes[2]]


def test_the_text_names_the_commits() -> None:
    def said(commits: str) -> str:
        return entries.commits(cast("Any", SimpleNamespace(runs=[run(git) for git in commits.split()])))

    def run(git: str) -> SimpleNamespace:
        return SimpleNamespace(training={"git": git})

    assert said("") == ""
    assert said("1a+") == "Results: commit 1a+."
    assert said("1 2 3 4 5") == "Results: commits 1, 2, 3 and 2 more."


def test_a_figure_without_any_results_says_so(tmp_path: Path) -> None:
    panel = Panel("c", (Experiment({}, Nothing(), None, None, Unplayed()),), (0,))
    files = render(artifact(panels=lambda scale: (panel,)), "smoke", tmp_path, NO_RESULTS)
    said = files[3].read_text()
    assert said.count("Not run: A figure.") == 1
    assert "Lines" not in said, "no word of marks where there are none"
    assert "other settings" not in said
    assert files[2].stat().st_size > 1000


def test_a_logarithmic_axis_has_plain_numbers() -> None:
    fig, axes = figures.sheet()
    ax = axes[0, 0]
    ax.plot([13, 130], [1, 2])
    figures.plain_log(ax, "x")
    fig.draw_without_rendering()
    low, high = ax.get_xlim()
    ticks = [t.get_text() for t in ax.get_xticklabels() if low <= t.get_position()[0] <= high]
    assert ticks == ["20", "50", "100"]
    assert not list(ax.xaxis.get_minorticklocs())


def test_a_line_over_time_has_all_points_that_a_seed_was_evaluated_at() -> None:
    _fig, ax = one()
    rows = [(0, 0.0, 0.0), (0, 1.0, 10.0), (0, 9.0, 90.0), (1, 0.0, 0.0), (1, 2.0, 40.0), (1, 8.0, 160.0)]
    frame = pd.DataFrame(rows, columns=["seed", "time", "value"]).assign(algorithm="fedavg", metric="gap")
    figures.curves(ax, frame, x="time", spread="band")
    line = ax.get_lines()[0]
    assert list(line.get_xdata()) == [0, 1, 2, 8]
    assert list(line.get_ydata()) == [0, 15, 30, 120]
