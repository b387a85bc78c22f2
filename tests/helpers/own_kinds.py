"""Modules that went wrong once, a kind each: they run by themselves, and a loop that is not plain torch's shows it."""

import math
import random
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

L, C, P = nn.Linear, nn.Conv2d, nn.Parameter


class Head(nn.Module):
    """Features [B, width], which a subclass makes of the flat pictures, and logits of them."""

    def __init__(self, width: int = 12, **parts: nn.Module) -> None:
        super().__init__()
        self.fc = L(width, 10)
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x: Tensor) -> Any:
        return self.fc(self.features(x.flatten(1)))

    def features(self, x: Tensor) -> Tensor:
        return self.a(x).tanh()  # type: ignore[no-any-return]


class Folded(Head):
    """Whose weights hold the normalisation in evaluation."""

    def __init__(self) -> None:
        super().__init__(a=L(64, 12))
        self.register_buffer("mu", torch.zeros(12))
        self.folded = False

    def train(self, mode: bool = True) -> Any:
        if mode == self.folded:
            self.a.bias.data += self.mu if mode else -self.mu
            self.folded = not mode
        return super().train(mode)

    def features(self, x: Tensor) -> Tensor:
        z = self.a(x)
        if self.training:
            self.mu.mul_(0.9).add_(z.detach().mean(0), alpha=0.1)
            z = z - self.mu.clone()
        return z.relu()  # type: ignore[no-any-return]


class Normalised(Head):
    def eval(self) -> Any:
        self.fc.weight.data = F.normalize(self.fc.weight.data)
        return super().eval()


class Contractive(Head):
    """Whose forward pass goes a way back by itself."""

    def features(self, x: Tensor) -> Tensor:
        z = self.a(x).sigmoid()
        if self.training:
            z.square().mean().mul(0.3).backward(retain_graph=True)
        return z  # type: ignore[no-any-return]


class OneMemory(Head):
    """Parameters that overlap."""

    def __init__(self) -> None:
        super().__init__(8)
        flat = 0.1 * torch.randn(520)
        self.w, self.b = P(flat[:512].view(8, 64)), P(flat[504:512])

    def features(self, x: Tensor) -> Tensor:
        return F.linear(x, self.w, self.b).tanh()


class Strided(nn.Module):
    """Samples of its input, by convolutions of 1 x 1."""

    def __init__(self, kind: type[C]) -> None:
        super().__init__()
        self.a, self.b, self.fc = C(1, 4, 3, padding=1), kind(4, 6, 1, stride=2), L(96, 10)

    def forward(self, x: Tensor) -> Any:
        return self.fc(self.b(input=self.a(x).relu()).flatten(1)) / self.b.stride[0]


class Double(Head):
    """A layer of double precision, and a constant that float32 cannot hold."""

    def __init__(self) -> None:
        super().__init__(a=L(64, 12).double())
        self.register_buffer("pi", torch.full((12,), math.pi, dtype=torch.float64))

    def features(self, x: Tensor) -> Tensor:
        z = self.a(x.double())
        return (z + 1e9 * torch.sin(1e6 * self.pi)).float()  # type: ignore[no-any-return]


class Routed(Head):
    """Each batch has one expert; the others keep their momentum."""

    def __init__(self) -> None:
        super().__init__(8, gate=L(64, 3), each=nn.ModuleList(L(64, 8) for _ in range(3)))
        self.n = 0

    def features(self, x: Tensor) -> Tensor:
        self.n += 1
        return self.each[self.n % 3](x) * self.gate(x).softmax(1)[:, :1]  # type: ignore[no-any-return]


class Causal(Head):
    """-inf, inf and NaN in buffers that are stored."""

    def __init__(self) -> None:
        super().__init__(8, q=L(8, 8))
        self.register_buffer("mask", torch.full((8, 8), -math.inf).triu(1))
        self.register_buffer("least", torch.tensor([math.inf, math.nan]))

    def features(self, x: Tensor) -> Tensor:
        x = x.view(-1, 8, 8)
        if self.training:
            self.least[0] = x.detach().min()
        return ((self.q(x) @ x.mT + self.mask).softmax(-1) @ x).mean(1)  # type: ignore[no-any-return]


class Silent(Head):
    def train(self, mode: bool = True) -> None:  # type: ignore[override]
        super().train(mode)

    def features(self, x: Tensor) -> Tensor:
        return F.dropout(self.a(x), 0.3, self.training)


class Replaced(Head):
    def features(self, x: Tensor) -> Tensor:
        if self.training:
            self.a.weight = P(0.99 * self.a.weight.detach())
        return self.a(x).tanh()  # type: ignore[no-any-return]


class Recomputed(Head):
    """Dropout that is drawn again on the way back."""

    def features(self, x: Tensor) -> Tensor:
        return checkpoint(lambda x: F.dropout(self.a(x), 0.5, self.training), x, use_reentrant=False)  # type: ignore[no-any-return]


class Twin(nn.Module):
    """The module of MLP(64, 7, 10), in double precision and so that no graph takes its place."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2 = L(64, 7).double(), L(7, 10).double()

    def forward(self, x: Tensor) -> Any:
        return self.fc2(self.fc1(x.flatten(1).double()).relu())


class Bag(Head):
    def features(self, x: Tensor) -> Tensor:
        return self.a((16 * x).long())  # type: ignore[no-any-return]


KINDS: dict[str, Callable[[], nn.Module]] = {
    "folded": Folded,
    "normalised in eval()": lambda: Normalised(64, a=nn.Identity()),
    "a loss inside": lambda: Contractive(a=L(64, 12)),
    "one memory": OneMemory,
    "strided by keyword": lambda: Strided(C),
    "double parts": Double,
    "routed": Routed,
    "infinite buffers": Causal,
    "train() gives nothing": lambda: Silent(a=L(64, 12)),
    "parameters replaced": lambda: Replaced(a=L(64, 12)),
    "a random activation": lambda: nn.Sequential(
        nn.Flatten(), L(64, 12), random.choice([nn.ReLU(), nn.Tanh(), nn.GELU()]), L(12, 10)
    ),
    "dropout in a checkpoint": lambda: Recomputed(a=L(64, 12)),
    "sparse gradients": lambda: Bag(a=nn.EmbeddingBag(17, 12, sparse=True)),
    "made in evaluation mode": lambda: nn.Sequential(nn.Flatten(), L(64, 12), nn.BatchNorm1d(12), L(12, 10)).eval(),
}
