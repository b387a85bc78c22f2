"""Styles: what a series is drawn with, the same in every figure of every paper.

    of       series -> its style: the one that its paper gives it, or one beside it for a variant
    ordered  a style each for sizes and other quantities in order: a sequential map, dark to light
    GREY     targets, limits and other references

What a paper proposes is a broad solid blue line below the others, so that lines that coincide with it stay visible. A
variant (`fedavg_prox_sgd`) has the colour of its algorithm or a shade of it. Colours alone cannot tell all series apart
in greyscale and for everybody's eyes: line style and marker are the second channel; see `tests/report/test_styles.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex

from reproduce.declare.paper import papers

BLUE, INDIGO, SKY = "#0072B2", "#332288", "#56B4E9"
VERMILLION, RUST, SAND, BARK, ROSE = "#D55E00", "#8C2D04", "#F2A45F", "#3B0F00", "#E0457B"
GREEN, FOREST, OLIVE = "#009E73", "#0B5D1E", "#8A8A1E"
ORANGE, GOLD, PURPLE, WINE, BLACK = "#E69F00", "#A87800", "#CC79A7", "#882255", "#000000"
GREY, DARK = "#808080", "#404040"
"""Of references, and of what is neither a series nor a reference."""
DASHES: Mapping[str, Any] = {
    "solid": "-", "dashed": (0, (5, 1.6)), "dotted": (0, (1, 1.3)), "dashdot": (0, (5, 1.4, 1, 1.4)),
    "long": (0, (8, 2.4)), "dashdotdot": (0, (4, 1.3, 1, 1.3, 1, 1.3)),
}  # fmt: skip
TEXT, SMALL = 6.5, 6.0
"""The size of small letters, and of the smallest, in points."""
DARKEST, LIGHTEST = 0.05, 0.66
"""The ends of the map (0 to 1) for what is in order."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "d")


@dataclass(frozen=True)
class Style:
    """The style of a series; `dashes` is a name of `DASHES`."""

    color: str
    dashes: str
    marker: str
    first: bool = False

    @classmethod
    def of(cls, text: str) -> Style:
        """The style in "BLUE solid o first": a colour of this module, a name of `DASHES`, a marker."""
        color, dashes, marker, *first = text.split()
        return cls(globals()[color], dashes, marker, bool(first))

    @property
    def plot(self) -> dict[str, Any]:
        """Keyword arguments for `Axes.plot`."""
        wide = {"linewidth": 2.2, "zorder": 2.3} if self.first else {"linewidth": 1.1, "zorder": 2.5}
        edge = {"markeredgecolor": "white", "markeredgewidth": 0.35}
        return {"color": self.color, "linestyle": DASHES[self.dashes], "marker": self.marker, **wide, **edge}


COMMON = {
    "fedavg": "VERMILLION dashed s", "fednova": "PURPLE dotted D", "fedprox": "ORANGE long v",
    "scaffold": "GREEN dashdot ^", "moon": "BLACK dashdot X",
}  # fmt: skip
"""The styles of algorithms that several papers compare with; those of a paper's own are in its `paper.yaml`."""


@cache
def known() -> Mapping[str, Style]:
    """Series -> its style."""
    texts = {name: series.look for paper in papers().values() for name, series in paper.series.items()}
    return {name: Style.of(text) for name, text in {**texts, **COMMON}.items()}


def base(name: str) -> str:
    """The registered name that `name` is, or is a variant of: the longest that it begins with; or ""."""
    matches = [one for one in known() if name == one or name.startswith(f"{one}_")]
    return max(matches, key=len, default="")


def of(series: Iterable[object]) -> dict[str, Style]:
    """A style for each of the `series` of a picture.

    A variant without a style of its own has the colour of its algorithm, a name that nobody registered is black; both
    with a line style and a marker that the other series have not, as long as there are some.
    """
    names = list(dict.fromkeys(map(str, series)))
    styles = {name: known()[name] for name in names if name in known()}
    for name in names:
        if name not in styles:
            near = known().get(base(name), Style(BLACK, "dashed", "o"))
            dashes = _spare([d for d in DASHES if d != "solid"], [style.dashes for style in styles.values()])
            marker = _spare(MARKERS, [style.marker for style in styles.values()])
            styles[name] = Style(near.color, dashes, marker)
    return {name: styles[name] for name in names}


def _spare(choices: Sequence[str], taken: Sequence[str]) -> str:
    """The first choice that was taken least often."""
    return min(choices, key=taken.count)


def ramp(count: int) -> list[str]:
    """`count` colours in order, dark to light, that are in order in greyscale and for colour-blind eyes, too, and can
    be seen on white: the last has a contrast of 3."""
    places = [0.3] if count == 1 else np.linspace(DARKEST, LIGHTEST, count)
    return [to_hex(colormaps["inferno"](float(place))) for place in places]


def ordered(series: Sequence[object]) -> dict[str, Style]:
    """A style for each of the `series`, which are in order: sizes, numbers of clients, versions."""
    names = list(dict.fromkeys(map(str, series)))
    dashes = list(DASHES)
    return {
        name: Style(color, dashes[i % len(dashes)], MARKERS[i % len(MARKERS)])
        for i, (name, color) in enumerate(zip(names, ramp(len(names)), strict=True))
    }
