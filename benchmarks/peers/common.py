"""What the peer scripts share: arguments, the two models as ordinary modules, a clock, the line of JSON.

Runs in the peers' interpreter: torch, numpy and benchmarks.works (numpy and torch) are all that is imported.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from functools import cache
from importlib.metadata import version

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from benchmarks.works import WORKS, Work

RATE = 0.01

counted = {"steps": 0, "samples": 0}


def work_of(name: str) -> Work:
    """The work whose name starts with W1 or W2."""
    return next(w for w in WORKS if w.name.split()[0] == name)


def arguments() -> argparse.ArgumentParser:
    """WORK --rounds N --warm N --count."""
    parser = argparse.ArgumentParser()
    parser.add_argument("work", choices=("W1", "W2"))
    parser.add_argument("--rounds", type=int, default=20, help="timed rounds")
    parser.add_argument("--warm", type=int, default=3, help="rounds before the clock starts, at least 1")
    parser.add_argument("--count", action="store_true", help="count local steps and samples (slower)")
    return parser


@cache
def data_of(name: str) -> list[tuple[Tensor, Tensor]]:
    """(x, y) of every client."""
    return work_of(name).tensors()


class Conv(nn.Module):
    """works.CNN28 as an ordinary module."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 10, 5), nn.Conv2d(10, 20, 5)
        self.channels, self.drop = nn.Dropout2d(0.5), nn.Dropout(0.5)
        self.fc1, self.fc2 = nn.Linear(320, 50), nn.Linear(50, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(torch.max_pool2d(self.conv1(x), 2))
        x = torch.relu(torch.max_pool2d(self.channels(self.conv2(x)), 2))
        return self.fc2(self.drop(torch.relu(self.fc1(x.flatten(1)))))


def network(name: str) -> nn.Module:
    """A new model of a work, checked against the engine's parameter shapes."""
    torch.manual_seed(0)
    net: nn.Module = Conv() if name == "W1" else nn.Linear(123, 2)
    shapes = [tuple(p.shape) for p in net.parameters()]
    assert sorted(shapes) == sorted(work_of(name).model.shapes.values()), "not the engine's model"
    return net


def flat(net: nn.Module) -> Tensor:
    """A copy of all parameters as one vector."""
    return torch.cat([p.detach().flatten() for p in net.parameters()])


def count(net: nn.Module) -> None:
    """Count in `counted` the samples that `net` sees in training mode and the optimizer steps at the local rate."""

    def saw(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        counted["samples"] += len(inputs[0]) if module.training else 0

    def stepped(optimizer: torch.optim.Optimizer, *_: object) -> None:
        counted["steps"] += optimizer.param_groups[0]["lr"] == RATE

    net.register_forward_pre_hook(saw)
    register_optimizer_step_post_hook(stepped)


def with_gil() -> bool:
    """Does one thread at a time run Python here?"""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


class Clock:
    """Ticks after every round."""

    def __init__(self, warm: int) -> None:
        assert warm >= 1
        self.warm = warm
        self.ticks: list[float] = []

    def tick(self) -> None:
        self.ticks.append(time.perf_counter())

    def report(self, peer: str, package: str, work: str, moved: float, extra: dict[str, object]) -> None:
        """Print the line of JSON; `moved` is how far the server's model came in all rounds."""
        rounds = len(self.ticks) - self.warm
        rate = rounds / (self.ticks[-1] - self.ticks[self.warm - 1])
        assert moved > 0, "the server's model did not move"
        line = {"peer": peer, "version": version(package), "torch": torch.__version__, "work": work, "rounds": rounds}
        line |= {"python": f"Python {platform.python_version()}{'' if with_gil() else 't'}"}
        print(json.dumps(line | {"rounds_per_second": rate, "moved": moved} | extra), flush=True)
