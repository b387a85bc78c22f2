"""Ways to compute local steps on a GPU that the engine does not have, for `python -m benchmarks gpu`.

Each trains clients from the engine's batches for a fixed number of SGD steps and gives their updates [clients, P]. All
buffers lie on the device, and a counter there says which batch is next, so that a CUDA graph replays a step. Dropout is
left out, and so are running statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from reproduce.engine.client_split import ClassificationSplit
from reproduce.engine.local import reduced
from reproduce.modules.ops import One, Params, Stacked

RATE = 0.01
Call = Callable[[], Any]


class Contiguous(One):
    """One model on images that are not channels-last."""

    def images(self, x: Tensor) -> Tensor:
        return x

    def pool(self, x: Tensor, size: int = 2, stride: int = 2, padding: int = 0) -> Tensor:
        return F.max_pool2d(x, size, stride, padding)


class Unfolded(Stacked):
    """A stack of models with convolutions as batched products of unfolded images."""

    def conv(self, x: Tensor, p: Params, layer: str, stride: int = 1, padding: int = 0) -> Tensor:
        weight, bias = p[f"{layer}.weight"], p.get(f"{layer}.bias")  # [A, out, in, k, k]
        (a, out, _, k, _), (b, _, h, w) = weight.shape, x.shape
        high, wide = ((size + 2 * padding - k) // stride + 1 for size in (h, w))
        columns = F.unfold(x, k, padding=padding, stride=stride).view(b, a, -1, high * wide)
        made = torch.einsum("aok,bakl->baol", weight.flatten(2), columns)  # one product a model over batch and places
        made = made if bias is None else made + bias[..., None]
        return made.reshape(b, a * out, high, wide)


class Lane:
    """The buffers of `width` models that train side by side, group after group of clients."""

    def __init__(
        self, split: ClassificationSplit, groups: Sequence[np.ndarray], steps: int, ops: type[One], precision: str
    ) -> None:
        self.split, self.groups, self.steps, self.precision = split, groups, steps, precision
        width = len(groups[0])
        self.ops: One = ops(width) if issubclass(ops, Stacked) else ops()  # type: ignore[arg-type]
        self.stacked = issubclass(ops, Stacked)
        plans = [np.stack([split.plan(int(c), steps, 0, 0) for c in group], 1) for group in groups]  # [steps, width, B]
        self.batches = torch.from_numpy(np.concatenate(plans)).to(split.device)
        self.next = torch.zeros(1, dtype=torch.int64, device=split.device)
        layout = split.device_data.layout
        blocks = layout.blocks(split.initial().expand(width, -1))
        self.start = [b.contiguous() for b in blocks] if ops is Contiguous else blocks
        self.now = [b.clone() for b in self.start]
        self.step: Call = self._step

    def _step(self) -> None:
        home, layout = self.split.device_data, self.split.device_data.layout
        where = self.batches.index_select(0, self.next)[0]  # [width, B]
        self.next += 1
        where = where if self.stacked else where[0]
        leaves = [(b if self.stacked else b[0]).detach().requires_grad_() for b in self.now]
        with reduced(self.precision, self.split.device):
            p = dict(zip(layout.names, leaves, strict=True))
            logits = layout.model.forward(self.ops, p, self.ops.images(home.train_x[where]))
        loss = self.ops.losses(logits.float(), home.train_y[where], None)
        grads = torch.autograd.grad(loss, leaves)
        with torch.no_grad():
            torch._foreach_add_(leaves, grads, alpha=-RATE)

    def capture(self) -> None:
        """From now on a step is a replay of its CUDA graph."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # what is set up in the first steps is no part of the graph
            self.next.zero_()
            for _ in range(min(3, len(self.batches))):
                self._step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        self.next.zero_()
        with torch.cuda.graph(graph):
            self._step()
        self.step = graph.replay


def torch_way(
    split: ClassificationSplit,
    clients: int,
    steps: int,
    precision: str,
    ops: type[One] = One,
    graph: bool = False,
    streams: int = 1,
    search: bool = False,
) -> Call:
    """A call that trains the clients: in one stack where `ops` is of stacks, else `streams` at a time. search: cuDNN
    chooses its algorithms by timing them."""
    torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = search, not search
    groups = [np.arange(clients)] if issubclass(ops, Stacked) else [np.array([c]) for c in range(clients)]
    streams = min(streams, len(groups))
    lanes = [Lane(split, groups[i::streams], steps, ops, precision) for i in range(streams)]
    cuda = split.device.type == "cuda"
    for lane in lanes if graph and cuda else ():
        lane.capture()
    side: list[Any] = [torch.cuda.Stream() for _ in lanes] if cuda and streams > 1 else [None] * streams
    layout = split.device_data.layout

    def call() -> Tensor:
        found: dict[int, Tensor] = {}
        for lane, stream in zip(lanes, side, strict=True):
            if stream:
                stream.wait_stream(torch.cuda.current_stream())
            lane.next.zero_()
        for turn in range(len(lanes[0].groups)):
            busy = [(lane, s) for lane, s in zip(lanes, side, strict=True) if turn < len(lane.groups)]
            for k in range(steps):  # the streams in turn, so that none waits until another's work is given out
                for lane, stream in busy:
                    with torch.cuda.stream(stream) if stream else nullcontext():
                        if k == 0:
                            torch._foreach_copy_(lane.now, lane.start)
                        lane.step()
                        if k + 1 == steps:
                            rows = layout.rows(lane.now) - layout.rows(lane.start)
                            found |= dict(zip(lane.groups[turn].tolist(), rows, strict=True))
        for stream in filter(None, side):
            torch.cuda.current_stream().wait_stream(stream)
        return torch.stack([found[c] for c in range(clients)])

    return call


def jax_way(split: ClassificationSplit, clients: int, steps: int, precision: str, together: bool) -> Call:
    """The same in JAX, jitted as a whole: `scan` over the steps, `vmap` (together) or `map` over the clients."""
    import os

    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # it shares the memory with torch
    import jax  # type: ignore[import-not-found]
    import jax.numpy as jnp  # type: ignore[import-not-found]

    from benchmarks.jaxops import Jax

    home, layout = split.device_data, split.device_data.layout
    x, y = jnp.asarray(home.train_x.cpu().numpy()), jnp.asarray(home.train_y.cpu().numpy())
    plans = jnp.asarray(np.stack([split.plan(c, steps, 0, 0) for c in range(clients)]))  # [clients, steps, B]
    start = {name: jnp.asarray(t.cpu().numpy()) for name, t in layout.named(split.initial()).items()}

    def loss(p: Any, where: Any) -> Any:
        if precision == "bfloat16":
            p = jax.tree.map(lambda t: t.astype(jnp.bfloat16), p)
        logits = layout.model.forward(Jax(), p, x[where].astype(jax.tree.leaves(p)[0].dtype))
        chances = jax.nn.log_softmax(logits.astype(jnp.float32))
        return -jnp.take_along_axis(chances, y[where][:, None], 1).mean()

    def client(batches: Any) -> Any:
        def step(p: Any, where: Any) -> Any:
            return jax.tree.map(lambda a, g: a - RATE * g, p, jax.grad(loss)(p, where)), None

        end, _ = jax.lax.scan(step, start, batches)
        return jnp.concatenate([(end[name] - start[name]).ravel() for name in layout.names])

    every = jax.vmap(client) if together else partial(jax.lax.map, client)
    with jax.default_matmul_precision("tensorfloat32" if precision == "tf32" else "float32"):
        run = jax.jit(every).lower(plans).compile()
    return lambda: torch.from_numpy(np.array(run(plans)))
