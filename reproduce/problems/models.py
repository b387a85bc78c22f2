"""The models of the five papers, each one function over an operator set.

A model is a frozen value: `shapes` (parameter name -> shape, in the order of the flat vector) and `forward(ops, p, x)`,
that is `head` after `encode`, written once against an operator set. The same definition therefore serves one client, a
stack of clients, evaluation (`reproduce.engine.ops`) and the counting of parameters and multiplications
(`count.py`), none of which needs torch to be imported here.

Parameter names follow PyTorch: `<layer>.weight`, `<layer>.bias`; weights are [out, in] or [out, in, k, k]. Running
statistics `<layer>.running_mean` and `<layer>.running_var` are entries of the vector as well (`Model.buffers`): steps
of SGD leave them alone, forward passes in training move them, and servers average them like parameters.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from reproduce.problems.count import Count, Shapes


@dataclass(frozen=True)
class Initial:
    """How one tensor starts: `kind` uniform, normal or constant, `scale` = half-width, deviation or value.

    "rows" is normal with a first row of zeros (embeddings, whose row 0 is the padding).
    """

    kind: str
    scale: float


@dataclass(frozen=True)
class Model:
    """A network; subclasses give `shapes`, `encode` and `head`.

    `batch_statistics`: the output for one sample depends on its whole batch (static batch normalisation), so that
    batches may be neither padded nor cut.
    """

    @property
    def shapes(self) -> Shapes:
        raise NotImplementedError

    def encode(self, ops: Any, p: Mapping[str, Any], x: Any) -> Any:
        """The representation [batch, F] (or [clients, batch, F]) of a batch, which contrastive terms compare."""
        raise NotImplementedError

    def head(self, ops: Any, p: Mapping[str, Any], z: Any) -> Any:
        """Logits [batch, classes] of a representation `z`, which stays as it is."""
        return ops.linear(z, p, "fc")

    def forward(self, ops: Any, p: Mapping[str, Any], x: Any) -> Any:
        """Logits of a batch: ops-specific activations in, [batch, classes] (or [clients, batch, classes]) out."""
        return self.head(ops, p, self.encode(ops, p, x))

    @property
    def batch_statistics(self) -> bool:
        return False

    def lonely(self, sample: tuple[int, ...]) -> str:
        """The first layer with batch normalisation over one number per sample and channel, which no batch of a single
        sample can go through in training; "" if there is none."""
        layers = self.cost(sample).layers
        return next((n for n, kind, out, _ in layers if kind == "BatchNorm2d" and math.prod(out[1:]) == 1), "")

    @property
    def pretrained(self) -> str:
        """The stored weights (weights.py) that the initial model takes; "" if all of it is random."""
        return ""

    def is_stored(self, name: str) -> bool:
        """Is this tensor one of them?"""
        return False

    def stored_shape(self, name: str) -> tuple[int, ...]:
        """The shape that it is stored in."""
        return self.shapes[name]

    @property
    def tokens(self) -> int:
        """How many token ids it knows, from 0 on; 0 if its samples are not texts."""
        return 0

    @property
    def longest(self) -> int:
        """Tokens in the longest text that it reads; 0 if there is no such limit."""
        return 0

    @property
    def embedding(self) -> str:
        """The tensor of which a batch reads, and a step moves, only the rows that its samples name; "" if none."""
        return ""

    @property
    def trimmed(self) -> bool:
        """Does the shape of what it computes follow from the values in a batch (texts cut to the longest of them)?"""
        return False

    @property
    def separable(self) -> bool:
        """May a batch be cut into pieces? Not if samples see each other or share a stream of dropout masks."""
        return False

    def initial(self, name: str) -> Initial:
        """PyTorch's default: weights and biases uniform in +-1/sqrt(fan_in); normalisation scale 1, shift 0."""
        shape = self.shapes[name]
        if name in self.buffers:
            return Initial("constant", float(name.endswith("running_var")))
        if len(shape) == 1 and name.endswith("weight"):
            return Initial("constant", 1.0)
        if name.endswith("bias"):
            weight = self.shapes[name.removesuffix("bias") + "weight"]
            if len(weight) == 1:
                return Initial("constant", 0.0)
            return Initial("uniform", 1 / math.sqrt(math.prod(weight[1:])))
        return Initial("uniform", 1 / math.sqrt(math.prod(shape[1:])))

    def narrowed(self, width: float, scale: bool = True) -> Model:
        """The network with the first share `width` of every layer's channels; ValueError if it has no such form.

        scale: the outputs of convolutions are divided by `width` (of texts: of all layers that are cut).
        """
        raise ValueError(f"a {type(self).__name__} has no narrower form")

    @property
    def exits(self) -> tuple[int, ...]:
        """After how many of its parts there is a classifier, where it has more than one (exits.py)."""
        return ()

    def cut(self, exits: int, width: float) -> Model:
        """The network up to exit number `exits`, with the first share `width` of every layer's channels."""
        raise ValueError(f"this needs a network with exits, and a {type(self).__name__} has none")

    @property
    def maskable(self) -> tuple[str, ...]:
        """The parameters that magnitude masks may leave out: weights of two axes and more, and biases beside them."""
        shapes = self.shapes
        return tuple(n for n in shapes if len(shapes[f"{n.rsplit('.', 1)[0]}.weight"]) > 1)

    @property
    def buffers(self) -> frozenset[str]:
        """The entries of the vector that are not trained: running means and variances."""
        return frozenset(n for n in self.shapes if n.endswith((".running_mean", ".running_var")))

    @property
    def parameters(self) -> int:
        """How many numbers are trained."""
        return sum(math.prod(s) for n, s in self.shapes.items() if n not in self.buffers)

    def cost(self, sample: tuple[int, ...]) -> Count:
        """Layer shapes and multiply-accumulates of one forward pass on one sample of shape (channels, ...)."""
        count = Count(dict(self.shapes))
        self.forward(count, {n: n for n in self.shapes}, sample)
        return count


