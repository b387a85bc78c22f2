"""Modules of torch: one of a user's beside its declared twin, large ones beside a plain loop over the module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from benchmarks.measure import compare, engine_round
from benchmarks.works import WORKS
from reproduce.engine.client_split import DeviceData
from reproduce.engine.local import reduced
from reproduce.models.model import Model
from reproduce.models.network import Network
from reproduce.settings import settings

NAMED = {work.name: work for work in WORKS}


class Net(nn.Module):
    """The network of "defedavg CNN" as a user would write it."""

    def __init__(self) -> None:
        super().__init__()
        self.near, self.far, self.pool = nn.Conv2d(1, 32, 5), nn.Conv2d(32, 64, 5), nn.MaxPool2d(2)
        self.hidden, self.out = nn.Linear(1024, 512), nn.Linear(512, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Logits [B, 10] of images [B, 1, 28, 28]."""
        x = self.pool(self.far(self.pool(self.near(x)).relu())).relu()
        return self.out(self.hidden(x.flatten(1)).relu())


def plain(model: Model, data: DeviceData, clients: int, steps: int, precision: str = "float32") -> Callable[[], None]:
    """A call that trains clients with torch alone: channels-last, one client after the other."""
    module = model.module().to(data.device, memory_format=torch.channels_last).train()
    x, y = data.train_x, data.train_y
    x = x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x
    batch = data.problem.batches.size

    def call() -> None:
        optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
        for _ in range(clients):
            for where in torch.randint(len(x), (steps, batch), device=data.device):
                optimizer.zero_grad()
                with reduced(precision, data.device):
                    loss = nn.functional.cross_entropy(module(x[where]).float(), y[where])
                loss.backward()
                optimizer.step()

    return call


def modules() -> None:
    """Ratios of speed on one core, A B A B."""
    torch.set_num_threads(1)
    print("| A | B | B / A | range |\n| --- | --- | --- | --- |")
    cnn = NAMED["defedavg CNN"]
    for strategy in ("compiled", "stacked"):
        own = replace(cnn, model=Network("benchmarks.modules:Net"))
        r = compare(engine_round(cnn, 1, strategy), engine_round(own, 1, strategy))
        print(f"| {cnn.name}, declared, {strategy} | a user's module | {r.median:.2f} | {r.low:.2f}-{r.high:.2f} |")
    for name in ("fiarse resnet10n", "ResNet-18, batch 20"):
        for strategy in ("sequential", "stacked"):
            work = NAMED[name]
            data = DeviceData(work.problem, settings(), None)
            floor = plain(work.model, data, work.per_round, work.steps)
            r = compare(floor, engine_round(work, 1, strategy))
            print(f"| {name}, plain loop | {strategy} | {r.median:.2f} | {r.low:.2f}-{r.high:.2f} |", flush=True)
