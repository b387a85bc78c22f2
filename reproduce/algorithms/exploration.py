"""Which weights submodels reach: the metrics of FIARSE's Figs. 7 and 8, from bit sets (App. D.4, without definitions).

M_g(t) is the set of coordinates of the submodel of size g of the model before round t, out of D.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint8]


def packed(mask: Any) -> Bits:
    """A boolean tensor [D] in D / 8 bytes."""
    return np.packbits(mask.cpu().numpy())


def count(bits: Bits) -> int:
    """How many coordinates are in a set."""
    return int(np.bitwise_count(bits).sum())


def step(
    memory: dict[str, Any], masks: Sequence[Bits], coordinates: int, present: Sequence[int]
) -> Iterator[tuple[str, int | None, float]]:
    """The metrics of a round as (metric, position of the size or None, value).

    memory: of the rounds before, empty at first; brought up to this one. masks: M_g(t), the largest size first;
    coordinates: D; present: how many participants have each size.

    explored    |union of M_g up to t| / D
    replaced    1 - |M_g(t) and M_g(t - 1)| / |M_g(t)|, from the second round on
    held        |M_g(t)|;  holders: participants of size g or more
    unnested    coordinates of M_g(t) that the set of the next larger size does not have
    untrained   1 - |union of the sets of all participants up to t| / D
    """
    before, union = memory.get("masks"), memory.get("explored", masks)
    explored = [bits | old for bits, old in zip(masks, union, strict=True)]
    trained = memory.get("trained", np.zeros_like(masks[0]))
    for i, bits in enumerate(masks):
        yield "explored", i, count(explored[i]) / coordinates
        yield "held", i, count(bits)
        yield "holders", i, sum(present[: i + 1])
        if before:
            yield "replaced", i, 1 - count(bits & before[i]) / max(count(bits), 1)
        if i:
            yield "unnested", i, count(bits & ~masks[i - 1])
        if present[i]:
            trained = trained | bits
    yield "untrained", None, 1 - count(trained) / coordinates
    memory.update(masks=list(masks), explored=explored, trained=trained)
