"""Modules that no operator set knows: a user's own, one client at a time, as torch runs them.

Each call is of a copy that shares its tensors, so that nothing but the vector is remembered. What is drawn (dropout,
noise) starts from the client's own stream. Buffers of floating point are entries of the vector; counters start anew.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d
from torch.utils.flop_counter import FlopCounterMode

from reproduce.declare.values import words
from reproduce.errors import UserError
from reproduce.models.count import Count
from reproduce.models.network import Network
from reproduce.streams import globally

_LUCK = threading.Lock()  # torch's global generator is one for all threads


@cache
def module_of(model: Network) -> nn.Module:
    return model.module()  # type: ignore[no-any-return]


def both(model: Network, ops: Any, p: Mapping[str, Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    """Representation (what the last linear layer is given) and logits of samples x [B, ...]."""
    module, training = _copy(module_of(model)), bool(ops.generators)
    module.train(training)
    # In torch's usual layout, which the `view` of a user's module may need.
    x, state = _plain(x), {name: _plain(p[name]) for name in model.shapes}
    moved = {name: _plain(ops.buffers.get(name, p[name]).detach().clone()) for name in model.buffers}
    counters = {name: b.to(x.device, copy=True) for name, b in module.named_buffers() if name not in state}
    seed = int(torch.randint(2**62, (), generator=ops.generators[0], device=x.device)) if training else 0
    seen = _watched(module)
    with _named(model, module), _lucky(seed):
        out = torch.func.functional_call(module, {**counters, **state, **moved}, (x,), tie_weights=True)
    logits = _logits(model, out, x)
    if training:
        ops.buffers |= moved
    return seen.get("features", logits), logits


def cost(model: Network, sample: tuple[int, ...]) -> Count:
    """Layers and multiply-accumulates of a forward pass on one sample, counted while zeros go through it."""
    count = Count(dict(model.shapes))
    count.chain = False
    module = _copy(module_of(model)).train(False)
    leaves = {n: m for n, m in module.named_modules() if not list(m.children())}

    def note(name: str, m: nn.Module, out: Any) -> None:
        if isinstance(out, Tensor):
            size = sum(p.numel() for p in m.parameters(recurse=False))
            count.layers.append((name, type(m).__name__, tuple(out.shape[1:]), size))

    for name, m in leaves.items():
        m.register_forward_hook(lambda m, _, out, name=name: note(name, m, out))
    with _named(model, module), torch.no_grad(), _lucky(0), FlopCounterMode(display=False) as flops:
        tokens = any(isinstance(m, nn.Embedding | nn.EmbeddingBag) for m in leaves.values())
        x = torch.zeros(2, *sample, dtype=torch.int64 if tokens else None)
        out = module(x)
    count.layers.append(("output", "Logits", tuple(_logits(model, out, x).shape[1:]), 0))
    count.macs = flops.get_total_flops() // 4
    return count


def _logits(model: Network, out: Any, x: Tensor) -> Tensor:
    """What a module makes of samples x [B, ...]; UserError unless it is, or has as `logits`, a tensor [B, classes]."""
    logits = getattr(out, "logits", out)
    if isinstance(logits, Tensor) and logits.dim() == 2 and len(logits) == len(x):
        return logits
    said = tuple(logits.shape) if isinstance(logits, Tensor) else type(out).__name__
    raise UserError(
        f"the network {model.make} makes no logits [batch, classes] of samples {tuple(x.shape)}, but {said}"
    )


def _plain(x: Tensor) -> Tensor:
    return x.clone(memory_format=torch.contiguous_format) if x.dim() == 4 else x


def _copy(module: nn.Module) -> nn.Module:
    """The same module with attributes of its own, and the same tensors.

    Its convolutions of 1 x 1 have no stride: samples of their input compute the same. torch 2.13's way back through
    such a layer writes outside of its memory on some CPUs (`engine.ops`).
    """
    shared = [*module.parameters(), *module.buffers()]
    mine = copy.deepcopy(module, {id(t): t for t in shared})
    for m in mine.modules():
        if isinstance(m, nn.Conv2d) and m.kernel_size == (1, 1) and m.padding == (0, 0) and m.stride != (1, 1):
            m.register_forward_pre_hook(lambda _, x, stride=m.stride: avg_pool2d(x[0], 1, stride))
            m.stride = (1, 1)
    return mine


def _watched(module: nn.Module) -> dict[str, Tensor]:
    """What the last linear layer is given, as "features", after a call."""
    seen: dict[str, Tensor] = {}
    linear = [m for m in module.modules() if isinstance(m, nn.Linear)]
    for m in linear[-1:]:
        m.register_forward_pre_hook(lambda _, inputs: seen.update(features=inputs[0]))
    return seen


@contextmanager
def _lucky(seed: int) -> Iterator[None]:
    """Whatever is drawn inside follows from the seed, by whichever generator."""
    with _LUCK, globally("module", seed % 2**32, seed >> 32):
        yield


@contextmanager
def _named(model: Network, module: nn.Module) -> Iterator[None]:
    """Errors name the innermost layer that was at work."""
    at: list[str] = []

    def leave(m: nn.Module, inputs: Any, output: Any) -> None:
        at.pop()

    for name, m in module.named_modules():
        m.register_forward_pre_hook(lambda _, __, name=name: at.append(name))
        m.register_forward_hook(leave)
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # a module raises whatever it likes
        layer = f" at {at[-1]}" if at and at[-1] else ""
        raise UserError(f"the network {model.make} fails{layer}: {words(error)}") from error
