"""The small networks of the papers as plain modules; what their numbers mean is said by the records in
`models.declared`."""

from __future__ import annotations

import itertools
from collections import OrderedDict

from torch import Tensor, nn


def chain(layers: dict[str, nn.Module]) -> nn.Sequential:
    return nn.Sequential(OrderedDict(layers))


def softmax(features: int, classes: int) -> nn.Sequential:
    return chain({"flatten": nn.Flatten(), "fc": nn.Linear(features, classes)})


def perceptron(features: int, hidden: tuple[int, ...], classes: int) -> nn.Sequential:
    return chain({"flatten": nn.Flatten()} | _linear(features, hidden, classes))


def _linear(features: int, hidden: tuple[int, ...], classes: int) -> dict[str, nn.Module]:
    """Linear layers fc1, fc2, .. with ReLU between them."""
    layers: dict[str, nn.Module] = {}
    for i, (inputs, outputs) in enumerate(itertools.pairwise((features, *hidden, classes)), start=1):
        layers[f"fc{i}"] = nn.Linear(inputs, outputs)
        if i <= len(hidden):
            layers[f"act{i}"] = nn.ReLU()
    return layers


def convnet(
    channels: int,
    size: int,
    widths: tuple[int, int],
    hidden: tuple[int, ...],
    classes: int,
    kernel: int,
    padding: int,
    dropout: float,
    dropout_at: str,
    channel_dropout: float,
    activation: bool,
) -> nn.Sequential:
    layers: dict[str, nn.Module] = {}
    side, inputs = size, channels
    for i, width in enumerate(widths, start=1):
        layers[f"conv{i}"] = nn.Conv2d(inputs, width, kernel, padding=padding)
        if i == 2 and channel_dropout:
            layers["drop_channels"] = nn.Dropout2d(channel_dropout)
        if activation:
            layers |= {f"pool{i}": nn.MaxPool2d(2), f"relu{i}": nn.ReLU()}
        side, inputs = (side + 2 * padding - kernel + 1) // (2 if activation else 1), width
    layers["flatten"] = nn.Flatten()
    last = f"fc{len(hidden) + 1}"
    for name, layer in _linear(inputs * side * side, hidden, classes).items():
        here = {"all": name.startswith("fc"), "first": name == "fc1", "last": name == last}[dropout_at]
        if dropout and here:
            layers[f"drop_{name}"] = nn.Dropout(dropout)
        if activation or name.startswith("fc"):
            layers[name] = layer
    return chain(layers)


def norm_convnet(
    channels: int,
    size: int,
    blocks: tuple[tuple[int, ...], ...],
    hidden: int,
    classes: int,
    dropout: float,
    normalisation: str,
) -> nn.Sequential:
    layers: dict[str, nn.Module] = {}
    for b, widths in enumerate(blocks, start=1):
        for i, width in enumerate(widths, start=1):
            layers[f"conv{b}_{i}"] = nn.Conv2d(channels, width, 3, padding=1)
            if normalisation != "none":
                layers[f"bn{b}_{i}"] = nn.BatchNorm2d(width, track_running_stats=normalisation == "running")
            layers[f"relu{b}_{i}"], channels = nn.ReLU(), width
        layers[f"pool{b}"] = nn.MaxPool2d(2)
    side = size // 2 ** len(blocks)
    layers |= {"flatten": nn.Flatten(), "fc1": nn.Linear(channels * side * side, hidden), "relu": nn.ReLU()}
    return chain(layers | {"dropout": nn.Dropout(dropout), "fc2": nn.Linear(hidden, classes)})


def projected_convnet(
    channels: int,
    size: int,
    widths: tuple[int, int],
    hidden: tuple[int, ...],
    projection: int,
    classes: int,
    dropout: float,
) -> nn.Sequential:
    layers: dict[str, nn.Module] = {}
    for i, width in enumerate(widths, start=1):
        layers |= {f"conv{i}": nn.Conv2d(channels, width, 5), f"bn{i}": nn.BatchNorm2d(width)}
        layers |= {f"relu{i}": nn.ReLU(), f"pool{i}": nn.MaxPool2d(2)}
        channels, size = width, (size - 4) // 2
    layers["flatten"], features = nn.Flatten(), channels * size * size
    for i, width in enumerate(hidden, start=1):
        layers |= {f"fc{i}": nn.Linear(features, width), f"act{i}": nn.ReLU()}
        if i < len(hidden):
            layers[f"drop{i}"] = nn.Dropout(dropout)
        features = width
    layers |= {"projection": nn.Linear(features, projection), "ln": nn.LayerNorm(projection)}
    return chain(layers | {"fc": nn.Linear(projection, classes)})


class MeanEmbedding(nn.Embedding):
    """The mean [B, F] of the rows that the token ids [B, L] name; id 0 is padding and does not count."""

    def forward(self, ids: Tensor) -> Tensor:
        kept = (ids != 0).unsqueeze(-1)
        return (super().forward(ids) * kept).sum(1) / (kept.sum(1) + 1e-6)


def fasttext(vocabulary: int, width: int, classes: int) -> nn.Sequential:
    embedding = MeanEmbedding(vocabulary, width, padding_idx=0)
    return chain({"embedding": embedding, "fc": nn.Linear(width, classes)})


__all__ = ["MeanEmbedding", "convnet", "fasttext", "norm_convnet", "perceptron", "projected_convnet", "softmax"]
