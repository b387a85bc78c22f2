"""`python -m benchmarks.graphs` keeps the graphs of the declared networks, after one of `SOURCES` was changed.

Planning then needs no torch (`reproduce/models/model.py`).
"""

from __future__ import annotations

from typing import Any

from reproduce.declare.experiment import SCALES
from reproduce.models.model import KEPT, keep, translated
from reproduce.runs import plan

SOURCES = ("reproduce.models.small", "reproduce.models.library")
"""Modules whose graphs are kept. `model.sources` is a digest of them; a graph of another would outlive its module."""


def networks() -> dict[str, Any]:
    """The declared networks of all scales, by the words of their records."""
    problems: list[Any] = [e.problem for scale in SCALES for j in plan.jobs(scale) for e in j.experiments]
    return {repr(part): part for problem in problems if problem.model for part in problem.model.parts}


if __name__ == "__main__":
    keep({said: translated(part) for said, part in networks().items() if part.make.partition(":")[0] in SOURCES})
    print(f"written: {KEPT}")
