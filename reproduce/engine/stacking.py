"""Turns requests into slots, one per client that trains, whichever run asked for it.

The trainer sorts slots by their number of local steps and cuts them into chunks, so that clients that finish early
leave the stack instead of being masked. The order, and with it every rounding, depends on the requests alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reproduce.data.batches import permutations
from reproduce.declare.values import Indices
from reproduce.engine.client_split import ClientSplit
from reproduce.engine.kernels.library import HERE, addresses, call, exact
from reproduce.engine.layout import Layout
from reproduce.engine.requests import Train
from reproduce.engine.rule import Rule, shared
from reproduce.models.model import Model
from reproduce.streams import Key, rng, words


class Slot:
    """Client number `row` of a request: its work and its rate.

    batches: what decides its batches; slots that share it walk through the same ones.
    """

    def __init__(self, split: ClientSplit, request: Train, row: int) -> None:
        self.split, self.request, self.row = split, request, row
        r, lr, offset = request.round, request.lr, request.offset
        self.client, self.steps = int(request.clients[row]), int(request.steps[row])
        self.round = int(r if isinstance(r, int | np.integer) else r[row])
        self.lr = float(lr[row] if isinstance(lr, np.ndarray) else lr)
        self.offset = 0 if offset is None else int(offset[row])
        self.batches = id(split), self.round, self.client, self.steps, self.offset

    def row_of(self, value: Tensor) -> Tensor:
        """This client's row of a [P] or [C, P] tensor."""
        return value if value.dim() == 1 else value[self.row]

    @property
    def key(self) -> tuple[int, int, int]:
        """The key of the client's randomness in this local run."""
        return self.split.seed, self.round, self.client


class Plans:
    """The draws for the local runs of one turn of the scheduler: batch plans, which runs share that have seed,
    round and client in common (sweep points, algorithms), and dropout streams."""

    def __init__(self) -> None:
        self._plans: dict[tuple[int, ...], Indices] = {}
        self._dropout: dict[tuple[int, int, int], int] = {}
        self._host: dict[int, Tensor] = {}

    def get(self, slot: Slot) -> Indices:
        """Sample indices [steps, B] of the slot's local run."""
        return self.all([slot])[0]

    def all(self, slots: Sequence[Slot]) -> list[Indices]:
        """The sample indices of each slot, as `get` returns them; permutations of all slots are drawn in one call."""
        missing = {slot.batches: slot for slot in slots if slot.batches not in self._plans}
        shuffled: dict[Any, Any] = {batches: slot for batches, slot in missing.items() if slot.split.shuffled}  # type: ignore[union-attr]
        self._plans.update(zip(shuffled, _shuffled(list(shuffled.values())), strict=True))
        for batches, slot in missing.items():
            if batches not in shuffled:
                self._plans[batches] = slot.split.plan(slot.client, slot.steps, slot.round, slot.offset)  # type: ignore[union-attr]
        return [self._plans[slot.batches] for slot in slots]

    def dropout(self, slots: Sequence[Slot]) -> list[int]:
        """The seeds of the slots' dropout streams, which are keyed by (seed, round, client)."""
        for key in {slot.key for slot in slots} - self._dropout.keys():
            self._dropout[key] = int(rng("dropout", *key).integers(2**62))
        return [self._dropout[slot.key] for slot in slots]

    def host(self, tensor: Tensor) -> Tensor:
        """A small tensor of a request on the host, to which it is copied once."""
        if id(tensor) not in self._host:
            self._host[id(tensor)] = tensor.cpu()
        return self._host[id(tensor)]

    def numbering(self) -> Callable[[Slot], int]:
        """A function from slots to numbers of their plans, counted in the order in which it is asked."""
        numbers: dict[tuple[int, ...], int] = {}
        return lambda slot: numbers.setdefault(slot.batches, len(numbers))

    def lengths(self, slot: Slot) -> bytes:
        """The sizes of the slot's batches, in one word."""
        return (self.get(slot) >= 0).sum(1).tobytes()


def _shuffled(slots: Sequence[Any]) -> list[Indices]:
    """The plans of slots whose splits are shuffled, as `Shuffled.plan` has them."""
    if not slots:
        return []
    batches = [slot.split.problem.batches for slot in slots]
    indices = [slot.split.indices[slot.client] for slot in slots]
    counts = [b.passes(len(of), slot.steps) for b, of, slot in zip(batches, indices, slots, strict=True)]
    drawn = permuted([("batches", *slot.key) for slot in slots], indices, counts)
    return [b.walk(passes, slot.steps) for b, passes, slot in zip(batches, drawn, slots, strict=True)]