def conv_shapes(layer: str, inputs: int, outputs: int, kernel: int, bias: bool = True) -> Shapes:
    shapes: Shapes = {f"{layer}.weight": (outputs, inputs, kernel, kernel)}
    return shapes | {f"{layer}.bias": (outputs,)} if bias else shapes


def linear_shapes(layer: str, inputs: int, outputs: int) -> Shapes:
    return {f"{layer}.weight": (outputs, inputs), f"{layer}.bias": (outputs,)}


def norm_shapes(layer: str, channels: int, running: bool = False) -> Shapes:
    """Batch normalisation; with `running` statistics, which evaluation uses, else with those of the batch at hand."""
    kinds = ("weight", "bias", "running_mean", "running_var") if running else ("weight", "bias")
    return {f"{layer}.{kind}": (channels,) for kind in kinds}


@dataclass(frozen=True)
class Softmax(Model):
    """Multinomial logistic regression: one linear layer (`linear` of dynamic_init, `lr` of fedagrac).

    Its representation is its logits, as in dynamic_init.
    """

    features: int
    classes: int

    @property
    def shapes(self) -> Shapes:
        return linear_shapes("fc", self.features, self.classes)

    def encode(self, ops: Any, p: Mapping[str, Any], x: Any) -> Any:
        return ops.linear(ops.flatten(x), p, "fc")

    def head(self, ops: Any, p: Mapping[str, Any], z: Any) -> Any:
        return z


@dataclass(frozen=True)
class MLP(Model):
    """Fully connected ReLU network with one hidden layer."""

    features: int
    hidden: int
    classes: int

    @property
    def shapes(self) -> Shapes:
        return linear_shapes("fc1", self.features, self.hidden) | linear_shapes("fc2", self.hidden, self.classes)

    def encode(self, ops: Any, p: Mapping[str, Any], x: Any) -> Any:
        return ops.relu(ops.linear(ops.flatten(x), p, "fc1"))

    def head(self, ops: Any, p: Mapping[str, Any], z: Any) -> Any:
        return ops.linear(z, p, "fc2")


@dataclass(frozen=True)
class ConvNet(Model):
    """Two convolutions, each followed by ReLU and 2x2 max-pooling, then linear layers with ReLU between.

    One family covers the small networks of fedacs (Table 3), fedagrac (Table 3) and defedavg (Sec. 4.1.2).
    `dropout` acts before every linear layer if `dropout_at` is "all", before the first if "first", before the last if
    "last"; `channel_dropout` drops whole channels after the second convolution. `initialisation` "kaiming" is
    fan-in Kaiming-normal with zero biases in all layers but the last.
    """

    channels: int
    size: int
    widths: tuple[int, int]
    hidden: tuple[int, ...]
    classes: int = 10
    kernel: int = 5
    padding: int = 0
    dropout: float = 0.0
    dropout_at: str = "all"
    channel_dropout: float = 0.0
    initialisation: str = "default"
    activation: bool = True

    @property
    def separable(self) -> bool:
        return not (self.dropout or self.channel_dropout)

    @property
    def flat(self) -> int:
        side = self.size
        for _ in self.widths:
            side = (side + 2 * self.padding - self.kernel + 1) // (2 if self.activation else 1)
        return self.widths[-1] * side * side

    @property
    def shapes(self) -> Shapes:
        a, b = self.widths
        shapes = conv_shapes("conv1", self.channels, a, self.kernel) | conv_shapes("conv2", a, b, self.kernel)
        sizes = (self.flat, *self.hidden, self.classes)
        for i, (inputs, outputs) in enumerate(itertools.pairwise(sizes), start=1):
            shapes |= linear_shapes(f"fc{i}", inputs, outputs)
        return shapes

    def initial(self, name: str) -> Initial:
        last = f"fc{len(self.hidden) + 1}"
        if self.initialisation == "default" or name.startswith(last):
            return super().initial(name)
        if name.endswith("bias"):
            return Initial("constant", 0.0)
        return Initial("normal", math.sqrt(2 / math.prod(self.shapes[name][1:])))

    def encode(self, ops: Any, p: Mapping[str, Any], x: Any) -> Any:
        for layer in ("conv1", "conv2"):
            x = ops.conv(x, p, layer, padding=self.padding)
            if layer == "conv2" and self.channel_dropout:
                x = ops.channel_dropout(x, self.channel_dropout)
            # Pooling first is the same function (ReLU is monotone) and four times less work for ReLU.
            x = ops.relu(ops.pool(x)) if self.activation else x
        x = ops.flatten(x)
        for i in range(1, len(self.hidden) + 1):
            x = self._linear(ops, p, x, i)
            x = ops.relu(x) if self.activation else x
        return x

    def head(self, ops: Any, p: Mapping[str, Any], z: Any) -> Any:
        return self._linear(ops, p, z, len(self.hidden) + 1)

    def _linear(self, ops: Any, p: Mapping[str, Any], x: Any, i: int) -> Any:
        """Linear layer number `i` = 1, ..., after its dropout."""
        here = {"all": True, "first": i == 1, "last": i == len(self.hidden) + 1}[self.dropout_at]
        return ops.linear(ops.dropout(x, self.dropout) if self.dropout and here else x, p, f"fc{i}")


