"""Local runs as a GPU gets them, on tensors of another device than the CPU that have no numbers.

That device is "meta", since a torch without CUDA has no backward pass on fake CUDA tensors. Nothing mixes devices,
nothing waits for the device, and a step launches no more operators than is written here.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from benchmarks.works import CNN28, CNN_CIFAR, Work
from reproduce.data.batches import Cyclic
from reproduce.engine.client_split import ClientSplit, ClientSplits
from reproduce.engine.requests import Train
from reproduce.engine.rule import Exits, OrderedDropout, Rule
from reproduce.engine.stacking import Chunk, Plans
from reproduce.engine.strategies import STACK
from reproduce.engine.trainer import Trainer
from reproduce.models import declared
from reproduce.models.model import Model
from reproduce.problem import Quadratic
from reproduce.settings import settings

C, PLAIN = 3, Rule()
NO_LAUNCH = {"empty", "empty_like", "new_empty", "lift_fresh", "_unsafe_view"}


class Launches(TorchDispatchMode):
    """Counts operators on the device; `waits` are those for which the host waits."""

    def __init__(self) -> None:
        super().__init__()
        self.count, self.waits = 0, set[str]()

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = op(*args, **(kwargs or {}))
        tensors = [t for t in tree_leaves((args, kwargs, out)) if isinstance(t, Tensor)]
        devices = {t.device.type for t in tensors if t.dim()}  # a number of the host travels with the launch
        if len(devices) > 1 and not (kwargs or {}).get("non_blocking"):
            self.waits.add(str(op))
        self.count += "meta" in devices and not op.is_view and op._overloadpacket.__name__ not in NO_LAUNCH
        return out


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device like a GPU, which has neither pinned memory nor generators; what is unknown here has some value."""
    monkeypatch.setitem(STACK, "meta", STACK["cuda"])
    monkeypatch.setattr(Tensor, "pin_memory", lambda tensor: tensor)
    monkeypatch.setattr(Chunk, "generators", lambda chunk, device: [torch.Generator()] * len(chunk.slots))
    monkeypatch.setattr(Plans, "host", lambda plans, tensor: torch.ones(tensor.shape))
    monkeypatch.setattr(torch, "unique", lambda ids: ids.new_empty(20))


def launched(problem: Any, strategy: str, rule: Rule = PLAIN, **fields: Callable[[ClientSplit, int], Any]) -> int:
    """Operators of a step of local training, of `C` clients in a stack or of one."""
    trainer, counts = Trainer(strategy="auto" if strategy == "quadratic" else strategy), []
    split = ClientSplits(replace(settings(), device="meta")).get(problem, 0)
    clients = np.arange(C if strategy in ("stacked", "quadratic") else 1)
    for steps in (2, 3):
        full = np.full(len(clients), steps)
        request = Train(clients, full, split.initial(), 0.1, 0, rule, offset=0 * clients)
        request = replace(request, **{name: make(split, len(clients)) for name, make in fields.items()})
        with Launches() as seen:
            trainer.train([(split, request)])
        assert not seen.waits
        counts.append(seen.count)
    return counts[1] - counts[0]


def work(model: Model, *shape: int, batch: int = 8, samples: int = 16, classes: int = 10) -> Any:
    return Work("", model, shape, C, C, samples, batch, 2, classes).problem


