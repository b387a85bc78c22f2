"""A run's world: `ClientSplit`, the data of one problem over the clients for one seed, and `Env`, what hooks see."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reproduce.data.batches import Shuffled, planned
from reproduce.data.dataset import features, summed
from reproduce.data.tokens import BytePairs, pieces
from reproduce.declare.values import Indices, foreign
from reproduce.engine.layout import layout_of
from reproduce.engine.machine import sent
from reproduce.engine.objectives import Objectives, QuadraticSplit
from reproduce.engine.requests import Gradient
from reproduce.errors import UserError
from reproduce.models.weights import stored
from reproduce.modules.eager import gradient
from reproduce.modules.ops import One
from reproduce.partitions.split import chosen, loaded, parts_of, seed_of
from reproduce.problem import Classification, Quadratic
from reproduce.settings import Settings
from reproduce.streams import rng


class DeviceData:
    """Data of a classification problem: x [n, ...] and y [n] of the training and of the test set.

    checksums, notes: of data and weights, for the provenance.
    """

    def __init__(self, problem: Classification, settings: Settings, dtype: torch.dtype | None) -> None:
        data = loaded(problem, settings)
        if data.train_x.dtype != np.uint8 and (problem.mean or problem.pad):
            raise UserError(
                f"mean, std and pad are for uint8 images, and those of {data.name} are {data.train_x.dtype}"
            )
        self.problem, self.layout = problem, layout_of(problem.model)
        self.device, self.dtype = torch.device(settings.device), dtype or torch.float32
        self.stored, checksums = stored(problem.model, settings)
        self.checksums = {str(problem.data): data.sha256} | checksums
        notes = [getattr(data, "note", "")]
        if problem.tokenizer != "hashed":
            data, note = self._tokenized(data, settings)
            notes.append(note)
        self.notes = {str(problem.data): whole} if (whole := "; ".join(filter(None, notes))) else {}
        self.classes = data.n_classes
        train, test = chosen(problem, data)
        self.train_x, self.test_x = self._features(data.train_x[train]), self._features(data.test_x[test])
        self.labels, self.test_labels = (np.asarray(y, np.int64) for y in (data.train_y[train], data.test_y[test]))
        self.train_y, self.test_y = (torch.from_numpy(y).to(self.device) for y in (self.labels, self.test_labels))
        self.labels.flags.writeable = self.test_labels.flags.writeable = False  # partitions are handed them
        self.padded: Tensor | None = None  # the compiled kernel's copy of train_x

    def _tokenized(self, data: Any, settings: Settings) -> tuple[Any, str]:
        """Data whose texts are cut into the ids of the problem's tokenizer, and what must be said about that."""
        tokenizer = self.problem.tokenizer
        if not (data.train_text and data.test_text):
            raise UserError(f"{data.name} has no texts to cut into tokens: load train_text and test_text")
        cut = tokenizer.cut if isinstance(tokenizer, BytePairs) else pieces
        train_x, test_x, self.checksums["tokenizer"], note = cut(data.train_text, data.test_text, settings.data)
        for name, x in (("train_x", train_x), ("test_x", test_x)):
            try:
                features(name, x, self.problem.sample, floats=False)
            except ValueError as error:
                raise UserError(f"the tokens of {data.name}: {error}") from error
        return replace(data, train_x=train_x, test_x=test_x), note

    def _features(self, x: Any) -> Tensor:
        """Images [n, H, W, ch] uint8 -> normalised [n, ch, H, W]; features and token ids as they are."""
        problem, dtype = self.problem, self.dtype
        tensor = torch.from_numpy(np.ascontiguousarray(x)).to(self.device)
        if x.dtype != np.uint8:
            return tensor.to(torch.int64 if problem.sample.dtype == "int64" else dtype)
        images: Tensor = problem.normalised(tensor, dtype)
        return images

    def parts(self, problem: Classification, seed: int) -> list[Indices]:
        """The clients' samples, of the seed of the split; UserError for a partition that does not fit."""
        partition, parts = problem.partition, parts_of(problem, seed, self.labels)
        if foreign(partition):
            # What another process splits otherwise is not resumed.
            self.checksums[f"{partition} of {problem.clients} clients, seed {seed}"] = summed(parts)
        return parts


PORTION = 2000
"""Samples that go through the network together when a gradient outside the local loop is asked for."""


