"""Figures inside a page: small enough for a single file, and in words for those who cannot see them."""

from __future__ import annotations

import base64
import io
from pathlib import Path

from reproduce import quotes, seal
from reproduce.declare import Artifact, Curves, Sheet
from reproduce.report import figures
from reproduce.report.names import pretty
from reproduce.verdicts.words import number

COLOURS, SHRUNK = 32, 0.7
"""Of the palette, and of the width: charts have few colours, the page shows them narrower than they are, and with all
figures stays under two megabytes. The palette of the greatest coverage keeps faint bands and the hues of thin lines;
octree and median cut of as many colours do not."""
NAMED = 6
"""Algorithms whose numbers an alternative text gives."""


def embedded(file: Path) -> str:
    """A picture as a data URI: `SHRUNK`, in `COLOURS` colours, losslessly compressed (WebP). Without the stamp, which
    is on the page as text: letters take a third of the bytes."""
    from PIL import Image

    with Image.open(file) as picture:
        drawn = picture.height - int(picture.info.get(figures.STAMPED, 0))
        above = picture.convert("RGB").crop((0, 0, picture.width, drawn))
    size = round(SHRUNK * above.width), round(SHRUNK * above.height)
    small = above.resize(size, Image.Resampling.LANCZOS)
    few = small.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    packed = io.BytesIO()
    few.convert("RGB").save(packed, "WEBP", lossless=True, quality=80, method=4)
    return f"data:image/webp;base64,{base64.b64encode(packed.getvalue()).decode()}"


def seen(artifact: Artifact, scale: str) -> str:
    """What a figure shows, in words: what is drawn over what, which series, and their numbers."""
    kind = f"{artifact.title}."
    if isinstance(artifact.draw, Curves):
        kind += f" Lines of {artifact.draw.ylabel} over {artifact.draw.xlabel}, one per {pretty(artifact.draw.series)}."
    if isinstance(artifact.draw, Sheet) and artifact.draw.axes:
        kind += f" One panel per {' and '.join(pretty(label) for label in artifact.draw.axes)}."
    return " ".join(filter(None, [kind, _numbers(artifact, scale)]))


def _numbers(artifact: Artifact, scale: str) -> str:
    """The means of the metric that has most cells: per algorithm the least and the greatest over the settings."""
    file = Path("results", scale, "cells", f"{artifact.paper}_{artifact.name}.csv")
    if not file.is_file() or seal.broken(file):  # what is refused stands above the scoreboard
        return ""
    rows = quotes.cells(f"{scale}/{artifact.paper}_{artifact.name}").rows
    if rows.empty:
        return ""
    metric = rows["metric"].value_counts().index[0]
    rows = rows[rows["metric"] == metric]
    settings = [c for c in rows if c not in ("seed", "value", "censored", "text")]
    means = rows.groupby(settings, sort=False, dropna=False)["value"].mean()
    said = []
    for algorithm, values in means.groupby("algorithm", sort=False):
        low, high = ("none" if end != end else number(end) for end in (values.min(), values.max()))
        name = "" if algorithm in ("", "none", "na") else f"{pretty(algorithm, artifact.names)} "
        said.append(f"{name}{low}" if low == high else f"{name}{low} to {high}")
    more = f"; and {len(said) - NAMED} more" if len(said) > NAMED else ""
    return f"{pretty(metric, artifact.names)}, means over seeds: {'; '.join(said[:NAMED])}{more}.".replace(
        "nan", "none"
    )
