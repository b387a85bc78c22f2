"""What federated-learning scripts do: a deep-copied module per client, a DataLoader, an optimizer object, state dicts.

The baseline of every ratio in docs/performance.md. The same models as the engine's, as torch modules.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from reproduce.engine.layout import Layout
from reproduce.models.model import Model
from reproduce.models.ops import One


class Module(nn.Module):
    """A model of the engine as an ordinary torch module."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model
        layout = Layout(model)
        named = layout.named(layout.initial(0))
        self.tensors = nn.ParameterDict({n.replace(".", "_"): nn.Parameter(t.clone()) for n, t in named.items()})
        self.generator = torch.Generator().manual_seed(0)

    def forward(self, x: Tensor) -> Tensor:
        p = {n: self.tensors[n.replace(".", "_")] for n in self.model.shapes}
        ops = _Plain([self.generator] if self.training else [], len(x))
        return self.model.forward(ops, p, x)


class _Plain(One):
    """PyTorch's usual operators: contiguous NCHW pooling, as in any module."""

    def pool(self, x: Tensor, size: int = 2, stride: int = 2, padding: int = 0) -> Tensor:
        return nn.functional.max_pool2d(x, size, stride, padding)


def naive_round(
    server: Module, data: Sequence[tuple[Tensor, Tensor]], clients: Sequence[int], batch: int, lr: float, steps: int = 0
) -> None:
    """One FedAvg round in place: each client trains `steps` batches (0: one epoch) on a copy; states are averaged."""
    states = []
    for c in clients:
        model = copy.deepcopy(server)
        model.train()
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*data[c]), batch_size=batch, shuffle=True)
        done = 0
        while True:
            for x, y in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
                done += 1
                if done == steps:
                    break
            if done >= (steps or 1):
                break
        states.append(model.state_dict())
    mean = {k: torch.stack([s[k].float() for s in states]).mean(0) for k in states[0]}
    server.load_state_dict(mean)
