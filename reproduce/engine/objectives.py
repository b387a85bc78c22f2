"""Quadratics as splits: F_m(x) = 0.5 (x - e_m)' H_m (x - e_m) of all N clients as stacked tensors, d numbers each."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reproduce.engine.layout import Flat
from reproduce.engine.machine import sent
from reproduce.engine.requests import Gradient
from reproduce.problem import Quadratic
from reproduce.settings import Settings


class Objectives:
    """Minimisers e [N, d], Hessians h [N, d, d] or None, and the optimum [d] on the device."""

    def __init__(self, problem: Quadratic, settings: Settings, dtype: torch.dtype | None) -> None:
        self.problem, self.layout = problem, Flat()
        self.dtype, self.device = dtype or torch.float64, torch.device(settings.device)
        self.e = self._tensor(problem.minima())
        self.h = None if problem.hessians is None else self._tensor(problem.hessians)
        self.optimum = self._tensor(problem.optimum())
        self.checksums: dict[str, str] = {}
        self.notes: dict[str, str] = {}

    def _tensor(self, values: Any) -> Tensor:
        return torch.tensor(values, dtype=self.dtype, device=self.device)

    def gradient(self, clients: Tensor, y: Tensor) -> Tensor:
        """H_m (y - e_m), [C, d] of the clients' objectives at y [C, d]."""
        difference = y - self.e[clients]
        return difference if self.h is None else torch.einsum("cij,cj->ci", self.h[clients], difference)


class QuadraticSplit:
    """Objectives for one seed, which are the same for all; what the properties mean: `ClassificationSplit`."""

    test_indices = None

    def __init__(self, device_data: Objectives, seed: int) -> None:
        self.device_data, self.problem, self.seed = device_data, device_data.problem, seed
        self.parameters, self.clients = self.problem.dim, self.problem.clients
        self.dtype, self.device = device_data.dtype, device_data.device
        self.samples = np.ones(self.clients, dtype=np.int64)
        self.weights = np.full(self.clients, 1 / self.clients)
        self.statistics = torch.empty(0, dtype=torch.int64)
        self.blocks = self.trained = {"x": slice(0, self.parameters)}

    @cached_property
    def name(self) -> bytes:
        return repr((self.problem, self.seed)).encode()

    def initial(self, *key: int | str) -> Tensor:
        """The initial point [P], the same for every key."""
        start = self.problem.start or (0.0,) * self.problem.dim
        return torch.tensor(start, dtype=self.dtype, device=self.device)

    random = initial

    def steps(self, amounts: np.ndarray, unit: str) -> np.ndarray:
        return np.ceil(amounts).astype(np.int64)  # a pass is one step

    def first_pass(self, client: int, steps: int, offset: int) -> int:
        """Every gradient is a pass."""
        return 1

    def processed(self, clients: np.ndarray, steps: np.ndarray) -> float:
        """A step counts as a sample."""
        return float(steps.sum())

    def gradients(self, request: Gradient) -> Tensor:
        """[C, P]: the clients' gradients at one point."""
        clients = sent(np.asarray(request.clients), self.device)
        return self.device_data.gradient(clients, request.x.expand(len(clients), -1))
