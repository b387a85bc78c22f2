"""The network experiments of section 6 and appendix I: settings (Table 3), systems, and panels that share runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from reproduce.algorithms.base import FedAvg
from reproduce.algorithms.calibration import Calibration
from reproduce.clocks.rounds import Rounds
from reproduce.experiment import Experiment, Panel
from reproduce.papers.fedacs.toys import ALGORITHMS, benchmarks
from reproduce.problems import Classification
from reproduce.problems.batches import Shuffled
from reproduce.problems.embedded import ImageBlobs
from reproduce.problems.models import ConvNet, Model, Softmax
from reproduce.problems.partitions import ClassPerClient, DirichletClass
from reproduce.systems import System, work
from reproduce.systems import fedacs as systems

ONE_CLASS = "one_class_per_client"
Alpha = float | str

CNN_MNIST = ConvNet(1, 28, (10, 20), (50,), kernel=3, padding=1, dropout=0.2, dropout_at="first")
CNN_MNIST_5X5 = replace(CNN_MNIST, kernel=5, padding=0)
CNN_MNIST_LITERAL = replace(CNN_MNIST, activation=False)
"""Table 3 prints neither activations nor pooling for MNIST; `CNN_MNIST` has the usual ones, this one is as printed."""
CNN_CIFAR10 = ConvNet(3, 32, (32, 32), (256, 64), kernel=3, padding=1, initialisation="kaiming")
CNN_CINIC10 = ConvNet(3, 32, (32, 32), (512, 256), kernel=3, padding=1, dropout=0.2, initialisation="kaiming")


@dataclass(frozen=True)
class Setting:
    """One column of Table 3 with what the paper leaves open: normalisation, target accuracy (%) of the tables, seconds
    per sample on the authors' GPU (fitted to FedAvg's row of Table 1). `tail`: evaluations that make a final accuracy.
    `other_rate`: three of the algorithms are also run with this rate, to show how much depends on it.
    """

    data: Any
    model: Model
    rate: float
    batch: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    seconds: float
    rounds: int = 200
    tail: int = 5
    clients: int = 20
    draws: int = 6
    train_samples: int = 0
    test_samples: int = 0
    seeds: tuple[int, ...] = (0, 1, 2)
    other_rate: float = 0.0
    substitute: str = ""


PAPER = {
    "mnist": Setting("mnist", CNN_MNIST, 0.02, 512, (0.1307,), (0.3081,), 2.43e-4),
    "cifar10": Setting(
        "cifar10", CNN_CIFAR10, 0.03, 1024, (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010), 4.3e-4
    ),
    "cinic10": Setting(
        "cinic10", CNN_CINIC10, 0.03, 1024,
        (0.47889522, 0.47227842, 0.43047404), (0.24205776, 0.23828046, 0.25874835), 5.4e-4,
    ),
}  # fmt: skip
SMALL: dict[str, Any] = {
    "rate": 0.005, "batch": 32, "rounds": 60, "tail": 15, "train_samples": 3000, "test_samples": 2000
}  # fmt: skip
REDUCED = {
    "mnist": replace(
        PAPER["mnist"], **SMALL, seeds=(0, 1),
        substitute="MNIST: 3,000 training images, batches of 32, 60 rounds, rate 0.005",
    ),
    "fashion_mnist": replace(
        PAPER["mnist"], **SMALL, data="fashion_mnist", model=Softmax(784, 10), other_rate=0.0001,
        mean=(0.2860,), std=(0.3530,), seeds=(0, 1, 2, 3, 4),
        substitute="logistic regression on Fashion-MNIST: 3,000 training images, batches of 32, 60 rounds, rate 0.005",
    ),
}  # fmt: skip
SMOKE = {
    "image_blobs": Setting(
        ImageBlobs(4, 8, 40, 25, noise=60.0, seed=5),
        replace(CNN_MNIST, size=8, widths=(4, 8), hidden=(12,), classes=4),
        0.1, 16, (), (), 2.43e-4, rounds=8, tail=2, clients=4, draws=2, seeds=(0, 1, 2),
        substitute="generated 8x8 images of 4 classes, 4 clients, 8 rounds",
    )
}  # fmt: skip
SETTINGS = {"paper": PAPER, "reduced": REDUCED, "smoke": SMOKE}

TARGETS: dict[tuple[str, Alpha], float] = {
    ("mnist", ONE_CLASS): 70.0, ("cifar10", 0.1): 40.0, ("cinic10", 0.1): 35.0,
    ("cifar10", 0.05): 35.0, ("cifar10", 0.2): 35.0, ("cifar10", 0.35): 40.0,
}  # fmt: skip
"""Target accuracies of Tables 1, 4 and 5 (%); a smaller scale sets its own, relative to FedAvg."""

COMPARED: dict[str, dict[str, Alpha]] = {"paper": {"mnist": ONE_CLASS, "cifar10": 0.1, "cinic10": 0.1}}
ALPHAS = (0.05, 0.2, 0.35)
IMBALANCED = {"paper": "cifar10", "reduced": "fashion_mnist", "smoke": "image_blobs"}
"""The data set of Fig. 10 and Table 5."""

VARIANTS = {"fedacs_uncalibrated": None, "fedacs_calibrated_at_server": Calibration(target="server")}
"""FedACS without the calibration of appendix I.2, and with the aggregate scaled instead of the local rate."""


def compared(scale: str) -> dict[str, Alpha]:
    """data set -> Dirichlet parameter, or one class per client, of Figs. 6 and 9 and Tables 1 and 4."""
    return dict(COMPARED.get(scale, dict.fromkeys(SETTINGS[scale], ONE_CLASS)))


def comparison(scale: str, system: str) -> tuple[Panel, ...]:
    """The panels of Figs. 6 and 9: all data sets in one system."""
    return tuple(panel(scale, system, dataset, alpha) for dataset, alpha in compared(scale).items())


def imbalance(scale: str) -> tuple[Panel, ...]:
    """The panels of Fig. 10: the dynamic system at three levels of class imbalance."""
    return tuple(panel(scale, "dynamic", IMBALANCED[scale], alpha) for alpha in ALPHAS)


def panel(scale: str, system: str, dataset: str, alpha: Alpha) -> Panel:
    """The seven algorithms (and some variants) with one data set, partition and system, calibrated."""
    setting = SETTINGS[scale][dataset]
    experiments = [experiment(setting, system, dataset, alpha, name, a) for name, a in algorithms(setting).items()]
    name = f"{dataset.replace('_', '-')}-{system}"
    if alpha != compared(scale).get(dataset):
        name += f"-alpha{alpha}".replace(".", "")
    return Panel(name, tuple(experiments), setting.seeds, setting.substitute)


def algorithms(setting: Setting) -> dict[str, FedAvg]:
    """The algorithms of section 6 with equal expected step lengths, and the variants."""
    found = benchmarks(setting.rate, setting.draws, Calibration(), probe_batch=setting.batch)
    variants = {
        name: benchmarks(setting.rate, setting.draws, calibration)["fedacs"] for name, calibration in VARIANTS.items()
    }
    if setting.other_rate:
        others = benchmarks(setting.other_rate, setting.draws, Calibration())
        variants |= {f"{name}_other_rate": others[name] for name in ("fedacs", "fedavg", "fednova")}
    return {name: found[name] for name in ALGORITHMS} | variants


def experiment(setting: Setting, system: str, dataset: str, alpha: Alpha, name: str, algorithm: FedAvg) -> Experiment:
    problem = Classification(
        data=setting.data,
        model=setting.model,
        partition=ClassPerClient() if alpha == ONE_CLASS else DirichletClass(float(alpha)),
        clients=setting.clients,
        batches=Shuffled(setting.batch),
        mean=setting.mean,
        std=setting.std,
        train_samples=setting.train_samples,
        test_samples=setting.test_samples,
        subset_balanced=setting.train_samples > 0,
        evaluation_batch=1024,
    )
    labels = {"system": system, "dataset": dataset, "dirichlet_alpha": str(alpha), "algorithm": name}
    clock = Rounds(setting.rounds, work=True, by_class=alpha == ONE_CLASS)
    return Experiment(labels, problem, _system(system, setting.clients), algorithm, clock)


def _system(name: str, clients: int) -> System:
    """The systems of appendix I.3.1; small steps for the four clients of the smoke scale."""
    found = {"static": systems.static(), "dynamic": systems.dynamic()}[name]
    if clients == 20:
        return found
    return replace(found, work=work.Halves((1, 2), (12, 16)) if name == "dynamic" else work.Linear(1, 6))