class ClassificationSplit:
    """One split of the data on a device over the clients, for one seed.

    indices: one array a client, the places of its samples; samples [N]: how many; weights [N]: shares that add up to 1.
    """

    def __init__(self, device_data: DeviceData, problem: Classification, seed: int) -> None:
        self.device_data, self.problem, self.seed = device_data, problem, seed
        self.parameters = device_data.layout.total
        self.dtype, self.device = device_data.dtype, device_data.device
        self.own_batches = foreign(problem.batches)
        self.shuffled = isinstance(problem.batches, Shuffled) and not self.own_batches
        split_seed = seed_of(problem, seed)
        self.indices = device_data.parts(problem, split_seed)
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
            self.test_indices = parts_of(problem, split_seed, device_data.labels, device_data.test_labels)
        # The layer that no batch of one sample can go through, since a single number has no variance.
        layer = problem.model.needs_batch(problem.sample.shape) if problem.model.batch_statistics else ""
        for client, n in enumerate(self.samples.tolist()) if layer else ():
            if n and problem.batches.least(n) == 1:
                raise UserError(
                    f"client {client} has {n} samples, and {problem.batches} leave one of them alone in a batch, of "
                    f"which {layer} of the network has a single number: use batches of another size or another split"
                )

    @cached_property
    def name(self) -> bytes:
        """Problem and seed, by which splits are told apart and sorted."""
        return repr((self.problem, self.seed)).encode()

    # --- the model's vector -------------------------------------------------------------------------------------------

    def initial(self, *key: int | str) -> Tensor:
        """The initial model [P]; with a `key` another one, whose random parts are of a stream of their own."""
        x = self.random(*key)
        for name, values in self.device_data.stored.items():
            x[self.blocks[name]] = values.flatten().to(x)
        return x

    def random(self, *key: int | str) -> Tensor:
        """As `initial`, but without any stored weights."""
        return self.device_data.layout.initial(self.seed, *key).to(self.device, self.dtype)

    @cached_property
    def statistics(self) -> Tensor:
        """The places [B] of the running statistics in it."""
        return sent(self.device_data.layout.statistics, self.device)

    @cached_property
    def blocks(self) -> dict[str, slice]:
        """The place of each tensor in the flat vector."""
        return self.device_data.layout.slices

    @cached_property
    def trained(self) -> dict[str, slice]:
        """`blocks` without those that SGD leaves alone (running statistics)."""
        return {n: where for n, where in self.blocks.items() if n not in self.device_data.layout.buffers}

    # --- local work ---------------------------------------------------------------------------------------------------

    def steps(self, amounts: np.ndarray, unit: str) -> np.ndarray:
        """Local SGD steps [N] of the clients' work `amounts` [N]."""
        batches = self.problem.batches
        pairs = zip(np.asarray(amounts).tolist(), self.samples.tolist(), strict=True)
        return np.array([batches.steps(a, unit, n) for a, n in pairs], dtype=np.int64)

    def plan(self, client: int, steps: int, round: int, offset: int) -> Indices:
        """Sample indices [steps, B] into the training set; UserError for a user's own that are none."""
        batches, key = self.problem.batches, (self.seed, round, client, offset)
        indices = self.indices[client]
        if not self.own_batches:
            return batches.plan(indices, steps, *key)
        return planned(batches, indices, steps, *key)

    def first_pass(self, client: int, steps: int, offset: int) -> int:
        """The number of gradients of a local run in its first pass over the data (`Batches.first_pass`)."""
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
        return torch.stack([self._gradient(int(client), request) for client in request.clients])

    def _gradient(self, client: int, request: Gradient) -> Tensor:
        """g [P] = 1/n sum over the client's samples i of the gradient of its loss, f_i'(x)."""
        device_data, model = self.device_data, (request.model or self.problem.model).of(self.seed)
        layout, index, total = layout_of(model), self.indices[client], torch.zeros_like(request.x)
        if request.batch and request.batch < len(index):
            stream = rng("probe", self.seed, request.round, client)
            index = stream.choice(index, size=request.batch, replace=False)
        if not len(index):
            return total
        parts = (torch.from_numpy(i.copy()) for i in np.array_split(index, -(-len(index) // PORTION)))
        batches = ((device_data.train_x[i], device_data.train_y[i]) for i in (i.to(device_data.device) for i in parts))
        if model.kind == "module":
            return gradient(model, layout.named(request.x), batches) / len(index)
        with torch.enable_grad():
            for x, y in batches:
                leaf = request.x.detach().clone().requires_grad_()
                ops = One()
                logits = model.forward(ops, layout.named(leaf), ops.images(x))
                loss = torch.nn.functional.cross_entropy(logits, y, reduction="sum")
                loss.backward()
                total += leaf.grad  # type: ignore[arg-type]
        return total / len(index)

    # --- views of the data for evaluation -----------------------------------------------------------------------------

    def view(self, name: str) -> Indices:
        """Sample indices of an evaluation view.

        "test" or "train"; "train:n" - a fixed random n of the training samples, the same for all seeds; "labels:a,b" -
        the test samples of some labels; "held:a,b" - those of the labels that some clients hold. A split test set is
        read client after client, since batch statistics depend on the other samples of a batch.
        """
        labels, test_labels = self.device_data.labels, self.device_data.test_labels
        kind, _, numbers = name.partition(":")
        chosen = [int(number) for number in numbers.split(",") if number]
        if kind == "train":
            if not chosen:
                return np.arange(len(labels))
            return np.sort(rng("subset", "train view", self.problem.subset_seed).permutation(len(labels))[: chosen[0]])
        if kind == "labels":
            return np.flatnonzero(np.isin(test_labels, chosen))
        if kind == "held":
            held = np.concatenate([self.indices[client] for client in chosen])
            return np.flatnonzero(np.isin(test_labels, labels[held]))
        return np.arange(len(test_labels)) if self.test_indices is None else np.concatenate(self.test_indices)

    def by_client(self, right: np.ndarray) -> np.ndarray:
        """Accuracy [N] in percent of a model by how much it is right [n] on the view "test": on a client's own part of
        the test set if that is split, else on the test samples in the proportions of its labels; NaN without any."""
        if self.test_indices is not None:
            parts = np.split(right, np.cumsum([len(i) for i in self.test_indices])[:-1])
            return np.array([100 * part.mean() if len(part) else np.nan for part in parts])
        classes = self.device_data.classes
        tested = np.bincount(self.device_data.test_labels, minlength=classes)
        each = np.bincount(self.device_data.test_labels, right, classes) / np.maximum(tested, 1)
        labels = self.device_data.labels
        held = np.array([np.bincount(labels[i], minlength=classes) for i in self.indices])  # [N, classes]
        held[:, tested == 0] = 0
        total = held.sum(1)
        return np.where(total > 0, 100 * held @ each / np.maximum(total, 1), np.nan)

    def labels(self, name: str) -> Indices:
        """Labels of the samples of an evaluation view."""
        return (self.device_data.labels if name.startswith("train") else self.device_data.test_labels)[self.view(name)]


ClientSplit = ClassificationSplit | QuadraticSplit


class Env:
    """A run's world, as far as algorithms may know it: the system, the seed, and of the split what is named here."""

    def __init__(self, split: ClientSplit, system: Any, seed: int) -> None:
        self.split, self.system, self.seed = split, system, seed
        self.clients, self.parameters = split.clients, split.parameters
        self.blocks, self.trained, self.statistics = split.blocks, split.trained, split.statistics
        self.initial, self.random, self.processed = split.initial, split.random, split.processed

    @property
    def weights(self) -> np.ndarray:
        """The clients' shares in the objective [N]; a copy, since several runs share what is copied."""
        return self.split.weights.copy()

    @property
    def samples(self) -> np.ndarray:
        """The number of samples of each client [N]; a copy likewise."""
        return self.split.samples.copy()

    def only_trained(self, vector: Tensor) -> Tensor:
        """A vector [P] with zeros where SGD does not train (running statistics)."""
        if len(self.trained) == len(self.blocks):
            return vector
        kept = torch.zeros_like(vector)
        for where in self.trained.values():
            kept[where] = vector[where]
        return kept

    def tensor(self, values: Any) -> Tensor:
        return torch.as_tensor(values, dtype=self.split.dtype, device=self.split.device)

    def stack(self, rows: list[Tensor]) -> Tensor:
        """Models [P] as rows [C, P]."""
        return torch.stack(rows)

    def zeros(self, *shape: int) -> Tensor:
        return torch.zeros(shape, dtype=self.split.dtype, device=self.split.device)


class ClientSplits:
    """Builds splits on demand and lets equal data be loaded once."""

    def __init__(self, settings: Settings, dtype: torch.dtype | None = None) -> None:
        self.settings, self.dtype = settings, dtype
        self._data: dict[Any, DeviceData | Objectives] = {}
        self._splits: dict[Any, ClientSplit] = {}

    def get(self, problem: Any, seed: int) -> ClientSplit:
        """The split of `problem` for run seed `seed`; raises MissingData or UserError if its data cannot be read."""
        key, device_data = (problem, seed), self._data.get(problem.device_data)
        if device_data is None:
            kind = Objectives if isinstance(problem, Quadratic) else DeviceData
            device_data = self._data[problem.device_data] = kind(problem, self.settings, self.dtype)
        if key not in self._splits:
            if isinstance(device_data, Objectives):
                self._splits[key] = QuadraticSplit(device_data, seed)
            else:
                self._splits[key] = ClassificationSplit(device_data, problem, seed)
        return self._splits[key]

    @property
    def provenance(self) -> dict[str, str]:
        """data set -> SHA-256 of its files, for the results' provenance."""
        return {name: sha256 for data in self._data.values() for name, sha256 in data.checksums.items()}

    @property
    def notes(self) -> dict[str, str]:
        """data set -> what must be said about it, where there is something (a subset, a vocabulary of its own)."""
        return {name: note for data in self._data.values() for name, note in data.notes.items()}
