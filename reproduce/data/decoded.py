"""Decoded data sets on disk: .npy files that are mapped on the next load, beside a stamp that is written last.

A process compares each with its checksum once; a copy that is damaged is said, and not used."""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from reproduce import files
from reproduce.data.dataset import Arrays
from reproduce.errors import UserError, say_once

FORMAT = 6  # raise it when the decoded arrays or the stamp change, so that older copies are decoded again
STAMP = "stamp.json"

Stamp = list[Any]  # [path relative to the data folder, bytes, modification time in ns]


@dataclass(frozen=True)
class Decoded:
    """A decoded copy of files with this checksum; `stamps` are the files as they were when it was verified, `sums`
    the checksums of the arrays by their names."""

    folder: str
    sha256: str
    note: str
    stamps: Sequence[Stamp]
    sums: Mapping[str, str]

    def arrays(self) -> Arrays:
        """The arrays, mapped read-only."""
        return {name: np.asarray(np.load(Path(self.folder, f"{name}.npy"), mmap_mode="r")) for name in self.sums}


def find(root: Path, name: str, accepted: Callable[[Decoded], bool]) -> Decoded | None:
    """The first whole copy of the data set `name` that is `accepted`."""
    for stamp in sorted(root.glob(f"{name}-*/{STAMP}")):
        try:
            content = json.loads(files.read_text(stamp))
            copy = Decoded(str(stamp.parent), *content[1:])
            if content[0] != FORMAT or not accepted(copy):
                continue
            paths = {name: stamp.with_name(f"{name}.npy") for name in copy.sums}
            if {name: _sum_of(path, path.stat().st_mtime_ns) for name, path in paths.items()} == copy.sums:
                return copy
        except (OSError, ValueError, TypeError):
            pass
        say_once(f"the decoded copy {stamp.parent} is damaged: it is made anew")
    return None


@cache
def _sum_of(path: Path, modified: int) -> str:
    return _sum(np.memmap(path, np.uint8, "r"))


def _sum(content: Any) -> str:
    """XXH3 of bytes: hundredths of a second for the largest set of the papers that has files of its own."""
    from xxhash import xxh3_128_hexdigest  # the benchmark of a GPU runs where only torch and numpy are

    return xxh3_128_hexdigest(content)


def write(root: Path, name: str, sha256: str, arrays: Arrays, note: str, stamps: Sequence[Stamp] = ()) -> Decoded:
    """Keep a decoded copy in `root`. Raises UserError when the disk is full or may not be written to."""
    folder, sums = root / f"{name}-{sha256[:12]}", {}
    files.sweep(folder)
    try:
        for key, value in arrays.items():
            content = io.BytesIO()  # whose errors on a full disk have a number, other than those of `numpy.save`
            np.save(content, value, allow_pickle=False)
            sums[key] = _sum(content.getbuffer())
            files.write(folder / f"{key}.npy", lambda file, content=content: file.write(content.getbuffer()))  # type: ignore[misc]
        files.write_text(folder / STAMP, json.dumps([FORMAT, sha256, note, stamps, sums]))
    except UserError as error:
        raise UserError(f"{error}; or set REPRODUCE_STORE to a folder on another disk") from error
    return Decoded(str(folder), sha256, note, stamps, sums)