@dataclass(frozen=True)
class ResNet(Model):
    """Post-activation residual network with static batch normalisation (fiarse).

    `widths` are the channels of the stages, `blocks` their numbers of basic blocks; every stage but the first starts
    with stride 2. The default is ResNet-18 for 32x32 images; one block per stage and stride 2 make the reduced net.
    `width` < 1 keeps the first ceil(width * c) channels of every layer and divides convolution outputs by it (the
    scaler of HeteroFL, which normalisation undoes up to its epsilon).
    """

    channels: int = 3
    classes: int = 10
    widths: tuple[int, ...] = (64, 128, 256, 512)
    blocks: tuple[int, ...] = (2, 2, 2, 2)
    stem_stride: int = 1
    width: float = 1.0

    @property
    def batch_statistics(self) -> bool:
        return True

    def narrowed(self, width: float, scale: bool = True) -> ResNet:
        narrow = replace(self, width=width)
        return narrow if scale else replace(self, widths=tuple(map(narrow.kept_channels, self.widths)))

    def kept_channels(self, channels: int) -> int:
        return math.ceil(self.width * channels - 1e-9)

    @property
    def shapes(self) -> Shapes:
        keep = self.kept_channels
        shapes = conv_shapes("conv1", self.channels, keep(self.widths[0]), 3, bias=False)
        shapes |= norm_shapes("bn1", keep(self.widths[0]))
        inputs = self.widths[0]
        for name, width, stride in self.basic_blocks():
            shapes |= conv_shapes(f"{name}.conv1", keep(inputs), keep(width), 3, bias=False)
            shapes |= norm_shapes(f"{name}.bn1", keep(width))
            shapes |= conv_shapes(f"{name}.conv2", keep(width), keep(width), 3, bias=False)
            shapes |= norm_shapes(f"{name}.bn2", keep(width))
            if stride != 1 or inputs != width:
                shapes |= conv_shapes(f"{name}.shortcut", keep(inputs), keep(width), 1, bias=False)
                shapes |= norm_shapes(f"{name}.shortcut_bn", keep(width))
            inputs = width
        return shapes | linear_shapes("fc", keep(inputs), self.classes)

    def basic_blocks(self) -> list[tuple[str, int, int]]:
        """(name, full width, stride) of every basic block, in order."""
        return [
            (f"layer{stage}.{i}", width, 2 if stage > 1 and i == 0 else 1)
            for stage, (width, count) in enumerate(zip(self.widths, self.blocks, strict=True), start=1)
            for i in range(count)
        ]

    def activations(self, ops: Any, p: Mapping[str, Any], x: Any) -> Iterator[Any]:
        """The images that leave each basic block."""

        def conv(x: Any, layer: str, norm: str, stride: int = 1, padding: int = 1) -> Any:
            x = ops.conv(x, p, layer, stride=stride, padding=padding)
            return ops.norm(x if self.width == 1 else ops.scale(x, 1 / self.width), p, norm)

        x = ops.relu(conv(x, "conv1", "bn1", self.stem_stride))
        for name, _, stride in self.basic_blocks():
            y = conv(ops.relu(conv(x, f"{name}.conv1", f"{name}.bn1", stride)), f"{name}.conv2", f"{name}.bn2")
            if f"{name}.shortcut.weight" in p:
                x = conv(x, f"{name}.shortcut", f"{name}.shortcut_bn", stride, padding=0)
            x = ops.relu(ops.add(y, x))
            yield x

    def encode(self, ops: Any, p: Mapping[str, Any], x: Any) -> Any:
        last = x
        for image in self.activations(ops, p, x):
            last = image  # the others may be forgotten
        return ops.global_pool(last)


@dataclass(frozen=True)
class Network(Model):
    """A network of a library's or of a user's own: what `make` ("module:name") gives for the `arguments`."""

    make: str
    arguments: tuple[tuple[str, object], ...] = ()
