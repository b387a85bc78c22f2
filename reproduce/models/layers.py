"""The layers of torch that the operator sets know (`models.ops`): what `models.lower` writes down for each."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from reproduce.models.small import MeanEmbedding

EACH = {
    nn.GELU: "gelu", nn.Tanh: "tanh", nn.SiLU: "silu", nn.Sigmoid: "sigmoid", nn.ELU: "elu", nn.Softplus: "softplus",
    nn.LeakyReLU: "leaky_relu", nn.Hardswish: "hardswish", nn.ReLU6: "relu6", nn.Mish: "mish",
}  # fmt: skip
"""Functions of single numbers."""


class Unknown(Exception):
    """What of a module no operator set does."""


def window(*names: str) -> Callable[[Any], dict[str, int]]:
    """Size, stride and padding of a layer's window; Unknown unless they are the same in both directions."""

    def options(m: Any) -> dict[str, int]:
        found = {}
        for name in names:
            value = getattr(m, name)
            pair = tuple(value) if isinstance(value, list | tuple) else (value, value)
            if len(pair) != 2 or pair[0] != pair[1] or not isinstance(pair[0], int):
                raise Unknown(f"the {name} {value} of a {type(m).__name__} is not the same in both directions")
            found[name.removeprefix("kernel_")] = pair[0]
        return found

    return options


POOL = window("kernel_size", "stride", "padding")
LAYERS: dict[type[nn.Module], tuple[str, Callable[[Any], dict[str, Any]]]] = {
    nn.Conv2d: ("conv", window("stride", "padding")),
    nn.Linear: ("linear", lambda m: {}),
    nn.BatchNorm2d: ("norm", lambda m: {}),
    nn.LayerNorm: ("layer_norm", lambda m: {}),
    nn.GroupNorm: ("group_norm", lambda m: {"groups": m.num_groups, "eps": m.eps}),
    nn.MaxPool2d: ("pool", POOL),
    nn.AvgPool2d: ("mean_pool", POOL),
    nn.AdaptiveAvgPool2d: ("global_pool", lambda m: {}),
    nn.ReLU: ("relu", lambda m: {}),
    nn.Dropout: ("dropout", lambda m: {"p": m.p}),
    nn.Dropout2d: ("channel_dropout", lambda m: {"p": m.p}),
    MeanEmbedding: ("embed", lambda m: {}),
    **{kind: ("each", lambda m, name=name: {"function": name}) for kind, name in EACH.items()},  # type: ignore[misc]
}
"""Kind of layer -> its operator, and the operator's arguments beside tensors. What a layer does beyond its operator is
not asked here: the graph then computes something else than the module, and is not used (`models.proof`)."""
FUNCTIONS: dict[str, Callable[..., nn.Module]] = {
    "relu": nn.ReLU,
    "max_pool2d": nn.MaxPool2d,
    "avg_pool2d": nn.AvgPool2d,
    "adaptive_avg_pool2d": nn.AdaptiveAvgPool2d,
    "flatten": nn.Flatten,
    "view": nn.Flatten,
    "reshape": nn.Flatten,
    "dropout": lambda p=0.5, training=True, inplace=False: nn.Dropout(p),
    "dropout2d": lambda p=0.5, training=True, inplace=False: nn.Dropout2d(p),
    "mean": lambda *dims, **kept: nn.AdaptiveAvgPool2d(1),
    **{name: kind for kind, name in EACH.items()},
}
"""Functions that compute what a layer without parameters does, whose arguments they take."""
NAMES: dict[Any, str] = {
    getattr(where, name): name for where in (torch, F) for name in (*FUNCTIONS, "relu_", "add") if hasattr(where, name)
} | {operator.add: "add", operator.iadd: "add", operator.mul: "mul", operator.getitem: "getitem", getattr: "getattr"}
