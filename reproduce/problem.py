"""The records of a problem: a model on clients' data (importable without torch; `engine.client_split` builds them).

Quadratic        toy objectives with a known minimiser
Classification   a model on a data set, split over clients
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import numpy as np

from reproduce.data.batches import Batches, Fixed
from reproduce.data.dataset import declaration
from reproduce.data.sources import find_source
from reproduce.data.tokens import BytePairs
from reproduce.declare.values import Count, Positive, Sample, Seed, Whole, check_values
from reproduce.errors import UserError
from reproduce.models.model import Model
from reproduce.streams import rng

Matrix = tuple[tuple[float, ...], ...]
Augment = Literal["none", "crop_flip"]
Tokenizer = Literal["hashed", "pieces"] | BytePairs
Score = Literal["macro_f1", "balanced_accuracy", "auc"]


@dataclass(frozen=True)
class Quadratic:
    """F_m(x) = 0.5 (x - e_m)' H_m (x - e_m) with deterministic gradients and equal weights.

    minimisers: e_m, one row per client; None draws e_m ~ N(0, I) once with `data_seed` (the same for all run seeds).
    hessians: H_m, one matrix per client; None is the identity.
    start: the initial point; None is the origin.
    """

    clients: Count
    dim: Count
    minimisers: Matrix | None = None
    hessians: tuple[Matrix, ...] | None = None
    start: tuple[float, ...] | None = None
    data_seed: Seed = 0
    batches: Batches = field(default=Fixed(1))

    def __post_init__(self) -> None:
        check_values(self)

    model = None
    """A quadratic has no network."""

    @property
    def device_data(self) -> Quadratic:
        """The key of problems that share objectives on a device."""
        return self

    @property
    def requires(self) -> tuple[str, ...]:
        return ()

    def check_view(self, name: str) -> None:
        """Raises ValueError if there is no such evaluation view: a quadratic has but one."""
        if name != "test":
            raise ValueError(f"a quadratic has no evaluation view '{name}'")

    def minima(self) -> np.ndarray:
        """The clients' minimisers e_m [N, d]."""
        if self.minimisers is not None:
            return np.array(self.minimisers, dtype=float)
        return rng("quadratic", self.data_seed).standard_normal((self.clients, self.dim))

    def optimum(self) -> np.ndarray:
        """The minimiser X* [d] of the average objective."""
        e = self.minima()
        if self.hessians is None:
            return e.mean(0)
        h = np.array(self.hessians, dtype=float)
        return np.linalg.solve(h.sum(0), np.einsum("cij,cj->i", h, e))


