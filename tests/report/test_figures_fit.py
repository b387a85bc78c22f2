"""Words in pictures: none is cut off, none lies on another, and none covers a client that it does not name."""

from itertools import combinations
from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from reproduce.report import drawing, figures, metrics, styles
from reproduce.report.histories import load
from reproduce.runs import plan

DRAWN = (
    "fedacs/fig2", "fedacs/fig3", "fedacs/fig5", "fedacs/fig7", "fedacs/fig8", "fedagrac/fig2", "defedavg/fig1",
    "defedavg/sensitivity", "dynamic_init/fig1", "dynamic_init/fig4",
)  # fmt: skip


COLUMN = 3.3
WIDE = ("fedacs/fig2", "fedacs/fig7", "fedagrac/fig2", "fiarse/fig3", "defedavg/fig1")
"""Figures whose axes have another order, or another width, in a column."""


def drawn(name: str, scale: str = "reduced", width: float = figures.FULL) -> Figure:
    """The picture, laid out."""
    artifact = plan.artifact(name)
    experiments = [e for panel in artifact.panels(scale) for e in panel.experiments]
    histories = load(plan.sources(scale, name), scale, (), experiments)
    with figures.style(width):
        fig = drawing.draw(artifact, histories, metrics.cells(artifact, histories))
        figures.lay_out(fig)
        fig.draw_without_rendering()
    return fig


def boxes(fig: Figure) -> list[tuple[str, Bbox]]:
    """What is written, and where, in pixels."""
    renderer: Any = fig.canvas.get_renderer()  # type: ignore[attr-defined]
    axes = [ax for ax in fig.axes if ax.get_visible()]
    found = {id(t): t for part in axes for t in part.findobj(Text)} | {id(t): t for t in fig.texts}
    for axis in (axis for ax in axes for axis in (ax.xaxis, ax.yaxis)):
        kept = axis._update_ticks() if axis.get_visible() and axis.axes.axison else []  # type: ignore[attr-defined]
        for tick in axis.get_major_ticks():  # those beyond the limits are there, but not drawn
            if tick not in kept:
                found.pop(id(tick.label1), None)
    texts = [t for t in found.values() if t.get_visible() and t.get_text().strip()]
    return [(t.get_text(), Text.get_window_extent(t, renderer)) for t in texts]  # without the leader of an annotation


@pytest.mark.parametrize(("name", "wide"), [*((n, figures.FULL) for n in DRAWN), *((n, COLUMN) for n in WIDE)])
def test_nothing_is_cut_off_and_no_text_lies_on_another(name: str, wide: float) -> None:
    fig = drawn(name, width=wide)
    written = boxes(fig)
    assert len(written) > 10
    assert fig.get_figwidth() <= wide
    assert min(t.get_fontsize() for t in fig.findobj(Text) if t.get_text()) >= styles.SMALL
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


def test_what_diverged_is_written_inside_its_panel_at_a_tick() -> None:
    fig = drawn("fedagrac/fig2")
    ((ax, text),) = [(ax, text) for ax in fig.axes for text in ax.texts]
    assert "diverged" in text.get_text()
    box = text.get_window_extent().expanded(1.1, 1)
    assert ax.bbox.x0 <= box.x0 < box.x1 <= ax.bbox.x1
    assert text.xy[0] in ax.get_xticks()  # type: ignore[attr-defined]
