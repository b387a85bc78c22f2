"""A problem made ready for the device: data as tensors, clients as index arrays, one `Task` per (problem, seed).

Tasks of different seeds share one `Arena` (data tensors, model, evaluation views), which is what lets the cohort train
clients of many runs in one stack.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reproduce.data.batches import Indices, planned
from reproduce.data.bytepairs import BytePairs
from reproduce.data.checks import features, summed
from reproduce.data.tokens import pieces
from reproduce.declare.values import foreign
from reproduce.engine import compiled
from reproduce.engine.evaluate import Spread, loss_and_accuracy
from reproduce.engine.gradient import mean_gradient
from reproduce.engine.layout import Layout, layout_of
from reproduce.engine.library import available, level
from reproduce.engine.quadratic import Objectives, QuadraticTask
from reproduce.engine.requests import PLAIN, Evaluate, Gradient
from reproduce.engine.rule import Rule
from reproduce.engine.strategies import Demand
from reproduce.engine.weights import stored
from reproduce.errors import UserError
from reproduce.models.model import Model
from reproduce.partitions.split import chosen, loaded, parts_of, seed_of
from reproduce.problem import Classification, Quadratic
from reproduce.settings import Settings
from reproduce.streams import rng


class Arena:
    """Data of a classification problem on the device: x [n, ...] and y [n] of the training and of the test set."""

    def __init__(self, problem: Classification, settings: Settings, dtype: torch.dtype | None) -> None:
        data = loaded(problem, settings)
        if data.train_x.dtype != np.uint8 and (problem.mean or problem.pad):
            raise UserError(
                f"mean, std and pad are for uint8 images, and those of {data.name} are {data.train_x.dtype}"
            )
        self.problem = problem
        self.layout = Layout(problem.model)
        self.device, self.dtype = torch.device(settings.device), dtype or torch.float32
        self.stored, checksums = stored(self.layout, settings)
        self.checksums = {str(problem.data): data.sha256} | checksums
        notes = [getattr(data, "note", "")]
        if problem.tokenizer != "hashed":
            if not (data.train_text and data.test_text):
                raise UserError(f"{data.name} has no texts to cut into tokens: load train_text and test_text")
            texts = data.train_text, data.test_text
            cut = problem.tokenizer.cut if isinstance(problem.tokenizer, BytePairs) else pieces
            train_x, test_x, self.checksums["tokenizer"], note = cut(*texts, settings.data)
            for name, x in (("train_x", train_x), ("test_x", test_x)):
                try:
                    features(name, x, problem.sample, floats=False)
                except ValueError as error:
                    raise UserError(f"the tokens of {data.name}: {error}") from error
            data, notes = replace(data, train_x=train_x, test_x=test_x), [*notes, note]
        self.notes = {str(problem.data): said} if (said := "; ".join(filter(None, notes))) else {}
        self.classes = data.n_classes
        train, test = chosen(problem, data)
        self.train_x = self._features(data.train_x[train])
        self.test_x = self._features(data.test_x[test])
        self.labels = np.asarray(data.train_y[train], dtype=np.int64)
        self.test_labels = np.asarray(data.test_y[test], dtype=np.int64)
        self.train_y = torch.from_numpy(self.labels).to(self.device)
        self.test_y = torch.from_numpy(self.test_labels).to(self.device)
        self.labels.flags.writeable = self.test_labels.flags.writeable = False  # partitions are handed them
        self.splits: dict[Any, dict[int, list[Indices]]] = {}  # of users' partitions: what the first two seeds give
        self._known: dict[int, tuple[Tensor, int]] = {}
        self.padded: Tensor | None = None  # the compiled kernel's copy of train_x

    def labels_below(self, classes: int) -> Tensor:
        """Labels of the training set for compiled code, which writes where they say; UserError if one is no class.

        Looked at once, and again where they were changed.
        """
        y = self.train_y
        if (known := self._known.get(classes)) is None or known[0] is not y or known[1] != y._version:
            if y.dtype != torch.int64 or not y.is_contiguous() or not 0 <= int(y.min()) <= int(y.max()) < classes:
                raise UserError(
                    f"{self.problem.data} has labels that are not 0 .. {classes - 1}, the classes of the model"
                )
            self._known[classes] = y, y._version
        return y

    def task(self, problem: Classification, seed: int) -> ClassificationTask:
        """The arena's data split for one seed."""
        return ClassificationTask(self, problem, seed)

    def demand(self, model: Any, rule: Rule = PLAIN, terms: frozenset[str] = frozenset()) -> Demand:
        """What the strategy is chosen by that trains `model` on this data; without a rule, that evaluates it."""
        sample, cpu, here = self.problem.sample.shape, self.device.type == "cpu", level()
        return Demand(
            model,
            rule,
            terms,
            batch=self.problem.batches.size,
            sample=sample,
            device=self.device.type,
            memory=0 if cpu else torch.cuda.get_device_properties(self.device).total_memory,
            itemsize=self.dtype.itemsize,
            vector=here.width if cpu and here and available(self.dtype) else 0,
            chain=cpu and compiled.program(model, sample, self.dtype) is not None,
        )

    def layout_of(self, model: Model) -> Layout:
        return layout_of(model)

    @cached_property
    def flat_x(self) -> Tensor:
        """Training samples as vectors [n, D]."""
        return self.train_x.flatten(1)

    @cached_property
    def onehot(self) -> Tensor:
        """Training labels as unit vectors [n, classes]."""
        return torch.nn.functional.one_hot(self.train_y, self.classes).to(self.dtype)

    def _features(self, x: Any) -> Tensor:
        """Images [n, H, W, ch] uint8 -> normalised [n, ch, H, W]; features and token ids as they are."""
        dtype = self.dtype
        if x.dtype != np.uint8:
            kind = torch.int64 if self.problem.sample.dtype == "int64" else dtype
            return torch.from_numpy(np.ascontiguousarray(x)).to(self.device, kind)
        images = torch.from_numpy(np.ascontiguousarray(x)).to(self.device).permute(0, 3, 1, 2).to(dtype) / 255
        if self.problem.mean:
            pair = self.problem.mean, self.problem.std
            mean, std = (torch.tensor(v, dtype=dtype, device=self.device).view(1, -1, 1, 1) for v in pair)
            images = (images - mean) / std
        if self.problem.pad:
            images = torch.nn.functional.pad(images, (self.problem.pad,) * 4)
        return images.contiguous()