@dataclass(frozen=True)
class Classification:
    """Cross-entropy of `model` on `data`, split over `clients` by `partition`.

    data: name of a data set, or a record of generated data with `load()`, `sample`, `sizes` and `classes`.
    partition_seed: seed of the split; None takes the run's seed.
    weights: "size" (w_m = n_m / n) or "uniform" (1/N).
    mean, std: normalisation per channel of pixels scaled to [0, 1]; empty leaves the features as they are.
    train_samples, test_samples: a fixed random subset of this many samples (0 = all), drawn with `subset_seed`; with
        `subset_balanced` the same number of training samples per class.
    test_partition: also split the test set over the clients, with the training split's label mixes.
    augment: "none" or "crop_flip" (random crop with zero padding 4, horizontal flip; training only).
    pad: zero pixels added on each side of an image (28x28 to 32x32 with 2).
    evaluation_batch: samples per evaluation batch (matters only for models with batch statistics).
    tokenizer: of texts, "hashed" (a number for each word), "pieces" (BERT's word pieces, `data.tokens`) or
        `BytePairs`.
    scores: of evaluations, beside loss and accuracy.
    """

    data: Any
    model: Model
    partition: Any
    clients: Count
    batches: Batches
    partition_seed: Seed | None = None
    weights: Literal["size", "uniform"] = "size"
    mean: tuple[float, ...] = ()
    std: tuple[Positive, ...] = ()
    train_samples: Whole = 0
    test_samples: Whole = 0
    subset_seed: Seed = 0
    subset_balanced: bool = False
    test_partition: bool = False
    augment: Augment = "none"
    pad: Whole = 0
    evaluation_batch: Count = 500
    tokenizer: Tokenizer = "hashed"
    scores: tuple[Score, ...] = ()

    def __post_init__(self) -> None:
        check_values(self)
        if not isinstance(self.data, str):
            declaration(self.data)
        if self.tokenizer != "hashed" and getattr(self.source, "kind", "") != "text":
            raise UserError(f"{self.data} has no texts to cut into word pieces")
        self._check_numbers()
        if not callable(getattr(self.partition, "split", None)):
            raise UserError(f"the partition {type(self.partition).__name__} has no split(labels, clients, seed)")
        if self.test_partition and not hasattr(self.partition, "split_test"):
            raise UserError(f"the partition {type(self.partition).__name__} cannot split a test set")
        batch = min(self.batches.size, self.sizes[0])
        object.__setattr__(self, "model", self.model.on(self.sample, batch, self.evaluation_batch))
        if self.augment != "none" and self.model.kind in ("softmax", "dense"):
            raise ValueError("models of plain features have no images to crop")
        _check_tokens(self.model, self.sample)
        outputs = _outputs(self.model, self.sample)
        if outputs < self.source.classes:
            raise UserError(f"{self.model} has {outputs} outputs for the {self.source.classes} classes of {self.data}")

    def _check_numbers(self) -> None:
        """UserError for numbers that do not go with the data."""
        shape, sizes = self.source.sample.shape, self.source.sizes
        for name, available in zip(("train_samples", "test_samples"), sizes, strict=True):
            if (wanted := getattr(self, name)) > available:
                raise UserError(f"{name} is {wanted}, and {self.data} has {available}: use fewer, or 0 for all")
        if (self.mean or self.std or self.pad) and len(shape) != 3:
            raise UserError(f"mean, std and pad are for images, and {self.data} has samples of one axis")
        if (self.mean or self.std) and not len(self.mean) == len(self.std) == shape[0]:
            raise UserError(f"mean {self.mean} and std {self.std} have one number each for {shape[0]} channels")

    @property
    def source(self) -> Any:
        """The record of the data: `sample`, `sizes`, `classes`."""
        return find_source(self.data) if isinstance(self.data, str) else self.data

    @property
    def sample(self) -> Sample:
        """Shape and type of one sample as the model sees it."""
        if isinstance(self.tokenizer, BytePairs):
            return self.tokenizer.sample
        sample: Sample = self.source.sample
        return sample.padded(self.pad) if self.pad else sample

    def normalised(self, images: Any, dtype: Any) -> Any:
        """uint8 images [n, H, W, ch] as the model sees them: tensors [n, ch, H, W] of `dtype`, normalised, padded."""
        import torch

        images = images.permute(0, 3, 1, 2).to(dtype) / 255
        if self.mean:
            mean, std = (images.new_tensor(v).view(1, -1, 1, 1) for v in (self.mean, self.std))
            images = (images - mean) / std
        if self.pad:
            images = torch.nn.functional.pad(images, (self.pad,) * 4)
        return images.contiguous()

    @property
    def device_data(self) -> tuple[Any, ...]:
        """The key of problems that share data on a device."""
        return (
            self.data, self.model, self.mean, self.std, self.pad, self.train_samples, self.test_samples,
            self.subset_seed, self.subset_balanced, self.batches, self.augment, self.evaluation_batch,
            self.tokenizer,
        )  # fmt: skip

    def check_view(self, name: str) -> None:
        """Raises ValueError if there is no such evaluation view (`ClassificationSplit.view`)."""
        kind, _, detail = name.partition(":")
        numbers = [int(v) for v in detail.split(",")] if re.fullmatch(r"\d+(,\d+)*", detail) else []
        if kind == "labels" and numbers and max(numbers) < self.source.classes:
            return
        if kind == "held" and numbers and max(numbers) < self.clients:
            return
        if kind == "train" and len(numbers) == 1 and numbers[0] > 0:
            return
        if name not in ("test", "train"):
            raise ValueError(f"{self.data} has no evaluation view '{name}'")

    @property
    def requires(self) -> tuple[str, ...]:
        data = self.data if isinstance(self.data, str) else getattr(self.data, "of", "")  # whose part it is, if any
        data = "" if not data or find_source(data).embedded else data
        stored = self.model.pretrained, self.tokenizer.name if isinstance(self.tokenizer, BytePairs) else ""
        return tuple(dict.fromkeys(filter(None, (data, *stored))))

    @property
    def sizes(self) -> tuple[int, int]:
        """Training and test samples in use, as plans expect them."""
        train, test = self.source.sizes
        return self.train_samples or train, self.test_samples or test


def _check_tokens(model: Model, sample: Sample) -> None:
    """UserError if the model wants tokens and the samples are none, the reverse, or if it has no room for them."""
    if model.foreign:
        return  # which says itself what it takes
    if bool(model.tokens) != (sample.dtype == "int64"):
        raise UserError(f"{model} {'wants' if model.tokens else 'cannot read'} token ids; samples are {sample.dtype}")
    ids, length = sample.vocabulary, sample.shape[0]
    if model.tokens < ids:
        raise UserError(f"the tokenizer has {ids} ids and does not fit the {model.tokens} rows of {model}")
    if model.longest and length > model.longest:
        raise UserError(f"texts of {length} tokens do not fit {model}: cut them to its {model.longest} positions")


@cache
def _outputs(model: Model, sample: Sample) -> int:
    """The number of logits for a sample; UserError if it does not take such samples."""
    try:
        return model.cost(sample.shape).outputs[0]
    except (ValueError, TypeError, IndexError) as error:
        raise UserError(f"{model} cannot take samples of shape {sample.shape}: {error}") from error
