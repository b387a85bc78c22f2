"""The operators of networks in JAX, so that a model of the engine runs there as it is declared."""

from __future__ import annotations

from typing import Any

import jax  # type: ignore[import-not-found]
import jax.numpy as jnp  # type: ignore[import-not-found]
from jax import lax

Array = Any


class Jax:
    """As `reproduce.modules.ops.One`, for networks without dropout and running statistics."""

    def conv(self, x: Array, p: Any, layer: str, stride: int = 1, padding: int = 0) -> Array:
        bias = p.get(f"{layer}.bias")
        made = lax.conv_general_dilated(x, p[f"{layer}.weight"], (stride, stride), [(padding, padding)] * 2)
        return made if bias is None else made + bias[:, None, None]

    def linear(self, x: Array, p: Any, layer: str) -> Array:
        return x @ p[f"{layer}.weight"].T + p[f"{layer}.bias"]

    def norm(self, x: Array, p: Any, layer: str) -> Array:
        mean, var = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
        weight, bias = (p[f"{layer}.{name}"][:, None, None] for name in ("weight", "bias"))
        return (x - mean) * lax.rsqrt(var + 1e-5) * weight + bias

    def pool(self, x: Array, size: int = 2, stride: int = 2, padding: int = 0) -> Array:
        edge = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, size, size), (1, 1, stride, stride), edge)

    def relu(self, x: Array) -> Array:
        return jax.nn.relu(x)

    relu_apart = relu

    def flatten(self, x: Array) -> Array:
        return x.reshape(len(x), -1)

    def global_pool(self, x: Array) -> Array:
        return x.mean((2, 3))

    def add(self, x: Array, y: Array) -> Array:
        return x + y
