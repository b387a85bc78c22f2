"""Decoded data sets on disk: .npy files that are mapped on the next load, beside a stamp that is written last.

The stamp has the checksum of every file, and one of itself. A copy whose bytes are others is not read.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from reproduce import files
from reproduce.data.dataset import Arrays
from reproduce.errors import UserError

FORMAT = 4  # raise it when the decoded arrays change, so that older copies are decoded again
STAMP = "stamp.json"

Stamp = list[Any]  # [path relative to the data folder, bytes, modification time in ns]


@dataclass(frozen=True)
class Decoded:
    """A decoded copy; `stamps` are the files it was made from, as they were when their checksums matched, `sums` the
    checksums of its own."""

    path: Path
    sha256: str
    note: str
    stamps: Sequence[Stamp]
    sums: Mapping[str, str]

    def arrays(self) -> Arrays:
        """The arrays, mapped read-only."""
        return {name: np.asarray(np.load(self.path / f"{name}.npy", mmap_mode="r")) for name in self.sums}

    def stamped(self, stamps: Sequence[Stamp]) -> Decoded:
        """The copy with other stamps, which are written to the disk, too."""
        found = replace(self, stamps=stamps)
        content = {"format": FORMAT, **{name: value for name, value in vars(found).items() if name != "path"}}
        files.write_text(self.path / STAMP, json.dumps({**content, "seal": _seal(content)}))
        return found

    @property
    def damaged(self) -> Path | None:
        """The first file that does not hold what was written. A process reads each file once for that."""
        for path, expected in ((self.path / f"{name}.npy", found) for name, found in self.sums.items()):
            try:
                status = path.stat()
                if _sum(path, status.st_ino, status.st_size, status.st_mtime_ns) != expected:
                    return path
            except OSError:
                return path
        return None


def copies(root: Path, name: str) -> Iterator[Decoded]:
    """The decoded copies of the data set `name` whose stamps are whole."""
    for stamp in sorted(root.glob(f"{name}-*/{STAMP}")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            content = json.loads(files.read_text(stamp))
            if content.pop("seal") == _seal(content) and content.pop("format") == FORMAT:
                yield Decoded(stamp.parent, **content)


def find(root: Path, name: str, wanted: Callable[[Decoded], bool]) -> Decoded | None:
    """The first decoded copy that is `wanted` and holds what was written; one that does not is named on stderr."""
    for copy in filter(wanted, copies(root, name)):
        if (damaged := copy.damaged) is None:
            return copy
        print(f"{damaged} is damaged (its checksum differs): {name} is decoded again", file=sys.stderr)
    return None


def write(root: Path, name: str, sha256: str, arrays: Arrays, note: str, stamps: Sequence[Stamp] = ()) -> Decoded:
    """Keep a decoded copy in `root`. Raises UserError when the disk is full or may not be written to."""
    folder, sums = root / f"{name}-{sha256[:12]}", {}
    files.sweep(folder)
    try:
        for key, value in arrays.items():
            content = io.BytesIO()  # whose errors on a full disk have a number, other than those of `numpy.save`
            np.save(content, value, allow_pickle=False)
            sums[key] = hashlib.blake2b(content.getbuffer()).hexdigest()
            files.write(folder / f"{key}.npy", lambda file, content=content: file.write(content.getbuffer()))  # type: ignore[misc]
        return Decoded(folder, sha256, note, stamps, sums).stamped(stamps)
    except UserError as error:
        raise UserError(f"{error}; or set REPRODUCE_STORE to a folder on another disk") from error


@cache
def _sum(path: Path, *status: int) -> str:
    """The checksum of a file that is as `status` says."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "blake2b").hexdigest()


def _seal(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
