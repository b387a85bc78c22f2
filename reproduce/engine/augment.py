"""Random crops and flips of training images ("crop_flip"): what papers on CIFAR do before every local step.

As torchvision's RandomCrop(size, padding=4) and RandomHorizontalFlip(): the image is moved by up to 4 pixels in each
direction, black pixels come in from outside, and half of the images are mirrored. Every local run has a stream of its
own, so that a client's images do not depend on its neighbours in the stack.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from reproduce.engine.client_split import DeviceData
from reproduce.engine.stacking import Slot
from reproduce.streams import rng

MARGIN = 4


class Augmentation:
    """The random crops and flips of the local runs in `slots`; every step of a slot takes the next of its stream."""

    def __init__(self, slots: list[Slot], device_data: DeviceData, batch: int) -> None:
        cropped = device_data.problem.augment == "crop_flip"
        self.device_data, self.batch = device_data, batch
        self.streams = [rng("augment", *slot.key) for slot in slots] if cropped else []

    @cached_property
    def black(self) -> Tensor:
        """The value of a black pixel, [ch, 1, 1]."""
        problem = self.device_data.problem
        black = [-m / s for m, s in zip(problem.mean, problem.std, strict=True)] or [0.0]
        return torch.tensor(black, dtype=self.device_data.dtype, device=self.device_data.device).view(-1, 1, 1)

    def __call__(self, x: Tensor) -> Tensor:
        """Images [A, B, ch, H, W] of the first A slots, or [B, ch, H, W] of the only one, B at most the batch size."""
        if not self.streams:
            return x
        images = x if x.dim() == 5 else x.unsqueeze(0)
        models, b = images.shape[:2]
        # Numbers for a whole batch also where it is short: what follows must not depend on the neighbours' batches.
        draws = np.stack([s.integers(0, [2 * MARGIN + 1] * 2 + [2], (self.batch, 3)) for s in self.streams[:models]])
        moved = crop_flip(images.flatten(0, 1), draws[:, :b].reshape(-1, 3), self.black)
        return moved.view(x.shape)


def crop_flip(x: Tensor, draws: np.ndarray, black: Tensor) -> Tensor:
    """Images [n, ch, H, W] cut out of their padded versions; `draws` [n, 3]: top and left edge in 0..8, mirrored 0/1.

    black: the value of a black pixel, [ch, 1, 1].
    """
    n, _, height, width = x.shape
    padded = torch.nn.functional.pad(x - black, (MARGIN,) * 4) + black
    top, left, mirrored = (torch.from_numpy(np.ascontiguousarray(c)).to(x.device)[:, None] for c in draws.T)
    rows = top + torch.arange(height, device=x.device)
    across = torch.arange(width, device=x.device)
    columns = left + torch.where(mirrored > 0, width - 1 - across, across)
    image = torch.arange(n, device=x.device)[:, None, None]
    return padded[image, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2).contiguous()
