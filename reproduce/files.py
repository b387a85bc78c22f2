"""Writing files: complete or not at all, and a clear error where nothing can be written.

A file appears under its name only when it is whole (temporary file beside it, fsync, rename), so a kill at any moment
leaves the old file or the new one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from reproduce.errors import UserError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
STALE = 3600.0
"""Seconds after which a temporary file is nobody's any more."""


def write(path: Path, fill: Callable[[IO[bytes]], object]) -> Path:
    """Call `fill` with a temporary file, then put it in the place of `path`; returns `path`.

    Raises UserError if the disk is full or the folder cannot be written to: the old file is then still there.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        if error.errno in FULL:
            raise UserError(
                f"no space left to write {path}: free some space and start again; what was finished before is kept"
            ) from error
        raise unwritable(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    return path


def write_text(path: Path, text: str) -> Path:
    """`write` of text in UTF-8."""
    return write(path, lambda file: file.write(text.encode()))


def unwritable(path: Path, error: OSError) -> UserError:
    """The error for a file that cannot be written."""
    return UserError(f"cannot write {path} ({error.strerror or error}): name a file in a folder that you may write to")


def check_writable(path: Path) -> None:
    """Raises UserError if `path` could not be written in the end; leaves no trace but its folder.

    Temporary files of processes that were killed while writing it are swept.
    """
    if path.is_dir():
        raise UserError(f"cannot write {path}: it is a folder; name a file")
    probe = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
        for left in path.parent.glob(f"{_escaped(path.name)}.*.tmp"):
            if time.time() - left.stat().st_mtime > STALE:
                left.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error


def _escaped(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)
