"""Figures inside a page: small enough for a single file."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import TYPE_CHECKING

from reproduce.files import regular
from reproduce.report import figures

if TYPE_CHECKING:
    from PIL import Image

COLOURS, SHRUNK = 40, 0.7
"""Of the palette, and of the width: charts have few colours, the page shows them narrower than they are, and with all
figures stays under two megabytes."""
SEEN = ((0.299, -0.507, 1.5), (0.587, -0.993, -1.257), (0.114, 1.5, -0.243))
"""Red, green and blue as luma and three times the differences of blue and of red from it: a faint tint is near to grey
in its red, green and blue, yet it is what tells bands apart."""
COMMON = 0.4
"""The weight of a colour is its number of pixels to this power: bands and lines have many of one colour, edges few each
of many."""


def embedded(file: Path) -> str:
    """A picture as a data URI: `SHRUNK`, in `COLOURS` colours, losslessly compressed (WebP). Without the stamp, which
    is on the page as text: letters take a third of the bytes."""
    from PIL import Image

    with Image.open(regular(file)) as picture:
        drawn = picture.height - int(picture.info.get(figures.STAMPED, 0))
        above = picture.convert("RGB").crop((0, 0, picture.width, drawn))
    size = round(SHRUNK * above.width), round(SHRUNK * above.height)
    small = above.resize(size, Image.Resampling.LANCZOS)
    packed = io.BytesIO()
    _few(small).save(packed, "WEBP", lossless=True, quality=80, method=4)
    return f"data:image/webp;base64,{base64.b64encode(packed.getvalue()).decode()}"


def _few(picture: Image.Image) -> Image.Image:
    """The picture in `COLOURS` of its own colours, each pixel in the nearest: first the most frequent one, then always
    the one that is the farthest from those before, distances weighted by numbers of pixels.

    Of Pillow's palettes of as many colours, octree and median cut lose faint bands, the greatest coverage their hues.
    """
    import numpy as np
    from PIL import Image

    codes = np.asarray(picture, dtype=np.uint32) @ np.array([1 << 16, 1 << 8, 1], dtype=np.uint32)
    found, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    colours = np.stack([found >> 16, found >> 8 & 255, found & 255], axis=1).astype(np.uint8)
    points, weights = colours @ np.array(SEEN), counts**COMMON
    chosen = int(counts.argmax())
    nearest, away = np.full(len(found), chosen), np.full(len(found), np.inf)
    for _ in range(COLOURS):
        there = ((points - points[chosen]) ** 2).sum(axis=1)
        nearest[there < away] = chosen
        away = np.minimum(away, there)
        chosen = int((weights * away).argmax())
    return Image.fromarray(colours[nearest][places.reshape(codes.shape)])
