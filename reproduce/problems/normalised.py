"""Convolutional networks with batch normalisation (dynamic_init, SVHN)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from reproduce.problems.count import Shapes
from reproduce.problems.models import Initial, Model, conv_shapes, linear_shapes, norm_shapes


@dataclass(frozen=True)
class NormConvNet(Model):
    """Blocks of 3x3 convolutions, each with normalisation and ReLU, and 2x2 max-pooling; then one hidden layer with
    dropout. The default is the network of arXiv 2410.05662 for SVHN (667,178 parameters).

    blocks: widths of the convolutions, one tuple per block. normalisation: "static" (the statistics of the batch at
    hand, also in evaluation), "running" (as the paper's code: evaluation uses running statistics, which are averaged
    like parameters) or "none".
    """

    channels: int = 3
    size: int = 32
    blocks: tuple[tuple[int, ...], ...] = ((32, 32), (64, 64), (128,))
    hidden: int = 256
    classes: int = 10
    dropout: float = 0.4
    normalisation: Literal["static", "running", "none"] = "static"

    def __post_init__(self) -> None:
        if self.normalisation not in ("static", "running", "none"):
            raise ValueError(f"unknown normalisation '{self.normalisation}'")

    @property
    def batch_statistics(self) -> bool:
        return self.normalisation != "none"

    @property
    def layers(self) -> list[tuple[str, int, bool]]:
        """(number, width, ends a block) of every convolution, in order."""
        return [
            (f"{b}_{i}", width, i == len(block))
            for b, block in enumerate(self.blocks, start=1)
            for i, width in enumerate(block, start=1)
        ]

    @property
    def shapes(self) -> Shapes:
        shapes: Shapes = {}
        inputs = self.channels
        for layer, width, _ in self.layers:
            shapes |= conv_shapes(f"conv{layer}", inputs, width, 3)
            if self.normalisation != "none":
                shapes |= norm_shapes(f"bn{layer}", width, self.normalisation == "running")
            inputs = width
        side = self.size // 2 ** len(self.blocks)
        shapes |= linear_shapes("fc1", inputs * side * side, self.hidden)
        return shapes | linear_shapes("fc2", self.hidden, self.classes)

    def encode(self, ops: Any, p: Mapping[str, Any], x: Any) -> Any:
        for layer, _, last in self.layers:
            x = ops.conv(x, p, f"conv{layer}", padding=1)
            x = ops.relu(x if self.normalisation == "none" else ops.norm(x, p, f"bn{layer}"))
            if last:
                x = ops.pool(x)
        return ops.relu(ops.linear(ops.flatten(x), p, "fc1"))

    def head(self, ops: Any, p: Mapping[str, Any], z: Any) -> Any:
        return ops.linear(ops.dropout(z, self.dropout), p, "fc2")


@dataclass(frozen=True)
class ProjectedConvNet(Model):
    """Two 5x5 convolutions with running normalisation, ReLU and 2x2 max-pooling, three hidden layers, a projection with
    layer normalisation, and a classifier: the older network of arXiv 2410.05662 for MOON on SVHN (142,254 parameters).
    """

    channels: int = 3
    size: int = 32
    widths: tuple[int, int] = (6, 16)
    hidden: tuple[int, ...] = (200, 100, 100)
    projection: int = 256
    classes: int = 10
    dropout: float = 0.5

    @property
    def batch_statistics(self) -> bool:
        return True

    @property
    def shapes(self) -> Shapes:
        shapes: Shapes = {}
        inputs, side = self.channels, self.size
        for i, width in enumerate(self.widths, start=1):
            shapes |= conv_shapes(f"conv{i}", inputs, width, 5) | norm_shapes(f"bn{i}", width, running=True)
            inputs, side = width, (side - 4) // 2
        inputs *= side * side
        for i, width in enumerate(self.hidden, start=1):
            shapes |= linear_shapes(f"fc{i}", inputs, width)
            inputs = width
        shapes |= linear_shapes("projection", inputs, self.projection) | norm_shapes("ln", self.projection)
        return shapes | linear_shapes("fc", self.projection, self.classes)

    def encode(self, ops: Any, p: Mapping[str, Any], x: Any) -> Any:
        for i in range(1, len(self.widths) + 1):
            x = ops.pool(ops.relu(ops.norm(ops.conv(x, p, f"conv{i}"), p, f"bn{i}")))
        x = ops.flatten(x)
        for i in range(1, len(self.hidden) + 1):
            x = ops.relu(ops.linear(x, p, f"fc{i}"))
            if i < len(self.hidden):
                x = ops.dropout(x, self.dropout)
        return ops.layer_norm(ops.linear(x, p, "projection"), p, "ln")


@dataclass(frozen=True)
class ImageNetResNet(Model):
    """The residual networks of torchvision: 7x7 convolution with stride 2, 3x3 max-pooling with stride 2, four stages
    of basic blocks, running normalisation; then `projection` layers (ReLU between them) and the classifier.

    Names of the tensors are those of torchvision's state dictionaries (`layer2.0.downsample.0.weight`).

    depth: 18 or 34. projection: sizes of the layers between the pooled features (512) and the classifier; their last
    output is the representation. init: "imagenet" reads the backbone's tensors from a file (engine/weights.py);
    "random" is Kaiming-normal by fan-out, and the last scale of each block starts at 0. width: channels of the first
    stage; other widths than 64 have no stored weights.
    """

    depth: Literal[18, 34] = 18
    classes: int = 10
    projection: tuple[int, ...] = (512, 256)
    init: Literal["imagenet", "random"] = "random"
    width: int = 64

    def __post_init__(self) -> None:
        if self.depth not in BLOCKS or self.init not in ("imagenet", "random"):
            raise ValueError(f"no ResNet of depth {self.depth} with initial weights '{self.init}'")
        if self.pretrained and self.width != 64:
            raise ValueError(f"a ResNet of width {self.width} has no stored weights")

    @property
    def batch_statistics(self) -> bool:
        return True

    @property
    def pretrained(self) -> str:
        return f"imagenet-resnet{self.depth}" if self.init == "imagenet" else ""

    def is_stored(self, name: str) -> bool:
        return bool(self.pretrained) and not name.startswith(("projection", "fc"))

    def basic_blocks(self) -> list[tuple[str, int, int, int]]:
        """(name, channels in, channels out, stride) of every basic block, in order."""
        found, inputs = [], self.width
        for stage, count in enumerate(BLOCKS[self.depth], start=1):
            for i in range(count):
                width = self.width * 2 ** (stage - 1)
                found.append((f"layer{stage}.{i}", inputs, width, 2 if stage > 1 and i == 0 else 1))
                inputs = width
        return found

    @property
    def shapes(self) -> Shapes:
        shapes = conv_shapes("conv1", 3, self.width, 7, bias=False) | norm_shapes("bn1", self.width, running=True)
        for name, inputs, width, stride in self.basic_blocks():
            for i, channels in ((1, inputs), (2, width)):
                shapes |= conv_shapes(f"{name}.conv{i}", channels, width, 3, bias=False)
                shapes |= norm_shapes(f"{name}.bn{i}", width, running=True)
            if stride != 1 or inputs != width:
                shapes |= conv_shapes(f"{name}.downsample.0", inputs, width, 1, bias=False)
                shapes |= norm_shapes(f"{name}.downsample.1", width, running=True)
        inputs = 8 * self.width
        for i, width in enumerate(self.projection, start=1):
            shapes |= linear_shapes(f"projection{i}", inputs, width)
            inputs = width
        return shapes | linear_shapes("fc", inputs, self.classes)

    def initial(self, name: str) -> Initial:
        shape = self.shapes[name]
        if len(shape) == 4:
            outputs, _, height, width = shape
            return Initial("normal", (2 / (height * width * outputs)) ** 0.5)
        if name.endswith("bn2.weight"):
            return Initial("constant", 0.0)
        return super().initial(name)

    def encode(self, ops: Any, p: Mapping[str, Any], x: Any) -> Any:
        x = ops.relu(ops.norm(ops.conv(x, p, "conv1", stride=2, padding=3), p, "bn1"))
        x = ops.pool(x, size=3, stride=2, padding=1)
        for name, _, _, stride in self.basic_blocks():
            y = ops.relu(ops.norm(ops.conv(x, p, f"{name}.conv1", stride=stride, padding=1), p, f"{name}.bn1"))
            y = ops.norm(ops.conv(y, p, f"{name}.conv2", padding=1), p, f"{name}.bn2")
            if f"{name}.downsample.0.weight" in p:
                x = ops.norm(ops.conv(x, p, f"{name}.downsample.0", stride=stride), p, f"{name}.downsample.1")
            x = ops.relu(ops.add(y, x))
        x = ops.global_pool(x)
        for i in range(1, len(self.projection) + 1):
            x = ops.linear(x, p, f"projection{i}")
            if i < len(self.projection):
                x = ops.relu(x)
        return x


BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3)}
"""Depth -> basic blocks per stage."""

SVHN_CNN = NormConvNet(normalisation="running")
"""`svhn_cnn` of dynamic_init: SVHN, Tables 3 and 5."""
CNN_SVHN = NormConvNet(blocks=((32,), (64,), (128,)), dropout=0.5, normalisation="none")
"""`cnn_svhn` of dynamic_init: SVHN, Tables 8-14, all algorithms but MOON."""
SVHN_CONS = ProjectedConvNet()
"""`svhn_cons` of dynamic_init: the same for MOON."""
