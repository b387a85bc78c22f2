"""Figures inside a page: small enough for a single file."""

from __future__ import annotations

import base64
import io
from pathlib import Path

from reproduce.report import figures

COLOURS, SHRUNK = 32, 0.7
"""Of the palette, and of the width: charts have few colours, the page shows them narrower than they are, and with all
figures stays under two megabytes. The palette of the greatest coverage keeps faint bands and the hues of thin lines;
octree and median cut of as many colours do not."""


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
