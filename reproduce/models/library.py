"""The larger networks of the papers: torchvision's and transformers', with the papers' ends and stems."""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from reproduce.vision import torchvision

if TYPE_CHECKING:
    from reproduce.models import declared
    from reproduce.models.roberta import RoBERTa

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


class SmallImageResNet(ResNet):
    """fiarse's: a stem of 3 x 3 without pooling, and static batch normalisation."""

    def __init__(self, net: declared.ResNet) -> None:
        super().__init__(net.widths, net.blocks, net.classes, norm_layer=static)
        self.conv1 = nn.Conv2d(net.channels, net.widths[0], 3, net.stem_stride, 1, bias=False)
        self.maxpool = nn.Identity()


class EarlyExits(SmallImageResNet):
    """fiarse's network with a classifier after some of its blocks; its output is the list of their logits.

    What comes behind the last exit is left out. The extractor of features of torchvision would call the layers by other
    names than the network does.
    """

    def __init__(self, net: declared.EarlyExits) -> None:
        super().__init__(net)
        self.exits = {}
        stages = [child for name, child in self.named_children() if name.startswith("layer")]
        blocks = [block for stage in stages for block in stage]
        del self.fc
        for e in net.exits:
            self.exits[e] = "fc" if e == len(blocks) else f"exit{e}"
            layers = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(blocks[e - 1].conv2.out_channels, net.classes)
            self.add_module(self.exits[e], nn.Sequential(*layers))
        for stage in stages:
            for i, block in enumerate(list(stage)):
                if block in blocks[net.exits[-1] :]:
                    delattr(stage, str(i))

    def forward(self, x: Tensor) -> list[Tensor]:
        x = self.relu(self.bn1(self.conv1(x)))
        logits, depth = [], 0
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            for block in stage:
                x, depth = block(x), depth + 1
                if depth in self.exits:
                    logits.append(getattr(self, self.exits[depth])(x))
        return logits


def imagenet_resnet(net: declared.ImageNetResNet) -> ResNet:
    """dynamic_init's: linear layers, with ReLU between them, before the classifier."""
    blocks = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3)}[net.depth]
    network = ResNet(tuple(net.width * 2**i for i in range(4)), blocks, net.classes, zero_init_residual=True)
    layers: list[nn.Module] = []
    features = 8 * net.width  # of the last stage, pooled: [B, 8 * width]
    for i, wide in enumerate(net.projection, start=1):
        layers += [nn.Linear(features, wide), *([nn.ReLU()] if i < len(net.projection) else [])]
        features = wide
    network.fc = nn.Sequential(*layers, nn.Linear(features, net.classes))  # type: ignore[assignment]
    return network


def alexnet(net: declared.AlexNet) -> nn.Sequential:
    """fedagrac's (Table 4), for images of 32 x 32; torchvision's has other strides and widths."""
    # outputs, kernel, stride, pooled?
    plan = (64, 11, 4, True), (192, 5, 1, True), (384, 3, 1, False), (256, 3, 1, False), (256, 3, 1, True)
    features: list[nn.Module] = []
    inputs = 3
    for outputs, kernel, stride, pooled in plan:
        features += [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2), nn.ReLU()]
        features += [nn.MaxPool2d(2)] if pooled else []
        inputs = outputs
    return nn.Sequential(*features, nn.Flatten(), *_classifier(256, 2048, net.classes))


def vgg19(net: declared.VGG19) -> nn.Module:
    """torchvision's features for images of 32 x 32 and fedagrac's classifier (Table 5)."""
    network = torchvision.models.vgg19(init_weights=False)
    return nn.Sequential(network.features, nn.Flatten(), *_classifier(512, 512, net.classes))


def _classifier(features: int, hidden: int, classes: int) -> list[nn.Module]:
    first = [nn.Dropout(0.5), nn.Linear(features, hidden), nn.ReLU()]
    return [*first, nn.Dropout(0.5), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, classes)]


class TextClassifier(nn.Module):
    """transformers' classifier of texts (fiarse, AG News), by the names of its parts: of token ids [B, L] the features
    [B, F] of the first token, and the logits of all exits."""

    def __init__(self, net: RoBERTa) -> None:
        import transformers

        super().__init__()
        head, hidden = net.kept(net.hidden // net.heads), net.kept(net.hidden)
        sizes = {"hidden_size": hidden, "num_attention_heads": 1, "num_hidden_layers": max(net.classifiers)}
        sizes |= {"intermediate_size": net.kept(net.inner), "type_vocab_size": 1, "num_labels": net.classes}
        drop = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"), net.dropout)
        texts = {"vocab_size": net.vocabulary, "max_position_embeddings": net.positions, "pad_token_id": net.padding}
        config: Any = transformers.RobertaConfig
        whole: Any = transformers.RobertaForSequenceClassification(
            config(**sizes, **texts, **drop, layer_norm_eps=1e-5, attn_implementation="eager")
        )
        for attention in (layer.attention for layer in whole.roberta.encoder.layer):
            # The library's heads have hidden / heads places; narrower ones are rounded for themselves.
            part, wide = attention.self, net.heads * head
            part.num_attention_heads, part.attention_head_size, part.all_head_size = net.heads, head, wide
            part.scaling = head**-0.5
            part.query, part.key, part.value = (nn.Linear(hidden, wide) for _ in range(3))
            attention.output.dense = nn.Linear(wide, hidden)
        self.embeddings, self.encoder = whole.roberta.embeddings, whole.roberta.encoder
        self.classifiers = net.classifiers
        for name in self.classifiers.values():
            self.add_module(name, copy.deepcopy(whole.classifier))
        if net.scaled and net.width < 1:
            for name, m in self.named_modules():
                if isinstance(m, nn.Linear | nn.Embedding) and not name.endswith("out_proj"):
                    m.register_forward_hook(lambda m, given, out: out / net.width)
        self.roberta, self.padding = whole.roberta, net.padding

    def forward(self, ids: Tensor) -> tuple[Tensor, ...]:
        kept = ids != self.padding
        # the columns at the end are cut that are nothing but padding
        longest = max(1, int((kept * torch.arange(1, ids.shape[1] + 1, device=ids.device)).max()))
        ids, kept = ids[:, :longest], kept[:, :longest]
        types = torch.zeros_like(ids)
        encoded = self.roberta(ids, kept.long(), types, output_hidden_states=True)
        states = encoded.hidden_states  # embedded, and after each layer: [B, L, F]
        logits = [getattr(self, name)(states[depth]) for depth, name in self.classifiers.items()]
        return encoded.last_hidden_state[:, 0], *logits
