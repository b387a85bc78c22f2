"""The overview: a tile for each figure and table of the papers, in it a segment for each claim, by its verdict."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from reproduce.declare.paper import has_numbers, papers
from reproduce.files import write
from reproduce.report.figures import style
from reproduce.report.styles import DARK, SMALL, TEXT
from reproduce.runs import plan
from reproduce.verdicts.scope import CHECK
from reproduce.verdicts.scoreboard import Verdict
from reproduce.verdicts.verdict import DEPENDS, INCONCLUSIVE, NOT_RUN, PARTLY, REFUTED, SUPPORTED, VERDICTS

SVG, PNG = Path("figures/paper/overview.svg"), Path("figures/paper/overview.png")
FILLS: Mapping[str, tuple[str, str]] = {
    SUPPORTED: ("#00441b", ""), PARTLY: ("#5aae61", "////"), DEPENDS: ("#fdd870", "...."),
    INCONCLUSIVE: ("#d0d0d0", ""), REFUTED: ("#b2182b", "xxxx"), NOT_RUN: ("#ffffff", ""),
}  # fmt: skip
"""Verdict -> colour and hatching; the lightness of the colours differs as well."""
ACROSS = 10
"""Tiles in a line."""


@dataclass(frozen=True)
class Tile:
    """A figure or table. whole: all of its jobs have results at paper scale; part: some have."""

    artifact: str
    verdicts: tuple[str, ...]
    whole: bool
    part: bool

    @property
    def label(self) -> str:
        return self.artifact.partition("/")[2].replace("fig", "Fig. ").replace("table", "Table ")


def tiles(board: Sequence[Verdict], results: Path = Path("results")) -> dict[str, list[Tile]]:
    """Paper -> its tiles. Claims that rest on closed forms or quadratics count as those on the papers' data do."""
    known = [w for w in VERDICTS if w in FILLS]
    by_paper: dict[str, list[Tile]] = {}
    for paper, of in papers().items():
        for artifact in (a.id for a in of.declared):
            verdicts = [v.verdict for v in board if v.artifact == artifact and v.rests_on != CHECK]
            words = sorted((v if v in known else NOT_RUN for v in verdicts), key=known.index)
            jobs = plan.artifact_jobs("paper", artifact)
            trained = [(results.parent / job.output).is_file() for job in jobs]
            cells = has_numbers("paper", artifact, results)
            tile = Tile(artifact, tuple(words), cells and all(trained), cells and (any(trained) or not jobs))
            by_paper.setdefault(paper, []).append(tile)
    return by_paper


def alt(by_paper: Mapping[str, Sequence[Tile]]) -> str:
    """The counts in words, for who does not see the picture."""
    every = [t for group in by_paper.values() for t in group]
    counts = Counter(v for t in every for v in t.verdicts)
    verdicts = ", ".join(f"{counts[v]} {v}" for v in FILLS if counts[v])
    whole, part = sum(t.whole for t in every), sum(t.part and not t.whole for t in every)
    return (
        f"{len(every)} figures and tables of {len(by_paper)} papers: {whole} with numbers at paper scale, {part} in "
        f"part. Of {counts.total()} claims about them: {verdicts}."
    )


def figure(by_paper: Mapping[str, Sequence[Tile]]) -> Figure:
    """The tiles, a paper below the other; each has the address of its place on the report."""
    lines = sum(0.75 + -(-len(group) // ACROSS) for group in by_paper.values())
    with style():
        fig = plt.figure(figsize=(7, 0.42 * (lines + 1.2)))
        ax = fig.add_axes((0.005, 0.0, 0.99, 1.0))
        ax.set(xlim=(0, ACROSS), ylim=(lines + 1.2, 0))
        ax.axis("off")
        top = 0.0
        for key, group in by_paper.items():
            paper = papers()[key]
            ax.text(0.03, top + 0.5, f"{paper.name}: {paper.title}", fontsize=TEXT + 1, weight="bold")
            for k, tile in enumerate(group):
                _tile(ax, tile, k % ACROSS, top + 0.6 + k // ACROSS)
            top += 0.75 + -(-len(group) // ACROSS)
        _legend(ax, by_paper, top)
    return fig


def save(by_paper: Mapping[str, Sequence[Tile]]) -> None:
    """Write `SVG` and `PNG`."""
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": "overview"}):
        fig = figure(by_paper)
        write(SVG, lambda file: fig.savefig(file, format="svg", metadata={"Date": None}))
        write(PNG, lambda file: fig.savefig(file, format="png", dpi=150))
        plt.close(fig)


def _tile(ax: Axes, tile: Tile, x: float, y: float) -> None:
    address = f"#{tile.artifact.replace('/', '-')}"
    ax.text(x + 0.05, y + 0.33, tile.label, fontsize=SMALL, color=DARK, url=address)
    width = 0.9 / max(len(tile.verdicts), 1)
    for k, verdict in enumerate(tile.verdicts):
        ax.add_patch(_segment(verdict, x + 0.05 + k * width, y + 0.42, width, 0.46))
    line: Any = "-" if tile.whole else (0, (2, 1.5)) if tile.part else (0, (0.6, 2.5))
    frame = Rectangle((x + 0.02, y + 0.03), 0.96, 0.92, fill=False, edgecolor=DARK, linestyle=line, linewidth=0.8)
    frame.set_url(address)
    ax.add_patch(frame)


def _segment(verdict: str, x: float, y: float, width: float, height: float) -> Any:
    (color, hatch), edge = FILLS[verdict], "white" if verdict == SUPPORTED else "#303030"
    return Rectangle((x, y), width, height, facecolor=color, edgecolor=edge, hatch=hatch, linewidth=0.4)


def _legend(ax: Axes, by_paper: Mapping[str, Sequence[Tile]], top: float) -> None:
    counts = Counter(v for group in by_paper.values() for t in group for v in t.verdicts)
    x = 0.05
    for verdict in FILLS:
        ax.add_patch(_segment(verdict, x, top + 0.15, 0.16, 0.36))
        label = f"{counts[verdict]} {verdict}"
        ax.text(x + 0.21, top + 0.45, label, fontsize=SMALL)
        x += 0.42 + 0.072 * len(label)
    ax.text(
        0.05, top + 0.95, "A segment is a claim. Frame: solid where all our numbers are at paper scale, dashed where "
        "some are, dotted where none is.", fontsize=SMALL, color=DARK,
    )  # fmt: skip
