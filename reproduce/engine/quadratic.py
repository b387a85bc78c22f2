"""Quadratics: the objectives of all clients as stacked tensors, and their local loop, elementwise on [C, d]."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reproduce.engine.layout import Flat
from reproduce.engine.local import Gradients, Rows, Stepper
from reproduce.engine.requests import PLAIN, Evaluate, Gradient
from reproduce.engine.rule import Rule
from reproduce.engine.stacking import Chunk
from reproduce.engine.strategies import Demand
from reproduce.problem import Quadratic
from reproduce.settings import Settings


class Objectives:
    """Minimisers e [N, d], Hessians h [N, d, d] or None, and the optimum [d] on the device."""

    def __init__(self, problem: Quadratic, settings: Settings, dtype: torch.dtype | None) -> None:
        self.problem = problem
        self.dtype, self.device = dtype or torch.float64, torch.device(settings.device)
        self.e = self._tensor(problem.minima())
        self.h = None if problem.hessians is None else self._tensor(problem.hessians)
        self.optimum = self._tensor(problem.optimum())
        self.checksums: dict[str, str] = {}
        self.notes: dict[str, str] = {}

    def _tensor(self, values: Any) -> Tensor:
        return torch.tensor(values, dtype=self.dtype, device=self.device)

    def task(self, problem: Quadratic, seed: int) -> QuadraticTask:
        """The same objectives for every seed."""
        return QuadraticTask(self, seed)

    def demand(self, model: Any = None, rule: Rule = PLAIN, terms: frozenset[str] = frozenset()) -> Demand:
        """What the strategy of a request is chosen by."""
        return Demand(None, rule, terms, device=self.device.type)

    def layout_of(self, model: None) -> Flat:
        return Flat()

    def gradient(self, clients: Tensor, y: Tensor) -> Tensor:
        """Gradients [C, d] of the clients' objectives at y [C, d]."""
        difference = y - self.e[clients]
        if self.h is None:
            return difference
        return torch.einsum("cij,cj->ci", self.h[clients], difference)


class QuadraticTask:
    """Objectives for one seed."""

    test_indices = None

    def __init__(self, arena: Objectives, seed: int) -> None:
        self.arena, self.problem, self.seed = arena, arena.problem, seed
        self.parameters, self.clients = self.problem.dim, self.problem.clients
        self.dtype, self.device = arena.dtype, arena.device
        self.samples = np.ones(self.clients, dtype=np.int64)
        self.weights = np.full(self.clients, 1 / self.clients)
        self.statistics = torch.empty(0, dtype=torch.int64)

    @cached_property
    def name(self) -> bytes:
        """Problem and seed in words, by which tasks are told apart and sorted."""
        return repr((self.problem, self.seed)).encode()

    def first_pass(self, client: int, steps: int, offset: int) -> int:
        """How many gradients of a local run belong to its first pass over the data: each one is a pass."""
        return 1

    def initial(self, *key: int | str) -> Tensor:
        """The initial point [P], the same for every key."""
        start = self.problem.start or (0.0,) * self.problem.dim
        return torch.tensor(start, dtype=self.dtype, device=self.device)

    random = initial

    @property
    def blocks(self) -> dict[str, slice]:
        return {"x": slice(0, self.parameters)}

    @property
    def trained(self) -> dict[str, slice]:
        return self.blocks

    def steps(self, amounts: np.ndarray, unit: str) -> np.ndarray:
        return np.asarray(amounts, dtype=np.int64)

    def processed(self, clients: np.ndarray, steps: np.ndarray) -> float:
        """A step counts as a sample."""
        return float(steps.sum())

    def gradients(self, request: Gradient) -> Tensor:
        """[C, P]: the clients' gradients at one point."""
        clients = torch.as_tensor(np.asarray(request.clients))
        return self.arena.gradient(clients, request.x.expand(len(clients), -1))

    def company(self, request: Evaluate) -> Hashable:
        """Evaluations with equal words are answered together."""
        return ("quadratic", self.problem)

    def evaluate(
        self, x: Tensor, request: Evaluate, spread: Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
    ) -> tuple[dict[str, np.ndarray], None]:
        """The distance of each of the models x [M, P] to the optimum, [M]."""
        distance = (x - self.arena.optimum).norm(dim=1)
        return {"distance": distance.cpu().numpy().astype(float)}, None


def quadratic_run(chunk: Chunk, arena: Objectives) -> Rows:
    """Deterministic full gradients, all clients of all runs at once."""
    start = chunk.stack("start")
    assert start is not None
    y = [start.clone()]
    stepper, gradients = Stepper(chunk, y), Gradients(chunk, y)
    clients = torch.tensor([s.client for s in chunk.slots], device=arena.device)
    for k in range(int(chunk.steps.max())):
        a = chunk.active(k)
        grads = [arena.gradient(clients[:a], y[0][:a])]
        gradients.add(k, grads)
        stepper.step(k, y, grads)
    mean, first = gradients.rows(chunk)
    return Rows(y[0] - start, mean, first)
