"""What users bring: numbers of records, and records whose code is not this package's."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduce.errors import UserError
from reproduce.streams import WORD, globally

Indices = NDArray[np.int64]
Labels = NDArray[np.integer]
WHOLE, NUMBER = (int, np.integer), (int, float, np.number)


def whole(what: str, value: Any, least: int = 1) -> None:
    """UserError unless `value` is a whole number of at least `least`: 8.0, True and "8" are none."""
    if isinstance(value, bool) or not isinstance(value, WHOLE) or value < least:
        raise UserError(f"{what} is a whole number >= {least}, not {value!r}")


def seed(what: str, value: Any) -> None:
    """UserError unless `value` can seed every generator: a whole number below 2^32, or None for the seed of the run."""
    if value is not None:
        whole(what, value, 0)
        if value >= WORD:
            raise UserError(f"{what} is below 2^32, not {value}")


def positive(what: str, value: Any) -> None:
    """UserError unless `value` is a positive and finite number."""
    number = isinstance(value, NUMBER) and not isinstance(value, bool)
    if not number or not 0 < value < math.inf:
        raise UserError(f"{what} is a positive number, not {value!r}")


def share(what: str, value: Any) -> None:
    """UserError unless `value` is a number in [0, 1)."""
    number = isinstance(value, NUMBER) and not isinstance(value, bool)
    if not number or not 0 <= value < 1:
        raise UserError(f"{what} lies in [0, 1), not {value!r}")


def frozen(what: str, record: Any) -> None:
    """UserError unless `record` is a frozen dataclass of plain values, by which runs are named and told apart."""
    try:
        hash(record)
        known = dataclasses.is_dataclass(type(record))
    except TypeError:
        known = False
    if not known:
        raise UserError(f"{what} {type(record).__name__} needs @dataclass(frozen=True), with numbers, words and tuples")


def foreign(record: Any) -> bool:
    """Is a record, or one in its fields, of a class that is not this package's?"""
    if isinstance(record, list | tuple) and type(record) in (list, tuple):
        return any(map(foreign, record))
    if record is None or type(record) in (bool, int, float, str):
        return False
    if type(record).__module__.partition(".")[0] != "reproduce":
        return True
    return dataclasses.is_dataclass(record) and any(
        foreign(getattr(record, f.name)) for f in dataclasses.fields(record)
    )


@contextmanager
def calling(what: str, *key: int | str) -> Iterator[None]:
    """Around a user's code, which `what` names: whatever it raises is a UserError.

    It draws the same every time, from global generators too, which start from `key` (`streams.globally`).
    """
    try:
        with globally("own", *key):
            yield
    except UserError:
        raise
    except Exception as error:  # a user's code raises whatever it likes
        raise UserError(f"{what} cannot be used: {words(error)}") from error


def words(error: Exception) -> str:
    """An error of a user's code in one line."""
    kind = "" if isinstance(error, ValueError) else type(error).__name__
    return ": ".join(filter(None, (kind, " ".join(str(error).split()))))
