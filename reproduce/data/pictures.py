"""Folders of pictures: their files, the class of each, their pixels."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduce.errors import UserError

SPLIT = re.compile(r"(train|test|e?val|valid|dev)(ing|idation|uation)?([ _-]?(set|data|images|split))?s?", re.I)
"""What looks like the name of a part."""


def listed(root: Path) -> list[Path]:
    """The files below a folder, relative to it and sorted; links are followed, hidden names (`.x`, `__x`) left out."""
    found = []
    for base, folders, names in os.walk(root, followlinks=True):
        here, real = Path(base), Path(base).resolve()
        folders[:], names = ([n for n in group if not n.startswith((".", "__"))] for group in (folders, names))
        if loops := [n for n in folders if real.is_relative_to((here / n).resolve())]:
            raise UserError(f"{here / loops[0]} is a link to a folder around it: take it out")
        if not folders and not names:
            raise UserError(f"{here} is empty: take it out")
        found += [(here / n).relative_to(root) for n in names]
    return sorted(found)


def classed(files: Sequence[Path], what: str) -> tuple[list[Path], list[str]]:
    """The pictures among the files of a folder of class folders, and the class of each."""
    from PIL import Image

    how = f"labels are the names of folders, {what}/CLASS/picture.png"
    pictures = [f for f in files if f.suffix.lower() in Image.registered_extensions()]
    if loose := [f for f in pictures if len(f.parts) == 1]:
        raise UserError(f"{what}: {loose[0]} lies in no folder of a class; {how}")
    folders = {f.parts[0] for f in files if len(f.parts) > 1}
    if empty := sorted(folders - {f.parts[0] for f in pictures}) or ([] if pictures else ["it"]):
        raise UserError(f"{what}: no picture is in {empty[0]}; {how}")
    if parts := [n for f in pictures for n in f.parts[1:-1] if SPLIT.fullmatch(n)]:
        raise UserError(f"{what}: {parts[0]} looks like a part of the data: parts lie above the folders of classes")
    return pictures, [f.parts[0] for f in pictures]


def pixels(files: Iterable[tuple[str, Any]], what: str, mode: str | None = None) -> NDArray[np.uint8]:
    """Pictures uint8 [N, H, W, C], with one channel if all are grey; upright, as cameras mean them.

    files: (name, what Pillow opens). mode: to which all are converted. Raises UserError with the first name that cannot
    be read, or is of another size.
    """
    from PIL import Image, ImageOps

    found: list[NDArray[np.uint8]] = []
    for name, file in files:
        try:
            with Image.open(file) as image:
                if image.mode.startswith(("I", "F")) or re.search(r"(RGBA?|LA);16|65535", str(image.tile)):
                    raise ValueError("more than 8 bits a colour")
                if image.format != "MPO" and getattr(image, "n_frames", 1) > 1:  # a camera's begins with it
                    raise ValueError("several pictures in one")
                to = mode or ("L" if image.mode in ("1", "L", "LA") else "RGB")
                one = np.atleast_3d(np.asarray(ImageOps.exif_transpose(image).convert(to)))
        except Exception as error:  # Pillow raises whatever it likes on damaged bytes
            why = "it is damaged" if isinstance(error, OSError) else str(error)
            raise UserError(f"{what}: {name} cannot be read as a picture ({why}): repair it, or take it out") from error
        if found and one.shape[:2] != found[0].shape[:2]:
            sizes = " and ".join(f"{a.shape[1]} x {a.shape[0]}" for a in (one, found[0]))
            raise UserError(f"{what}: {name} and the first picture have {sizes} pixels: make all of one size")
        found.append(one)
    colours = max((a.shape[2] for a in found), default=1)
    return np.stack([np.broadcast_to(a, (*a.shape[:2], colours)) for a in found])
