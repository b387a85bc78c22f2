"""The networks of the five papers: records that name the modules of `reproduce.models`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from reproduce.declare.values import Count, Fraction, Share, Whole
from reproduce.models.model import Initial, Model, graph_of
from reproduce.modules.graph import Graph


def kaiming(model: Model, name: str) -> Initial:
    """The law of fan-in Kaiming-normal weights and zero biases."""
    if name.endswith("bias"):
        return Initial("constant", 0.0)
    return Initial("normal", math.sqrt(2 / math.prod(model.shapes[name][1:])))


@dataclass(frozen=True)
class Softmax(Model):
    """Multinomial logistic regression: one linear layer (`linear` of dynamic_init, `lr` of fedagrac).

    Its representation is its logits, as in dynamic_init.
    """

    features: Count
    classes: Count
    make = "reproduce.models.small:softmax"


@dataclass(frozen=True)
class MLP(Model):
    """Fully connected ReLU network with one hidden layer."""

    features: Count
    hidden: Count
    classes: Count
    make = "reproduce.models.small:perceptron"

    @property
    def sizes(self) -> tuple[int, ...]:
        """Units from the input to the output."""
        return self.features, self.hidden, self.classes


@dataclass(frozen=True)
class KaimingMLP(MLP):
    """Fan-in Kaiming-normal weights and zero biases, as `ConvNet` has them with its initialisation "kaiming", but in
    the last layer, too (a choice of DeFedAvg)."""

    def initial(self, name: str) -> Initial:
        return kaiming(self, name)


@dataclass(frozen=True)
class Perceptron(Model):
    """Linear layers `fc1`, `fc2`, ... with ReLU between them; hidden: the units of all layers but the last."""

    features: Count
    hidden: tuple[Count, ...]
    classes: Count
    make = "reproduce.models.small:perceptron"

    @property
    def sizes(self) -> tuple[int, ...]:
        """Units from the input to the output."""
        return (self.features, *self.hidden, self.classes)

    def narrowed(self, width: float, scale: bool = True) -> Perceptron:
        """Hidden layers with the first ceil(width * n) of n units; there are no convolutions to scale."""
        return replace(self, hidden=tuple(math.ceil(width * n - 1e-9) for n in self.hidden))


@dataclass(frozen=True)
class ConvNet(Model):
    """Two convolutions, each followed by ReLU and 2x2 max-pooling, then linear layers with ReLU between.

    One family covers the small networks of fedacs (Table 3), fedagrac (Table 3) and defedavg (Sec. 4.1.2).
    `dropout` acts before every linear layer if `dropout_at` is "all", before the first if "first", before the last if
    "last"; `channel_dropout` drops whole channels after the second convolution. `initialisation` "kaiming" is
    fan-in Kaiming-normal with zero biases in all layers but the last.
    """

    channels: Count
    size: Count
    widths: tuple[Count, Count]
    hidden: tuple[Count, ...]
    classes: Count = 10
    kernel: Count = 5
    padding: Whole = 0
    dropout: Fraction = 0.0
    dropout_at: Literal["all", "first", "last"] = "all"
    channel_dropout: Fraction = 0.0
    initialisation: Literal["default", "kaiming"] = "default"
    activation: bool = True
    make = "reproduce.models.small:convnet"

    @property
    def last(self) -> str:
        """The name of the last layer."""
        return f"fc{len(self.hidden) + 1}"

    def initial(self, name: str) -> Initial:
        default = self.initialisation == "default" or name.startswith(self.last)
        return super().initial(name) if default else kaiming(self, name)


@dataclass(frozen=True)
class NormConvNet(Model):
    """Blocks of 3x3 convolutions, each with normalisation and ReLU, and 2x2 max-pooling; then one hidden layer with
    dropout. The default is the network of arXiv 2410.05662 for SVHN (667,178 parameters).

    blocks: widths of the convolutions, one tuple per block. normalisation: "static" (the statistics of the batch at
    hand, also in evaluation), "running" (as the paper's code: evaluation uses running statistics, which are averaged
    like parameters) or "none".
    """

    channels: Count = 3
    size: Count = 32
    blocks: tuple[tuple[Count, ...], ...] = ((32, 32), (64, 64), (128,))
    hidden: Count = 256
    classes: Count = 10
    dropout: Fraction = 0.4
    normalisation: Literal["static", "running", "none"] = "static"
    make = "reproduce.models.small:norm_convnet"


@dataclass(frozen=True)
class ProjectedConvNet(Model):
    """Two 5x5 convolutions with running normalisation, ReLU and 2x2 max-pooling, three hidden layers, a projection with
    layer normalisation, and a classifier: the older network of arXiv 2410.05662 for MOON on SVHN (142,254 parameters).
    """

    channels: Count = 3
    size: Count = 32
    widths: tuple[Count, Count] = (6, 16)
    hidden: tuple[Count, ...] = (200, 100, 100)
    projection: Count = 256
    classes: Count = 10
    dropout: Fraction = 0.5
    make = "reproduce.models.small:projected_convnet"


@dataclass(frozen=True)
class FastText(Model):
    """The mean embedding of a text's tokens, id 0 being padding, and a linear layer.

    The default is the network of arXiv 2410.05662 for AG News: 9,157,804 parameters. Row 0 of the embedding stays zero.
    """

    vocabulary: Count = 30_522
    width: Count = 300
    classes: Count = 4
    make = "reproduce.models.small:fasttext"
    embedding = "embedding.weight"

    @property
    def parts(self) -> tuple[Model, ...]:
        return (self.with_rows(1),)

    @property
    def graph(self) -> Graph:
        """The graph, made from a network with one row in its table, because tables of any size are asked for
        (`engine.sparse`)."""
        graph = graph_of(self.with_rows(1))
        return replace(graph, shapes=graph.shapes | {self.embedding: (self.vocabulary, self.width)})

    @property
    def tokens(self) -> int:  # type: ignore[override]
        return self.vocabulary

    def with_rows(self, rows: int) -> FastText:
        """The same network with so many rows of the embedding."""
        return replace(self, vocabulary=rows)

    def initial(self, name: str) -> Initial:
        return Initial("rows", 1.0) if name == self.embedding else super().initial(name)


@dataclass(frozen=True)
class ResNet(Model):
    """torchvision's residual network with static batch normalisation and a stem of 3 x 3 (fiarse).

    `widths` are the channels of the stages, `blocks` their numbers of basic blocks; every stage but the first starts
    with stride 2. The default is ResNet-18 for 32x32 images; one block per stage and stride 2 make the reduced net.
    `width` < 1 keeps the first ceil(width * c) channels of every layer and divides convolution outputs by it (the
    scaler of HeteroFL, which normalisation undoes up to its epsilon).
    """

    channels: Count = 3
    classes: Count = 10
    widths: tuple[Count, ...] = (64, 128, 256, 512)
    blocks: tuple[Count, ...] = (2, 2, 2, 2)
    stem_stride: Count = 1
    width: Share = 1.0
    make = "reproduce.models.library:SmallImageResNet"

    @property
    def graph(self) -> Graph:
        return graph_of(self) if self.width == 1 else _narrowed(self)

    def narrowed(self, width: float, scale: bool = True) -> ResNet:
        narrow = replace(self, width=width)
        return narrow if scale else replace(self, widths=tuple(map(narrow.kept_channels, self.widths)))

    def with_exits(self, exits: tuple[int, ...]) -> EarlyExits:
        return EarlyExits(**{**vars(self), "exits": exits})

    def kept_channels(self, channels: int) -> int:
        return math.ceil(self.width * channels - 1e-9)


@dataclass(frozen=True)
class FlooredResNet(ResNet):
    """A narrower form has floor(width * c) of c channels, one at least (a choice of fiarse)."""

    def kept_channels(self, channels: int) -> int:
        return floor(self.width, channels)


@cache
def _narrowed(model: ResNet) -> Graph:
    return replace(model, width=1.0).graph.narrowed(model.kept_channels, 1 / model.width)


@dataclass(frozen=True)
class EarlyExits(FlooredResNet):
    """A residual network that ends with the last of its exits (ScaleFL, Ilhan et al., CVPR 2023).

    exits: after how many basic blocks there is a classifier (global average pool, linear), ascending. One exit after
        all blocks is the plain network, parameter by parameter.

    `width` < 1 keeps the first floor(width * c) channels, as ScaleFL's code does, one at least.
    """

    exits: tuple[int, ...] = (8,)
    make = "reproduce.models.library:EarlyExits"

    @property
    def parts(self) -> tuple[Model, ...]:
        return tuple(replace(self, exits=self.exits[: i + 1]) for i in range(len(self.exits)))

    def cut(self, exits: int, width: float) -> EarlyExits:
        return replace(self, exits=self.exits[:exits], width=width)


@dataclass(frozen=True)
class ImageNetResNet(Model):
    """torchvision's ResNet-18 or ResNet-34 with linear layers before the classifier (dynamic_init).

    depth: 18 or 34. projection: sizes of the layers between the pooled features (512) and the classifier; their last
    output is the representation. init: "imagenet" reads the backbone's tensors from a file (weights.py);
    "random" is Kaiming-normal by fan-out, and the last scale of each block starts at 0. width: channels of the first
    stage; other widths than 64 have no stored weights.
    """

    depth: Literal[18, 34] = 18
    classes: Count = 10
    projection: tuple[Count, ...] = (512, 256)
    init: Literal["imagenet", "random"] = "random"
    width: Count = 64
    make = "reproduce.models.library:imagenet_resnet"
    fresh = ("fc",)

    @property
    def pretrained(self) -> str:  # type: ignore[override]
        return f"imagenet-resnet{self.depth}" if self.init == "imagenet" else ""

    def initial(self, name: str) -> Initial:
        shape = self.shapes[name]
        if len(shape) == 4:
            outputs, _, height, width = shape
            return Initial("normal", (2 / (height * width * outputs)) ** 0.5)
        return Initial("constant", 0.0) if name.endswith("bn2.weight") else super().initial(name)


@dataclass(frozen=True)
class AlexNet(Model):
    """AlexNet for 32x32 images (fedagrac, Table 4): 7,212,874 parameters with ten classes."""

    classes: Count = 10
    make = "reproduce.models.library:alexnet"


@dataclass(frozen=True)
class VGG19(Model):
    """torchvision's VGG-19 for 32x32 images, without normalisation (fedagrac, Table 5): 20,554,826 parameters with ten
    classes."""

    classes: Count = 10
    make = "reproduce.models.library:vgg19"

    def initial(self, name: str) -> Initial:
        outputs, _, *window = self.shapes[f"{name.rpartition('.')[0]}.weight"]
        if not window:
            return super().initial(name)
        law = Initial("normal", math.sqrt(2 / (math.prod(window) * outputs)))
        return Initial("constant", 0.0) if name.endswith("bias") else law


def floor(width: float, units: int) -> int:
    """The share `width` of so many units, as ScaleFL's code rounds it; one at least."""
    return max(1, math.floor(width * units + 1e-9))
