"""Modules that no operator set knows: a user's own, one client at a time, as torch runs them.

A local run has a deep copy of the module that the run's seed made: parameters and buffers of floating point are loaded
from the vector, forward and backward are torch's, and what moved is read back. All else that a module remembers
(counters, whole numbers, what is not stored, attributes) lasts as long as the copy: it starts anew in every local run
of a client and in every batch of an evaluation. What is drawn (dropout, noise) follows from the client's own stream.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import avg_pool2d
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from reproduce.declare.values import words
from reproduce.errors import UserError
from reproduce.models.graph import Count
from reproduce.models.lower import tensors
from reproduce.streams import globally

if TYPE_CHECKING:
    from reproduce.models.model import Model, Sample
    from reproduce.models.network import Network

_LUCK = threading.Lock()  # torch's global generator is one for all threads

_MINE = threading.local()  # modules of this thread: a call puts values into its module


@cache
def instance(model: Network, seed: int) -> nn.Module:
    """The module of runs with this seed. It is never called: copies are."""
    with _LUCK:
        return model.module(seed)  # type: ignore[no-any-return]


def values(module: nn.Module) -> dict[str, Tensor]:
    """A copy of a module's vector by names."""
    return {name: t.detach().float().clone() for name, t in tensors(module).items()}


class Live:
    """A copy of a user's module, loaded with the values `p`, in training or in evaluation."""

    def __init__(self, model: Network, module: nn.Module, p: Mapping[str, Tensor], training: bool) -> None:
        like = next(iter(p.values()))
        self.model, self.module = model, copied(model, module, like.dtype, like.device).train(training)
        entries = self.entries(p)
        self.parameters = {n: t for n, t in entries.items() if isinstance(t, nn.Parameter)}
        self.load(p, entries)
        self.seen: dict[str, Tensor] = {}
        for m in [m for m in self.module.modules() if isinstance(m, nn.Linear)][-1:]:
            m.register_forward_pre_hook(lambda _, inputs: self.seen.update(features=inputs[0]))

    def entries(self, p: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The entries of the vector as they are now; UserError if they are others than those of `p`."""
        now = tensors(self.module)
        if other := {(n, t.shape) for n, t in now.items()} ^ {(n, t.shape) for n, t in p.items()}:
            raise UserError(f"the network {self.model.make} changes what it has: {min(other)[0]} is not as it was")
        return now

    def load(self, p: Mapping[str, Tensor], into: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            for name, t in into.items():
                t.copy_(p[name])

    def __call__(self, x: Tensor, seed: int) -> tuple[Tensor, Tensor]:
        """Representation (what the last linear layer is given) and logits of samples x [B, ...]."""
        with self._named(), _LUCK, globally("module", seed % 2**32, seed >> 32):
            out = self.module(x.clone(memory_format=torch.contiguous_format))
        logits = getattr(out, "logits", out)
        right = isinstance(logits, Tensor) and logits.dim() == 2 and len(logits) == len(x)
        if right and logits.is_floating_point():
            return self.seen.pop("features", logits), logits
        made = f"{logits.dtype} {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(out).__name__
        raise UserError(
            f"the network {self.model.make} makes no logits [batch, classes] of samples {tuple(x.shape)}, but {made}"
        )

    def back(self, *made: tuple[Tensor, Tensor | None]) -> dict[str, Tensor]:
        """The gradients of the parameters that have one: torch's way back from what was made, and its gradients."""
        if not any(end.requires_grad for end, _ in made):
            raise UserError(f"no parameter has a part in the logits of the network {self.model.make}")
        for t in self.parameters.values():
            t.grad = None
        ends, grads = zip(*((t, g) for t, g in made if g is not None and t.requires_grad), strict=True)
        with self._named():
            torch.autograd.backward(ends, grads)
        return {n: t.grad for n, t in self.parameters.items() if t.grad is not None}

    def read(self, p: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The buffers after a call; parameters that the call itself changed are changed in `p`, too."""
        now = self.entries(p)
        with torch.no_grad():
            for name, t in self.parameters.items():
                p[name].copy_(t)
        return {name: t.detach() for name, t in now.items() if name not in self.parameters}

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Whatever a module raises is a UserError."""
        try:
            yield
        except UserError:
            raise
        except Exception as error:  # a module raises whatever it likes
            raise UserError(f"the network {self.model.make} fails: {words(error)}") from error


class Through(torch.autograd.Function):
    """What a `Live` made, as a function of the values that it was loaded with."""

    @staticmethod
    def forward(ctx: Any, live: Live, names: list[str], made: tuple[Tensor, ...], *values: Tensor) -> Any:
        ctx.live, ctx.names, ctx.made = live, names, made
        ctx.set_materialize_grads(False)
        return tuple(t.detach() for t in made)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        gradients = ctx.live.back(*zip(ctx.made, grads, strict=True))
        return None, None, None, *map(gradients.get, ctx.names)


def both(model: Network, ops: Any, p: Mapping[str, Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    """Representation and logits of samples x [B, ...] as functions of the values `p`."""
    wanted, made = torch.is_grad_enabled() and any(t.requires_grad for t in p.values()), instance(model, model.seed)
    with torch.inference_mode(False):
        if ops.generators:
            if "live" not in ops.own:
                ops.own["live"] = Live(model, made, p, True)
            live = ops.own["live"]
            live.load(p, live.parameters)
            outputs = live(x, int(torch.randint(2**62, (), generator=ops.generators[0], device=x.device)))
            ops.buffers |= live.read(p)
        else:
            live = Live(model, made, p, False)
            try:
                with torch.set_grad_enabled(wanted):
                    outputs = live(x, 0)
            except UserError:  # it may ask for gradients on its way
                live = Live(model, made, p, False)
                outputs = live(x, 0)
        if wanted:
            return Through.apply(live, list(p), outputs, *p.values())  # type: ignore[no-any-return]
    return outputs[0].detach(), outputs[1].detach()


def called(model: Model, ops: Any, p: Mapping[str, Tensor], x: Tensor) -> tuple[Tensor, ...]:
    """What the module of a declared network makes of samples x [B, ...], as a function of the values `p`."""
    mine, key = vars(_MINE).setdefault("modules", {}), (model, bool(ops.generators))
    if key not in mine:
        with torch.device("meta"):  # it has no values of its own
            mine[key] = model.module().train(bool(ops.generators))
    if not ops.generators:
        return functional_call(mine[key], dict(p), x)  # type: ignore[no-any-return]
    seed = int(torch.randint(2**62, (), generator=ops.generators[0], device=ops.generators[0].device))
    with _LUCK, globally("module", seed % 2**32, seed >> 32):
        return functional_call(mine[key], dict(p), x)  # type: ignore[no-any-return]


def copied(model: Network, module: nn.Module, dtype: torch.dtype, device: torch.device) -> nn.Module:
    """A deep copy; UserError if there is none.

    Its convolutions of 1 x 1 have no stride: samples of their input compute the same. torch 2.13's way back through
    such a layer writes outside of its memory on some CPUs (`models.ops`).
    """
    try:
        mine = copy.deepcopy(module)
    except Exception as error:
        raise UserError(f"the network {model.make} cannot be copied: {words(error)}") from error
    mine._apply(lambda t: t.to(device, dtype) if t.is_floating_point() else t.to(device))
    for m in mine.modules():
        if isinstance(m, nn.Conv2d) and m.kernel_size == (1, 1) and m.padding == (0, 0) and m.stride != (1, 1):
            m.register_forward_pre_hook(lambda _, x, stride=m.stride: avg_pool2d(x[0], 1, stride))
            m.stride = (1, 1)
    return mine


def samples(sample: Sample | None, batch: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Random ones [batch, ...], between 0 and 1 or token ids; UserError if nothing is known of them."""
    if sample is None:
        raise UserError("what samples a network is given says the problem that it belongs to")
    stream = torch.Generator().manual_seed(batch)
    if sample.dtype == "int64":
        return torch.randint(max(1, sample.vocabulary), (batch, *sample.shape), generator=stream)
    return torch.rand((batch, *sample.shape), generator=stream, dtype=dtype)


def started(model: Network, training: bool) -> Live:
    """A copy as it is made."""
    module = instance(model, model.seed)
    return Live(model, module, values(module), training)


class Flops(TorchDispatchMode):
    """Counts floating-point operations. torch's own counter watches gradients, for which a module may ask."""

    total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if (count := flop_registry.get(func._overloadpacket)) is not None:
            self.total += count(*args, **(kwargs or {}), out_val=out)
        return out


def cost(model: Network) -> Count:
    """Outputs and multiply-accumulates of a forward pass on one sample, counted while two go through it."""
    count = Count(dict(model.shapes))
    with Flops() as flops:
        _, logits = started(model, False)(samples(model.sample, 2), 0)
    count.layers.append(("output", "Logits", tuple(logits.shape[1:]), 0))
    count.macs = flops.total // 4
    return count
