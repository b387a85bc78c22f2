"""A problem made ready for the device: data as tensors, clients as index arrays, one `Task` per (problem, seed).

Tasks of different seeds share one `Arena` (data tensors, model, evaluation views), which is what lets the cohort train
clients of many runs in one stack.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reproduce.engine.layout import Layout
from reproduce.problems import Classification, Quadratic
from reproduce.problems.batches import Indices
from reproduce.settings import Settings
from reproduce.streams import rng


class Arena:
    """Data of a classification problem on the device: x [n, ...] and y [n] of the training and of the test set."""

    def __init__(self, problem: Classification, settings: Settings, dtype: torch.dtype) -> None:
        from reproduce.problems.data import load

        data = problem.data.load() if hasattr(problem.data, "load") else load(problem.data, settings)
        self.problem = problem
        self.layout = Layout(problem.model)
        self.device = torch.device(settings.device)
        self.sha256 = data.sha256
        self.source = data.source
        self.classes = data.n_classes
        train = _subset(data.train_y, problem.train_samples, problem, "train")
        test = _subset(data.test_y, problem.test_samples, problem, "test")
        self.train_x = self._features(data.train_x[train], dtype)
        self.test_x = self._features(data.test_x[test], dtype)
        self.labels = np.asarray(data.train_y[train], dtype=np.int64)
        self.test_labels = np.asarray(data.test_y[test], dtype=np.int64)
        self.train_y = torch.from_numpy(self.labels).to(self.device)
        self.test_y = torch.from_numpy(self.test_labels).to(self.device)
        self.padded: Tensor | None = None  # the compiled kernel's copy of train_x

    @property
    def dtype(self) -> torch.dtype:
        return self.train_x.dtype

    @cached_property
    def flat_x(self) -> Tensor:
        """Training samples as vectors [n, D]."""
        return self.train_x.flatten(1)

    @cached_property
    def onehot(self) -> Tensor:
        """Training labels as unit vectors [n, classes]."""
        return torch.nn.functional.one_hot(self.train_y, self.classes).to(self.dtype)

    def _features(self, x: Any, dtype: torch.dtype) -> Tensor:
        """Images [n, H, W, ch] uint8 -> normalised [n, ch, H, W]; features as they are."""
        if x.dtype != np.uint8:
            return torch.from_numpy(np.ascontiguousarray(x)).to(self.device, dtype)
        images = torch.from_numpy(np.ascontiguousarray(x)).to(self.device).permute(0, 3, 1, 2).to(dtype) / 255
        if self.problem.mean:
            pair = self.problem.mean, self.problem.std
            mean, std = (torch.tensor(v, dtype=dtype, device=self.device).view(1, -1, 1, 1) for v in pair)
            images = (images - mean) / std
        if self.problem.pad:
            images = torch.nn.functional.pad(images, (self.problem.pad,) * 4)
        return images.contiguous()


def _subset(labels: np.ndarray, count: int, problem: Classification, part: str) -> np.ndarray:
    """Ascending indices of the fixed random subset, or all of them."""
    everything = np.arange(len(labels))
    if not count:
        return everything
    order = rng("subset", part, problem.subset_seed).permutation(len(labels))
    if not problem.subset_balanced:
        return np.sort(order[:count])
    classes = np.unique(labels)
    return np.sort(np.concatenate([order[labels[order] == c][: count // len(classes)] for c in classes]))


class ClassificationTask:
    """One split of an arena's data over the clients, for one seed."""

    def __init__(self, arena: Arena, problem: Classification, seed: int) -> None:
        self.arena, self.problem, self.seed = arena, problem, seed
        self.parameters = arena.layout.total
        self.dtype, self.device = arena.dtype, arena.device
        split_seed = seed if problem.partition_seed is None else problem.partition_seed
        self.indices: list[Indices] = [
            np.asarray(i, dtype=np.int64) for i in problem.partition.split(arena.labels, problem.clients, split_seed)
        ]
        self.clients = len(self.indices)
        self.samples = np.array([len(i) for i in self.indices], dtype=np.int64)
        share = self.samples if problem.weights == "size" else np.ones(self.clients)
        self.weights = share / share.sum()
        self.test_indices: list[Indices] | None = None
        if problem.test_partition:
            self.test_indices = problem.partition.split_test(
                arena.labels, arena.test_labels, problem.clients, split_seed
            )

    @cached_property
    def name(self) -> bytes:
        """Problem and seed in words, by which tasks are told apart and sorted."""
        return repr((self.problem, self.seed)).encode()

    def initial(self, *key: int | str) -> Tensor:
        """The random initial model [P]; with a `key` another one, of a stream of its own."""
        return self.arena.layout.initial(self.seed, *key).to(self.device, self.dtype)

    @cached_property
    def blocks(self) -> dict[str, slice]:
        """Where each parameter tensor lies in the flat vector."""
        layout = self.arena.layout
        return {
            n: slice(layout.offsets[n], layout.offsets[n] + s) for n, s in zip(layout.names, layout.sizes, strict=True)
        }

    def steps(self, amounts: np.ndarray, unit: str) -> np.ndarray:
        """Local SGD steps [N] of the clients' work `amounts` [N]."""
        batches = self.problem.batches
        pairs = zip(amounts, self.samples, strict=True)
        return np.array([batches.steps(int(a), unit, int(n)) for a, n in pairs], dtype=np.int64)

    def plan(self, client: int, steps: int, round: int, offset: int) -> Indices:
        """Sample indices [steps, B] into the arena's training set."""
        return self.problem.batches.plan(self.indices[client], steps, self.seed, round, client, offset)

    def first_pass(self, client: int, steps: int, offset: int) -> int:
        """How many gradients of a local run belong to its first pass over the data (`Batches.first_pass`)."""
        return self.problem.batches.first_pass(int(self.samples[client]), steps, offset)

    def view(self, name: str) -> Indices:
        """Sample indices of an evaluation view.

        "test" or "train"; "train:n" - a fixed random n of the training samples, the same for all seeds; "labels:a,b" -
        the test samples of some labels; "held:a,b" - the test samples of the labels that some clients hold. A split test
        set is read client after client, since batch statistics depend on the company of a sample.
        """
        if name.startswith("train:"):
            order = rng("subset", "train view", self.problem.subset_seed).permutation(len(self.arena.labels))
            return np.sort(order[: int(name[6:])])
        if name.startswith("labels:"):
            return np.flatnonzero(np.isin(self.arena.test_labels, [int(v) for v in name[7:].split(",")]))
        if name.startswith("held:"):
            held = np.concatenate([self.indices[int(m)] for m in name[5:].split(",")])
            return np.flatnonzero(np.isin(self.arena.test_labels, self.arena.labels[held]))
        if name == "test" and self.test_indices is not None:
            return np.concatenate(self.test_indices)
        return np.arange(len(self.arena.labels if name == "train" else self.arena.test_labels))

    def labels(self, name: str) -> Indices:
        """Labels of the samples of an evaluation view."""
        return (self.arena.labels if name.startswith("train") else self.arena.test_labels)[self.view(name)]


