"""Modules as users bring them: some that torch.fx traces, some that it does not, some that are wrong."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Plain(nn.Module):
    """A usual network for digits."""

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)
        self.fc1, self.fc2 = nn.Linear(8 * 2 * 2, 16), nn.Linear(16, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.view(x.size(0), -1))))  # type: ignore[no-any-return]


class Untraceable(Plain):
    """The same, but what it does depends on its input."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x if x.sum() > -1e30 else -x)


class Residual(nn.Module):
    """ReLU in place on what is read again, running statistics, and a mean over the image."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.stem, self.norm, self.act = nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        self.body, self.fc = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.stem(x))
        y = self.body(self.act(x))
        y += x
        return self.fc(y.mean((2, 3)))  # type: ignore[no-any-return]


class ResidualUntraceable(Residual):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x if x.sum() > -1e30 else -x)


class Modern(nn.Module):
    """Layers of which the papers have none."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.GELU(), nn.AvgPool2d(2),
            nn.Conv2d(8, 8, 3, stride=2, padding=1), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.LayerNorm(8), nn.Linear(8, 10, bias=False),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x)  # type: ignore[no-any-return]


class ModernUntraceable(Modern):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x if x.sum() > -1e30 else -x)


class Odd(Plain):
    """A layer that no stack knows, dropout, a buffer that is not stored, and one that counts."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.drop = nn.BatchNorm1d(16), nn.Dropout(0.3)
        self.register_buffer("ones", torch.ones(16), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.silu(self.conv2(x)), 2)
        x = self.drop(F.relu(self.norm(self.fc1(x.flatten(1))) * self.ones))
        return self.fc2(x)  # type: ignore[no-any-return]


class Noisy(Plain):
    """Draws random numbers."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x + 0.1 * torch.randn_like(x) if self.training else x)


class Counting(Untraceable):
    """Remembers in an attribute how often it was called."""

    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return super().forward(x * (1 + self.calls))


class Strided(nn.Module):
    """A shortcut of 1 x 1 with a stride, few channels, and nothing that torch.fx traces."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.short = nn.Conv2d(1, 2, 3, padding=1), nn.Conv2d(2, 4, 1, stride=2)
        self.body, self.fc = nn.Conv2d(2, 4, 3, stride=2, padding=1), nn.Linear(4, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.stem(x if x.sum() > -1e30 else -x))
        return self.fc((self.short(x) + self.body(x)).mean((2, 3)))  # type: ignore[no-any-return]


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 10)
        self.b.weight = self.a.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.c(torch.relu(self.b(torch.relu(self.a(x.flatten(1))))))  # type: ignore[no-any-return]


class Frozen(Plain):
    """Whose first layer is not trained."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1.requires_grad_(False)


class Swapped(nn.Module):
    """Two linear layers, the last one defined first."""

    def __init__(self) -> None:
        super().__init__()
        self.last, self.first = nn.Linear(12, 10), nn.Linear(64, 12)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.relu(self.first(x.flatten(1))))  # type: ignore[no-any-return]


class Overwriting(nn.Module):
    """In place, by a second argument and by a layer, what is read again; behind it a pool."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.act = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1), nn.ReLU(inplace=True)
        self.fc = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.a(x)
        y = F.max_pool2d(self.act(x), 2)
        z = self.b(x)
        F.relu(z, True)
        return self.fc((F.max_pool2d(z, 2) + y).flatten(1))  # type: ignore[no-any-return]


class TwoWays(nn.Module):
    """Its layers have another order in evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.fc = nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        first, second = (self.a, self.b) if self.training else (self.b, self.a)
        return self.fc(second(torch.relu(first(x.flatten(1)))))  # type: ignore[no-any-return]


class Scaling(Plain):
    """Another factor in evaluation."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * (2 if self.training else 1)


class Dropping(Plain):
    """Dropout in evaluation, too."""

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(F.dropout(super().forward(x), 0.2))


class Still(Residual):
    """Whose normalisation stays in evaluation mode."""

    def train(self, mode: bool = True) -> Still:
        super().train(mode)
        self.norm.train(False)
        return self


class Slicing(Plain):
    """Reads a part of a tensor."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x[:, :1])


class Pair(Plain):
    """Two outputs."""

    def forward(self, x: Tensor) -> Any:
        z = super().forward(x)
        return z, F.relu(z)


class Narrow(nn.Module):
    """Too few outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(64, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x.flatten(1))  # type: ignore[no-any-return]


class Misfit(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(99, 16)


class MisfitUntraceable(Misfit, Untraceable):
    """The same, and torch.fx does not trace it."""


class Images(Plain):
    """Whose output is no vector of logits."""

    def forward(self, x: Tensor) -> Tensor:
        return self.conv1(x if x.sum() > -1e30 else -x)  # type: ignore[no-any-return]


class Unfinished(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()


def number() -> int:
    return 3