IMAGE = (3, 32, 32)
NETWORKS = {
    "softmax": (work(declared.Softmax(64, 10), 64), 9, 10),
    "MLP": (work(declared.MLP(64, 16, 10), 64), 15, 16),
    "perceptron": (work(declared.Perceptron(64, (16, 8), 10), 64), 21, 22),
    "CNN": (work(CNN28, 1, 28, 28), 43, 51),
    "CIFAR CNN": (work(CNN_CIFAR, *IMAGE), 38, 41),
    "CNN with normalisation": (work(declared.NormConvNet(), *IMAGE), 63, 68),
    "running normalisation": (work(declared.NormConvNet(normalisation="running"), *IMAGE), 93, 98),
    "projected": (work(declared.ProjectedConvNet(), *IMAGE), 85, 92),
    "ResNet-18": (work(declared.ResNet(), *IMAGE), 149, 152),
    "ResNet-18 of ImageNet": (work(declared.ImageNetResNet(), *IMAGE), 282, 285),
    "AlexNet": (work(declared.AlexNet(), *IMAGE), 64, 71),
    "VGG-19": (work(declared.VGG19(), *IMAGE), 114, 121),
    "a large batch": (work(CNN_CIFAR, *IMAGE, batch=512, samples=520), 38, 41),
}
"""Problem, and the operators that a step of one client, and of a stack, may launch."""


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name: str) -> None:
    problem, one, stack = NETWORKS[name]
    assert launched(problem, "sequential") <= one
    assert launched(problem, "stacked") <= stack


def one(split: ClientSplit, clients: int) -> Tensor:
    return split.initial()


def thresholds(split: ClientSplit, clients: int) -> Tensor:
    return torch.ones(clients, len(split.blocks), device="meta")


def weights(split: ClientSplit, clients: int) -> Tensor:
    return torch.ones(1, clients)


def rates(split: ClientSplit, clients: int) -> np.ndarray:
    return np.linspace(0.1, 0.3, clients)


def offsets(split: ClientSplit, clients: int) -> np.ndarray:
    return np.arange(clients)


SMALL = declared.ResNet(1, 10, (4, 6), (1, 1))
NET, RESIDUAL = work(replace(CNN28, dropout=0.0, channel_dropout=0.0), 1, 28, 28), work(SMALL, 1, 28, 28)
EXITS = work(declared.EarlyExits(1, 10, (4, 6), (1, 1), exits=(1, 2)), 1, 28, 28)
NARROWER = Rule(inner=OrderedDropout((SMALL.narrowed(0.5),)))
TERMS: dict[str, tuple[Any, Rule, dict[str, Any], int, int]] = {
    "nothing": (NET, PLAIN, {}, 31, 34),
    "short batches": (replace(NET, batches=Cyclic(12)), PLAIN, {"offset": offsets}, 33, 36),
    "crops and flips": (replace(NET, augment="crop_flip"), PLAIN, {}, 43, 46),
    "correction": (NET, PLAIN, {"correction": one}, 32, 35),
    "anchor": (NET, Rule(mu=0.1), {"anchor": one}, 47, 50),
    "momentum": (NET, Rule(momentum=0.9, decay=0.01), {}, 33, 36),
    "gradients": (NET, Rule(mean_gradient=True, first_gradient="pass_mean"), {}, 47, 50),
    "AdamW": (NET, Rule(betas=(0.9, 0.99)), {}, 38, 41),
    "own rates": (NET, PLAIN, {"lr": rates}, 31, 41),
    "distillation": (NET, Rule(distill=0.5), {"teacher": one}, 55, 58),
    "contrast": (NET, Rule(contrast=1.0), {"previous": one}, 106, 109),
    "second pass": (NET, Rule(contrast=1.0, second_pass=True), {"previous": one}, 132, 136),
    "masks": (RESIDUAL, Rule(mask="dynamic", amplify=True), {"thresholds": thresholds}, 292, 295),
    "exits": (EXITS, Rule(inner=Exits(0.5)), {}, 86, 91),
    "narrower": (RESIDUAL, NARROWER, {}, 163, 249),
    "weighted sums": (NET, PLAIN, {"weights": weights}, 31, 34),
}
"""Problem, rule, what the request brings, and the operators as above."""


@pytest.mark.parametrize("name", TERMS)
def test_terms(name: str) -> None:
    problem, rule, fields, one, stack = TERMS[name]
    assert launched(problem, "sequential", rule, **fields) <= one
    assert launched(problem, "stacked", rule, **fields) <= stack


def test_other_strategies() -> None:
    text = work(declared.FastText(40, 3, 10), 16)
    assert launched(text, "sparse") <= 19
    assert launched(Quadratic(C, 4), "quadratic", Rule(mu=0.1, momentum=0.5)) <= 7
