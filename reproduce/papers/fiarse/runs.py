"""The runs of FIARSE: methods on submodels of several sizes, a tenth of the clients per round, at all scales."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reproduce.algorithms.base import DistinctClients, FedAvg
from reproduce.algorithms.fiarse import FIARSE
from reproduce.algorithms.heterofl import HeteroFL
from reproduce.clocks.rounds import Rounds
from reproduce.experiment import Experiment, Label, Panel
from reproduce.problems import Classification
from reproduce.problems.batches import Fixed
from reproduce.problems.embedded import ImageBlobs
from reproduce.problems.models import ResNet
from reproduce.problems.partitions import BalancedDirichlet
from reproduce.systems import Epochs, Steps, System
from reproduce.systems.capacity import SplitCapacity

FOUR = (1.0, 1 / 4, 1 / 16, 1 / 64)
SWEEP = (
    1 / 256, 1 / 128, 1 / 64, 1 / 32, 0.04, 1 / 16, 1 / 8, 0.16, 1 / 4, 0.36, 1 / 2, 0.6, 0.64, 0.7, 0.75, 0.8, 0.9,
    0.99, 1.0,
)  # fmt: skip
SEEDS = (0, 1, 2)
PARTICIPATION = 0.1
"""The paper's label of the setting; the reduced scale has 8 of 40 clients in a round."""


@dataclass(frozen=True)
class Setting:
    """A data set with its model and its federation, and how long a run is."""

    problem: Classification
    system: System
    participants: int
    clock: Rounds


@dataclass(frozen=True)
class Scale:
    """data set -> setting; what stands in for the paper's; the accuracy that a size should reach (percent)."""

    settings: Mapping[str, Setting]
    substitute: str
    target: float


# --- the settings -----------------------------------------------------------------------------------------------------


def cifar(dataset: str, classes: int) -> Setting:
    """Section 6.1: 100 clients, 10 per round, 800 rounds of 5 epochs; evaluations as in the published code."""
    problem = Classification(
        dataset,
        ResNet(classes=classes),
        BalancedDirichlet(0.3),
        clients=100,
        batches=Fixed(20),
        weights="uniform",
        mean=(0.4914, 0.4822, 0.4465),
        std=(0.2023, 0.1994, 0.2010),
        test_partition=True,
        augment="crop_flip",
        evaluation_batch=20,
    )
    return Setting(problem, System(Epochs(5), capacity=SplitCapacity(FOUR)), 10, Rounds(800, 20, dense_last=100))


RESNET10N = ResNet(1, 10, (16, 32, 64, 128), (1, 1, 1, 1), stem_stride=2)
FASHION_MNIST = Setting(
    Classification(
        "fashion_mnist",
        RESNET10N,
        BalancedDirichlet(0.3),
        clients=40,
        batches=Fixed(20),
        weights="uniform",
        mean=(0.2860,),
        std=(0.3530,),
        train_samples=6000,
        test_samples=2000,
        test_partition=True,
        evaluation_batch=10,
    ),
    System(Epochs(2), capacity=SplitCapacity(FOUR)),
    8,
    Rounds(60, 5),
)
IMAGE_BLOBS = Setting(
    Classification(
        ImageBlobs(4, 8, 40, 20, 60.0, 0),
        ResNet(1, 4, (8, 16), (1, 1)),
        BalancedDirichlet(0.3),
        clients=8,
        batches=Fixed(10),
        weights="uniform",
        mean=(0.5,),
        std=(0.25,),
        test_partition=True,
        evaluation_batch=10,
    ),
    System(Steps(2), capacity=SplitCapacity(FOUR)),
    4,
    Rounds(3),
)
SCALES = {
    "smoke": Scale(
        {"image_blobs": IMAGE_BLOBS},
        "generated 8x8 images of 4 classes and a residual network of two blocks stand in for CIFAR and ResNet-18; "
        "8 clients, 3 rounds of 2 steps",
        30.0,
    ),
    "reduced": Scale(
        {"fashion_mnist": FASHION_MNIST},
        "Fashion-MNIST (6,000 training and 2,000 test images) and a residual network of four blocks (308,538 "
        "parameters) stand in for CIFAR and ResNet-18; 8 of 40 clients per round, 60 rounds of 2 epochs, no "
        "augmentation",
        60.0,
    ),
    # 70 %: Section 6.3, of CIFAR-10; asked of CIFAR-100 too.
    "paper": Scale({"cifar10": cifar("cifar10", 10), "cifar100": cifar("cifar100", 100)}, "", 70.0),
}


# --- the methods ------------------------------------------------------------------------------------------------------


def algorithms(participants: int) -> dict[str, FedAvg]:
    """All methods with the values of the published commands: rate 0.1, no momentum. The grid of Table 3 is not run."""
    common: dict[str, Any] = {"lr": 0.1, "participation": DistinctClients(participants, average=True), "sweep": SWEEP}
    return {
        "heterofl": HeteroFL(**common),
        "fedrolex": HeteroFL(rolling=True, **common),
        "fiarse": FIARSE(**common),
        "pruning_greedy": FIARSE(mask="frozen", amplify=False, **common),
        "fiarse_layerwise": FIARSE(scope="stage", **common),
        "fiarse_released": FIARSE(amplify=False, **common),
    }


MAIN = ("heterofl", "fedrolex", "fiarse")
ABLATION = ("pruning_greedy", "fiarse_layerwise", "fiarse_released")


# --- the panels -------------------------------------------------------------------------------------------------------


def panel(scale: str, dataset: str, name: str, chosen: tuple[str, ...]) -> Panel:
    """Some of the methods on a data set."""
    here = SCALES[scale]
    setting = here.settings[dataset]
    known = algorithms(setting.participants)
    labels: dict[str, Label] = {
        "dataset": dataset,
        "size_set": "four",
        "participation": PARTICIPATION,
        "target_accuracy": here.target,
    }
    experiments = tuple(
        Experiment({"algorithm": a, **labels}, setting.problem, setting.system, known[a], setting.clock) for a in chosen
    )
    return Panel(f"{name}-{dataset.replace('_', '-')}", experiments, SEEDS, here.substitute)


def four(scale: str) -> tuple[Panel, ...]:
    """The comparison of methods on all data sets (Table 1)."""
    return tuple(panel(scale, dataset, "four", MAIN) for dataset in SCALES[scale].settings)


def four_first(scale: str) -> tuple[Panel, ...]:
    """The same on the first data set, CIFAR-10 in the paper (Fig. 2)."""
    return four(scale)[:1]


def ablation(scale: str) -> tuple[Panel, ...]:
    """FIARSE and its variants on the last data set, CIFAR-100 in the paper (Table 6)."""
    dataset = list(SCALES[scale].settings)[-1]
    return (four(scale)[-1], panel(scale, dataset, "ablation", ABLATION))


def compared(scale: str) -> tuple[Panel, ...]:
    """The comparison of methods, with pruning-greedy where one data set stands for all (Fig. 3)."""
    return tuple(dict.fromkeys((*four(scale), *_beside(scale))))


def swept(scale: str) -> tuple[Panel, ...]:
    """The same on the first data set (Fig. 4)."""
    return (*four_first(scale), *_beside(scale))


def _beside(scale: str) -> tuple[Panel, ...]:
    return ablation(scale)[1:] if len(SCALES[scale].settings) == 1 else ()
