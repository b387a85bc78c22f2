"""A user's module is examined before it is trained: can it be run at all, and may a graph take its place?

A graph may if the module's structure allows it (`models.structure`) and if, as a second lock, it computes on random
samples what the module does: logits in training and in evaluation, gradients, buffers that moved, with two seeds and
two sizes of batches; and if a stack of both computes what each does.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from reproduce.declare.values import calling
from reproduce.errors import UserError
from reproduce.models.alone import Live, cost, evaluated, samples
from reproduce.models.graph import Count, Graph
from reproduce.models.lower import Unknown, entries, lower, tensors
from reproduce.models.ops import One, Stacked
from reproduce.models.structure import built, obstacle
from reproduce.streams import globally

if TYPE_CHECKING:
    from reproduce.models.network import Network

SAME = 1e-10


def examined(model: Network) -> tuple[Graph, Count | None]:
    """The graph of a user's module, or one that says why the module runs by itself, with what a forward pass costs.
    UserError if it cannot be run. To be called in a process of its own."""
    torch.set_num_threads(1)
    module = model.module(0)
    with calling(f"the network {model.make}", "examined"):
        if said := _unfit(module):
            raise ValueError(said)
        whole = Graph(*entries(module), outputs=(2,), features=1, alone="nothing is known of its samples")
    if model.sample is None:
        return whole, None
    if whole.shapes != entries(model.module(1))[0]:
        raise UserError(f"the network {model.make} has other parameters with another seed: give it its sizes")
    p, small = _values(module), 3
    try:
        first = _tried(model, p, small)
    except UserError:  # it may be made for batches of one size
        small = model.batch
        first = _tried(model, p, small)
    if not all(torch.allclose(a, b, 0, 0, equal_nan=True) for a, b in zip(first, _tried(model, p, small), strict=True)):
        raise UserError(
            f"the network {model.make} gives other numbers when it is made and run once more with the same seed: it "
            "may draw from a generator without a seed, or remember something outside of itself"
        )
    drawn = any(built(model.module(seed)) != built(module) for seed in range(1, 8))
    why = obstacle(module) or "its constructor draws its structure" * drawn
    if not why:
        try:
            with globally("trace"):
                graph = lower(module)
            if _equal(model, graph):
                return graph, None
            why = "what torch.fx makes of it computes something else"
        except Unknown as error:
            why = str(error)
        except Exception as error:  # a call as nobody has foreseen it
            why = f"it is written in another way ({type(error).__name__}: {error})"
    return replace(whole, alone=why), cost(model, p, small)


def _values(module: nn.Module) -> dict[str, Tensor]:
    return {n: t.detach().float().clone() for n, t in tensors(module).items()}


def _unfit(module: nn.Module) -> str:
    """Why a module cannot be trained; "" if nothing is known against it."""
    for name, t in tensors(module).items():
        if not t.is_floating_point():
            return f"{name} is {t.dtype}: use real parameters (torch.view_as_complex in forward)"
        if t.layout is not torch.strided:
            return f"{name} is sparse: use a dense tensor, or register the buffer with persistent=False"
    return "" if any(t.requires_grad for t in module.parameters()) else "it has no parameters that are trained"


def _tried(model: Network, p: Mapping[str, Tensor], batch: int) -> list[Tensor]:
    """What a module makes of some samples, in training and in evaluation."""
    x, live = samples(model.sample, batch), Live(model, p, True)
    with live.turn(0):
        _, logits = live(x.clone())
        grads = live.gradients(logits.sum())
    _, judged = evaluated(model, p, [x])
    return [logits.detach(), *(g for g in grads if g is not None), live.vector(p), judged]


class Drawing(One):
    """Drops as torch does, by the global generator."""

    def dropout(self, x: Tensor, p: float) -> Tensor:
        return F.dropout(x, p, bool(self.generators))

    def channel_dropout(self, x: Tensor, p: float) -> Tensor:
        return F.dropout2d(x, p, bool(self.generators))


def _equal(model: Network, graph: Graph) -> bool:
    """Does a graph compute what the module itself does, for one model and for a stack?"""
    assert model.sample is not None
    try:
        graph.run(Count(dict(graph.shapes)), {n: n for n in graph.shapes}, {0: model.sample.shape}, graph.outputs)
        modules = [model.module(seed).double() for seed in (0, 1)]
        for batch, training in itertools.product((3, 5), (True, False)):
            x = samples(model.sample, batch, torch.float64)
            x = torch.stack([4 * x - 2, x] if x.is_floating_point() else [x, x.flip(0)])
            p = [{n: t.detach().clone() for n, t in tensors(module).items()} for module in modules]
            luck = [torch.default_generator] * training
            ours = [_made(graph, Drawing(luck), *pair) for pair in zip(p, x, strict=True)]
            theirs = [_outcome(module.train(training), each) for module, each in zip(modules, x, strict=True)]
            if not training or not any("dropout" in kind for kind in graph.kinds):  # a stack draws otherwise
                stack = {n: torch.stack([each[n] for each in p]) for n in graph.shapes}
                made = _made(graph, Stacked(2, luck * 2, batch), stack, x)
                ours, theirs = [*ours, *([t[i] for t in made] for i in (0, 1))], theirs * 2
            if not all(map(_close, ours, theirs)):
                return False
    except Exception:  # what a graph cannot be given
        return False
    return True


def _outcome(module: nn.Module, x: Tensor) -> list[Tensor]:
    """Logits of samples [B, ...], gradients of all entries, and the entries after the pass."""
    module.zero_grad()
    with globally("proof"):
        out = module(x.clone())
    out.backward(out.detach().cos())
    now = tensors(module).values()
    return [out, *(torch.zeros_like(t) if t.grad is None else t.grad for t in now), *(t.detach().clone() for t in now)]


def _made(graph: Graph, ops: One, p: Mapping[str, Tensor], x: Tensor) -> list[Tensor]:
    """The same of a graph."""
    leaves = {n: t.clone().requires_grad_() for n, t in p.items()}
    with globally("proof"):
        (out,) = graph.run(ops, leaves, {0: ops.images(x)}, graph.outputs)
    grads = torch.autograd.grad(out, list(leaves.values()), out.detach().cos(), materialize_grads=True)
    return [out, *grads, *(ops.buffers.get(n, t) for n, t in p.items())]


def _close(ours: list[Tensor], theirs: list[Tensor]) -> bool:
    pairs = zip(ours, theirs, strict=True)
    return all(a.shape == b.shape and bool((a - b).abs().max() <= SAME * (1 + b.abs().max())) for a, b in pairs)
