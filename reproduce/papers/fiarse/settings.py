"""The numbers of FIARSE's runs: data, models, federations and lengths, at all scales."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reproduce.algorithms.fiarse import Scope
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Fixed
from reproduce.data.embedded import ImageBlobs, TopicTokens
from reproduce.data.tokens import BytePairs
from reproduce.models.declared import ResNet
from reproduce.models.model import Model
from reproduce.models.roberta import RoBERTa
from reproduce.partitions.dirichlet import BalancedDirichlet, CappedDirichlet
from reproduce.problem import Classification
from reproduce.systems import Epochs, Steps
from reproduce.systems.work import Work


@dataclass(frozen=True)
class SubmodelSetting:
    """A data set with its model and its federation, and how long a run is.

    participants: in a round, at the paper's 10 %. exits: of the network of ScaleFL, after so many blocks; levels: of
    ScaleFL (size, exits, share of the channels), by count of parameters, since the paper does not give them. steps: of
    the published commands, where Table 3 has epochs. rate, betas: of all methods; with betas the optimiser is AdamW.
    scope: of FIARSE's thresholds. substitute: what stands in for the paper's, where it is not what the scale says.
    """

    problem: Classification
    work: Work
    participants: int
    clock: Rounds
    exits: tuple[int, ...]
    levels: tuple[tuple[float, int, float], ...]
    steps: int = 100
    rate: float = 0.1
    betas: tuple[float, ...] = ()
    scope: Scope = "model"
    substitute: str = ""


@dataclass(frozen=True)
class SubmodelScale:
    """The settings of a scale: data set -> setting; what stands in for the paper's; the accuracy that a size should
    reach (percent).

    settings: of images, the first for CIFAR-10 and the last for CIFAR-100, in all artifacts. texts: in Tables 1 and 5.
    beside: in Table 1 alone. seeds: at most so many of a lineup.
    """

    settings: Mapping[str, SubmodelSetting]
    substitute: str
    target: float
    texts: Mapping[str, SubmodelSetting]
    beside: Mapping[str, SubmodelSetting] = field(default_factory=dict)
    seeds: int = 3

    def all(self) -> dict[str, SubmodelSetting]:
        """Every data set."""
        return {**self.settings, **self.beside, **self.texts}


def images(data: Any, model: Model, clients: int, batch: int, split: int | None = 0, **options: Any) -> Classification:
    """Test sets of the clients' own, mini-batches in a fixed order. split: the seed of one split for all runs, as in
    the published code; None: each run has its own."""
    common: dict[str, Any] = {"weights": "uniform", "test_partition": True}
    return Classification(data, model, BalancedDirichlet(0.3, split), clients, Fixed(batch), **common, **options)


MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
"""Of CIFAR's channels."""


def cifar(dataset: str, classes: int) -> SubmodelSetting:
    """Returns the setting of Section 6.1 for "cifar10" or "cifar100", with so many `classes` of labels: 100 clients, 10
    per round, 800 rounds of 5 local epochs; evaluation every 20 rounds, and after each of the last 100."""
    model = ResNet(classes=classes)
    problem = images(dataset, model, 100, 20, mean=MEAN, std=STD, augment="crop_flip", evaluation_batch=20)
    levels = (
        (1 / 64, 1, 0.5), (1 / 16, 2, 0.5), (1 / 4, 3, 0.65), (1.0, 4, 1.0),
        (0.04, 1, 0.8), (0.16, 2, 0.8), (0.36, 3, 0.79), (0.64, 4, 0.8),
    )  # fmt: skip
    return SubmodelSetting(problem, Epochs(5), 10, Rounds(800, 20, dense_last=100), (4, 6, 7, 8), levels)


RESNET10N = ResNet(1, 10, (16, 32, 64, 128), (1, 1, 1, 1), stem_stride=2)
FASHION_MNIST = SubmodelSetting(
    images(
        "fashion_mnist", RESNET10N, 40, 20, split=None, mean=(0.2860,), std=(0.3530,), train_samples=6000,
        test_samples=2000, evaluation_batch=10,
    ),
    Epochs(2), 8, Rounds(60, 5), (2, 3, 4),
    (
        (1 / 64, 1, 0.5), (1 / 16, 2, 0.5), (1 / 4, 3, 0.5), (1.0, 3, 1.0),
        (0.04, 1, 0.8), (0.16, 2, 0.8), (0.36, 3, 0.6), (0.64, 3, 0.8),
    ),
    steps=13,  # of 16, as 100 of 125
)  # fmt: skip
IMAGE_BLOBS = SubmodelSetting(
    images(
        ImageBlobs(4, 8, 40, 20, 60.0, 0), ResNet(1, 4, (8, 16), (1, 1)), 8, 10, mean=(0.5,), std=(0.25,),
        evaluation_batch=10,
    ),
    Steps(2), 4, Rounds(2), (1, 2),
    (
        (1 / 64, 1, 0.25), (1 / 16, 1, 0.5), (1 / 4, 2, 0.5), (1.0, 2, 1.0),
        (0.04, 1, 0.4), (0.16, 1, 0.8), (0.36, 2, 0.6), (0.64, 2, 0.8),
    ),
    steps=1,
)  # fmt: skip
SMALL_CIFAR10 = replace(
    FASHION_MNIST,
    problem=images(
        "cifar10", replace(RESNET10N, channels=3), 40, 20, split=None, mean=MEAN, std=STD,
        train_samples=8000, test_samples=2000, evaluation_batch=10,
    ),
    substitute="a residual network of four blocks instead of ResNet-18, fewer images of CIFAR-10: 308,826 parameters, "
    "8,000 training and 2,000 test images; fewer clients and rounds: 40 clients, 60 rounds of 2 epochs, no "
    "augmentation",
)  # fmt: skip


