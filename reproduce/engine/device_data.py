"""A problem's data on the device: tensors, labels, the model's layout; splits of all seeds share it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reproduce.data.batches import Indices
from reproduce.data.dataset import features, summed
from reproduce.data.tokens import BytePairs, pieces
from reproduce.declare.values import foreign
from reproduce.engine.layout import layout_of
from reproduce.errors import UserError
from reproduce.models.weights import stored
from reproduce.partitions.split import chosen, loaded, parts_of
from reproduce.problem import Classification
from reproduce.settings import Settings


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
        self.notes = {str(problem.data): said} if (said := "; ".join(filter(None, notes))) else {}
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
        images = tensor.permute(0, 3, 1, 2).to(dtype) / 255
        if problem.mean:
            pair = problem.mean, problem.std
            mean, std = (torch.tensor(v, dtype=dtype, device=self.device).view(1, -1, 1, 1) for v in pair)
            images = (images - mean) / std
        if problem.pad:
            images = torch.nn.functional.pad(images, (problem.pad,) * 4)
        return images.contiguous()

    def parts(self, problem: Classification, seed: int) -> list[Indices]:
        """The clients' samples, of the seed of the split; UserError for a partition that does not fit."""
        partition, parts = problem.partition, parts_of(problem, seed, self.labels)
        if foreign(partition):
            # What another process splits otherwise is not resumed.
            self.checksums[f"{partition} of {problem.clients} clients, seed {seed}"] = summed(parts)
        return parts
