"""Checkpoints of a job: the states of all its runs in one file, from which it goes on in the same bits.

A file is a line with the SHA-256 of the rest, then tensors and one JSON text in torch's format for plain tensors: there
is nothing in it that could be executed, and a changed bit is noticed. Every state carries the identity of its run, and
the file the checksums of the data and the device; nothing is taken over unless all of it fits.
"""

from __future__ import annotations

import hashlib
import io
import json
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import torch

from reproduce import files
from reproduce.engine.cohort import Run
from reproduce.errors import UserError

MAGIC = b"reproduce checkpoint 3 "


class Checkpoint:
    """The states of all runs of a job, written every `interval` seconds and at most `share` of the time.

    `said` is what `note` said when the restored checkpoint was written: how the job was computed until then.
    """

    def __init__(
        self,
        path: Path,
        runs: Sequence[Run],
        note: Callable[[], dict[str, Any]] = dict,
        interval: float = 20.0,
        share: float = 0.03,
    ) -> None:
        self.path, self.runs, self.note, self.interval, self.share = path, runs, note, interval, share
        self.said: dict[str, Any] = {}
        self.spent = 0.0
        self.last = time.monotonic()

    def restore(self) -> bool:
        """Load the states; False if there is no checkpoint. UserError for a damaged file and for one of other runs,
        other data or another device: then no state is changed."""
        try:
            with files.regular(self.path).open("rb") as file:
                content = unpack(file)
        except FileNotFoundError:  # perhaps since a moment ago: another process may have ended the same job
            return False
        except OSError as error:
            raise _unreadable(self.path, error.strerror or error) from error
        except ValueError as error:
            raise _unreadable(self.path, error) from error
        try:
            said, begun, states = (content[name] for name in ("note", "origin", "states"))
            if other := sorted(dict(begun.items() ^ origin(self.runs).items())):
                raise ValueError(f"it was begun with other {' and '.join(other)}")
            if [of for of, _ in states] != [identity(run) for run in self.runs]:
                raise ValueError("it is of other runs")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _unreadable(self.path, error) from error
        self.said = said
        for run, (_, state) in zip(self.runs, states, strict=True):
            run.state.clear()
            run.state.update(to_device(state, run.env.task.device))
        return True

    def tick(self) -> None:
        """Save if it is time; an interval of 0 saves always."""
        if not self.interval or time.monotonic() - self.last >= max(self.interval, self.spent / self.share):
            self.save()

    def save(self) -> None:
        start = time.monotonic()
        states = [(identity(run), run.state) for run in self.runs]
        content = {"states": states, "origin": origin(self.runs), "note": self.note()}
        files.write(self.path, lambda file: put(content, file))
        self.last = time.monotonic()
        self.spent = self.last - start

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def _unreadable(path: Path, why: object) -> UserError:
    return UserError(f"checkpoint {path} cannot be read ({why}): delete it to train from the start")


def identity(run: Run) -> str:
    """The declaration, labels and seed of a run, in one word."""
    labels = json.dumps(dict(run.experiment.labels), sort_keys=True)
    return hashlib.sha256(f"{run.experiment.declaration} {labels} {run.seed}".encode()).hexdigest()[:16]


def origin(runs: Sequence[Run]) -> dict[str, str]:
    """What the numbers of runs come from besides their declarations: checksums of data and weights, the device."""
    tasks = [run.env.task for run in runs]
    arenas = [task.arena for task in tasks if hasattr(task, "arena")]
    data = {f"data ({name})": sha256 for arena in arenas for name, sha256 in arena.checksums.items()}
    return {"device": tasks[0].device.type, **data}