TEXT_SHARDS = (("embeddings.position",), ("embeddings.word",), ("encoder",))
"""Those of the published code for AG News."""


def text_levels(layers: int, depths: Mapping[float, int]) -> tuple[tuple[float, int, float], ...]:
    """ScaleFL's levels whose encoders have the sizes: a size keeps the layers up to an exit, and is as wide as fits.

    depths: size -> after how many of the layers its exit is.
    """
    exits = sorted(set(depths.values()))
    return tuple(
        (size, exits.index(depth) + 1, round(math.sqrt(size * layers / depth), 4)) for size, depth in depths.items()
    )


NEWS = SubmodelSetting(
    Classification(
        "ag_news", RoBERTa(init="roberta-base"), CappedDirichlet(1.0, None), 200, Fixed(20), weights="uniform",
        test_partition=True, evaluation_batch=100, tokenizer=BytePairs(name="roberta-base"),
    ),
    Epochs(2), 20, Rounds(300, 20), (4, 6, 9, 12),
    text_levels(12, {1 / 64: 4, 1 / 16: 6, 1 / 4: 9, 1.0: 12, 0.04: 4, 0.16: 6, 0.36: 9, 0.64: 12}),
    rate=1e-4, betas=(0.9, 0.95), scope=TEXT_SHARDS,
)  # fmt: skip
"""Appendix D.2: 200 clients, 20 per round, 300 rounds of 2 epochs."""
SMALL_NEWS = replace(
    NEWS,
    problem=replace(
        NEWS.problem, data="ag_news_subset", model=RoBERTa(4000, 66, 64, 4, 2, 128), clients=40,
        tokenizer=BytePairs(4000, 64), train_samples=6000, test_samples=2000,
    ),
    participants=8, clock=Rounds(40, 5), exits=(1, 2), rate=1e-3,
    levels=text_levels(2, {1 / 64: 1, 1 / 16: 1, 1 / 4: 2, 1.0: 2, 0.04: 1, 0.16: 1, 0.36: 2, 0.64: 2}),
    substitute="an encoder of two layers, not pretrained, instead of roberta-base, fewer texts of AG News: 64 features "
    "(331,780 parameters), 6,000 training and 2,000 test texts, cut to 64 byte pairs of a vocabulary of 4,000 made of "
    "them; "
    "fewer clients and rounds: 40 clients, 40 rounds of 2 epochs, AdamW at 1e-3",
)  # fmt: skip
TOPICS = replace(
    SMALL_NEWS,
    problem=replace(
        SMALL_NEWS.problem, data=TopicTokens(4, 60, 12, 40, 20, 0), model=RoBERTa(60, 13, 24, 2, 2, 48, padding=0),
        clients=8, batches=Fixed(10), tokenizer="hashed", train_samples=0, test_samples=0,
    ),
    work=Steps(2), participants=4, clock=Rounds(2),
    substitute="random words with topics instead of AG News and an encoder of two layers of 24 features, not "
    "pretrained, instead of roberta-base; 8 clients, 2 rounds of 2 steps",
)  # fmt: skip

SCALES = {
    "smoke": SubmodelScale(
        {"image_blobs": IMAGE_BLOBS},
        "generated images and a residual network of two blocks for CIFAR and ResNet-18: 8x8 pixels, 4 classes, 8 "
        "clients, 2 rounds of 2 steps",
        30.0,
        {"topics": TOPICS},
        seeds=1,
    ),
    "reduced": SubmodelScale(
        {"fashion_mnist": FASHION_MNIST},
        "Fashion-MNIST and a residual network of four blocks for CIFAR and ResNet-18: 6,000 training and 2,000 test "
        "images, 308,538 parameters; fewer clients and rounds: 40 clients, 60 rounds of 2 epochs, no "
        "augmentation",
        60.0,
        {"ag_news": SMALL_NEWS},
        {"cifar10": SMALL_CIFAR10},
        seeds=5,
    ),
    # 70 %: Section 6.3, of CIFAR-10; asked of CIFAR-100 too.
    "paper": SubmodelScale(
        {"cifar10": cifar("cifar10", 10), "cifar100": cifar("cifar100", 100)}, "", 70.0, {"ag_news": NEWS}
    ),
}
