"""The layers of torch that the operator sets know (`engine.ops`): what `models.lower` writes down for each."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import fx, nn

from reproduce.models.small import MeanEmbedding

if TYPE_CHECKING:
    from reproduce.models.lower import Writer

EACH = {
    nn.GELU: "gelu", nn.Tanh: "tanh", nn.SiLU: "silu", nn.Sigmoid: "sigmoid", nn.ELU: "elu", nn.Softplus: "softplus",
    nn.LeakyReLU: "leaky_relu", nn.Hardswish: "hardswish", nn.ReLU6: "relu6", nn.Mish: "mish",
}  # fmt: skip
"""Functions of single numbers."""


class Unknown(Exception):
    """What of a module no operator set does."""


class Layer(NamedTuple):
    """The operator for a kind of layer.

    takes: what it may be given. image: does it give images (None: if it is given some)? fits: does the operator compute
    what this layer does? but: what it does not. options: the operator's arguments beside tensors.
    """

    op: str
    takes: tuple[str, ...] = ("samples", "images", "features")
    image: bool | None = None
    fits: Callable[[Any, Writer, fx.Node], bool] = lambda m, w, node: True
    but: str = ""
    options: Callable[[Any], dict[str, Any]] = lambda m: {}


def _square(m: Any) -> dict[str, int]:
    """Size, stride and padding of a window; Unknown unless they are the same in both directions."""
    found = {}
    for name in ("kernel_size", "stride", "padding"):
        value = getattr(m, name)
        pair = tuple(value) if isinstance(value, list | tuple) else (value, value)
        if len(pair) != 2 or pair[0] != pair[1] or not isinstance(pair[0], int):
            raise Unknown(f"the {name} {value} of a {type(m).__name__} is not the same in both directions")
        found[name.removeprefix("kernel_")] = pair[0]
    return found


FLAT, SAMPLES = ("samples", "features"), ("samples", "images")
OWN = ", with numbers of its own"
LAYERS: dict[type[nn.Module], Layer] = {
    nn.Conv2d: Layer(
        "conv", image=True, but=", with groups, dilation or another padding",
        fits=lambda m, w, node: m.padding_mode == "zeros" and m.groups == 1 and m.dilation == (1, 1),
        options=lambda m: {name: n for name, n in _square(m).items() if name != "size"},
    ),
    nn.Linear: Layer("linear", FLAT, image=False),
    nn.BatchNorm2d: Layer(
        "norm", SAMPLES, image=True, but=f"{OWN}, or not in the mode of the network",
        fits=lambda m, w, node: m.affine and m.eps == 1e-5 and m.momentum == 0.1 and m.training == w.training,
    ),
    nn.LayerNorm: Layer(
        "layer_norm", ("features",), but=OWN,
        fits=lambda m, w, node: m.eps == 1e-5 and m.bias is not None and len(m.normalized_shape) == 1,
    ),
    nn.GroupNorm: Layer(
        "group_norm", SAMPLES, image=True, but=", without weights", fits=lambda m, w, node: m.affine,
        options=lambda m: {"groups": m.num_groups, "eps": m.eps},
    ),
    nn.MaxPool2d: Layer(
        "pool", image=True, but=OWN, options=_square,
        fits=lambda m, w, node: not m.ceil_mode and m.dilation == 1 and not m.return_indices,
    ),
    nn.AvgPool2d: Layer(
        "mean_pool", image=True, but=OWN, options=_square,
        fits=lambda m, w, node: not m.ceil_mode and m.count_include_pad and m.divisor_override is None,
    ),
    nn.AdaptiveAvgPool2d: Layer(
        "global_pool", image=False, but=" to several numbers, or not flattened",
        fits=lambda m, w, node: m.output_size in (1, (1, 1)) and all(map(w.flattens, node.users)),
    ),
    nn.ReLU: Layer("relu"),
    nn.Dropout: Layer("dropout", ("features",), options=lambda m: {"p": m.p}),
    nn.Dropout2d: Layer("channel_dropout", ("images",), options=lambda m: {"p": m.p}),
    MeanEmbedding: Layer("embed", image=False),
}  # fmt: skip
DROPOUTS = (nn.Dropout, nn.Dropout2d)
MODES = {"inplace": 0, "training": 0}
"""What two layers that compute the same may differ in."""
AS_LAYERS: dict[str, Callable[..., nn.Module]] = {
    "relu": nn.ReLU,
    "max_pool2d": nn.MaxPool2d,
    "avg_pool2d": nn.AvgPool2d,
    "adaptive_avg_pool2d": nn.AdaptiveAvgPool2d,
    **{name: kind for kind, name in EACH.items()},
}
"""Functions that compute what a layer without parameters does, whose arguments they take."""
NAMES: dict[Any, str] = {
    getattr(where, name): name
    for where in (torch, F)
    for name in (*AS_LAYERS, "relu_", "flatten", "dropout", "dropout2d", "mean", "add", "reshape")
    if hasattr(where, name)
} | {operator.add: "add", operator.iadd: "iadd", operator.mul: "mul", operator.getitem: "getitem", getattr: "getattr"}
