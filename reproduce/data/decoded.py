"""Decoded data sets on disk: .npy files that are mapped on the next load, beside a stamp that is written last."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reproduce import files
from reproduce.data.dataset import Arrays
from reproduce.errors import UserError

FORMAT = 5  # raise it when the decoded arrays change, so that older copies are decoded again
STAMP = "stamp.json"

Stamp = list[Any]  # [path relative to the data folder, bytes, modification time in ns]


@dataclass(frozen=True)
class Decoded:
    """A decoded copy of files with this checksum; `stamps` are the files as they were when it was verified, `names`
    those of the arrays."""

    folder: str
    sha256: str
    note: str
    stamps: Sequence[Stamp]
    names: Sequence[str]

    def arrays(self) -> Arrays:
        """The arrays, mapped read-only."""
        return {name: np.asarray(np.load(Path(self.folder, f"{name}.npy"), mmap_mode="r")) for name in self.names}


def find(root: Path, name: str, wanted: Callable[[Decoded], bool]) -> Decoded | None:
    """The first whole copy of the data set `name` that is `wanted`."""
    for stamp in sorted(root.glob(f"{name}-*/{STAMP}")):
        with contextlib.suppress(OSError, ValueError, TypeError):  # arrays that are lost or short
            content = json.loads(files.read_text(stamp))
            copy = Decoded(str(stamp.parent), *content[1:])
            if content[0] == FORMAT and wanted(copy) and copy.arrays():
                return copy
    return None


def write(root: Path, name: str, sha256: str, arrays: Arrays, note: str, stamps: Sequence[Stamp] = ()) -> Decoded:
    """Keep a decoded copy in `root`. Raises UserError when the disk is full or may not be written to."""
    folder = root / f"{name}-{sha256[:12]}"
    files.sweep(folder)
    try:
        for key, value in arrays.items():
            content = io.BytesIO()  # whose errors on a full disk have a number, other than those of `numpy.save`
            np.save(content, value, allow_pickle=False)
            files.write(folder / f"{key}.npy", lambda file, content=content: file.write(content.getbuffer()))  # type: ignore[misc]
        files.write_text(folder / STAMP, json.dumps([FORMAT, sha256, note, stamps, [*arrays]]))
    except UserError as error:
        raise UserError(f"{error}; or set REPRODUCE_STORE to a folder on another disk") from error
    return Decoded(str(folder), sha256, note, stamps, [*arrays])
