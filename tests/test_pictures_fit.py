"""Pictures of the committed results at their final size: nothing is cut off, and no text lies on another or on a mark."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from reproduce import plan
from reproduce.report import captions, drawing, figures, measuring
from reproduce.report.histories import load

DRAWN = (
    "fedacs/fig2", "fedacs/fig3", "fedacs/fig5", "fedacs/fig7", "fedacs/fig8", "fedagrac/fig2", "defedavg/fig1",
    "defedavg/sensitivity", "dynamic_init/fig1", "dynamic_init/fig4",
)  # fmt: skip


def drawn(name: str, scale: str = "reduced") -> Figure:
    """The picture with its stamp, laid out."""
    artifact = plan.artifact(name)
    experiments = [e for panel in artifact.panels(scale) for e in panel.experiments]
    histories = load(plan.sources(scale, name), scale, (), experiments)
    with figures.style():
        fig = drawing.draw(artifact, histories, measuring.cells(artifact, histories))
        figures.stamp(fig, " ".join(captions.caption(artifact, histories, fig)))
        FigureCanvasAgg(fig).draw()
    return fig


def boxes(fig: Figure) -> list[tuple[str, Bbox]]:
    """What is written, and where, in pixels."""
    renderer: Any = fig.canvas.get_renderer()  # type: ignore[attr-defined]
    found = [text for text in fig.findobj(Text) if text.get_visible() and text.get_text().strip()]
    shown = {id(t) for ax in fig.axes if ax.get_visible() for t in ax.findobj(Text)} | {id(t) for t in fig.texts}
    return [(t.get_text(), t.get_window_extent(renderer)) for t in found if id(t) in shown and _within(t)]


def _within(text: Text) -> bool:
    """Is it drawn? Ticks beyond the limits of their axis are not."""
    ax = text.axes
    ticks = [] if ax is None else [(ax.xaxis, 0), (ax.yaxis, 1)]
    for axis, k in ticks:
        if any(text is label for tick in axis.get_major_ticks() for label in (tick.label1, tick.label2)):
            low, high = sorted(axis.get_view_interval())
            return axis.get_visible() and low <= text.get_position()[k] <= high
    return True


@pytest.mark.parametrize("name", DRAWN)
def test_nothing_is_cut_off_and_no_text_lies_on_another(name: str) -> None:
    fig = drawn(name)
    written = boxes(fig)
    assert len(written) > 10
    width, height = fig.canvas.get_width_height()
    for text, box in written:
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1
        assert inside, f"'{text}' is cut off: {box}"
    for (one, a), (two, b) in combinations(written, 2):
        both = Bbox.intersection(a, b)
        assert both is None or min(both.width, both.height) < 2, f"'{one}' and '{two}' overlap"


@pytest.mark.parametrize("name", ["fedacs/fig2", "fedacs/fig3", "fedacs/fig5"])
def test_labels_do_not_cover_the_clients(name: str) -> None:
    fig = drawn(name)
    (ax,) = fig.axes
    squares = [line for line in ax.get_lines() if line.get_marker() == "s"]
    assert len(squares) == 3
    for square in squares:
        (at,) = ax.transData.transform(square.get_xydata())
        assert not [text for text, box in boxes(fig) if box.expanded(0.9, 0.9).contains(*at)]


def test_there_are_results_to_draw() -> None:
    assert all(Path("results/reduced", name.split("/")[0]).is_dir() for name in DRAWN)
