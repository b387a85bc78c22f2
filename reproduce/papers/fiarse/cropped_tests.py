"""A data set whose test images are cropped and mirrored at random, once for all runs: a choice of fiarse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reproduce.data.dataset import Dataset
from reproduce.data.load import load
from reproduce.data.sources import find_source
from reproduce.models.sample import Sample
from reproduce.settings import settings
from reproduce.streams import rng

MARGIN = 4


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