def _parts(arena: Arena, problem: Classification, seed: int) -> list[Indices]:
    """The clients' samples, of the seed of the split; UserError for a partition that does not fit.

    A line on stderr says if a user's own gives the same to two seeds and has no `data_seed`.
    """
    partition, parts = problem.partition, parts_of(problem, seed, arena.labels)
    if foreign(partition):
        # What another process splits otherwise is not resumed.
        arena.checksums[f"{partition} of {problem.clients} clients, seed {seed}"] = summed(parts)
        known = arena.splits.setdefault((partition, problem.clients), {})
        if len(known) < 2 and known.setdefault(seed, parts) is parts and len(known) == 2:
            (first, before), _ = known.items()
            if getattr(partition, "data_seed", None) is None and all(map(np.array_equal, parts, before)):
                said = f"the partition {type(partition).__name__} is the same for the seeds {first} and {seed}"
                print(f"{said}: use its `seed`, or declare a `data_seed`", file=sys.stderr)
    return parts


class ClassificationTask:
    """One split of an arena's data over the clients, for one seed."""

    def __init__(self, arena: Arena, problem: Classification, seed: int) -> None:
        self.arena, self.problem, self.seed = arena, problem, seed
        self.parameters = arena.layout.total
        self.dtype, self.device = arena.dtype, arena.device
        self.own_batches = foreign(problem.batches)
        split_seed = seed_of(problem, seed)
        self.indices = _parts(arena, problem, split_seed)
        self.clients = len(self.indices)
        self.samples = np.array([len(i) for i in self.indices], dtype=np.int64)
        if problem.weights == "uniform" and not self.samples.all():
            raise UserError(
                f"client {self.samples.argmin()} has no samples and a share of the model: use weights='size'"
            )
        share = self.samples if problem.weights == "size" else np.ones(self.clients)
        self.weights = share / share.sum()
        self.test_indices: list[Indices] | None = None
        if problem.test_partition:
            self.test_indices = parts_of(problem, split_seed, arena.labels, arena.test_labels)
        self._check_company()

    @cached_property
    def _lonely(self) -> str:
        """The layer that no batch of one sample can go through, "" if there is none (`Model.lonely`)."""
        model = self.problem.model
        return model.lonely(self.problem.sample.shape) if model.batch_statistics else ""

    def _check_company(self) -> None:
        """UserError if a client has a batch of one sample that the network cannot be trained on."""
        for client, samples in enumerate(self.samples.tolist()) if self._lonely else ():
            if samples and self.problem.batches.least(samples) == 1:
                raise self._alone(client)

    def _alone(self, client: int) -> UserError:
        return UserError(
            f"client {client} has {self.samples[client]} samples, and {self.problem.batches} leave one of them alone "
            f"in a batch, of which {self._lonely} of the network has a single number and no variance: use batches of "
            "another size or another split"
        )

    def _evaluated(self, where: Indices) -> Indices:
        """`where` itself; UserError if an evaluation batch has one sample and the network needs more (static ones)."""
        size = self.problem.evaluation_batch
        if self._lonely and not self.problem.model.buffers and len(where) and (len(where) - 1) % size == 0:
            raise UserError(
                f"{len(where)} samples in evaluation batches of {size} leave one alone, of which {self._lonely} of the "
                "network has a single number and no variance: use another evaluation_batch"
            )
        return where

    @cached_property
    def name(self) -> bytes:
        """Problem and seed in words, by which tasks are told apart and sorted."""
        return repr((self.problem, self.seed)).encode()

    def initial(self, *key: int | str) -> Tensor:
        """The initial model [P]; with a `key` another one, whose random parts are of a stream of their own."""
        x = self.random(*key)
        for name, values in self.arena.stored.items():
            x[self.blocks[name]] = values.flatten().to(x)
        return x

    def random(self, *key: int | str) -> Tensor:
        """The same without any stored weights."""
        return self.arena.layout.initial(self.seed, *key).to(self.device, self.dtype)

    @cached_property
    def statistics(self) -> Tensor:
        """The places [B] of the running statistics in it."""
        return self.arena.layout.statistics.to(self.device)

    @cached_property
    def blocks(self) -> dict[str, slice]:
        """Where each tensor lies in the flat vector."""
        layout = self.arena.layout
        sizes = zip(layout.names, layout.sizes, strict=True)
        return {n: slice(layout.offsets[n], layout.offsets[n] + s) for n, s in sizes}

    @cached_property
    def trained(self) -> dict[str, slice]:
        """`blocks` without those that SGD leaves alone (running statistics)."""
        return {n: where for n, where in self.blocks.items() if n not in self.arena.layout.buffers}

    def steps(self, amounts: np.ndarray, unit: str) -> np.ndarray:
        """Local SGD steps [N] of the clients' work `amounts` [N]."""
        batches = self.problem.batches
        pairs = zip(amounts, self.samples, strict=True)
        return np.array([batches.steps(int(a), unit, int(n)) for a, n in pairs], dtype=np.int64)

    def plan(self, client: int, steps: int, round: int, offset: int) -> Indices:
        """Sample indices [steps, B] into the arena's training set; UserError for a user's own that are none."""
        batches, key = self.problem.batches, (self.seed, round, client, offset)
        if not self.own_batches:
            return batches.plan(self.indices[client], steps, *key)
        plan = planned(batches, self.indices[client], steps, *key)
        if self._lonely and (plan >= 0).sum(1).min() == 1:
            raise self._alone(client)
        return plan

    def first_pass(self, client: int, steps: int, offset: int) -> int:
        """How many gradients of a local run belong to its first pass over the data (`Batches.first_pass`)."""
        return self.problem.batches.first_pass(int(self.samples[client]), steps, offset)

    def processed(self, clients: np.ndarray, steps: np.ndarray) -> float:
        """Samples that the clients go through in `steps` [C] batches: whole passes count n_m, the rest full batches."""
        size, samples = self.problem.batches.size, self.samples[clients]
        passes = np.maximum(-(-samples // size), 1)
        return float((steps // passes * samples + steps % passes * np.minimum(size, samples)).sum())

    def gradients(self, request: Gradient) -> Tensor:
        """[C, P]: evaluation-mode gradients on the clients' whole data, or on one random batch of `request.batch`.

        Zero for a client without samples, whose weight is 0.
        """
        if request.batch == 1 and self._lonely and not self.problem.model.buffers:
            raise UserError(f"no gradient of a single sample goes through {self._lonely} of the network: ask for more")
        none = torch.zeros_like(request.x)
        return torch.stack([mean_gradient(self, int(c), request) if self.samples[c] else none for c in request.clients])

    def company(self, request: Evaluate) -> Hashable:
        """Evaluations with equal words are answered together: same data, same samples in the same order, same model."""
        own = self.test_indices is not None or request.view.startswith("held:")
        return id(self.arena), id(self) if own else 0, request.view, request.model

    def evaluate(self, x: Tensor, request: Evaluate, spread: Spread) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Mean loss and accuracy in percent of the models x [M, P], and which samples each got right, [M, n]."""
        return loss_and_accuracy(self, x, request.view, request.model or self.problem.model, spread)

    def view(self, name: str) -> Indices:
        """Sample indices of an evaluation view.

        "test" or "train"; "train:n" - a fixed random n of the training samples, the same for all seeds; "labels:a,b" -
        the test samples of some labels; "held:a,b" - those of the labels that some clients hold. A split test set is
        read client after client, since batch statistics depend on the company of a sample.
        """
        return self._evaluated(self._view(name))

    def _view(self, name: str) -> Indices:
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

    @property
    def weights(self) -> np.ndarray:
        """The clients' shares in the objective [N]; a copy, since several runs share what is copied."""
        return self.task.weights.copy()

    @property
    def samples(self) -> np.ndarray:
        """How many samples each client has [N]; a copy likewise."""
        return self.task.samples.copy()

    @property
    def statistics(self) -> Tensor:
        """The places [B] of the network's running statistics in the vector of a model."""
        return self.task.statistics

    @property
    def parameters(self) -> int:
        return self.task.parameters

    @property
    def blocks(self) -> dict[str, slice]:
        return self.task.blocks

    @property
    def trained(self) -> dict[str, slice]:
        return self.task.trained

    def only_trained(self, vector: Tensor) -> Tensor:
        """A vector [P] with zeros where SGD does not train (running statistics)."""
        if len(self.trained) == len(self.blocks):
            return vector
        kept = torch.zeros_like(vector)
        for where in self.trained.values():
            kept[where] = vector[where]
        return kept

    def initial(self, *key: int | str) -> Tensor:
        return self.task.initial(*key)

    def random(self, *key: int | str) -> Tensor:
        return self.task.random(*key)

    def tensor(self, values: Any) -> Tensor:
        return torch.as_tensor(values, dtype=self.task.dtype, device=self.task.device)

    def stack(self, rows: list[Tensor]) -> Tensor:
        """Models [P] as rows [C, P]."""
        return torch.stack(rows)

    def processed(self, clients: np.ndarray, steps: np.ndarray) -> float:
        """Samples that the clients go through in `steps` [C] batches."""
        return self.task.processed(clients, steps)

    def zeros(self, *shape: int) -> Tensor:
        return torch.zeros(shape, dtype=self.task.dtype, device=self.task.device)


class Tasks:
    """Builds tasks on demand and lets equal data be loaded once."""

    def __init__(self, settings: Settings, dtype: torch.dtype | None = None) -> None:
        self.settings = settings
        self.dtype = dtype
        self._arenas: dict[Any, Arena | Objectives] = {}
        self._tasks: dict[Any, Task] = {}

    def get(self, problem: Any, seed: int) -> Task:
        """The task of `problem` for run seed `seed`; raises MissingData or UserError if its data cannot be read."""
        key = (problem, seed)
        if key not in self._tasks:
            if problem.arena not in self._arenas:
                self._arenas[problem.arena] = ARENAS[type(problem)](problem, self.settings, self.dtype)
            self._tasks[key] = self._arenas[problem.arena].task(problem, seed)
        return self._tasks[key]

    @property
    def provenance(self) -> dict[str, str]:
        """data set -> SHA-256 of its files, for the results' provenance."""
        return {name: sha256 for arena in self._arenas.values() for name, sha256 in arena.checksums.items()}

    @property
    def notes(self) -> dict[str, str]:
        """data set -> what must be said about it, where there is something (a subset, a vocabulary of its own)."""
        return {name: note for arena in self._arenas.values() for name, note in arena.notes.items()}


ARENAS: dict[type, Any] = {Classification: Arena, Quadratic: Objectives}
"""What becomes of a problem on the device."""
