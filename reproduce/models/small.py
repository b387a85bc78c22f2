"""The small networks of the papers as plain modules, each made from its record in `models.declared`."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from typing import TYPE_CHECKING

from torch import nn

from reproduce.modules.translate import MeanEmbedding

if TYPE_CHECKING:
    from reproduce.models import declared


def chain(layers: dict[str, nn.Module]) -> nn.Sequential:
    return nn.Sequential(OrderedDict(layers))


def softmax(net: declared.Softmax) -> nn.Sequential:
    return chain({"flatten": nn.Flatten(), "fc": nn.Linear(net.features, net.classes)})


def perceptron(net: declared.Perceptron) -> nn.Sequential:
    return chain({"flatten": nn.Flatten()} | _linear(*net.sizes))


def _linear(*sizes: int) -> dict[str, nn.Module]:
    """Linear layers fc1, fc2, .. with ReLU between them."""
    layers: dict[str, nn.Module] = {}
    for i, (inputs, outputs) in enumerate(itertools.pairwise(sizes), start=1):
        layers[f"fc{i}"] = nn.Linear(inputs, outputs)
        if i < len(sizes) - 1:
            layers[f"act{i}"] = nn.ReLU()
    return layers


def convnet(net: declared.ConvNet) -> nn.Sequential:
    layers: dict[str, nn.Module] = {}
    side, inputs = net.size, net.channels
    for i, width in enumerate(net.widths, start=1):
        layers[f"conv{i}"] = nn.Conv2d(inputs, width, net.kernel, padding=net.padding)
        if i == 2 and net.channel_dropout:
            layers["drop_channels"] = nn.Dropout2d(net.channel_dropout)
        if net.activation:
            layers |= {f"pool{i}": nn.MaxPool2d(2), f"relu{i}": nn.ReLU()}
        side, inputs = (side + 2 * net.padding - net.kernel + 1) // (2 if net.activation else 1), width
    layers["flatten"] = nn.Flatten()  # [B, width, side, side] -> [B, width * side^2]
    for name, layer in _linear(inputs * side * side, *net.hidden, net.classes).items():
        here = {"all": name.startswith("fc"), "first": name == "fc1", "last": name == net.last}[net.dropout_at]
        if net.dropout and here:
            layers[f"drop_{name}"] = nn.Dropout(net.dropout)
        if net.activation or name.startswith("fc"):
            layers[name] = layer
    return chain(layers)


def norm_convnet(net: declared.NormConvNet) -> nn.Sequential:
    layers: dict[str, nn.Module] = {}
    channels, side = net.channels, net.size // 2 ** len(net.blocks)
    for b, widths in enumerate(net.blocks, start=1):
        for i, width in enumerate(widths, start=1):
            layers[f"conv{b}_{i}"] = nn.Conv2d(channels, width, 3, padding=1)
            if net.normalisation != "none":
                layers[f"bn{b}_{i}"] = nn.BatchNorm2d(width, track_running_stats=net.normalisation == "running")
            layers[f"relu{b}_{i}"], channels = nn.ReLU(), width
        layers[f"pool{b}"] = nn.MaxPool2d(2)
    layers |= {"flatten": nn.Flatten(), "fc1": nn.Linear(channels * side * side, net.hidden), "relu": nn.ReLU()}
    return chain(layers | {"dropout": nn.Dropout(net.dropout), "fc2": nn.Linear(net.hidden, net.classes)})


def projected_convnet(net: declared.ProjectedConvNet) -> nn.Sequential:
    layers: dict[str, nn.Module] = {}
    channels, side = net.channels, net.size
    for i, width in enumerate(net.widths, start=1):
        layers |= {f"conv{i}": nn.Conv2d(channels, width, 5), f"bn{i}": nn.BatchNorm2d(width)}
        layers |= {f"relu{i}": nn.ReLU(), f"pool{i}": nn.MaxPool2d(2)}
        channels, side = width, (side - 4) // 2
    layers["flatten"], features = nn.Flatten(), channels * side * side
    for i, width in enumerate(net.hidden, start=1):
        layers |= {f"fc{i}": nn.Linear(features, width), f"act{i}": nn.ReLU()}
        if i < len(net.hidden):
            layers[f"drop{i}"] = nn.Dropout(net.dropout)
        features = width
    layers |= {"projection": nn.Linear(features, net.projection), "ln": nn.LayerNorm(net.projection)}
    return chain(layers | {"fc": nn.Linear(net.projection, net.classes)})


def fasttext(net: declared.FastText) -> nn.Sequential:
    embedding = MeanEmbedding(net.vocabulary, net.width, padding_idx=0)
    return chain({"embedding": embedding, "fc": nn.Linear(net.width, net.classes)})
