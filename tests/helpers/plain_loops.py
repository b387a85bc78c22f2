"""FedAvg on a module as everybody writes it, by torch alone: one deep copy a client, one module for all, one made anew.

The luck of a local run is that of the engine's stream; all else is torch's.
"""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from reproduce.streams import globally, rng

ROUNDS, STEPS, RATE, SEED = 2, 2, 0.1, 5
LOOPS = ("anew", "copied", "reused")


def vector(module: nn.Module) -> dict[str, Tensor]:
    """What clients send: parameters, and the buffers of floating point that the state holds."""
    stored, known = set(nn.Module.state_dict(module)), {}
    for name, t in [*module.named_parameters(), *module.named_buffers()]:
        if isinstance(t, nn.Parameter) or (name in stored and t.is_floating_point()):
            known[name] = t
    return known


@torch.no_grad()
def load(module: nn.Module, values: dict[str, Tensor]) -> nn.Module:
    for name, t in vector(module).items():
        if not torch.equal(t.to(values[name].dtype), values[name]):  # doubles stay what they are
            t.copy_(values[name])
    return module


def sent(module: nn.Module) -> dict[str, Tensor]:
    return {n: t.detach().float().clone() for n, t in vector(module).items()}


def plainly(
    loop: str, make: Callable[[], nn.Module], task: Any, momentum: float = 0.0
) -> tuple[dict[str, Tensor], float]:
    """The last model, and its loss on the test set."""
    loss, data = nn.functional.cross_entropy, task.device_data
    whole = make()
    x = sent(whole)

    def client(values: dict[str, Tensor]) -> nn.Module:
        mine = {"anew": make, "copied": lambda: copy.deepcopy(whole), "reused": lambda: whole}[loop]()
        return load(mine, values)

    for r in range(ROUNDS):
        ends = []
        for c, where in enumerate(task.indices):
            luck = int(rng("dropout", SEED, r, c).integers(2**62))
            mine = client(x)
            mine.train()
            optimiser = torch.optim.SGD(mine.parameters(), RATE, momentum=momentum)
            with globally("module", luck % 2**32, luck >> 32):
                for _ in range(STEPS):
                    optimiser.zero_grad()
                    out = mine(data.train_x[where].clone(memory_format=torch.contiguous_format))
                    loss(getattr(out, "logits", out), data.train_y[where]).backward()
                    optimiser.step()
            ends.append(sent(mine))
        weights = [float(w) for w in task.weights]
        for n in x:
            same = all(torch.equal(e[n], ends[0][n]) for e in ends)
            x[n] = ends[0][n] if same else sum(w * e[n] for w, e in zip(weights, ends, strict=True))  # type: ignore[assignment]
        load(whole, x)
    last = client(x)
    for grads in (False, True):
        last.eval()
        try:
            with globally("module", SEED), torch.set_grad_enabled(grads):
                out = last(data.test_x.clone(memory_format=torch.contiguous_format))
            break
        except RuntimeError:
            last = client(x)
    value = loss(getattr(out, "logits", out), data.test_y).item()
    last.train()
    return x, value
