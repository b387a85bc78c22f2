"""Requests in words: which are equal, and an order of them that follows from their contents alone.

Sums and stacks round differently in another order. So requests are not computed in the order in which runs happened to
ask, which a resumption may change.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from reproduce.engine.requests import Evaluate, Gradient, Request, Train
from reproduce.engine.rule import Rule
from reproduce.models.model import Model

if TYPE_CHECKING:
    from reproduce.engine.task import Task

Words = tuple[bytes, ...]


def ordered(jobs: Sequence[tuple[Task, Request]]) -> list[int]:
    """The positions of the requests, sorted by their contents; only equal ones stay in the order in which they come."""
    words = worded(jobs)
    return sorted(range(len(jobs)), key=words.__getitem__)


def worded(jobs: Sequence[tuple[Task, Request]]) -> list[Words]:
    """What each request asks: equal words mean the same task, the same numbers, and the same tensors to the bit.

    Tensors are read only where everything else is equal.
    """
    words = [_words(task, request) for task, request in jobs]
    alike: dict[Words, list[int]] = defaultdict(list)
    for i, said in enumerate(words):
        alike[said].append(i)
    for same in alike.values():
        if len(same) > 1:
            for i in same:
                words[i] += _digests(jobs[i][1])
    return words


def _words(task: Task, request: Request) -> Words:
    return (_NAMES[type(request)], task.name, *[_word(getattr(request, name)) for name in _FIELDS[type(request)]])


_FIELDS = {kind: tuple(f.name for f in fields(kind)) for kind in (Train, Gradient, Evaluate)}
_NAMES = {kind: kind.__name__.encode() for kind in _FIELDS}


def _word(value: Any) -> bytes:
    """A field of a request; of a tensor the shape."""
    if value is None:
        return b""
    if isinstance(value, torch.Tensor):
        return repr(value.shape).encode()
    if isinstance(value, np.ndarray):  # [C]
        return value.dtype.char.encode() + value.tobytes()
    return _declared(value) if isinstance(value, Rule | Model) else repr(value).encode()


@cache
def _declared(value: Rule | Model) -> bytes:
    return repr(value).encode()


def _digests(request: Request) -> Words:
    """The bits of the request's tensors, each tensor as a short word."""
    values = (getattr(request, name) for name in _FIELDS[type(request)])
    tensors = [value.detach().cpu().contiguous() for value in values if isinstance(value, torch.Tensor)]
    return tuple([hashlib.sha256(tensor.numpy().data).digest() for tensor in tensors])
