"""HeteroFL with steps of the rate, and FedRolex with another window in evaluation: choices of fiarse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from reproduce.algorithms.base import Env, Names, RoundContext, State, Tensor
from reproduce.algorithms.heterofl import HeteroFL
from reproduce.declare.values import Count
from reproduce.engine.requests import Evaluate


@dataclass(frozen=True)
class SteppedHeteroFL(HeteroFL):
    """The rate falls to a tenth at each round of `falls`, as in HeteroFL's published code."""

    names: ClassVar[Names] = {}  # of no benchmark, like the next

    falls: tuple[Count, ...] = ()

    def learning_rate(self, env: Env, now: RoundContext) -> float:
        return super().learning_rate(env, now) / 10 ** sum(now.round >= fall for fall in self.falls)


@dataclass(frozen=True)
class FirstWindow(HeteroFL):
    """Evaluated is the window of the first round, whichever was trained last."""

    names: ClassVar[Names] = {}

    def extract(self, env: Env, state: State, sizes: Sequence[float]) -> list[Tensor | Evaluate]:
        return super().extract(env, {**state, "round": 0}, sizes)
