"""Problems, systems and algorithms that the artifacts of FedaGrac share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from reproduce.algorithms.base import FedAvg
from reproduce.algorithms.fedagrac import Constant, FedaGrac
from reproduce.algorithms.fednova import FedNova
from reproduce.algorithms.fedprox import FedProx
from reproduce.algorithms.scaffold import Scaffold
from reproduce.experiment import Panel
from reproduce.problems import Classification
from reproduce.problems.batches import Cyclic
from reproduce.problems.embedded import GaussianClasses, ImageBlobs
from reproduce.problems.models import VGG19, AlexNet, ConvNet, Model, Softmax
from reproduce.problems.partitions import CappedDirichlet, Sharding
from reproduce.systems import System
from reproduce.systems.work import Gaussian, Steps, Work

SEEDS = (0, 1, 2)
ALGORITHMS = ("fedagrac", "fedavg", "fednova", "scaffold", "fedprox")
"""In the order of Table 6."""

LR, LR_A9A = Softmax(784, 10), Softmax(123, 2)
CNN2 = ConvNet(1, 28, (10, 20), (50,), dropout=0.5, dropout_at="last", channel_dropout=0.5)
ALEXNET, VGG = AlexNet(), VGG19()

NON_IID = CappedDirichlet(0.1)
"""Of the preliminary experiments (Tables 1, 2, Figs. 2, 3): the default of the published code."""
DP1, DP2 = CappedDirichlet(0.3), Sharding(5)

TINY_LR = Classification(
    GaussianClasses(4, 20, 100, 50, noise=1.5, seed=3),
    Softmax(20, 4),
    CappedDirichlet(0.3),
    clients=4,
    batches=Cyclic(8),
)
TINY_CNN = Classification(
    ImageBlobs(4, 12, 60, 30, noise=40.0, seed=3),
    ConvNet(1, 12, (4, 8), (), classes=4, kernel=3, dropout=0.1, channel_dropout=0.1),
    CappedDirichlet(1.0),
    clients=4,
    batches=Cyclic(8),
    mean=(0.5,),
    std=(0.25,),
)
"""Stand-ins at the smoke scale."""


def tiny(model: str, partition: Any = DP1) -> Classification:
    """The stand-in of a model at the smoke scale."""
    return replace(TINY_LR if model == "lr" else TINY_CNN, partition=partition)


def dataset(problem: Classification) -> str:
    """The value of the column `dataset`."""
    return problem.data if isinstance(problem.data, str) else "generated"


def seeds(scale: str) -> tuple[int, ...]:
    """Three seeds; two at the smoke scale."""
    return SEEDS[:2] if scale == "smoke" else SEEDS


def together(name: str, panels: Iterable[Panel]) -> tuple[Panel, ...]:
    """The experiments of several panels as one: at the smoke scale starting a job costs more than the job."""
    found = list(panels)
    return (replace(found[0], name=name, experiments=tuple(e for p in found for e in p.experiments)),)


def fashion(model: Model, partition: Any = NON_IID, clients: int = 10) -> Classification:
    """Fashion-MNIST as in the published code: normalised with the constants of MNIST, batches of 32."""
    return Classification("fashion_mnist", model, partition, clients, Cyclic(32), mean=(0.1307,), std=(0.3081,))


def cifar10(model: Model, partition: Any) -> Classification:
    """CIFAR-10 with random crops and flips, 20 clients, batches of 25."""
    return Classification(
        "cifar10",
        model,
        partition,
        20,
        Cyclic(25),
        mean=(0.4914, 0.4822, 0.4465),
        std=(0.2023, 0.1994, 0.2010),
        augment="crop_flip",
    )


def a9a(partition: Any = DP1) -> Classification:
    """a9a with logistic regression, 20 clients, batches of 20."""
    return Classification("a9a", LR_A9A, partition, 20, Cyclic(20))


def algorithms(lr: float, lam: float, mu: float) -> dict[str, FedAvg]:
    """The five algorithms of Section 6 at one learning rate."""
    return {
        "fedagrac": FedaGrac(lr, calibration=Constant(lam)),
        "fedavg": FedAvg(lr),
        "fednova": FedNova(lr),
        "scaffold": Scaffold(lr),
        "fedprox": FedProx(lr, mu=mu),
    }


def schemes(lr: float, lam: float) -> dict[str, FedaGrac]:
    """The four reference-orientation schemes of Section 4.2."""
    plain = FedaGrac(lr, calibration=Constant(lam))
    others = {f"fedagrac_{name}": replace(plain, scheme=name) for name in ("avg", "first", "reverse")}
    return {"fedagrac": plain, **others}


def gaussian(mean: int, variance: int, mode: str) -> Work:
    """K_i of Section 6; mode "none" without step asynchronism."""
    return Steps(mean) if variance == 0 else Gaussian(mean, variance, mode)  # type: ignore[arg-type]


def working(work: Work) -> System:
    """A system whose clients differ in their work only."""
    return System(work=work)
