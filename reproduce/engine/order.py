"""An order of requests that follows from their contents alone.

Sums and stacks round differently in another order. So requests are not computed in the order in which runs happened to
ask, which a resumption may change.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np

from reproduce.engine.client_split import ClientSplit
from reproduce.engine.requests import Evaluate, Gradient, Request, Train
from reproduce.engine.rule import Rule
from reproduce.models.model import Model

Contents = tuple[bytes, ...]
"""Kind of request, split, its fields in their order, and, where that is not enough, digests of its tensors."""


def ordered(jobs: Sequence[tuple[ClientSplit, Request]]) -> list[int]:
    """The positions of the requests, sorted by their contents; only equal ones stay in the order in which they come."""
    keys = contents(jobs)
    return sorted(range(len(jobs)), key=keys.__getitem__)


def contents(jobs: Sequence[tuple[ClientSplit, Request]]) -> list[Contents]:
    """The contents of each request: equal contents mean the same split, the same numbers, and the same tensors to the
    bit.

    Tensors are read only where everything else is equal.
    """
    keys: list[Contents] = [
        (_NAMES[type(r)], split.name, *[_field(getattr(r, name)) for name in _FIELDS[type(r)]]) for split, r in jobs
    ]
    alike: dict[Contents, list[int]] = defaultdict(list)
    for i, content in enumerate(keys):
        alike[content].append(i)
    for same in alike.values():
        if len(same) > 1:
            for i in same:
                keys[i] += _digests(jobs[i][1])
    return keys


_FIELDS = {kind: tuple(f.name for f in fields(kind)) for kind in (Train, Gradient, Evaluate)}
_NAMES = {kind: kind.__name__.encode() for kind in _FIELDS}


def _field(value: Any) -> bytes:
    """A field of a request; of a tensor the shape."""
    if value is None:
        return b""
    if hasattr(value, "detach"):
        return repr(value.shape).encode()
    if isinstance(value, np.ndarray):  # [C]
        return value.dtype.char.encode() + value.tobytes()
    return _declared(value) if isinstance(value, Rule | Model) else repr(value).encode()


@cache
def _declared(value: Rule | Model) -> bytes:
    return repr(value).encode()


def _digests(request: Request) -> Contents:
    """The bits of the request's tensors, each tensor as a short digest."""
    values = (getattr(request, name) for name in _FIELDS[type(request)])
    tensors = [value.detach().cpu().contiguous() for value in values if hasattr(value, "detach")]
    return tuple([hashlib.sha256(tensor.numpy().data).digest() for tensor in tensors])
