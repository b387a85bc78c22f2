"""Operator sets: one model definition serves one model (`One`) and a stack of models (`Stacked`).

Axes: B batch, A models in the stack, H height, W width. `One` holds images as [B, ch, H, W] and features as [B, F];
`Stacked` holds images as [B, A*ch, H, W] (grouped convolutions, one group per model) and features as [A, B, F].
Images are channels-last: max-pooling and grouped convolutions are several times faster that way on the CPU.

Dropout masks come from one generator per model and are drawn for the full batch size even when a batch is short, so
that they depend on the client and not on its neighbours in the stack. Without generators (evaluation) dropout is off
and batch normalisation uses its running statistics, where a model has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

Params = Mapping[str, Tensor]

MOMENTUM = 0.1
"""Share of a batch in the running statistics, as in PyTorch."""


def _conv(x: Tensor, weight: Tensor, bias: Tensor | None, stride: int, padding: int, groups: int = 1) -> Tensor:
    if stride > 1 and padding == 0 and weight.shape[-1] == 1:
        # The same without a stride: torch 2.13's way back through such a layer writes outside of its memory on CPUs
        # with AVX2, if the channels are few (2 to 4, 3 to 6, 4 to 8, ...).
        # A pool of one place and not a slice: the way back through a slice leaves channels-last, the same bits slower.
        x, stride = F.avg_pool2d(x, 1, stride), 1
    return F.conv2d(x, weight, bias, stride, padding, groups=groups)


class One:
    """Operators on a single model: parameters as in PyTorch, activations [B, ...]."""

    def __init__(self, generators: Sequence[torch.Generator] = (), batch: int = 0) -> None:
        self.generators = generators
        self.batch = batch
        self.buffers: dict[str, Tensor] = {}

    def images(self, x: Tensor) -> Tensor:
        """Samples [B, ch, H, W] -> the layout of this set."""
        return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x

    def conv(self, x: Tensor, p: Params, layer: str, stride: int = 1, padding: int = 0) -> Tensor:
        return _conv(x, p[f"{layer}.weight"], p.get(f"{layer}.bias"), stride, padding)

    def linear(self, x: Tensor, p: Params, layer: str) -> Tensor:
        """Features [B, inputs] -> [B, outputs]."""
        return F.linear(x, p[f"{layer}.weight"], p.get(f"{layer}.bias"))

    def norm(self, x: Tensor, p: Params, layer: str) -> Tensor:
        """Batch normalisation: with the statistics of this batch in training and, if `p` has no running ones, always.

        Training leaves the running statistics of `p` as they are and writes the new ones into `buffers`, from which a
        second pass goes on.
        """
        # Contiguous: torch 2.13's way back on channels-last images takes wrong elements of a strided weight on CPUs.
        weight, bias = p[f"{layer}.weight"].contiguous().flatten(), p[f"{layer}.bias"].flatten()
        names = f"{layer}.running_mean", f"{layer}.running_var"
        if names[0] not in p:
            return F.batch_norm(x, None, None, weight, bias, training=True)
        mean, var = (self.buffers.get(name, p[name]).detach().flatten().clone() for name in names)
        normal = F.batch_norm(x, mean, var, weight, bias, training=bool(self.generators), momentum=MOMENTUM)
        if self.generators:
            self.buffers |= {name: new.view_as(p[name]) for name, new in zip(names, (mean, var), strict=True)}
        return normal

    def layer_norm(self, x: Tensor, p: Params, layer: str) -> Tensor:
        """Each sample's features [..., F] to mean 0 and variance 1."""
        return torch.addcmul(p[f"{layer}.bias"], F.layer_norm(x, x.shape[-1:]), p[f"{layer}.weight"])

    def embed(self, x: Tensor, p: Params, layer: str) -> Tensor:
        """The mean [B, F] of the rows that the token ids [B, L] name; id 0 is padding and does not count."""
        total = F.embedding_bag(x, p[f"{layer}.weight"], mode="sum", padding_idx=0)
        return total / ((x != 0).sum(-1, keepdim=True) + 1e-6)

    def pool(self, x: Tensor, size: int = 2, stride: int = 2, padding: int = 0) -> Tensor:
        # A one-channel image is ambiguous between the layouts, and pooling NCHW is scalar code.
        return F.max_pool2d(x.contiguous(memory_format=torch.channels_last), size, stride, padding)

    def relu(self, x: Tensor) -> Tensor:
        """ReLU in place: no layer before it needs its own output in the backward pass, and large networks save the
        memory."""
        return F.relu_(x)

    def relu_apart(self, x: Tensor) -> Tensor:
        """A copy, for values that others read."""
        return F.relu(x)

    def flatten(self, x: Tensor) -> Tensor:
        return x.flatten(1)

    def global_pool(self, x: Tensor) -> Tensor:
        return x.mean((2, 3))

    def scale(self, x: Tensor, factor: float) -> Tensor:
        return x * factor

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y

    def dropout(self, x: Tensor, p: float) -> Tensor:
        return x * self._keep(x.shape[0], x.shape[1:], p, x)[0] if self.generators else x

    def channel_dropout(self, x: Tensor, p: float) -> Tensor:
        return x * self._keep(x.shape[0], (x.shape[1], 1, 1), p, x)[0] if self.generators else x

    def _keep(self, b: int, shape: Sequence[int], p: float, like: Tensor) -> Tensor:
        """Masks [models, b, *shape], scaled by 1/(1-p); one draw per model, everything else for all at once."""
        draws = torch.empty((len(self.generators), self.batch, *shape), device=like.device)
        for draw, generator in zip(draws, self.generators, strict=True):
            draw.uniform_(generator=generator)
        return (draws[:, :b] >= p).to(like.dtype).mul_(1 / (1 - p))

    def losses(self, logits: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        """Cross-entropy summed over models: the mean over the batch, or weighted by `weight` (see `Stacked`)."""
        return F.cross_entropy(logits, y)


class Stacked(One):
    """Operators on A models at once; parameters are blocks [A, *shape]."""

    def __init__(self, models: int, generators: Sequence[torch.Generator] = (), batch: int = 0) -> None:
        super().__init__(generators, batch)
        self.models = models

    def images(self, x: Tensor) -> Tensor:
        """Samples [A, B, ch, H, W] -> [B, A*ch, H, W]; features [A, B, F] stay."""
        if x.dim() < 4:
            return x
        a, b, ch, h, w = x.shape
        return x.transpose(0, 1).reshape(b, a * ch, h, w).contiguous(memory_format=torch.channels_last)

    def conv(self, x: Tensor, p: Params, layer: str, stride: int = 1, padding: int = 0) -> Tensor:
        bias = p.get(f"{layer}.bias")
        weight = p[f"{layer}.weight"].flatten(0, 1)
        return _conv(x, weight, None if bias is None else bias.flatten(), stride, padding, self.models)

    def linear(self, x: Tensor, p: Params, layer: str) -> Tensor:
        weight, bias = p[f"{layer}.weight"].transpose(1, 2), p.get(f"{layer}.bias")
        return torch.bmm(x, weight) if bias is None else torch.baddbmm(bias.unsqueeze(1), x, weight)

    def layer_norm(self, x: Tensor, p: Params, layer: str) -> Tensor:
        shape = (len(x), *[1] * (x.dim() - 2), x.shape[-1])
        weight, bias = p[f"{layer}.weight"].view(shape), p[f"{layer}.bias"].view(shape)
        return torch.addcmul(bias, F.layer_norm(x, x.shape[-1:]), weight)

    def embed(self, x: Tensor, p: Params, layer: str) -> Tensor:
        """As `One.embed`, for ids [A, B, L]; the tables of all models lie below each other."""
        weight = p[f"{layer}.weight"]
        first = torch.arange(len(weight), device=x.device).view(-1, 1, 1) * weight.shape[1]
        kept = x != 0
        total = F.embedding_bag(
            (x + first).flatten(0, 1),
            weight.flatten(0, 1),
            mode="sum",
            per_sample_weights=kept.flatten(0, 1).to(weight.dtype),
        )
        return total.view(*x.shape[:2], -1) / (kept.sum(-1, keepdim=True) + 1e-6)

    def flatten(self, x: Tensor) -> Tensor:
        if x.dim() == 3:
            return x
        b = x.shape[0]
        return x.reshape(b, self.models, -1).transpose(0, 1)

    def global_pool(self, x: Tensor) -> Tensor:
        return x.mean((2, 3)).reshape(x.shape[0], self.models, -1).transpose(0, 1)

    def dropout(self, x: Tensor, p: float) -> Tensor:
        return x * self._keep(x.shape[1], x.shape[2:], p, x) if self.generators else x

    def channel_dropout(self, x: Tensor, p: float) -> Tensor:
        if not self.generators:
            return x
        keep = self._keep(x.shape[0], (x.shape[1] // self.models, 1, 1), p, x)
        return x * keep.transpose(0, 1).flatten(1, 2)

    def losses(self, logits: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        """Sum over models of the batch's mean loss; `weight` [A, B] replaces 1/B where batches are padded."""
        losses = F.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="none")
        return losses.sum() / y.shape[1] if weight is None else (losses * weight.flatten()).sum()
