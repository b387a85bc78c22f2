"""Examines a user's module before it is trained: whether it can be run at all, and whether a graph may replace it.

A graph may if the module's structure allows it (`modules.structure`) and if, as a second lock, it computes on random
samples what the module does: logits in training and in evaluation, gradients, buffers that moved, in a stack of two
models and with two sizes of batches. Dropout is left out of this comparison.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from reproduce.declare.values import Sample, calling
from reproduce.errors import UserError
from reproduce.modules.eager import Live, cost, evaluated, samples
from reproduce.modules.graph import Count, Graph
from reproduce.modules.ops import Stacked
from reproduce.modules.structure import built, obstacle
from reproduce.modules.translate import DROPOUT, Unknown, entries, tensors, translate
from reproduce.streams import globally

if TYPE_CHECKING:
    from reproduce.models.network import Network

SAME = 1e-10


def examined(network: Network) -> tuple[Graph, Count | None]:
    """The graph of a user's module, or one that says why the module runs eagerly, with the cost of a forward pass.
    UserError if it cannot be run. To be called in a process of its own."""
    torch.set_num_threads(1)
    module = network.module(0)
    with calling(f"the network {network.make}", "examined"):
        if reason := _unfit(module):
            raise ValueError(reason)
        whole = Graph(*entries(module), outputs=(2,), features=1, untraced="nothing is known of its samples")
    if network.sample is None:
        return whole, None
    if whole.shapes != entries(network.module(1))[0]:
        raise UserError(f"the network {network.make} has other parameters with another seed: give it its sizes")
    p = {n: t.detach().float().clone() for n, t in tensors(module).items()}
    try:
        first = _tried(network, p, x := samples(network.sample, 3))
    except UserError:  # it may be made for batches of one size
        first = _tried(network, p, x := samples(network.sample, network.batch))
    if not all(torch.allclose(a, b, 0, 0, equal_nan=True) for a, b in zip(first, _tried(network, p, x), strict=True)):
        raise UserError(
            f"the network {network.make} gives other numbers when it is made and run once more with the same seed: it "
            "may draw from a generator without a seed, or remember something outside of itself"
        )
    random = any(built(network.module(seed)) != built(module) for seed in range(1, 8))
    reason = obstacle(module) or "its constructor draws its structure" * random
    if not reason:
        try:
            with globally("trace"):
                graph = translate(module)
            _compare(network, network.sample)
            return graph, None
        except Unknown as error:
            reason = str(error)
        except Exception:  # whatever a call raises that nobody has foreseen, too
            reason = "what torch.fx makes of it computes something else"
    return replace(whole, untraced=reason), cost(network, p, x)


def _unfit(module: nn.Module) -> str:
    """The reason why a module cannot be trained; "" if nothing is known against it."""
    for name, t in tensors(module).items():
        if not t.is_floating_point():
            return f"{name} is {t.dtype}: use real parameters (torch.view_as_complex in forward)"
        if t.layout is not torch.strided:
            return f"{name} is sparse: use a dense tensor, or register the buffer with persistent=False"
    return "" if any(t.requires_grad for t in module.parameters()) else "it has no parameters that are trained"


def _tried(network: Network, p: Mapping[str, Tensor], x: Tensor) -> list[Tensor]:
    """Logits of samples in training and in evaluation, gradients, and the vector after a pass."""
    live = Live(network, p, True)
    with live.turn(0):
        _, logits = live(x.clone())
        grads = live.gradients(logits.sum())
    _, tested = evaluated(network, p, [x])
    return [logits.detach(), *(g for g in grads if g is not None), live.vector(p), tested]


def _compare(network: Network, sample: Sample) -> None:
    """Raises an error unless the graph computes the module's numbers, for two models in a stack, without dropout."""
    modules = [network.module(seed).double() for seed in (0, 1)]
    for m in (m for module in modules for m in module.modules() if isinstance(m, DROPOUT)):
        m.p = 0.0
    graph = translate(modules[0])
    graph.run(Count(dict(graph.shapes)), {}, sample.shape, graph.outputs)
    for batch, training in itertools.product((3, 5), (True, False)):
        x = samples(sample, batch, torch.float64)
        x = torch.stack([4 * x - 2, x] if x.is_floating_point() else [x, x.flip(0)])
        p = [tensors(module) for module in modules]
        stack = {n: torch.stack([each[n] for each in p]).detach().requires_grad_() for n in graph.shapes}
        ops = Stacked(2, [torch.default_generator] * 2 * training, batch)
        (out,) = graph.run(ops, stack, ops.images(x), graph.outputs)
        grads = torch.autograd.grad(out, list(stack.values()), out.detach().cos(), materialize_grads=True)
        ours = [out, *grads, *(ops.buffers.get(n, t) for n, t in stack.items())]
        theirs = [_outcome(module.train(training), each) for module, each in zip(modules, x, strict=True)]
        torch.testing.assert_close(ours, [*map(torch.stack, zip(*theirs, strict=True))], rtol=SAME, atol=SAME)


def _outcome(module: nn.Module, x: Tensor) -> list[Tensor]:
    """Logits of samples [B, ...], gradients of all entries, and the entries after the pass."""
    module.zero_grad()
    out = module(x.clone())
    out.backward(out.detach().cos())
    now = tensors(module).values()
    return [out, *(torch.zeros_like(t) if t.grad is None else t.grad for t in now), *(t.detach().clone() for t in now)]
