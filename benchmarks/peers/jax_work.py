"""`python -m benchmarks.peers.jax_work W1`: a work in plain JAX, compiled as a whole: what a user of JAX would write.

A round is one call: `pmap` over two devices of the processor, `vmap` over the clients, `scan` over the local steps.
Every pass is a new permutation, drawn inside, so that Python does nothing per step.
"""

from __future__ import annotations

import os
from functools import partial

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import jax  # type: ignore[import-not-found]
import jax.numpy as jnp  # type: ignore[import-not-found]
import numpy as np
from jax import lax, random

from benchmarks.peers.common import RATE, Clock, arguments, data_of, network, work_of

Weights = dict[str, jax.Array]


def logits(w: Weights, x: jax.Array, key: jax.Array) -> jax.Array:
    """Of a batch: `common.Conv` in training mode, or one linear layer."""
    if "weight" in w:
        return x @ w["weight"].T + w["bias"]
    channels, drop = random.split(key)
    for layer in ("conv1", "conv2"):
        x = lax.conv(x, w[f"{layer}.weight"], (1, 1), "VALID") + w[f"{layer}.bias"][:, None, None]
        if layer == "conv2":
            x = 2 * x * random.bernoulli(channels, 0.5, (*x.shape[:2], 1, 1))
        b, c, h, _ = x.shape
        x = jax.nn.relu(x.reshape(b, c, h // 2, 2, h // 2, 2).max((3, 5)))
    x = jax.nn.relu(x.reshape(len(x), -1) @ w["fc1.weight"].T + w["fc1.bias"])
    return 2 * x * random.bernoulli(drop, 0.5, x.shape) @ w["fc2.weight"].T + w["fc2.bias"]


def loss(w: Weights, x: jax.Array, y: jax.Array, key: jax.Array) -> jax.Array:
    """Mean cross-entropy of a batch."""
    return -jnp.take_along_axis(jax.nn.log_softmax(logits(w, x, key)), y[:, None], 1).mean()


def local(steps: int, batch: int, start: Weights, x: jax.Array, y: jax.Array, key: jax.Array) -> Weights:
    """A client's update after `steps` of SGD."""
    order, drops = random.split(key)
    passes = -(-steps * batch // len(x))
    index = jax.vmap(lambda k: random.permutation(k, len(x)))(random.split(order, passes)).reshape(-1, batch)[:steps]

    def step(w: Weights, now: tuple[jax.Array, jax.Array]) -> tuple[Weights, None]:
        slope = jax.grad(loss)(w, x[now[0]], y[now[0]], now[1])
        return jax.tree.map(lambda p, g: p - RATE * g, w, slope), None

    end, _ = lax.scan(step, start, (index, random.split(drops, steps)))
    return jax.tree.map(jnp.subtract, end, start)


def main() -> None:
    args = arguments().parse_args()
    work, devices = work_of(args.work), jax.local_device_count()
    x, y = (jnp.stack([jnp.asarray(part[i].numpy()) for part in data_of(args.work)]) for i in (0, 1))
    start = server = {name: jnp.asarray(p.detach().numpy()) for name, p in network(args.work).named_parameters()}

    @partial(jax.pmap, axis_name="devices", in_axes=(None, None, None, 0, 0), out_axes=None)
    def play(w: Weights, x: jax.Array, y: jax.Array, clients: jax.Array, keys: jax.Array) -> Weights:
        updates = jax.vmap(partial(local, work.steps, work.batch), (None, 0, 0, 0))(w, x[clients], y[clients], keys)
        return jax.tree.map(lambda p, u: p + lax.pmean(u.mean(0), "devices"), w, updates)

    clock = Clock(args.warm)
    for r in range(args.warm + args.rounds):
        clients = (np.arange(work.per_round) + r * work.per_round) % work.clients
        keys = random.split(random.key(r), work.per_round).reshape(devices, -1)
        server = jax.block_until_ready(play(server, x, y, clients.reshape(devices, -1), keys))
        clock.tick()
    moved = float(sum(jnp.square(server[n] - start[n]).sum() for n in start)) ** 0.5
    extra: dict[str, object] = {"processes": 1, "threads": devices}
    if args.count:  # the shapes are fixed when the round is compiled
        counts = work.per_round * work.steps
        extra |= {"steps_per_round": counts, "samples_per_round": counts * work.batch}
    clock.report("JAX", "jax", args.work, moved, extra)


if __name__ == "__main__":
    main()