class QuadraticTask:
    """The quadratics of all clients as stacked tensors: minimisers e [N, d], Hessians h [N, d, d] or None."""

    def __init__(self, problem: Quadratic, seed: int, settings: Settings, dtype: torch.dtype) -> None:
        self.problem, self.seed = problem, seed
        self.parameters, self.clients = problem.dim, problem.clients
        self.dtype, self.device = dtype, torch.device(settings.device)
        self.samples = np.ones(self.clients, dtype=np.int64)
        self.weights = np.full(self.clients, 1 / self.clients)
        self.e = torch.tensor(problem.minima(), dtype=dtype, device=self.device)
        self.h = None if problem.hessians is None else torch.tensor(problem.hessians, dtype=dtype, device=self.device)
        self.optimum = torch.tensor(problem.optimum(), dtype=dtype, device=self.device)

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

    @property
    def blocks(self) -> dict[str, slice]:
        return {"x": slice(0, self.parameters)}

    def steps(self, amounts: np.ndarray, unit: str) -> np.ndarray:
        return np.asarray(amounts, dtype=np.int64)

    def gradient(self, clients: Tensor, y: Tensor) -> Tensor:
        """Gradients [C, d] of the clients' objectives at y [C, d]."""
        difference = y - self.e[clients]
        if self.h is None:
            return difference
        return torch.einsum("cij,cj->ci", self.h[clients], difference)


Task = ClassificationTask | QuadraticTask


@dataclass
class Env:
    """A run's world, as far as algorithms may know it."""

    task: Task
    system: Any
    seed: int

    @cached_property
    def clients(self) -> int:
        return self.task.clients

    @cached_property
    def weights(self) -> np.ndarray:
        return self.task.weights

    @cached_property
    def samples(self) -> np.ndarray:
        return self.task.samples

    @property
    def parameters(self) -> int:
        return self.task.parameters

    @property
    def blocks(self) -> dict[str, slice]:
        return self.task.blocks

    def initial(self, *key: int | str) -> Tensor:
        return self.task.initial(*key)

    def tensor(self, values: Any) -> Tensor:
        return torch.as_tensor(values, dtype=self.task.dtype, device=self.task.device)

    def stack(self, rows: list[Tensor]) -> Tensor:
        """Models [P] as rows [C, P]."""
        return torch.stack(rows)

    def processed(self, clients: np.ndarray, steps: np.ndarray) -> float:
        """Samples that the clients go through in `steps` [C] batches: whole passes count n_m, the rest full batches."""
        if isinstance(self.task, QuadraticTask):
            return float(steps.sum())
        size, samples = self.task.problem.batches.size, self.samples[clients]
        passes = -(-samples // size)
        return float((steps // passes * samples + steps % passes * np.minimum(size, samples)).sum())

    def zeros(self, *shape: int) -> Tensor:
        return torch.zeros(shape, dtype=self.task.dtype, device=self.task.device)


class Tasks:
    """Builds tasks on demand and lets equal data be loaded once."""

    def __init__(self, settings: Settings, dtype: torch.dtype | None = None) -> None:
        self.settings = settings
        self.dtype = dtype
        self._arenas: dict[Any, Arena] = {}
        self._tasks: dict[Any, Task] = {}

    def get(self, problem: Any, seed: int) -> Task:
        """The task of `problem` for run seed `seed`; raises MissingData or UserError if its data cannot be read."""
        key = (problem, seed)
        if key not in self._tasks:
            self._tasks[key] = self._build(problem, seed)
        return self._tasks[key]

    def _build(self, problem: Any, seed: int) -> Task:
        if isinstance(problem, Quadratic):
            return QuadraticTask(problem, seed, self.settings, self.dtype or torch.float64)
        arena_key = tuple(
            getattr(problem, f)
            for f in (
                "data", "model", "mean", "std", "pad", "train_samples", "test_samples", "subset_seed",
                "subset_balanced", "batches", "augment", "evaluation_batch",
            )
        )  # fmt: skip
        if arena_key not in self._arenas:
            self._arenas[arena_key] = Arena(problem, self.settings, self.dtype or torch.float32)
        return ClassificationTask(self._arenas[arena_key], problem, seed)

    @property
    def provenance(self) -> dict[str, str]:
        """data set -> SHA-256 of its files, for the results' provenance."""
        return {str(a.problem.data): a.sha256 for a in self._arenas.values()}
