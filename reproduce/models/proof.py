"""A user's module is examined before it is trained: can it be run and copied at all, and may a graph take its place?

A graph may if, on random samples, it computes what the module itself does: logits in training and in evaluation,
gradients of all parameters, buffers that moved, and what was drawn, with two seeds and two sizes of batches, and if a
stack of both computes what each does.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from reproduce.declare.values import calling
from reproduce.errors import UserError
from reproduce.models.alone import Live, copied, instance, samples, values
from reproduce.models.graph import Count, Graph
from reproduce.models.lower import Unknown, entries, lower, tensors
from reproduce.models.ops import One, Stacked
from reproduce.streams import globally

if TYPE_CHECKING:
    from reproduce.models.network import Network

SAME = 1e-10
CPU = torch.device("cpu")


def examined(model: Network) -> Graph:
    """The graph of a user's module, or one that says why the module runs by itself; UserError if it cannot run."""
    module = instance(model, 0)
    with calling(f"the network {model.make}", "examined"):
        if said := _unfit(module):
            raise ValueError(said)
    if model.sample is None:
        return _by_itself(module, "nothing is known of its samples")
    with calling(f"the network {model.make}", "examined"):
        first, again = (_outcome(model, made) for made in (module, model.module(0)))
    if not all(torch.allclose(a, b, 0, 0, equal_nan=True) for a, b in zip(first, again, strict=True)):
        raise UserError(
            f"the network {model.make} gives other numbers when it is made and run once more with the same seed: it "
            "may draw from a generator without a seed, or remember something outside of itself"
        )
    if any(t.grad is not None for t in module.parameters()):
        raise UserError(f"the network {model.make} cannot be copied: what a copy computes with is the first one's")
    try:
        with globally("trace"):
            graph = lower(copy.deepcopy(module))
        why = "" if _equal(model, graph) else "what torch.fx makes of it computes something else"
    except Unknown as error:
        why = str(error)
    except Exception as error:  # a call as nobody has foreseen it
        why = f"it is written in another way ({type(error).__name__}: {error})"
    return _by_itself(module, why) if why else graph


def _by_itself(module: nn.Module, why: str) -> Graph:
    return Graph(*entries(module), outputs=(2,), features=1, alone=why)


def _unfit(module: nn.Module) -> str:
    """Why a module cannot be trained; "" if nothing is known against it."""
    for name, t in module.named_parameters():
        if not t.is_floating_point():
            return f"{name} is {t.dtype}: use real parameters (torch.view_as_complex in forward)"
        if t._backward_hooks or getattr(t, "_post_accumulate_grad_hooks", None):
            return f"{name} has a hook, which no copy of it has: register it in forward"
    return "" if any(t.requires_grad for t in module.parameters()) else "it has no parameters that are trained"


def _outcome(model: Network, module: nn.Module) -> list[Tensor]:
    """What copies of a module make of some samples, in training and in evaluation."""
    p, x = values(module), samples(model.sample, 3)
    live = Live(model, module, p, True)
    _, logits = live(x, 0)
    grads = live.back((logits, torch.ones_like(logits)))
    _, judged = Live(model, module, p, False)(x, 0)
    return [logits.detach(), *grads.values(), *live.read(p).values(), judged.detach()]


class Drawing(One):
    """Drops as torch does, by the global generator."""

    def dropout(self, x: Tensor, p: float) -> Tensor:
        return F.dropout(x, p, bool(self.generators))

    def channel_dropout(self, x: Tensor, p: float) -> Tensor:
        return F.dropout2d(x, p, bool(self.generators))


def _equal(model: Network, graph: Graph) -> bool:
    """Does a graph compute what the module itself does?"""
    assert model.sample is not None
    try:
        graph.run(Count(dict(graph.shapes)), {n: n for n in graph.shapes}, {0: model.sample.shape}, graph.outputs)
        modules = [copied(model, instance(model, seed), torch.float64, CPU) for seed in (0, 1)]
        for batch in (3, 5):
            x = samples(model.sample, batch, torch.float64)
            x = 4 * x - 2 if x.is_floating_point() else x
            for training in (True, False):
                alike = [_like(graph, module.train(training), x) for module in modules]
                if not all(alike) or not _stacked(graph, modules, torch.stack([x, x.flip(0)]), training):
                    return False
    except Exception:  # what a graph cannot be given
        return False
    return True


def _like(graph: Graph, module: nn.Module, x: Tensor) -> bool:
    """Of samples x [B, ...] a graph makes what a module makes, by the same values and with the same luck."""
    p = {n: t.detach().clone() for n, t in tensors(module).items()}
    ours, luck = _made(graph, Drawing([torch.default_generator] * module.training), p, x)
    module.zero_grad()
    with globally("proof"):
        out = module(x.clone())
        same = luck == _luck()
    out.backward(out.detach().cos())
    now = tensors(module)
    grads = [torch.zeros_like(t) if t.grad is None else t.grad for t in now.values()]
    if not module.training:
        with torch.inference_mode():
            same = same and _close([out], [module(x.clone())])
    return same and _close(ours, [out, *grads, *(t.detach() for t in now.values())])


def _stacked(graph: Graph, modules: list[nn.Module], x: Tensor, training: bool) -> bool:
    """Of samples x [A, B, ...] a stack of A models makes what each of them makes, dropout included."""
    p = [{n: t.detach().clone() for n, t in tensors(module).items()} for module in modules]

    def streams(*which: int) -> list[torch.Generator]:
        return [torch.Generator().manual_seed(i) for i in which] if training else []

    stack, size = {n: torch.stack([each[n] for each in p]) for n in graph.shapes}, x.shape[1]
    together, _ = _made(graph, Stacked(len(x), streams(*range(len(x))), size), stack, x)
    apart = (_made(graph, One(streams(i), size), p[i], x[i])[0] for i in range(len(x)))
    return all(_close([t[i] for t in together], each) for i, each in enumerate(apart))


def _made(graph: Graph, ops: One, p: Mapping[str, Tensor], x: Tensor) -> tuple[list[Tensor], Any]:
    """Logits, gradients of all entries and the entries after the pass; and what is drawn next."""
    leaves = {n: t.clone().requires_grad_() for n, t in p.items()}
    with globally("proof"):
        (out,) = graph.run(ops, leaves, {0: ops.images(x)}, graph.outputs)
        luck = _luck()
    grads = torch.autograd.grad(out, list(leaves.values()), out.detach().cos(), materialize_grads=True)
    return [out, *grads, *(ops.buffers.get(n, t) for n, t in p.items())], luck


def _luck() -> tuple[float, ...]:
    return random.random(), float(np.random.random()), float(torch.rand(()))  # noqa: NPY002 (the global one)


def _close(ours: list[Tensor], theirs: list[Tensor]) -> bool:
    pairs = zip(ours, theirs, strict=True)
    return all(a.shape == b.shape and bool((a - b).abs().max() <= SAME * (1 + b.abs().max())) for a, b in pairs)