def put(content: Any, file: IO[bytes]) -> None:
    """Write nested dicts, lists, tuples, tensors, arrays and plain values with their checksum, which is written last:
    there is no second copy of them in memory."""
    tensors: list[torch.Tensor] = []
    tree = json.dumps(_flat(content, tensors, {}))
    file.write(MAGIC + bytes(64) + b"\n")
    body = _Summed(file)
    torch.save({"tree": tree, "tensors": tensors}, cast(IO[bytes], body))
    if body.error:
        raise body.error
    file.seek(len(MAGIC))
    file.write(body.sha256.hexdigest().encode())


class _Summed(io.RawIOBase):
    """Writes through to a file and sums up what it writes; an error waits in `error`, as torch's writer dies of one."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.sha256 = file, hashlib.sha256()
        self.error: OSError | None = None

    def write(self, data: Any) -> int:
        if self.error is None:
            try:
                self.file.write(data)
                self.sha256.update(data)
            except OSError as error:
                self.error = error
        return len(data)


def unpack(file: IO[bytes]) -> Any:
    """What `put` wrote, without a second copy of it in memory either; ValueError if a bit of it has changed."""
    head = file.readline(len(MAGIC) + 65)
    if not head.startswith(MAGIC):
        raise ValueError("not a checkpoint of this version")
    sha256 = hashlib.sha256()
    while part := file.read(1 << 20):
        sha256.update(part)
    if head != MAGIC + sha256.hexdigest().encode() + b"\n":
        raise ValueError("its checksum is wrong")
    try:
        with warnings.catch_warnings(action="ignore"):  # what torch finds odd is refused below, in one line
            body = io.BufferedReader(_After(file, len(head)))
            found = torch.load(body, weights_only=True, map_location="cpu")
        return _deep(json.loads(found["tree"]), found["tensors"])
    except Exception as error:  # torch raises whatever it likes on bytes that somebody wrote by hand, and bad advice
        raise ValueError(f"there is more in it than tensors and text: {type(error).__name__}") from error


class _After(io.RawIOBase):
    """A file from its byte `start` on, as torch reads it: from any place."""

    def __init__(self, file: IO[bytes], start: int) -> None:
        self.file, self.start = file, start
        self.seek(0)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self.file.seek(offset + self.start * (whence == io.SEEK_SET), whence)
        return self.tell()

    def tell(self) -> int:
        return self.file.tell() - self.start

    def readinto(self, buffer: Any) -> int:
        return self.file.readinto(buffer)  # type: ignore[attr-defined,no-any-return]


def _flat(value: Any, tensors: list[torch.Tensor], seen: dict[int, int]) -> Any:
    """`value` as JSON, its tensors and arrays put aside; a tensor that occurs twice is kept once."""
    if isinstance(value, torch.Tensor | np.ndarray):
        if id(value) not in seen:
            seen[id(value)] = len(tensors)
            tensors.append(torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else _whole(value.detach()))
        return {"array" if isinstance(value, np.ndarray) else "tensor": seen[id(value)]}
    if isinstance(value, dict):
        return {"dict": [[_flat(k, tensors, seen), _flat(v, tensors, seen)] for k, v in value.items()]}
    if isinstance(value, tuple | list):
        return {type(value).__name__: [_flat(v, tensors, seen) for v in value]}
    if isinstance(value, np.generic):
        return _flat(value.item(), tensors, seen)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"{type(value).__name__} cannot be part of a run's state")


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor; of a view a copy, because torch.save would write all of what it looks at."""
    return tensor if tensor.untyped_storage().nbytes() == tensor.nbytes else tensor.clone()


def _deep(value: Any, tensors: list[torch.Tensor]) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    if kind == "tensor":
        return tensors[inner]
    if kind == "array":
        return tensors[inner].numpy()
    if kind == "dict":
        return {_deep(k, tensors): _deep(v, tensors) for k, v in inner}
    parts = [_deep(v, tensors) for v in inner]
    return tuple(parts) if kind == "tuple" else parts


def to_device(value: Any, device: torch.device) -> Any:
    """Nested containers with their tensors on the device."""
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {k: to_device(v, device) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(to_device(v, device) for v in value)
    return value
