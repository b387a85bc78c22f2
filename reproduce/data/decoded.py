"""Decoded data sets on disk: .npy files that are mapped on the next load, written whole or not at all.

The manifest has the size and the checksum of every file, and a checksum of itself. A copy whose bytes are others is not
read.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from reproduce import files
from reproduce.data.dataset import Arrays
from reproduce.errors import UserError

FORMAT = 3  # raise it when the decoded arrays change, so that older copies are decoded again
MANIFEST = "manifest.json"
SUM = "blake2b"  # as fast on every processor; SHA-256 is faster only where there are instructions for it
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOENT, errno.ELOOP, errno.ENAMETOOLONG)
_STALE_SECONDS = 86_400

Stamp = list[Any]  # [path relative to the data folder, bytes, modification time in ns]


@dataclass(frozen=True)
class Decoded:
    """A decoded copy of whole length; `stamps` are the files it was made from, as they were when their checksums
    matched, `files` the sizes and checksums of its own."""

    path: Path
    name: str
    sha256: str
    note: str
    stamps: Sequence[Stamp]
    files: Mapping[str, Sequence[Any]]

    def arrays(self) -> Arrays:
        """The arrays, mapped read-only; UserError if another process is just putting the copy aside."""
        try:
            return {Path(f).stem: np.asarray(np.load(self.path / f, mmap_mode="r")) for f in sorted(self.files)}
        except FileNotFoundError as error:
            raise UserError(f"{self.path} is being rewritten by other processes; run the command again") from error

    def damage(self) -> str:
        """The first file that does not hold what was written, "" if all do. A process reads each file once for that."""
        for name, (_, expected) in self.files.items():
            try:
                status = (self.path / name).stat()
                known = (self.path / name, expected, status.st_ino, status.st_size, status.st_mtime_ns)
                if known not in _whole:
                    with (self.path / name).open("rb") as stream:
                        if hashlib.file_digest(stream, SUM).hexdigest() != expected:
                            return name
                    _whole.add(known)
            except OSError:  # another process is putting a whole copy in its place
                return name
        return ""

    def remembered(self, stamps: Sequence[Stamp]) -> Decoded:
        """Other files (copied or touched) have the same checksum; a read-only store just stays as it is."""
        found = replace(self, stamps=stamps)
        with contextlib.suppress(UserError):
            found.write_manifest()
        return found

    def write_manifest(self) -> None:
        content = {"format": FORMAT, **{name: value for name, value in vars(self).items() if name != "path"}}
        files.write_text(self.path / MANIFEST, json.dumps({**content, "seal": _seal(content)}))


_whole: set[tuple[Any, ...]] = set()
"""Files of this process whose checksum matched, as they were then."""


def copies(root: Path, name: str) -> Iterator[Decoded]:
    """The decoded copies of the data set `name` whose files are as long as when written."""
    for manifest in sorted(root.glob(f"{name}-*/{MANIFEST}")):
        try:
            content = json.loads(files.read_text(manifest))
            sealed = content.pop("seal") == _seal(content) and content.pop("format") == FORMAT
            sizes = {f.name: f.stat().st_size for f in manifest.parent.glob("*.npy")}
            if sealed and content["name"] == name and sizes == {f: size for f, (size, _) in content["files"].items()}:
                yield Decoded(manifest.parent, **content)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # cut short, damaged or of another version: decoded again


def write(root: Path, name: str, sha256: str, arrays: Arrays, note: str, stamps: Sequence[Stamp]) -> Decoded:
    """Keep a decoded copy in `root`; it appears whole or not at all. Raises UserError when the disk is full."""
    final = root / f"{name}-{sha256[:12]}"
    with disk_errors(root):
        root.mkdir(parents=True, exist_ok=True)
        _sweep(root, name)
        folder = Path(tempfile.mkdtemp(prefix=f".{name}-", suffix=".tmp", dir=root))
        try:
            sums = {f"{key}.npy": save(folder / f"{key}.npy", value) for key, value in arrays.items()}
            made = {file: ((folder / file).stat().st_size, found) for file, found in sums.items()}
            Decoded(folder, name, sha256, note, list(stamps), made).write_manifest()
            found = _moved(folder, final, name)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    if found is None:
        raise UserError(
            f"the decoded copy {final} is damaged right after writing; check the disk, or set REPRODUCE_STORE"
        )
    return found


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn a full or forbidden disk into a UserError that names the folder and the way out."""
    try:
        yield
    except OSError as error:
        if error.errno in DISK_FULL:
            advice = f"no space left for {path}; free about 1 GB there"
        elif error.errno in FORBIDDEN:
            advice = f"{path} cannot be written ({error.strerror})"
        else:
            raise
        raise UserError(f"{advice}, or set REPRODUCE_STORE and REPRODUCE_DATA to folders on another disk") from error


def save(path: Path, array: NDArray[Any]) -> str:
    """`numpy.save` whose errors have a number: the one of numpy does not tell a full disk from other failures.

    The checksum of what was to be written.
    """
    with path.open("wb") as stream:
        summed = _Summed(stream)
        np.lib.format.write_array(summed, array, allow_pickle=False)
    return summed.sum.hexdigest()


class _Summed:
    """Hides that the stream is a file, so that numpy calls `write` instead of its own `tofile`; sums what it writes."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream, self.sum = stream, hashlib.new(SUM)

    def write(self, data: bytes) -> int:
        self.sum.update(data)
        return self.stream.write(data)


def _seal(content: Mapping[str, Any]) -> str:
    return hashlib.new(SUM, json.dumps(content, sort_keys=True).encode()).hexdigest()


def _moved(folder: Path, final: Path, name: str) -> Decoded | None:
    """The copy in the place of `final`: that of `folder`, unless another process has just put a whole one there."""
    with files.locked(final.parent):
        if (there := _sound(final, name)) is None:
            folder.chmod(0o755)  # mkdtemp made it private
            aside = folder.with_suffix(".old.tmp")
            if final.exists():
                os.replace(final, aside)
            os.replace(folder, final)
            shutil.rmtree(aside, ignore_errors=True)
    return there or _sound(final, name)


def _sound(final: Path, name: str) -> Decoded | None:
    """The copy in `final`, if it holds what was written."""
    return next((copy for copy in copies(final.parent, name) if copy.path == final and not copy.damage()), None)


def _sweep(root: Path, name: str) -> None:
    """Remove what killed processes left behind more than a day ago."""
    for folder in root.glob(f".{name}-*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)
