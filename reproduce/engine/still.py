"""Loss terms that compare a model with others that stand still: distillation from a teacher, contrast of features.

Models that stand still are in evaluation mode and see the same batch; nothing flows back into them.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from reproduce.engine.stacking import Chunk
from reproduce.models.ops import One, Stacked


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
