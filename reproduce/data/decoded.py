"""Decoded data sets on disk: .npy files that are mapped on the next load, written whole or not at all.

The manifest has the checksum of every file, and one of itself. A copy whose bytes are others is not read.
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

FORMAT = 2  # raise it when the decoded arrays change, so that older copies are decoded again
MANIFEST = "manifest.json"
SUM = "blake2b"  # as fast on every processor; SHA-256 is faster only where there are instructions for it
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOENT, errno.ELOOP, errno.ENAMETOOLONG)
_STALE_SECONDS = 86_400

Stamp = list[Any]  # [path relative to the data folder, bytes, modification time in ns]


@dataclass(frozen=True)
class Decoded:
    """A decoded copy of whole length; `stamps` are the files it was made from, as they were when their checksums
    matched, `sums` the checksums of its own files."""

    path: Path
    sha256: str
    note: str
    stamps: Sequence[Stamp]
    sums: Mapping[str, str]

    def arrays(self) -> Arrays:
        """The arrays, mapped read-only; UserError if another process is just putting the copy aside."""
        try:
            return {Path(name).stem: np.asarray(np.load(self.path / name, mmap_mode="r")) for name in sorted(self.sums)}
        except FileNotFoundError as error:
            raise _busy(self.path) from error

    def damage(self) -> str:
        """The first file that does not hold what was written, "" if all do. A process reads each file once for that."""
        for name, expected in self.sums.items():
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


_whole: set[tuple[Any, ...]] = set()
"""Files of this process whose checksum matched, as they were then."""


def copies(root: Path, name: str) -> Iterator[Decoded]:
    """The decoded copies of the data set `name` whose files are as long as when written."""
    for manifest in sorted(root.glob(f"{name}-*/{MANIFEST}")):
        try:
            content = json.loads(files.read_text(manifest))
            sizes = {f.name: f.stat().st_size for f in manifest.parent.glob("*.npy")}
            sealed = content.pop("seal") == _seal(content) and content["sums"].keys() == sizes.keys()
            if sealed and content["format"] == FORMAT and content["sizes"] == sizes and content["name"] == name:
                yield Decoded(manifest.parent, *(content[key] for key in ("sha256", "note", "stamps", "sums")))
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
            _write_manifest(folder, name, sha256, note, stamps, sums)
            _move(folder, final, name)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    found = _sound(final, name)
    if found is None:
        raise UserError(
            f"the decoded copy {final} is damaged right after writing; check the disk, or set REPRODUCE_STORE"
        )
    return found


def restamp(copy: Decoded, name: str, stamps: Sequence[Stamp]) -> Decoded:
    """Remember that other files (copied or touched) have the same checksum; a read-only store just stays as it is."""
    with contextlib.suppress(OSError):
        _write_manifest(copy.path, name, copy.sha256, copy.note, stamps, copy.sums)
    return replace(copy, stamps=stamps)


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


def _write_manifest(
    folder: Path, name: str, sha256: str, note: str, stamps: Sequence[Stamp], sums: Mapping[str, str]
) -> None:
    sizes = {f.name: f.stat().st_size for f in folder.glob("*.npy")}
    content = {"format": FORMAT, "name": name, "sha256": sha256, "note": note, "sizes": sizes}
    content |= {"stamps": list(stamps), "sums": dict(sums)}
    content["seal"] = _seal(content)
    temporary = folder / f".{MANIFEST}-{os.getpid()}.tmp"
    try:
        temporary.write_text(json.dumps(content))
        os.replace(temporary, folder / MANIFEST)
    finally:
        temporary.unlink(missing_ok=True)


def _move(folder: Path, final: Path, name: str) -> None:
    """Put `folder` in the place of `final`, unless another process has just put a whole copy there."""
    folder.chmod(0o755)  # mkdtemp made it private
    for _ in range(5):
        try:
            os.replace(folder, final)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        if _sound(final, name):
            return
        aside = Path(tempfile.mkdtemp(prefix=f".{final.name}-", suffix=".tmp", dir=final.parent))
        with contextlib.suppress(FileNotFoundError):
            os.replace(final, aside / "old")
        shutil.rmtree(aside, ignore_errors=True)
    raise _busy(final)


def _busy(final: Path) -> UserError:
    return UserError(f"{final} is being rewritten by other processes; run the command again")


def _sound(final: Path, name: str) -> Decoded | None:
    """The copy in `final`, if it holds what was written."""
    return next((copy for copy in copies(final.parent, name) if copy.path == final and not copy.damage()), None)


def _sweep(root: Path, name: str) -> None:
    """Remove what killed processes left behind more than a day ago."""
    for folder in root.glob(f".{name}-*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)
