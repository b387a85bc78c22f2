"""Algorithms, data and a partition that are choices of fiarse: HeteroFL with steps of the rate, FedRolex with another
window in evaluation, test images that are cropped, and test sets with other mixes of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reproduce.algorithms.base import Env, RoundContext, State, Tensor
from reproduce.algorithms.narrower import HeteroFL
from reproduce.data.dataset import Dataset
from reproduce.data.load import load
from reproduce.data.sources import find_source
from reproduce.declare.values import Count, Indices, Labels, Sample
from reproduce.engine.requests import Evaluate
from reproduce.models.declared import ResNet
from reproduce.partitions.base import Over, drawn
from reproduce.settings import settings
from reproduce.streams import rng

MARGIN = 4


@dataclass(frozen=True)
class SteppedHeteroFL(HeteroFL):
    """The rate falls to a tenth at each round of `falls`, as in HeteroFL's published code."""

    falls: tuple[Count, ...] = ()

    def learning_rate(self, env: Env, now: RoundContext) -> float:
        return super().learning_rate(env, now) / 10 ** sum(now.round >= fall for fall in self.falls)


@dataclass(frozen=True)
class FirstWindow(HeteroFL):
    """Evaluated is the window of the first round, whichever was trained last."""

    def extract(self, env: Env, state: State, sizes: Sequence[float]) -> list[Tensor | Evaluate]:
        return super().extract(env, {**state, "round": 0}, sizes)


@dataclass(frozen=True)
class FreshTests(Over):
    """A partition whose clients get the test sets of the next seed, so that their mixes of labels are independent of
    those of the training parts (fiarse, its published code)."""

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        parts: list[Indices] = self.partition.split(labels, clients, seed)
        return parts

    def split_test(self, train_labels: Labels, test_labels: Labels, clients: int, seed: int) -> list[Indices]:
        other = replace(self.partition, data_seed=drawn(self.data_seed, seed) + 1)
        parts: list[Indices] = other.split_test(train_labels, test_labels, clients, seed)
        return parts


@dataclass(frozen=True)
class CroppedTests:
    """The data set named `of`; of its test images each is cut out of its version with four black pixels around, and
    half of them are mirrored, as `crop_flip` has it in training."""

    of: str

    @property
    def sample(self) -> Sample:
        sample: Sample = find_source(self.of).sample
        return sample

    @property
    def sizes(self) -> tuple[int, int]:
        train, test = find_source(self.of).sizes
        return train, test

    @property
    def classes(self) -> int:
        return int(find_source(self.of).classes)

    def load(self) -> Dataset:
        whole = load(self.of, settings())
        note = "; ".join(filter(None, [whole.note, "test images are cropped and mirrored at random"]))
        return replace(whole, test_x=cropped(whole.test_x), note=note)


def cropped(images: Any) -> Any:
    """Images [n, height, width, channels], each cropped and mirrored by its own draw."""
    n, height, width, _ = images.shape
    draws = rng("cropped tests").integers(0, [2 * MARGIN + 1] * 2 + [2], (n, 3)).tolist()
    wide = np.pad(images, ((0, 0), (MARGIN, MARGIN), (MARGIN, MARGIN), (0, 0)))
    cut = [image[top : top + height, left : left + width] for image, (top, left, _) in zip(wide, draws, strict=True)]
    return np.stack([image[:, ::-1] if mirrored else image for image, (*_, mirrored) in zip(cut, draws, strict=True)])


@dataclass(frozen=True)
class MaskedResNet(ResNet):
    """Masks may leave out every parameter, normalisation included (a choice of fiarse)."""

    @property
    def maskable(self) -> tuple[str, ...]:
        return tuple(self.shapes)
