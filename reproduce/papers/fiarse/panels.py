"""The runs of FIARSE: four submodel sizes, a tenth (reduced: a fifth) of the clients per round, all scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reproduce.algorithms.base import DistinctClients, FedAvg
from reproduce.algorithms.fiarse import FIARSE
from reproduce.algorithms.heterofl import HeteroFL
from reproduce.clocks.rounds import Rounds
from reproduce.experiment import Experiment, Panel
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

CIFAR_MEAN, CIFAR_STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
RESNET10N = ResNet(1, 10, (16, 32, 64, 128), (1, 1, 1, 1), stem_stride=2)
SUBSTITUTES = {
    "smoke": "generated 8x8 images of 4 classes and a residual network of two blocks stand in for CIFAR and ResNet-18; "
    "8 clients, 3 rounds of 2 steps",
    "reduced": "Fashion-MNIST (6,000 training and 2,000 test images) and a residual network of four blocks (308,538 "
    "parameters) stand in for CIFAR and ResNet-18; 8 of 40 clients per round, 60 rounds of 2 epochs, no augmentation",
    "paper": "",
}


@dataclass(frozen=True)
class Setting:
    """A data set with its model and its federation, and how long a run is."""

    problem: Classification
    system: System
    participants: int
    clock: Rounds


def cifar(dataset: str, classes: int) -> Setting:
    """Section 6.1: 100 clients, 10 per round, 800 rounds of 5 epochs; evaluations as in the published code."""
    problem = Classification(
        dataset,
        ResNet(classes=classes),
        BalancedDirichlet(0.3),
        clients=100,
        batches=Fixed(20),
        weights="uniform",
        mean=CIFAR_MEAN,
        std=CIFAR_STD,
        test_partition=True,
        augment="crop_flip",
        evaluation_batch=20,
    )
    return Setting(problem, System(Epochs(5), capacity=SplitCapacity(FOUR)), 10, Rounds(800, 20, dense_last=100))


def settings(scale: str) -> dict[str, Setting]:
    """data set -> setting."""
    if scale == "paper":
        return {"cifar10": cifar("cifar10", 10), "cifar100": cifar("cifar100", 100)}
    if scale == "reduced":
        problem = Classification(
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
        )
        return {"fashion_mnist": Setting(problem, System(Epochs(2), capacity=SplitCapacity(FOUR)), 8, Rounds(60, 5))}
    problem = Classification(
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
    )
    return {"image_blobs": Setting(problem, System(Steps(2), capacity=SplitCapacity(FOUR)), 4, Rounds(3))}


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
SHOWN = (*MAIN, "pruning_greedy")
ABLATION = ("pruning_greedy", "fiarse_layerwise", "fiarse_released")


def panel(scale: str, dataset: str, name: str, chosen: tuple[str, ...]) -> Panel:
    setting = settings(scale)[dataset]
    known = algorithms(setting.participants)
    experiments = tuple(
        Experiment(
            {"algorithm": a, "dataset": dataset, "size_set": "four", "participation": PARTICIPATION},
            setting.problem,
            setting.system,
            known[a],
            setting.clock,
        )
        for a in chosen
    )
    return Panel(f"{name}-{dataset.replace('_', '-')}", experiments, SEEDS, SUBSTITUTES[scale])


def four(scale: str) -> tuple[Panel, ...]:
    """The comparison of methods on all data sets (Table 1, Figs. 2 and 3)."""
    return tuple(panel(scale, dataset, "four", MAIN) for dataset in settings(scale))


def compared(scale: str) -> tuple[Panel, ...]:
    """The comparison of methods; below paper scale also pruning-greedy, which trains there on the same data."""
    return four(scale) if scale == "paper" else (*four(scale), *ablation(scale)[1:])


def four_first(scale: str) -> tuple[Panel, ...]:
    """The same on the first data set, CIFAR-10 in the paper (Fig. 4)."""
    return four(scale)[:1]


def swept(scale: str) -> tuple[Panel, ...]:
    """The panels of Fig. 4: the first data set, and pruning-greedy where it trains on that."""
    return four_first(scale) if scale == "paper" else compared(scale)


def ablation(scale: str) -> tuple[Panel, ...]:
    """FIARSE and its variants on the last data set, CIFAR-100 in the paper (Table 6)."""
    dataset = list(settings(scale))[-1]
    return (four(scale)[-1], panel(scale, dataset, "ablation", ABLATION))
