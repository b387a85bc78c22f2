"""Values of records' fields: numbers within bounds, known words; and records whose code is not this package's."""

from __future__ import annotations

import dataclasses
import math
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from reproduce.declare import closure
from reproduce.errors import UserError
from reproduce.streams import WORD, globally

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Indices = Ints
Labels = NDArray[np.integer]
Test = Callable[[Any], bool]


@dataclass(frozen=True)
class Bounds:
    """The finite numbers x with least <= x <= most and above < x < below."""

    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf
    below: float = math.inf

    def __contains__(self, x: float) -> bool:
        return self.least <= x <= self.most and self.above < x < self.below

    def __str__(self) -> str:
        ends = {"at least": self.least, "above": self.above, "at most": self.most, "below": self.below}
        return " and ".join(f"{word} {end}" for word, end in ends.items() if math.isfinite(end))


MOST = 10**9
"""Rounds, steps, samples or clients beyond which a number is a slip."""
Positive = Annotated[float, Bounds(above=0)]
NonNegative = Annotated[float, Bounds(0)]
Probability = Annotated[float, Bounds(0, 1)]
Share = Annotated[float, Bounds(above=0, most=1)]
Fraction = Annotated[float, Bounds(0, below=1)]
Count = Annotated[int, Bounds(1, MOST)]
Whole = Annotated[int, Bounds(0, MOST)]
Seed = Annotated[int, Bounds(0, WORD - 1)]
NAMED = {int: "a whole number", float: "a number", bool: "True or False", str: "a word in quotes", NoneType: "None"}


class Sample(NamedTuple):
    """The form of a sample. shape: (channels, height, width) of an image, (features,) of a table, (tokens,) of a text.

    dtype: "float" (of the arithmetic's precision) or "int64" (token ids). vocabulary: token ids are below it.
    """

    shape: tuple[int, ...]
    dtype: Literal["float", "int64"] = "float"
    vocabulary: int = 0

    def padded(self, pixels: int) -> Sample:
        """An image with so many pixels added on each side."""
        channels, height, width = self.shape
        return self._replace(shape=(channels, height + 2 * pixels, width + 2 * pixels))


def records(value: Any) -> Iterator[Any]:
    """Every frozen record in `value`, itself included."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield value
        value = [getattr(value, f.name) for f in dataclasses.fields(value)]
    elif isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for inner in value:
            yield from records(inner)


def check_values(value: Any) -> None:
    """UserError if a field of a record in `value` is not what its annotation says: its type, its bounds, its words."""
    for inner in value if isinstance(value, tuple) else ():
        if type(inner) not in NAMED:
            check_values(inner)
    made: Any = type(value)
    for name, fits in _tests(made):
        inner = getattr(value, name)
        if not fits(inner):
            check(f"{made.__name__}: {name}", inner, kinds(made)[name])
        if type(inner) not in NAMED:
            check_values(inner)


def check(what: str, value: Any, kind: Any) -> None:
    """UserError unless `value`, which `what` names, is of this kind, an annotation."""
    if not _test(kind)(value):
        raise UserError(f"{what} is {_words(kind)}, not {value!r}")


@cache
def kinds(record: type) -> Mapping[str, Any]:
    """The annotations of a record's fields; the types of the defaults where names in them are for checkers only."""
    fields = dataclasses.fields(record)
    try:
        hints = get_type_hints(record, include_extras=True)
    except (NameError, AttributeError, TypeError, SyntaxError):
        hints = {f.name: Any if f.default is dataclasses.MISSING else type(f.default) for f in fields}
    return {f.name: hints[f.name] for f in fields}


@cache
def _tests(record: type) -> tuple[tuple[str, Test], ...]:
    fields = kinds(record) if dataclasses.is_dataclass(record) else {}
    return tuple((name, _test(kind)) for name, kind in fields.items())


def literal(kind: Any) -> bool:
    """Tells whether values of this kind can be written out: numbers, words, tuples of them."""
    inner = [k for k in get_args(kind) if k is not ...]
    if get_origin(kind) is Annotated:
        return literal(inner[0])
    return kind in NAMED or get_origin(kind) is Literal or (bool(inner) and all(map(literal, inner)))


@cache
def _test(kind: Any) -> Test:
    """A test whether a value is of a kind. No boolean is a number, and no number is infinite."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        of, bounds = _test(inner[0]), inner[1]
        return lambda x: of(x) and x in bounds
    if origin is Literal:
        return lambda x: x in inner
    if origin in (Union, UnionType):
        some = [*map(_test, inner)]
        return lambda x: any(test(x) for test in some)
    if origin is tuple and inner[-1:] == (...,):
        each = _test(inner[0])
        return lambda x: isinstance(x, tuple) and all(map(each, x))
    if origin is tuple:
        all_ = [*map(_test, inner)]
        return lambda x: (
            isinstance(x, tuple) and len(x) == len(all_) and all(t(v) for t, v in zip(all_, x, strict=True))
        )
    if kind in (int, float):
        number = int | float if kind is float else int
        return lambda x: isinstance(x, number) and not isinstance(x, bool) and abs(x) <= sys.float_info.max
    if _is_class(kind):
        return lambda x: isinstance(x, kind) and _plain(x)
    return _plain


def _is_class(kind: Any) -> bool:
    return isinstance(kind, type) and kind is not Any and not getattr(kind, "_is_protocol", False)


def _plain(value: Any) -> bool:
    """Returns whether it is a frozen dataclass, or numbers, words and tuples, by which runs are named."""
    if isinstance(value, tuple):
        return all(map(_plain, value))
    if isinstance(value, float):
        return math.isfinite(value)
    frozen = getattr(type(value), "__dataclass_params__", None)
    return value is None or isinstance(value, int | str) or bool(frozen and frozen.frozen)


def _words(kind: Any) -> str:
    """A kind in words."""
    origin, inner = get_origin(kind), [k for k in get_args(kind) if k is not ...]
    if origin is Annotated:
        return " ".join([_words(inner[0]), *map(str, inner[1:])])
    if origin is Literal:
        return f"one of {', '.join(map(repr, inner))}"
    if origin in (Union, UnionType):
        return " or ".join(map(_words, inner))
    if origin is tuple:
        return f"a tuple, each {_words(inner[0])}" if ... in get_args(kind) else f"({', '.join(map(_words, inner))})"
    if _is_class(kind) and (kind in NAMED or kind.__module__ != "builtins"):
        return NAMED.get(kind, f"a {kind.__name__}")
    return "a @dataclass(frozen=True) with numbers, words and tuples"


def foreign(record: Any) -> bool:
    """Returns whether a record, or one in its fields, is of a class outside this package."""
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
    """Context around a user's code, which `what` names: whatever the code raises becomes a UserError.

    It draws the same every time, from global generators too, which start from `key` (`streams.globally`).
    """
    try:
        with globally("own", *key):
            yield
    except UserError:
        raise
    except Exception as error:  # a user's code raises whatever it likes
        raise UserError(f"{what} cannot be used: {words(error)}") from error


def words(error: BaseException) -> str:
    """An error of a user's code in one line, with the last place in a file that is not installed."""
    kind = "" if isinstance(error, ValueError) else type(error).__name__
    line = ": ".join(filter(None, (kind, " ".join(str(error).split()))))
    files = [(Path(f.filename), f.lineno) for f in traceback.extract_tb(error.__traceback__)]
    places = [(f.name, number) for f, number in files if f.is_file() and not closure.installed(f)]
    if isinstance(error, SyntaxError) or not places:  # whose text has the place
        return line
    return f"{line} ({places[-1][0]}, line {places[-1][1]})"
