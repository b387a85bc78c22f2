"""The mini-batches of a client's local training.

Every class plans the whole local run at once: `plan(...)` gives sample indices [K, B] (int64), padded with -1 where a
batch is short; without replacement B is at most the number of samples. The plan depends on (seed, round, client) alone,
never on who else is being trained. `offset` counts the batches that the client has done in earlier rounds; only
`Cyclic` uses it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reproduce.declare.values import Count, Indices, calling
from reproduce.errors import UserError
from reproduce.streams import Key, rng


def permutations(key: Key, values: Indices, count: int) -> Indices:
    """`count` permutations of `values` from the stream `key`, [count, n]."""
    stream = rng(*key)
    return np.array([stream.permutation(values) for _ in range(count)], dtype=np.int64).reshape(count, len(values))


@dataclass(frozen=True)
class Batches:
    """Common part: batch size, and the translation of epochs into steps."""

    size: Count

    def per_pass(self, samples: int) -> int:
        """Batches in one pass over the client's data (the short last batch is kept)."""
        return math.ceil(samples / self.size)

    def least(self, samples: int) -> int:
        """Samples in the smallest batch of a client with `samples` samples: the short one at the end of a pass."""
        return (samples - 1) % self.size + 1

    def steps(self, amount: float, unit: str, samples: int) -> int:
        """Local SGD steps of `amount` steps or epochs on a client with `samples` samples; none without any. A part of
        an epoch has the first batches of a pass: 0.7 epochs of ten batches are 7, of nine 7 too."""
        each = self.per_pass(samples) if unit == "epochs" else samples > 0
        return math.ceil(round(amount * each, 9))  # 0.7 * 10 is a little more than 7

    def plan(self, indices: Indices, steps: int, seed: int, round: int, client: int, offset: int) -> Indices:
        """Sample indices [steps, B] of one local run; -1 pads short batches."""
        raise NotImplementedError

    def first_pass(self, samples: int, steps: int, offset: int) -> int:
        """The number of gradients in the `pass_mean` first-gradient estimate (fedagrac): the first gradient alone,
        unless the data stream ends within the round after step k >= 1; then all gradients up to that point.
        """
        passes = self.per_pass(samples)
        return passes if passes < steps else 1

    def _cut(self, order: Indices) -> Indices:
        """A pass over `order` as rows [.., B], the last one padded."""
        rows, width = self.per_pass(len(order)), min(self.size, len(order))
        padded = np.full(rows * width, -1, dtype=np.int64)
        padded[: len(order)] = order
        return padded.reshape(rows, width)


@dataclass(frozen=True)
class Shuffled(Batches):
    """A new permutation for every pass, fresh in every round; the short last batch is kept (fedacs)."""

    def plan(self, indices: Indices, steps: int, seed: int, round: int, client: int, offset: int) -> Indices:
        passes = permutations(("batches", seed, round, client), indices, self.passes(len(indices), steps))
        return self.walk(passes, steps)

    def passes(self, samples: int, steps: int) -> int:
        """Passes that `steps` batches begin."""
        return math.ceil(steps / self.per_pass(samples))

    def walk(self, passes: Indices, steps: int) -> Indices:
        """The first `steps` batches [steps, B] of passes [passes, n]."""
        width = min(self.size, passes.shape[1])
        if short := -passes.shape[1] % width:
            passes = np.concatenate([passes, np.full((len(passes), short), -1)], axis=1)
        return passes.reshape(-1, width)[:steps]


@dataclass(frozen=True)
class Walk(Shuffled):
    """One pass over a fresh permutation that stops after the given steps and never wraps around (dynamic_init)."""

    def steps(self, amount: float, unit: str, samples: int) -> int:
        return min(super().steps(amount, unit, samples), self.per_pass(samples))


@dataclass(frozen=True)
class Cyclic(Batches):
    """One fixed order per client, never reshuffled, its position kept across rounds (fedagrac)."""

    def plan(self, indices: Indices, steps: int, seed: int, round: int, client: int, offset: int) -> Indices:
        rows = self._cut(indices)
        return rows[(offset + np.arange(steps)) % len(rows)]

    def first_pass(self, samples: int, steps: int, offset: int) -> int:
        passes = self.per_pass(samples)
        if offset and offset % passes == 0:  # the stream ended with the previous round: the estimate is never replaced
            return 1
        left = passes - offset % passes
        return left if left < steps else 1


@dataclass(frozen=True)
class Fixed(Batches):
    """The same order in every pass and round, each round from the start (fiarse)."""

    def plan(self, indices: Indices, steps: int, seed: int, round: int, client: int, offset: int) -> Indices:
        rows = self._cut(indices)
        return rows[np.arange(steps) % len(rows)]


@dataclass(frozen=True)
class WithReplacement(Batches):
    """Every step draws its batch uniformly with replacement (defedavg); `round` is the job index."""

    def least(self, samples: int) -> int:
        return self.size

    def plan(self, indices: Indices, steps: int, seed: int, round: int, client: int, offset: int) -> Indices:
        stream = rng("batches", seed, round, client)
        return indices[stream.integers(0, len(indices), size=(steps, self.size))]


def planned(batches: Batches, indices: Indices, steps: int, seed: int, round: int, client: int, offset: int) -> Indices:
    """The plan of batches that are not of this package; UserError if it names a sample that is not the client's, or
    has another form than `Batches.plan` says."""
    what = f"the batches {type(batches).__name__}"
    indices = indices.view()
    indices.flags.writeable = False
    with calling(what, "batches", seed, round, client):
        plan = np.asarray(batches.plan(indices, steps, seed, round, client, offset))
    if plan.dtype.kind not in "iu" or plan.shape != (steps, batches.size):
        raise UserError(
            f"{what} plan {plan.dtype} {plan.shape}: they are whole numbers of shape ({steps}, {batches.size})"
        )
    taken = plan >= 0
    if not taken[:, 0].all() or (taken[:, 1:] > taken[:, :-1]).any():
        raise UserError(f"{what} plan a step without a sample, or -1 before its last one, for client {client}")
    if not np.isin(plan[taken], indices).all() or (plan < -1).any():
        raise UserError(f"{what} plan samples that are not those of client {client}")
    return plan.astype(np.int64)
