"""Files: read whatever their line ends; written complete or not at all; YAML whose keys occur once.

A file appears under its name only when it is whole (temporary file beside it, fsync, rename), so a kill at any moment
leaves the old file or the new one.
"""

import contextlib
import errno
import fcntl
import os
import re
import secrets
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from reproduce.errors import UserError

FULL = (errno.ENOSPC, errno.EDQUOT)
STALE = 3600.0
"""Seconds after which a temporary file is nobody's any more."""


def read_text(path: Path) -> str:
    """The content of a file in UTF-8, its lines ended by \\n."""
    return path.read_text(encoding="utf-8")


def read_source(path: Path) -> bytes:
    """A text file of the repository as it was committed: git may have given its lines the ends of another system."""
    return path.read_bytes().replace(b"\r\n", b"\n")


def write(path: Path, fill: Callable[[IO[bytes]], object]) -> Path:
    """Call `fill` with a temporary file, then put it in the place of `path`; returns `path`.

    Raises UserError if the disk is full or the folder cannot be written to: the old file is then still there.
    """
    temporary = _beside(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        opened = temporary.open("wb")
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from error
    try:
        with opened as file:
            fill(file)  # what is wrong with the content is not said to be wrong with the folder
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        with contextlib.suppress(OSError, ValueError):
            temporary.unlink(missing_ok=True)
    return path


def _beside(path: Path) -> Path:
    """A temporary name that no other process takes, on another host or in another container neither."""
    return path.with_name(f"{path.name}.{secrets.token_hex(6)}.tmp")


def write_text(path: Path, text: str) -> Path:
    """`write` of text in UTF-8."""
    return write(path, lambda file: file.write(text.encode()))


def unwritable(path: Path, error: OSError | ValueError) -> UserError:
    """The error for a file that cannot be written; a ValueError is one about its name."""
    if getattr(error, "errno", None) == errno.EFBIG:
        return UserError(f"cannot write {path}: files may not be that large here (`ulimit -f`); what was there is kept")
    if getattr(error, "errno", None) in FULL:
        return UserError(
            f"no space left to write {path}: free some space and start again; what was finished before is kept"
        )
    reason = getattr(error, "strerror", None) or error
    return UserError(f"cannot write {path} ({reason}): name a file in a folder that you may write to")


def check_writable(path: Path) -> None:
    """Raises UserError if `path` could not be written in the end; leaves no trace but its folder.

    What processes that were killed while writing left beside it is swept.
    """
    if not path.name or (path.exists() and not path.is_file()):
        kind = "a device or a pipe" if path.name and not path.is_dir() else "a folder"
        raise UserError(f"cannot write {path}: it is {kind}; name a file")
    try:
        write(_beside(path), lambda file: file.write(b".")).unlink()
    except UserError as error:
        raise unwritable(path, error.__cause__) from error  # type: ignore[arg-type]
    sweep(path.parent, path.name)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Context that keeps other processes out of the same folder, as far as its file system has locks."""
    held = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


@contextlib.contextmanager
def sole(path: Path, what: str) -> Iterator[None]:
    """Context that one process at a time has for the same `path`, beside which the lock lies.

    Raises UserError, which names the other one. The lock is the operating system's: it ends with its process, however
    that ends. Where the file system has no locks, a line says so.
    """
    lock = path.with_name(f"{path.name}.lock")
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("a+")
    except OSError as error:
        raise unwritable(lock, error) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.fstat(file.fileno()).st_nlink:  # the other one has just ended, and took the file along
                raise BlockingIOError
        except BlockingIOError as error:
            file.seek(0)
            other = file.read() or "another process"
            raise UserError(f"{what} is being trained by {other}: wait for it, or end it, and start again") from error
        except OSError as error:
            print(f"{lock.parent} has no locks ({error.strerror}): train {what} once at a time", file=sys.stderr)
        with contextlib.suppress(OSError):  # a full disk, which the training finds itself
            file.truncate(0)
            print(f"process {os.getpid()} on {socket.gethostname()}", end="", file=file, flush=True)
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def sweep(folder: Path, name: str = "") -> None:
    """Remove the temporary files of processes that were killed long ago while they wrote `name` (any file) here."""
    for leftover in folder.glob("*.tmp"):
        ours = re.fullmatch(r"(.+)\.[0-9a-f]+\.tmp", leftover.name)
        with contextlib.suppress(OSError):  # gone in the meantime
            if ours and name in ("", ours[1]) and time.time() - leftover.stat().st_mtime > STALE:
                leftover.unlink()


def read_yaml(path: Path) -> Any:
    """A YAML file in UTF-8 whose keys occur once each; UserError for another."""
    import yaml

    class Once(yaml.SafeLoader):
        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            names = [key.value for key, _ in node.value]
            if twice := [name for i, name in enumerate(names) if name in names[:i]]:
                raise yaml.YAMLError(f"the key '{twice[0]}' occurs twice{node.start_mark}")
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(read_text(path), Once)
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not text in UTF-8 (byte {error.start}): save it in that encoding") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UserError(f"{path} is not YAML: {' '.join(str(error).split())}") from error


def record(needed: Iterable[str] = (), /, **properties: Any) -> dict[str, Any]:
    """The JSON Schema of an object with these properties, those `needed` among them, and no others."""
    return {"type": "object", "properties": properties, "required": [*needed], "additionalProperties": False}


def mismatch(value: Any, schema: dict[str, Any]) -> str:
    """The first mismatch of a value with a JSON Schema, in a line; "" without one."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    error = best_match(Draft202012Validator(schema).iter_errors(value))
    place = ".".join(map(str, error.absolute_path)) if error else ""
    return f"{place}: {error.message}".removeprefix(": ") if error else ""
