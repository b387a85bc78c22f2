"""What is computed by several threads: how work is cut for them, and what of the processor it takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

Spread = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""Maps a function over threads, as `map` does over a list."""

PARTS, LEAST = 8, 5
"""Most parts that light work is cut into, and fewest items of a part: handing one over costs as much as some items."""


def parts(n: int) -> list[slice]:
    """The parts of `n` items; how many threads there are does not matter."""
    count = max(1, min(PARTS, n // LEAST))
    return [slice(n * i // count, n * (i + 1) // count) for i in range(count)]


def clocked(work: Callable[[], Any]) -> tuple[Any, float]:
    """What `work` gives, and the processor time of the thread that does it, in seconds."""
    before = time.thread_time()
    return work(), time.thread_time() - before
