"""What the state of a run holds: whether a checkpoint can keep it, and whether it has changed."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

State = dict[str, Any]
PLAIN = (dict, list, tuple, str, int, float, bool, type(None))
WORDS = "use tensors, arrays, numbers, words, and lists and dicts of them"


def crc(array: np.ndarray) -> int:
    """A checksum of the numbers of an array."""
    return zlib.crc32(np.ascontiguousarray(array).tobytes()) if array.size else 0


def contents(value: Any) -> str:
    """A digest of all that a state holds but for the history, of which the length counts."""
    told = hashlib.blake2b()
    _tell({n: len(v) if n == "history" else v for n, v in value.items()}, told.update, set())
    return told.hexdigest()


def of_clock(state: State, names: Iterable[str]) -> dict[str, str]:
    """A digest of each entry that is the clock's."""
    return {name: contents({name: state[name]}) for name in names if name in state}


Rows = tuple[int, int, str]
"""Of a history: which list it is, how long, its first and last row."""


def rows(state: State) -> Rows:
    history = state["history"]
    return id(history), len(history), repr([*history[:1], *history[-1:]])


def appended(before: Rows, state: State) -> bool:
    """Has the history at most got rows since?"""
    which, length, ends = before
    history = state.get("history", [])
    if id(history) != which or len(history) < length:
        return False
    return repr([*history[:1], *history[:length][-1:]]) == ends


def unkept(state: State) -> str:
    """What of a state a checkpoint could not keep, or not as it is; "" if it can keep all."""
    seen: dict[int, str] = {}
    for name, value in state.items():
        if wrong := _unkept(value, name, seen):
            return wrong
    return ""


def _unkept(value: Any, name: str, seen: dict[int, str]) -> str:
    kind = type(value)
    if kind in (dict, list):
        if id(value) in seen:
            other = "in it twice" if seen[id(value)] == name else f'state["{seen[id(value)]}"], too'
            return f'state["{name}"] holds a {kind.__name__} that is {other}: after a resumption there would be two'
        seen[id(value)] = name
    if kind in (dict, list, tuple):
        inner = [*value, *value.values()] if kind is dict else value
        return next(filter(None, (_unkept(v, name, seen) for v in inner)), "")
    fits = (
        (kind in (Tensor, torch.nn.Parameter) and value.layout == torch.strided)
        or (kind is np.ndarray and value.dtype.kind in "biuf")
        or isinstance(value, np.generic)
        or kind in PLAIN
    )
    return "" if fits else f'state["{name}"] holds a {kind.__name__}, which no checkpoint can keep: {WORDS}'


def _tell(value: Any, say: Any, within: set[int]) -> None:
    say(type(value).__name__.encode())
    if isinstance(value, Tensor):
        dense = value.detach().cpu() if value.layout == torch.strided else None
        say(repr((id(value), value.shape)).encode())
        if dense is not None and value.numel():
            say(crc(dense.contiguous().flatten().view(torch.uint8).numpy()).to_bytes(4, "little"))
    elif isinstance(value, np.ndarray):
        say(np.ascontiguousarray(value).tobytes() if value.dtype != object else repr(value).encode())
    elif isinstance(value, dict | list | tuple):
        if id(value) in within:
            return
        for part in value.items() if isinstance(value, dict) else value:
            _tell(part, say, within | {id(value)})
    else:
        say(repr(value).encode("utf-8", "surrogatepass"))
