"""Eager execution of modules without a graph: a user's own, one client at a time, by the loop that everybody writes.

Every local run, evaluation and gradient has a module of its own, made by the user's constructor with the run's seed.
Its parameters and stored buffers of floating point are loaded from the vector; whatever else it remembers is as the
constructor leaves it. Forward and backward are torch's, and what they draw (dropout, noise) is of one stream.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from reproduce.declare.values import Sample, words
from reproduce.errors import UserError
from reproduce.modules.graph import Count
from reproduce.modules.translate import tensors
from reproduce.streams import globally

_GENERATOR = threading.RLock()  # torch's global generator is one for all threads

_MODULES = threading.local()  # modules of this thread: a call puts values into its module


class Live:
    """The module of a `Network` as its constructor makes it, loaded with the values `p`, in training or in evaluation.

    features: is the representation asked for, what the last linear layer is given?
    """

    def __init__(self, network: Any, p: Mapping[str, Tensor], training: bool, features: bool = False) -> None:
        self.name, self.module = network.make, network.module(network.seed)
        with self._named():
            if (device := next(iter(p.values())).device).type != "cpu":
                self.module.to(device)
            self.entries = self.now(p)
            with torch.no_grad():
                for name, t in self.entries.items():
                    new = p[name].to(t.dtype)
                    # A number of another precision, of which the vector holds what is left, stays as it was made.
                    t.copy_(new if t.dtype == p[name].dtype else torch.where(t.to(p[name].dtype) == p[name], t, new))
            self.module.train() if training else self.module.eval()
        self.seen: dict[str, Tensor] = {}
        for m in [m for m in self.module.modules() if isinstance(m, nn.Linear)][-1:] if features else ():
            m.register_forward_pre_hook(lambda _, inputs: self.seen.update(features=inputs[0]))

    def now(self, p: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The entries of the vector as they are now; UserError if they are others than those of `p`."""
        now = tensors(self.module)
        if other := {(n, t.shape) for n, t in now.items()} ^ {(n, t.shape) for n, t in p.items()}:
            raise UserError(f"the network {self.name} changes what it has: {min(other)[0]} is not as it was")
        return now

    def vector(self, p: Mapping[str, Tensor]) -> Tensor:
        """The values [P] as they are now, in the order and the type of `p`."""
        now = self.now(p)
        return torch.cat([now[n].detach().flatten().to(t.dtype) for n, t in p.items()])

    @contextmanager
    def turn(self, *key: int) -> Iterator[None]:
        """Context in which the module draws from the stream `key`; no other thread draws."""
        strided = any(isinstance(m, nn.Conv2d) and m.kernel_size == (1, 1) != m.stride for m in self.module.modules())
        with _GENERATOR, globally("module", *key), Unstrided() if strided else nullcontext():
            yield

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Representation and logits of samples x [B, ...]."""
        with self._named():
            out = self.module(x.clone(memory_format=torch.contiguous_format))
        logits = getattr(out, "logits", out)
        right = isinstance(logits, Tensor) and logits.dim() == 2 and len(logits) == len(x)
        if right and logits.is_floating_point():
            return self.seen.pop("features", logits), logits
        made = f"{logits.dtype} {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(out).__name__
        raise UserError(
            f"the network {self.name} makes no logits [batch, classes] of samples {tuple(x.shape)}, but {made}"
        )

    def gradients(self, loss: Tensor) -> list[Tensor | None]:
        """The gradient of each entry; None where it has none, also for what has no part in the loss."""
        if not loss.requires_grad:
            raise UserError(f"no parameter has a part in the logits of the network {self.name}")
        with self._named():
            loss.backward()
        grads = [t.grad for t in self.entries.values()]
        return [g.to_dense() if g is not None and g.is_sparse else g for g in grads]

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Context that turns whatever a module raises into a UserError."""
        try:
            yield
        except UserError:
            raise
        except Exception as error:  # a module raises whatever it likes
            raise UserError(f"the network {self.name} fails: {words(error)}") from error


