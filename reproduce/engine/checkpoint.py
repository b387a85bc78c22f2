"""Checkpoints of a job: the states of all its runs in one file, from which it goes on in the same bits.

A file is torch's archive, read without executing anything; the archive has a checksum of each of its parts. The digest
of the runs is in its name (`plan.digest`); checksums of data and the device are in it: all of it fits, or nothing is
taken over.
"""

import sys
import time
import warnings
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch

from reproduce import files
from reproduce.declare.isolation import unchanged
from reproduce.engine.scheduler import Run
from reproduce.errors import UserError

NUMPY: list[Any] = [
    *(np.ndarray, np.dtype, *{type(np.dtype(kind)) for kind in "?bhilqBHILQefd"}),
    *(np.empty(0).__reduce__()[0], np.float64(0).__reduce__()[0]),
]
"""The types that arrays and scalars of numbers are made of."""


class Checkpoint:
    """The states of all runs of a job, written every `interval` seconds and at most `share` of the time.

    `noted` is the answer of `note` when the restored checkpoint was written: how the job was computed until then.
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
        self.noted: dict[str, Any] = {}
        self.spent = 0.0
        self.last = time.monotonic()

    def restore(self) -> bool:
        """Load the states; False if there is no checkpoint, or a user's own code has changed since, which is said.
        UserError for a damaged file and for one of other runs, data or device: then no state is changed."""
        try:
            content = load(self.path, self.runs[0].env.split.device)
            noted, begun, states = (content[name] for name in ("note", "origin", "states"))
            if other := sorted(dict(begun.items() ^ origin(self.runs).items())):
                raise ValueError(f"it was begun with other {' and '.join(other)}")
            restored = [(run, dict(state)) for run, state in zip(self.runs, states, strict=True)]
        except FileNotFoundError:  # perhaps since a moment ago: another process may have ended the same job
            return False
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UserError(
                f"checkpoint {self.path} cannot be read ({reason}): delete it to train from the start"
            ) from error
        if not unchanged(noted.get("own", {})):
            print("own code has changed since the checkpoint: it is trained from the start", file=sys.stderr)
            return False
        self.noted = noted
        for run, state in restored:
            run.state.clear()
            run.state.update(state)
        return True

    def tick(self) -> None:
        """Save if it is time; an interval of 0 saves always."""
        if not self.interval or time.monotonic() - self.last >= max(self.interval, self.spent / self.share):
            self.save()

    def save(self) -> None:
        start = time.monotonic()
        content = {"states": [run.state for run in self.runs], "origin": origin(self.runs), "note": self.note()}
        files.write(self.path, lambda file: put(content, file))
        self.last = time.monotonic()
        self.spent = self.last - start

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def origin(runs: Sequence[Run]) -> dict[str, str]:
    """The origin of runs besides their declarations: checksums of data and weights, the device."""
    splits = [run.env.split for run in runs]
    data = {f"data ({name})": sha256 for split in splits for name, sha256 in split.device_data.checksums.items()}
    return {"device": splits[0].device.type, **data}


def put(content: Any, file: IO[bytes]) -> None:
    """Write nested dicts, lists, tuples, tensors, arrays and plain values."""
    try:
        torch.save(_owned(content), file)
    except RuntimeError as error:  # of an archive that torch wanted to close on a full disk
        if isinstance(error.__context__, OSError):
            raise error.__context__ from error
        raise


def _owned(value: Any) -> Any:
    """`value` with copies of tensors that are views, because torch.save would write all of what they look at."""
    if isinstance(value, torch.Tensor):
        return value if value.untyped_storage().nbytes() == value.nbytes else value.clone()
    if isinstance(value, dict):
        return {k: _owned(v) for k, v in value.items()}
    return type(value)(map(_owned, value)) if isinstance(value, list | tuple) else value


def load(path: Path, device: torch.device | str = "cpu") -> Any:
    """Returns the content that `put` wrote, its tensors on the device; ValueError if it is damaged or holds anything
    else."""
    with path.open("rb") as file:
        try:
            if damaged := zipfile.ZipFile(file).testzip():
                raise ValueError(f"the checksum of {damaged} is wrong")
            file.seek(0)
            with warnings.catch_warnings(action="ignore"), torch.serialization.safe_globals(NUMPY):
                return torch.load(file, device, weights_only=True)
        except Exception as error:  # both raise whatever they like on bytes that somebody wrote, and torch bad advice
            raise ValueError(f"it is damaged, or no checkpoint of numbers: {type(error).__name__}") from error
