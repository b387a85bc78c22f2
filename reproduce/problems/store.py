"""Decoded data sets on disk: .npy files that are mapped on the next load, written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from reproduce import files
from reproduce.errors import UserError
from reproduce.problems.dataset import Arrays

FORMAT = 1  # raise it when the decoded arrays change, so that older copies are decoded again
MANIFEST = "manifest.json"
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOENT, errno.ELOOP, errno.ENAMETOOLONG)
_STALE_SECONDS = 86_400

Stamp = list[Any]  # [path relative to the data folder, bytes, modification time in ns]


@dataclass(frozen=True)
class Decoded:
    """A whole decoded copy; `stamps` are the files it was made from, as they were when their checksums matched."""

    path: Path
    sha256: str
    note: str
    stamps: Sequence[Stamp]

    def arrays(self) -> Arrays:
        """The arrays, mapped read-only."""
        return {f.stem: np.asarray(np.load(f, mmap_mode="r")) for f in sorted(self.path.glob("*.npy"))}


def copies(root: Path, name: str) -> Iterator[Decoded]:
    """The decoded copies of the data set `name` that are whole: same bytes in every file as when written."""
    for manifest in sorted(root.glob(f"{name}-*/{MANIFEST}")):
        try:
            content = json.loads(files.read_text(manifest))
            sizes = {f.name: f.stat().st_size for f in manifest.parent.glob("*.npy")}
            if content["format"] == FORMAT and content["sizes"] == sizes and content["name"] == name:
                yield Decoded(manifest.parent, content["sha256"], content["note"], content["stamps"])
        except (OSError, ValueError, KeyError, TypeError):
            continue  # cut short or of another version: decoded again


def write(root: Path, name: str, sha256: str, arrays: Arrays, note: str, stamps: Sequence[Stamp]) -> Decoded:
    """Keep a decoded copy in `root`; it appears whole or not at all. Raises UserError when the disk is full."""
    final = root / f"{name}-{sha256[:12]}"
    with disk_errors(root):
        root.mkdir(parents=True, exist_ok=True)
        _sweep(root, name)
        folder = Path(tempfile.mkdtemp(prefix=f".{name}-", suffix=".tmp", dir=root))
        try:
            for key, value in arrays.items():
                save(folder / f"{key}.npy", value)
            _write_manifest(folder, name, sha256, note, stamps)
            _move(folder, final, name)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    found = next((copy for copy in copies(root, name) if copy.path == final), None)
    if found is None:
        raise UserError(
            f"the decoded copy {final} is damaged right after writing; check the disk, or set REPRODUCE_STORE"
        )
    return found


def restamp(copy: Decoded, name: str, stamps: Sequence[Stamp]) -> Decoded:
    """Remember that other files (copied or touched) have the same checksum; a read-only store just stays as it is."""
    with contextlib.suppress(OSError):
        _write_manifest(copy.path, name, copy.sha256, copy.note, stamps)
    return Decoded(copy.path, copy.sha256, copy.note, stamps)


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


def save(path: Path, array: NDArray[Any]) -> None:
    """`numpy.save` whose errors have a number: the one of numpy does not tell a full disk from other failures."""
    with path.open("wb") as stream:
        np.lib.format.write_array(_WriteOnly(stream), array, allow_pickle=False)


class _WriteOnly:
    """Hides that the stream is a file, so that numpy calls `write` instead of its own `tofile`."""

    def __init__(self, stream: BinaryIO) -> None:
        self.write = stream.write


def _write_manifest(folder: Path, name: str, sha256: str, note: str, stamps: Sequence[Stamp]) -> None:
    sizes = {f.name: f.stat().st_size for f in folder.glob("*.npy")}
    content = {"format": FORMAT, "name": name, "sha256": sha256, "note": note, "sizes": sizes, "stamps": list(stamps)}
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
        if any(copy.path == final for copy in copies(final.parent, name)):
            return
        aside = Path(tempfile.mkdtemp(prefix=f".{final.name}-", suffix=".tmp", dir=final.parent))
        with contextlib.suppress(FileNotFoundError):
            os.replace(final, aside / "old")
        shutil.rmtree(aside, ignore_errors=True)
    raise UserError(f"{final} is being rewritten by other processes; run the command again")


def _sweep(root: Path, name: str) -> None:
    """Remove what killed processes left behind more than a day ago."""
    for folder in root.glob(f".{name}-*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)
