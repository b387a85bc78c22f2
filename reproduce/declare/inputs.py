"""What a user's own code reads besides itself: noted while it runs, compared before its results are used again.

Files, folders and environment variables count, whoever opens them in the end: what counts is that a user's code is the
first beyond the libraries in the chain of calls. Another program or a connection cannot be compared, so that such a
result is never used again. What this cannot see: the time, and files that only were looked for.
"""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import os
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

Noted = dict[str, str | None]
"""What was read -> its SHA-256, None if it was not there: "file /a/b.csv", "folder /a", "variable HOME"."""

OUTSIDE = ("subprocess.Popen", "os.system", "os.posix_spawn", "socket.connect", "sqlite3.connect")
"""Events after which a result cannot be known to hold."""
FOLDERS = ("os.listdir", "os.scandir")
CHANGED = "changed while it was used"

_LIBRARIES = tuple({*sysconfig.get_paths().values(), *map(os.path.realpath, sysconfig.get_paths().values()), "<frozen"})
_PACKAGE = str(Path(__file__).parents[1])
_SYSTEM = ("/proc/", "/sys/", "/dev/")

_noted: defaultdict[str, Noted] = defaultdict(dict)
_owners: list[str] = []
_installed: list[bool] = []


@contextmanager
def watched(owners: Iterable[str], anew: bool = False) -> Iterator[None]:
    """Note what is read meanwhile for the files `owners`, whose code runs; anew: they are loaded, and what they read
    before does not count."""
    if not _installed:
        _installed.append(True)
        sys.addaudithook(_hook)
    kept, real = _owners[:], os.environ
    _owners[:] = owners
    for owner in _owners if anew else ():
        _noted.pop(owner, None)
    noting = copy.copy(real)
    noting.__class__ = _Environment
    os.environ = noting  # noqa: B003 - the same variables, seen through a mapping that notes
    try:
        yield
    finally:
        _owners[:] = kept
        os.environ = real  # noqa: B003


def remember(owners: Iterable[str], read: Noted) -> None:
    """What was read before an interruption counts as well."""
    for owner in owners:
        _noted[owner] = {**read, **_noted[owner]}


def noted(owners: Iterable[str]) -> Noted:
    """All that was read for these files."""
    return {what: said for owner in sorted(owners) for what, said in sorted(_noted[owner].items())}


def changed(read: Mapping[str, str | None]) -> str:
    """What of it is another today, in words; "" if all is as it was."""
    differing = (what for what, said in read.items() if said == CHANGED or _now(what) != said)
    return next(differing, "")


class _Environment(os._Environ):  # type: ignore[type-arg]
    """The environment, which notes what is asked for."""

    def __getitem__(self, key: str) -> str:
        _note(f"variable {key}")
        return super().__getitem__(key)

    def __iter__(self) -> Iterator[str]:
        for key in super().__iter__():
            _note(f"variable {key}")
            yield key


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _owners:
        return
    if event == "open":
        path, mode, flags = arguments
        reads = "r" in mode or "+" in mode if isinstance(mode, str) else not (flags or 0) & os.O_WRONLY
        if reads and isinstance(path, str | bytes | os.PathLike):
            _note(f"file {_source(os.fsdecode(path))}")
    elif event in FOLDERS and isinstance(arguments[0], str | bytes | os.PathLike | None):
        if not sys._getframe(1).f_code.co_filename.startswith("<frozen"):  # an import only looks around
            _note(f"folder {os.path.abspath(os.fsdecode(arguments[0] or '.'))}")
    elif event in OUTSIDE:
        _note(f"event {event}")


def _note(what: str) -> None:
    """Note it for those whose code runs now, with what it says at this moment."""
    owners, place = _owners[:], what.partition(" ")[2]
    if not owners or place.startswith((*_LIBRARIES, _PACKAGE, *_SYSTEM)) or not _theirs() or place in owners:
        return
    _owners.clear()  # what is read to make the checksum does not count
    try:
        said = _now(what)
    finally:
        _owners[:] = owners
    for owner in owners:
        known = _noted[owner].setdefault(what, said)
        if known != said or what.startswith("event "):
            _noted[owner][what] = CHANGED


def _theirs() -> bool:
    """Is the first code in the chain of calls that is no library's a user's?"""
    frame = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_LIBRARIES) and file != __file__:
            return not file.startswith(_PACKAGE)
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _source(path: str) -> str:
    """The whole path; of compiled Python the file that it was made of."""
    whole = os.path.abspath(path)
    with suppress(ValueError):
        return importlib.util.source_from_cache(whole) if whole.endswith(".pyc") else whole
    return whole


def _now(what: str) -> str | None:
    """What it says now."""
    kind, _, name = what.partition(" ")
    try:
        if kind == "variable":
            told = os.environ[name].encode()
        elif kind == "folder":
            told = "\0".join(sorted(os.listdir(name))).encode()
        elif kind == "file" and Path(name).is_file():
            status = os.stat(name)
            return _sum(name, status.st_mtime_ns, status.st_size)
        else:
            return None
    except (OSError, KeyError):
        return None
    return hashlib.sha256(told).hexdigest()


@cache
def _sum(name: str, modified: int, size: int) -> str:
    with open(name, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
