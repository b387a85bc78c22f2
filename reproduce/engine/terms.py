"""Terms of a local step beside the cross-entropy of a model: random crops and flips of its images, further terms
(of its exits, of narrower networks in it, of models that stand still), magnitude masks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from reproduce.engine.client_split import DeviceData
from reproduce.engine.machine import sent
from reproduce.engine.rule import Exits, OrderedDropout
from reproduce.engine.stacking import Chunk, Slot
from reproduce.models.model import Model
from reproduce.modules.ops import One, Params, Stacked
from reproduce.streams import rng

MARGIN = 4


# --- random crops and flips of training images ("crop_flip"), before every step --------------------------------------
#
# As torchvision's RandomCrop(size, padding=4) and RandomHorizontalFlip(): the image is moved by up to 4 pixels in each
# direction, black pixels come in from outside, and half of the images are mirrored. Every local run has a stream of its
# own, so that a client's images do not depend on its neighbours in the stack.


class Augmentation:
    """The random crops and flips of the local runs in `slots`; every step of a slot takes the next of its stream."""

    def __init__(self, slots: list[Slot], device_data: DeviceData, batch: int) -> None:
        self.device_data, self.step = device_data, 0
        self.draws: Tensor | None = None
        if device_data.problem.augment == "crop_flip":
            # Whole batches also where one is short: what follows must not depend on the neighbours' batches.
            draws = np.zeros((max(slot.steps for slot in slots), len(slots), batch, 3), dtype=np.int64)
            for a, slot in enumerate(slots):
                stream, shape = rng("augment", *slot.key), (slot.steps, batch, 3)
                draws[: slot.steps, a] = stream.integers(0, [2 * MARGIN + 1] * 2 + [2], shape)
            self.draws = sent(draws, device_data.device)  # [K, A, B, 3]

    @cached_property
    def black(self) -> Tensor:
        """The value of a black pixel, [ch, 1, 1]."""
        problem = self.device_data.problem
        black = [-m / s for m, s in zip(problem.mean, problem.std, strict=True)] or [0.0]
        return sent(black, self.device_data.device, self.device_data.dtype).view(-1, 1, 1)

    def __call__(self, x: Tensor) -> Tensor:
        """Images [A, B, ch, H, W] of the first A slots, or [B, ch, H, W] of the only one, B at most the batch size."""
        if self.draws is None:
            return x
        images = x if x.dim() == 5 else x.unsqueeze(0)
        models, b = images.shape[:2]
        draws, self.step = self.draws[self.step, :models, :b], self.step + 1
        moved = crop_flip(images.flatten(0, 1), draws.reshape(-1, 3), self.black)
        return moved.view(x.shape)


def crop_flip(x: Tensor, draws: Tensor, black: Tensor) -> Tensor:
    """Images [n, ch, H, W] cut out of their padded versions; `draws` [n, 3]: top and left edge in 0..8, mirrored 0/1.

    black: the value of a black pixel, [ch, 1, 1].
    """
    n, _, height, width = x.shape
    padded = torch.nn.functional.pad(x - black, (MARGIN,) * 4) + black
    top, left, mirrored = (c[:, None] for c in draws.unbind(1))
    rows = top + torch.arange(height, device=x.device)
    across = torch.arange(width, device=x.device)
    columns = left + torch.where(mirrored > 0, width - 1 - across, across)
    image = torch.arange(n, device=x.device)[:, None, None]
    return padded[image, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2).contiguous()


Batch = tuple[Tensor, Tensor, Tensor | None]
"""Samples, labels, and weights where batches of different size meet."""
Blocks = list[Tensor]


# --- terms of the model's parts (`Rule.inner`) ------------------------------------------------------------------------


def drawn(key: tuple[int, int, int], models: int, steps: int) -> np.ndarray:
    """The narrower models that a client (seed, round, client) trains in each of its steps, uniformly."""
    return rng("width", *key).integers(models, size=steps)


class Inner:
    """The loss of a chunk whose rule has an `inner` part, summed over the models of the stack.

    arithmetic: the context in which it is computed (`local.reduced`).
    """

    def __init__(self, chunk: Chunk, arithmetic: Callable[[], AbstractContextManager[object]]) -> None:
        self.arithmetic = arithmetic
        self.model: Model = chunk.layout.model
        self.dtype = chunk.slots[0].split.dtype
        self.names, self.what = chunk.layout.names, chunk.rule.inner
        if isinstance(self.what, OrderedDropout):
            most = int(chunk.steps.max())
            self.draws = np.stack([drawn(s.key, len(self.what.models), most) for s in chunk.slots])

    def loss(self, k: int, leaves: Sequence[Tensor], ops: One, batch: Batch) -> Tensor:
        """The loss of step k; leaves: the parameters, one block per name."""
        p = dict(zip(self.names, leaves, strict=True))
        with self.arithmetic():
            if isinstance(self.what, Exits):
                return self._exits(self.what, p, ops, batch)
            assert self.what is not None
            return self._dropped(self.what.models, k, p, ops, batch)

    def _exits(self, what: Exits, p: Params, ops: One, batch: Batch) -> Tensor:
        x, labels, weight = batch
        model: Any = self.model
        *early, last = (z.to(self.dtype) for z in model.exit_logits(ops, p, ops.images(x)))  # [.., B, classes] each
        exits, t = len(early) + 1, what.temperature
        # 2 / (m (m + 1)) sum_j j (L_j + distill t^2 / classes KL(softmax(last / t) || softmax(z_j / t)))
        loss = exits * ops.losses(last, labels, weight)
        for j, z in enumerate(early, start=1):
            loss = loss + j * ops.losses(z, labels, weight)
            if what.distill:
                apart = (last / t).softmax(-1) * ((last / t).log_softmax(-1) - (z / t).log_softmax(-1))
                loss = loss + j * what.distill * t**2 * _mean(apart.mean(-1), weight)
        return loss * (2 / (exits * (exits + 1)))

    def _dropped(self, models: Sequence[Model], k: int, p: Params, ops: One, batch: Batch) -> Tensor:
        x, labels, weight = batch
        logits = self.model.forward(ops, p, ops.images(x)).to(self.dtype)
        target = logits.detach().softmax(-1)  # the narrower network's loss is -sum target log softmax(z)
        loss = ops.losses(logits, labels, weight)
        if not isinstance(ops, Stacked):
            narrow = part(p, self.model, models[self.draws[0, k]], 0)
            z = models[self.draws[0, k]].forward(ops, narrow, ops.images(x)).to(self.dtype)
            return loss + _mean(-(target * z.log_softmax(-1)).sum(-1), weight)
        draws = self.draws[: ops.models, k]
        for m in np.unique(draws).tolist():  # who drew the same width makes a stack
            of = np.flatnonzero(draws == m)
            rows = sent(of, x.device)
            narrow = part({n: b[rows] for n, b in p.items()}, self.model, models[m], 1)
            stack = Stacked(len(of), [ops.generators[r] for r in of.tolist()], ops.batch)
            z = models[m].forward(stack, narrow, stack.images(x[rows])).to(self.dtype)
            weights = None if weight is None else weight[rows]
            loss = loss + _mean(-(target[rows] * z.log_softmax(-1)).sum(-1), weights)
        return loss


def part(p: Params, whole: Model, model: Model, lead: int) -> dict[str, Tensor]:
    """The parameters of a narrower model, the first numbers of those of the whole along each of its axes, after `lead`
    axes of the stack."""
    narrow, axes, all_axes = {}, model.axes, whole.axes
    for n, shape in model.shapes.items():
        cut = p[n].reshape(*p[n].shape[:lead], *all_axes[n])[(*[slice(None)] * lead, *map(slice, axes[n]))]
        narrow[n] = cut.reshape(*p[n].shape[:lead], *shape)
    return narrow


def _mean(term: Tensor, weight: Tensor | None) -> Tensor:
    """The sum over models of the mean over the batch, or of the weighted sum, of numbers per sample [B] or [A, B]."""
    return term.sum() / term.shape[-1] if weight is None else (term * weight).sum()


# --- models that stand still: in evaluation mode, on the same batch, and nothing flows back into them -----------------


def distillation(chunk: Chunk, teacher: Tensor, x: Tensor, logits: Tensor) -> Tensor:
    """KL(softmax(teacher(x)) || softmax(logits)) per sample, of logits [B, classes] or [A, B, classes].

    teacher [P] is one for all; `x` are the samples [B, ...] or [A, B, ...].
    """
    model, one, p = chunk.model, One(), chunk.layout.named(teacher)
    # All samples in one pass, unless they see each other.
    apart = model.batch_statistics and not model.buffers
    batches = [x] if logits.dim() == 2 else list(x) if apart else [x.flatten(0, 1)]
    with torch.no_grad():
        target = torch.cat([model.forward(one, p, one.images(batch)) for batch in batches]).view_as(logits)
    return F.kl_div(logits.log_softmax(-1), target.log_softmax(-1), reduction="none", log_target=True).sum(-1)


class Contrast:
    """The model-contrastive term of a chunk (Li et al., CVPR 2021, eq. 3), per sample:

    -log(e^(a/t) / (e^(a/t) + e^(b/t))) = softplus((b - a) / t), a = cos(z, z_start), b = cos(z, z_previous)
    """

    def __init__(self, chunk: Chunk, start: Tensor) -> None:
        previous = chunk.stack("previous")
        assert previous is not None
        self.model, self.names, self.temperature = chunk.model, chunk.layout.names, chunk.rule.temperature
        self.poles = [chunk.layout.blocks(rows) for rows in (start, previous)]

    def __call__(self, ops: One, x: Tensor, z: Tensor) -> Tensor:
        """[B] or [A, B] of features z [B, F] or [A, B, F] on samples `x` as `ops` holds them."""
        a, b = (F.cosine_similarity(z, self._represented(ops, pole, x).to(z.dtype), dim=-1) for pole in self.poles)
        return F.softplus((b - a) / self.temperature)

    @torch.no_grad()
    def _represented(self, ops: One, pole: list[Tensor], x: Tensor) -> Tensor:
        """Features of the models that the active ones of the stack are compared with."""
        if isinstance(ops, Stacked):
            p = {name: block[: ops.models] for name, block in zip(self.names, pole, strict=True)}
            return self.model.encode(Stacked(ops.models), p, x)  # type: ignore[no-any-return]
        return self.model.encode(One(), {n: block[0] for n, block in zip(self.names, pole, strict=True)}, x)  # type: ignore[no-any-return]


# --- masks -----------------------------------------------------------------------------------------------------------


class Masks:
    """Magnitude masks (fiarse): the model computes with y * m, m = |y| >= threshold, per client and tensor.

    A tensor of which all clients of the stack hold everything (threshold 0) has none.
    """

    def __init__(self, chunk: Chunk, y: Blocks) -> None:
        self.rule = chunk.rule
        thresholds = chunk.stack("thresholds")
        if thresholds is None:
            raise ValueError("a rule with a mask needs thresholds in the request")
        # thresholds [A, T], one per client and tensor -> T columns [A, 1, ...]
        self.t = [t.reshape(-1, *[1] * (b.dim() - 1)) for t, b in zip(thresholds.unbind(1), y, strict=True)]
        of_slots = [slot.row_of(chunk.plans.host(slot.request.thresholds)) for slot in chunk.slots]  # type: ignore[arg-type]
        positive = torch.stack(of_slots) > 0
        self.some, self.all = positive.any(0).tolist(), positive.all(0).tolist()
        self.frozen = self._taken(y)
        self.masks = self.frozen

    def _taken(self, y: Blocks) -> list[Tensor | None]:
        a = y[0].shape[0]
        known = zip(self.some, y, self.t, strict=True)
        return [b.abs() >= t[:a] if some else None for some, b, t in known]

    def effective(self, y: Blocks) -> Blocks:
        a = y[0].shape[0]
        if self.rule.mask == "dynamic":
            self.masks = self._taken(y)
        else:
            self.masks = [None if m is None else m[:a] for m in self.frozen]
        return [b if m is None else b * m for b, m in zip(y, self.masks, strict=True)]

    def gradient(self, y: Blocks, grads: list[Any]) -> list[Any]:
        """g m (1 + 2 |y| t / (|y| + t)^2), fiarse eq. (3); without `amplify` g m. `grads` is consumed."""
        a = y[0].shape[0]
        for g, b, m, t, positive in zip(grads, y, self.masks, self.t, self.all, strict=True):
            if m is None or g is None:
                continue
            g.mul_(m)
            if self.rule.amplify:
                size, t = b.abs(), t[:a]
                bottom = (size + t).square_()  # (|y| + t)^2
                factor = size.mul_(2).mul_(t).div_(bottom)
                if not positive:  # 0 / 0 where t = 0 and y = 0
                    factor.masked_fill_(t == 0, 0)
                g.mul_(factor.add_(1))
        return grads
