"""The larger networks of the papers: torchvision's and transformers', with the papers' ends and stems."""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import Tensor, nn

from reproduce.vision import torchvision

Block = torchvision.models.resnet.BasicBlock
STAGES = (64, 128, 256, 512)
"""Channels of torchvision's four stages, by which it asks for them."""


class ResNet(torchvision.models.ResNet):  # type: ignore[misc]
    """torchvision's residual network of basic blocks, with stages of other widths, four at most."""

    def __init__(self, widths: tuple[int, ...], blocks: tuple[int, ...], classes: int, **options: Any) -> None:
        self.planes, self.classes = widths, classes
        super().__init__(Block, [*blocks, 0, 0, 0][:4], classes, **options)
        self.conv1 = nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False)
        self.bn1 = self._norm_layer(widths[0])
        self.fc = nn.Linear(widths[-1], classes)

    def _make_layer(self, block: Any, planes: int, blocks: int, stride: int = 1, dilate: bool = False) -> nn.Sequential:
        stage = STAGES.index(planes)
        if stage >= len(self.planes):
            return nn.Sequential()
        if stage == 0:
            self.inplanes = self.planes[0]
        return super()._make_layer(block, self.planes[stage], blocks, stride)  # type: ignore[no-any-return]


static = partial(nn.BatchNorm2d, track_running_stats=False)
"""Batch normalisation by the batch at hand, always."""


def small_image_resnet(
    channels: int, classes: int, widths: tuple[int, ...], blocks: tuple[int, ...], stem_stride: int
) -> ResNet:
    """fiarse's: a stem of 3 x 3 without pooling, and static batch normalisation."""
    return small_stem(ResNet(widths, blocks, classes, norm_layer=static), channels, stem_stride)


def small_stem(network: ResNet, channels: int, stride: int) -> ResNet:
    network.conv1 = nn.Conv2d(channels, network.planes[0], 3, stride, 1, bias=False)
    network.maxpool = nn.Identity()
    return network


class EarlyExits(ResNet):
    """fiarse's network with a classifier after some of its blocks; its output is the list of their logits.

    exits: after how many blocks. What comes behind the last of them is left out. The extractor of features of
    torchvision would call the layers by other names than the network does.
    """

    def __init__(self, exits: tuple[int, ...], **network: Any) -> None:
        super().__init__(network["widths"], network["blocks"], network["classes"], norm_layer=static)
        small_stem(self, network["channels"], network["stem_stride"])
        self.exits = {}
        stages = [child for name, child in self.named_children() if name.startswith("layer")]
        blocks = [block for stage in stages for block in stage]
        del self.fc
        for e in exits:
            self.exits[e] = "fc" if e == len(blocks) else f"exit{e}"
            layers = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(blocks[e - 1].conv2.out_channels, self.classes)
            self.add_module(self.exits[e], nn.Sequential(*layers))
        for stage in stages:
            for i, block in enumerate(list(stage)):
                if block in blocks[exits[-1] :]:
                    delattr(stage, str(i))

    def forward(self, x: Tensor) -> list[Tensor]:
        x = self.relu(self.bn1(self.conv1(x)))
        found, depth = [], 0
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            for block in stage:
                x, depth = block(x), depth + 1
                if depth in self.exits:
                    found.append(getattr(self, self.exits[depth])(x))
        return found


def imagenet_resnet(depth: int, classes: int, projection: tuple[int, ...], width: int) -> ResNet:
    """dynamic_init's: linear layers, with ReLU between them, before the classifier."""
    blocks = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3)}[depth]
    network = ResNet(tuple(width * 2**i for i in range(4)), blocks, classes, zero_init_residual=True)
    layers: list[nn.Module] = []
    features = 8 * width
    for i, wide in enumerate(projection, start=1):
        layers += [nn.Linear(features, wide), *([nn.ReLU()] if i < len(projection) else [])]
        features = wide
    network.fc = nn.Sequential(*layers, nn.Linear(features, classes))  # type: ignore[assignment]
    return network


def alexnet(classes: int) -> nn.Sequential:
    """fedagrac's (Table 4), for images of 32 x 32; torchvision's has other strides and widths."""
    plan: list[tuple[int, int, int, bool]] = [(64, 11, 4, True), (192, 5, 1, True), (384, 3, 1, False)]
    features: list[nn.Module] = []
    inputs = 3
    for outputs, kernel, stride, pooled in [*plan, (256, 3, 1, False), (256, 3, 1, True)]:
        features += [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2), nn.ReLU()]
        features += [nn.MaxPool2d(2)] if pooled else []
        inputs = outputs
    return nn.Sequential(*features, nn.Flatten(), *_classifier(256, 2048, classes))


def vgg19(classes: int) -> nn.Module:
    """torchvision's features for images of 32 x 32 and fedagrac's classifier (Table 5)."""
    network = torchvision.models.vgg19(init_weights=False)
    return nn.Sequential(network.features, nn.Flatten(), *_classifier(512, 512, classes))


def _classifier(features: int, hidden: int, classes: int) -> list[nn.Module]:
    first = [nn.Dropout(0.5), nn.Linear(features, hidden), nn.ReLU()]
    return [*first, nn.Dropout(0.5), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, classes)]


def roberta(
    vocabulary: int,
    positions: int,
    hidden: int,
    heads: int,
    layers: int,
    inner: int,
    classes: int,
    dropout: float,
    padding: int,
) -> nn.Module:
    """transformers' classifier of texts (fiarse, AG News); its output is a record with `logits`."""
    import transformers

    config: Any = transformers.RobertaConfig
    return transformers.RobertaForSequenceClassification(
        config(
            vocab_size=vocabulary,
            max_position_embeddings=positions,
            hidden_size=hidden,
            num_attention_heads=heads,
            num_hidden_layers=layers,
            intermediate_size=inner,
            type_vocab_size=1,
            layer_norm_eps=1e-5,
            pad_token_id=padding,
            num_labels=classes,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
            classifier_dropout=dropout,
            attn_implementation="eager",
        )
    )