def permuted(keys: Sequence[Key], values: Sequence[Indices], counts: Sequence[int]) -> list[Indices]:
    """For every stream keys[s], counts[s] permutations of values[s] [n] as [count, n]: the same bits as `permutations`.

    All keys have equally many parts. One call for all, because each makes threads wait for Python's lock.
    """
    code, n = exact(HERE / "shuffle.c"), np.array([len(v) for v in values])
    if code is None or n.min() < 1 or n.max() >= 2**31:
        return [permutations(*stream) for stream in zip(keys, values, counts, strict=True)]
    arrays = [np.ascontiguousarray(v, np.int64) for v in values]
    out = [np.empty((count, len(v)), dtype=np.int64) for v, count in zip(values, counts, strict=True)]
    whence, where = (addresses([v.ctypes.data for v in of]) for of in (arrays, out))
    start, place = np.stack([words(*key) for key in keys]), np.empty(n.max(), dtype=np.int32)
    call(code.permutations, start, start.shape[1], len(keys), whence, n, np.array(counts), place, where)
    return out


@dataclass
class Chunk:
    """A stack of A slots that train together, longest first."""

    slots: Sequence[Slot]
    layout: Layout
    plans: Plans

    @cached_property
    def model(self) -> Model:
        """The slots' network; that of a chunk with one slot as its seed has it."""
        return self.layout.model.of(self.slots[0].split.seed)

    @cached_property
    def rule(self) -> Rule:
        """The part that the slots' rules have in common; `mu` may differ from client to client."""
        return shared(self.slots[0].request.rule)

    @cached_property
    def steps(self) -> np.ndarray:
        return np.array([s.steps for s in self.slots])

    @property
    def full(self) -> int:
        """The declared batch size, which decides what is drawn and in which pieces sums are added."""
        return int(self.slots[0].split.problem.batches.size)  # type: ignore[union-attr]

    def active(self, k: int) -> int:
        """The number of slots that still train in step k."""
        return int((self.steps > k).sum())

    @property
    def start(self) -> Tensor:
        """The starts of the local runs, [A, P]."""
        start = self.stack("start")
        assert start is not None
        return start

    def stack(self, field: str) -> Tensor | None:
        """[A, P] of a request field ("start", "correction", "anchor", "thresholds"); None if no slot has it.

        A slot without the field gets zeros (its start, for the anchor).
        """
        values = [getattr(s.request, field) for s in self.slots]
        if values[0] is not None and values[0].dim() == 1 and all(v is values[0] for v in values):
            return values[0].expand(len(values), -1)
        if all(v is None for v in values):
            return None
        rows = []
        for slot, value in zip(self.slots, values, strict=True):
            if value is None:
                start = slot.row_of(slot.request.start)
                value = start if field == "anchor" else torch.zeros_like(start)
            rows.append(slot.row_of(value))
        return rows[0][None] if len(rows) == 1 else torch.stack(rows)  # a large model is not copied

    @cached_property
    def rates(self) -> list[float]:
        return [s.lr for s in self.slots]

    @cached_property
    def mus(self) -> list[float]:
        return [s.request.rule.mu for s in self.slots]

    def batches(self) -> np.ndarray:
        """Sample indices [A, K_max, B], -1 where a batch is short or a slot has finished."""
        plans = self.plans.all(self.slots)  # A of them, [K_a, B_a] each
        out = np.full((len(plans), int(self.steps.max()), max(p.shape[1] for p in plans)), -1, dtype=np.int64)
        for a, plan in enumerate(plans):
            out[a, : len(plan), : plan.shape[1]] = plan
        return out

    def first_counts(self) -> np.ndarray:
        """The number of gradients in each slot's first-gradient estimate [A]."""
        if self.rule.first_gradient != "pass_mean":
            return np.ones(len(self.slots), dtype=np.int64)
        return np.array([s.split.first_pass(s.client, s.steps, s.offset) for s in self.slots])

    def generators(self, device: torch.device) -> list[torch.Generator]:
        """Random generators of the dropout masks, one per slot."""
        return [torch.Generator(device).manual_seed(seed) for seed in self.plans.dropout(self.slots)]
