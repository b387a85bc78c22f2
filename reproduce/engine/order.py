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
import torch
from torch import Tensor

from reproduce.engine.client_split import ClientSplit
from reproduce.engine.machine import sent
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
    read = [i for same in alike.values() if len(same) > 1 for i in same]
    for i, digests in zip(read, _digests([jobs[i][1] for i in read]), strict=True):
        keys[i] += digests
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


def _digests(requests: Sequence[Request]) -> list[Contents]:
    """The bits of the requests' tensors, each tensor as a short digest; a GPU is waited for once."""
    values = [[getattr(request, name) for name in _FIELDS[type(request)]] for request in requests]
    tensors = [[value.detach() for value in own if hasattr(value, "detach")] for own in values]
    there = [_fingerprint(tensor) for own in tensors for tensor in own if tensor.is_cuda]
    read = iter(torch.stack(there).cpu().numpy() if there else ())

    def digest(tensor: Tensor) -> bytes:
        if tensor.is_cuda:
            return next(read).tobytes()  # type: ignore[no-any-return]
        return hashlib.sha256(tensor.contiguous().numpy().data).digest()

    return [tuple([digest(tensor) for tensor in own]) for own in tensors]


PART, ODD = 1 << 22, 0x9E3779B97F4A7C15 - 2**64


@cache
def _factors(device: torch.device) -> Tensor:
    return sent(np.random.default_rng(0).integers(-(2**63), 2**63, (2, PART)), device)


def _fingerprint(tensor: Tensor) -> Tensor:
    """128 bits [2] that follow from the bits of a tensor on a GPU, which computes them: sums of products with fixed
    random numbers, modulo 2^64, so that no rounding touches them."""
    total = torch.zeros(2, dtype=torch.int64, device=tensor.device)
    for part in tensor.contiguous().flatten().view(torch.int32).split(PART):
        total = total * ODD + (_factors(tensor.device)[:, : len(part)] * part).sum(1)
    return total
