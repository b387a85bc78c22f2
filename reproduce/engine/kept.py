"""What the state of a run holds: whether a checkpoint can keep it, and whether it has changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reproduce.engine.traces import digest

State = dict[str, Any]
PLAIN = (dict, list, tuple, str, int, float, bool, type(None))


def contents(state: State) -> str:
    """A digest of all that a state holds but for the history, of which the length counts."""
    return digest({n: len(v) if n == "history" else v for n, v in state.items()}, {})


def of_clock(state: State, names: Iterable[str]) -> dict[str, str]:
    """A digest of each entry that is the clock's."""
    return {name: digest(state[name], {}) for name in names if name in state}


def rows(history: list[Any]) -> tuple[list[Any], int, list[Any]]:
    """Of a history: which list it is, how long, its first and last row."""
    return history, len(history), [*history[:1], *history[-1:]]


def appended(before: tuple[list[Any], int, list[Any]], history: list[Any]) -> bool:
    """Has the history at most got rows since?"""
    same, length, ends = before
    return history is same and len(history) >= length and [*history[:1], *history[:length][-1:]] == ends


def unkept(state: State) -> str:
    """What of a state a checkpoint could not keep, or not as it is; "" if it can keep all."""
    seen: dict[int, str] = {}
    return next(filter(None, (_unkept(value, name, seen) for name, value in state.items())), "")


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
    if kind in (Tensor, torch.nn.Parameter):
        fits = value.layout == torch.strided
    else:
        fits = value.dtype.kind in "biuf" if kind is np.ndarray else kind in PLAIN or isinstance(value, np.generic)
    words = "use tensors, arrays, numbers, words, and lists and dicts of them"
    return "" if fits else f'state["{name}"] holds a {kind.__name__}, which no checkpoint can keep: {words}'