class Unstrided(TorchFunctionMode):
    """Convolutions of 1 x 1 with a stride compute the same by samples of their input: torch 2.13's way back through
    such a layer writes outside of its memory on some CPUs (`modules.ops`)."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.conv2d and len(args) == 7:  # as layers call it: x, weight, bias, stride, padding, ...
            x, weight, bias, stride, padding, *rest = args
            if weight.shape[2:] == (1, 1) != stride and padding == (0, 0):
                args = F.avg_pool2d(x, 1, stride), weight, bias, 1, padding, *rest
        return func(*args, **(kwargs or {}))


def evaluated(
    network: Any, p: Mapping[str, Tensor], batches: Iterable[Tensor], features: bool = False
) -> tuple[Tensor, Tensor]:
    """Representation and logits of samples, by one module in evaluation mode, batch after batch; without gradients,
    unless the module asks for them on its way."""
    batches = list(batches)

    def outputs() -> tuple[Tensor, Tensor]:
        live = Live(network, p, False, features)
        with live.turn(network.seed):
            z, logits = zip(*(map(Tensor.detach, live(x)) for x in batches), strict=True)
        return torch.cat(z), torch.cat(logits)

    with torch.inference_mode(False):
        try:
            with torch.no_grad():
                return outputs()
        except UserError:
            with torch.enable_grad():
                return outputs()


def gradient(network: Any, p: Mapping[str, Tensor], batches: Iterable[tuple[Tensor, Tensor]]) -> Tensor:
    """The gradient [P] of the summed loss of samples with their labels, in evaluation mode."""
    live, grads = Live(network, p, False), list[Tensor | None]()
    with torch.enable_grad(), live.turn(network.seed):
        for x, y in batches:
            grads = live.gradients(F.cross_entropy(live(x)[1], y, reduction="sum"))
    known = {n: g for n, g in zip(live.entries, grads, strict=True) if g is not None}
    return torch.cat([known.get(n, torch.zeros_like(t)).flatten().to(t.dtype) for n, t in p.items()])


def called(model: Any, ops: Any, p: Mapping[str, Tensor], x: Tensor) -> tuple[Tensor, ...]:
    """The outputs of a declared model's module for samples x [B, ...], as a function of the values `p`."""
    modules, key = vars(_MODULES).setdefault("modules", {}), (model, bool(ops.generators))
    if key not in modules:
        with torch.device("meta"):  # it has no values of its own
            modules[key] = model.module().train(bool(ops.generators))
    if not ops.generators:
        return functional_call(modules[key], dict(p), x)  # type: ignore[no-any-return]
    seed = int(torch.randint(2**62, (), generator=ops.generators[0], device=ops.generators[0].device))
    with _GENERATOR, globally("module", seed % 2**32, seed >> 32):
        return functional_call(modules[key], dict(p), x)  # type: ignore[no-any-return]


def samples(sample: Sample, batch: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Random samples [batch, ...], between 0 and 1 or token ids."""
    stream = torch.Generator().manual_seed(batch)
    if sample.dtype == "int64":
        return torch.randint(max(1, sample.vocabulary), (batch, *sample.shape), generator=stream)
    return torch.rand((batch, *sample.shape), generator=stream, dtype=dtype)


class Flops(TorchDispatchMode):
    """Counts floating-point operations. FlopCounterMode hooks into gradients, for which a module may ask in forward."""

    total = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # which would import a compiler first

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if (count := flop_registry.get(func._overloadpacket)) is not None:
            self.total += count(*args, **(kwargs or {}), out_val=out)
        return out


def cost(network: Any, p: Mapping[str, Tensor], x: Tensor) -> Count:
    """The count of a forward pass on one sample, made while the batch x goes through it."""
    count = Count({n: tuple(t.shape) for n, t in p.items()})
    with Flops() as flops:
        _, logits = evaluated(network, p, [x])
    count.outputs, count.macs = tuple(logits.shape[1:]), flops.total // (2 * len(x))
    return count
