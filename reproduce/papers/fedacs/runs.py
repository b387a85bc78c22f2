"""What is run for FedACS's figures and tables: quadratics (Figs. 2 to 5, 7, 8) and networks (section 6, appendix I)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reproduce.algorithms.base import FedAvg, WeightedDraws
from reproduce.algorithms.ca_fedavg import CAFedAvg
from reproduce.algorithms.calibration import Calibration
from reproduce.algorithms.fedacs import FedACS
from reproduce.algorithms.fedau import FedAU
from reproduce.algorithms.fednova import FedNova
from reproduce.algorithms.fedprox import FedProx
from reproduce.algorithms.fedvarp import FedVARP
from reproduce.algorithms.os_sampling import OptimalSampling
from reproduce.algorithms.solvers import DecayFedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Shuffled
from reproduce.data.embedded import ImageBlobs
from reproduce.declare.experiment import Experiment, Label, Panel
from reproduce.models.declared import ConvNet, Softmax
from reproduce.models.model import Model
from reproduce.partitions.named import ClassPerClient, DirichletClass
from reproduce.problem import Classification, Quadratic
from reproduce.systems import System, work
from reproduce.systems import fedacs as systems

ALGORITHMS = ("fedacs", "fedavg", "ca_fedavg", "fedvarp", "fednova", "fedau", "os")
CALIBRATED = ("fedacs", "ca_fedavg", "fedvarp")
"""The algorithms whose rate appendix I.2 changes; for the others the factor is one."""


def benchmarks(lr: float, k: int, calibration: Calibration | None = None, probe_batch: int = 0) -> dict[str, FedAvg]:
    """The seven algorithms of section 6 with the common rate `lr` and `k` draws per round."""
    draws = WeightedDraws(k)
    return {
        "fedacs": FedACS(lr, draws, calibration=calibration),
        "fedavg": FedAvg(lr, draws),
        "ca_fedavg": CAFedAvg(lr, draws, calibration=calibration),
        "fedvarp": FedVARP(lr, draws, calibration=calibration),
        "fednova": FedNova(lr, draws),
        "fedau": FedAU(lr, draws),
        "os": OptimalSampling(lr, draws, probe_batch=probe_batch),
    }


@dataclass(frozen=True)
class Toy:
    """Quadratic, draws per round, length and seeds of a panel."""

    problem: Quadratic
    draws: int
    clock: Rounds
    seeds: tuple[int, ...]
    substitute: str = ""

    def panel(self, name: str, runs: Iterable[tuple[Mapping[str, Label], System, FedAvg]]) -> Panel:
        """A panel of runs (labels, system, algorithm)."""
        found = tuple(Experiment(labels, self.problem, system, a, self.clock) for labels, system, a in runs)
        return Panel(name, found, self.seeds, self.substitute)


LONG = Rounds(1000, every=10, dense_last=200, trace=20)
SMALL = Toy(Quadratic(6, 4), 3, Rounds(50, every=5, dense_last=10, trace=5), (0, 1), "6 clients in R^4, 50 rounds")
PLANE = Toy(
    Quadratic(3, 2, minimisers=((0.0, 0.0), (4.0, 0.0), (1.0, 3.0)), start=(4.5, 3.0)), 3,
    Rounds(2000, every=100, trace=2), tuple(range(8)),
)  # fmt: skip
PAPER_TOYS = {
    "fig4": Toy(Quadratic(30, 10), 15, LONG, tuple(range(20))),
    "fig7": Toy(Quadratic(20, 10), 6, LONG, tuple(range(20))),
    "plane": PLANE,
}
SMALL_PLANE = replace(PLANE, clock=replace(PLANE.clock, rounds=300), seeds=(0, 1, 2, 3), substitute="300 rounds")
SMALL_TOYS = {"fig4": SMALL, "fig7": SMALL, "plane": SMALL_PLANE}
TOYS = {"paper": PAPER_TOYS, "reduced": PAPER_TOYS, "smoke": SMALL_TOYS}
"""Reduced equals paper scale, these runs are cheap."""

FIG4_SYSTEMS = {
    "left": systems.figure4("homogeneous"),
    "middle": systems.figure4("heterogeneous"),
    "right": systems.figure4("time-varying"),
}
FIG7_SYSTEMS = {"static": systems.static("steps"), "dynamic": systems.dynamic("steps")}
"""The systems of appendix I.3.1, with T_m counted in local steps."""
PLANE_SYSTEMS = {
    "toy2d": systems.plane(),
    "toy2d_comm_only": systems.plane(equal_work=True),
    "toy2d_comp_only": systems.plane(equal_links=True),
}


def solvers(lr: float, k: int) -> dict[str, FedAvg]:
    """The five series of Fig. 4."""
    draws = WeightedDraws(k)
    return {
        "fedacs_sgd": FedACS(lr, draws),
        "fedavg_sgd": FedAvg(lr, draws),
        "fedavg_prox_sgd": FedProx(lr, draws, mu=1.0),
        "fedavg_decay_sgd": DecayFedAvg(lr, draws, decay=0.005),
        "fedavg_momentum_sgd": FedAvg(lr, draws, momentum=0.3),
    }


def fig4(scale: str) -> tuple[Panel, ...]:
    """Homogeneous, heterogeneous and time-varying clients; one common rate, no calibration (the caption gives one)."""
    toy = TOYS[scale]["fig4"]
    chosen = solvers(0.001, toy.draws)
    return tuple(
        toy.panel(f"fig4-{place}", [({"panel": place, "algorithm": n}, system, a) for n, a in chosen.items()])
        for place, system in FIG4_SYSTEMS.items()
    )


def fig7(scale: str) -> tuple[Panel, ...]:
    """All with the common rate of the caption (`calibrate` false), and the three that calibration changes again."""
    toy = TOYS[scale]["fig7"]
    plain, calibrated = benchmarks(0.002, toy.draws), benchmarks(0.002, toy.draws, Calibration())
    chosen = [(False, n, plain[n]) for n in ALGORITHMS] + [(True, n, calibrated[n]) for n in CALIBRATED]
    return tuple(
        toy.panel(f"fig7-{name}", [({"system": name, "calibrate": c, "algorithm": n}, system, a) for c, n, a in chosen])
        for name, system in FIG7_SYSTEMS.items()
    )


def plane(scale: str, system: str) -> tuple[Panel, ...]:
    """Three clients in the plane; the schematics of the paper drawn from simulated paths."""
    toy = TOYS[scale]["plane"]
    chosen = benchmarks(0.02, toy.draws)
    chosen["fedvarp_original"] = FedVARP(0.02, WeightedDraws(toy.draws), variant="original")
    if system != "toy2d":
        chosen = {"fedavg": chosen["fedavg"]}
    labelled = [({"system": system, "algorithm": n}, PLANE_SYSTEMS[system], a) for n, a in chosen.items()]
    return (toy.panel(system.replace("_", "-"), labelled),)


ONE_CLASS = "one_class_per_client"
Alpha = float | str

CNN_MNIST = ConvNet(1, 28, (10, 20), (50,), kernel=3, padding=1, dropout=0.2, dropout_at="first")
CNN_MNIST_5X5 = replace(CNN_MNIST, kernel=5, padding=0)
CNN_MNIST_LITERAL = replace(CNN_MNIST, activation=False)
"""Table 3 prints neither activations nor pooling for MNIST; `CNN_MNIST` has the usual ones, this one is as printed."""
CNN_CIFAR10 = ConvNet(3, 32, (32, 32), (256, 64), kernel=3, padding=1, initialisation="kaiming")
CNN_CINIC10 = ConvNet(3, 32, (32, 32), (512, 256), kernel=3, padding=1, dropout=0.2, initialisation="kaiming")


@dataclass(frozen=True)
class NetworkSetting:
    """One column of Table 3 with what the paper leaves open: normalisation, and seconds per sample on the authors' GPU
    (fitted to FedAvg's row of Table 1).

    alpha: the partition of Figs. 6 and 9 and Tables 1 and 4; alphas: those of Fig. 10 and Table 5. targets: partition
    -> target accuracy (%) of the tables; a smaller scale has none, there it is relative to FedAvg. tail: evaluations
    that make a final accuracy. other_rate: three of the algorithms are also run with this rate, to show how much
    depends on it.
    """

    name: str
    data: Any
    model: Model
    rate: float
    batch: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    seconds: float
    rounds: int = 200
    tail: int = 5
    alpha: Alpha = ONE_CLASS
    alphas: tuple[Alpha, ...] = ()
    targets: Mapping[Alpha, float] = field(default_factory=dict)
    clients: int = 20
    draws: int = 6
    train_samples: int = 0
    test_samples: int = 0
    seeds: tuple[int, ...] = (0, 1, 2)
    other_rate: float = 0.0
    substitute: str = ""


ALPHAS = (0.05, 0.2, 0.35)
MNIST = NetworkSetting("mnist", "mnist", CNN_MNIST, 0.02, 512, (0.1307,), (0.3081,), 2.43e-4, targets={ONE_CLASS: 70.0})
CIFAR10 = NetworkSetting(
    "cifar10", "cifar10", CNN_CIFAR10, 0.03, 1024, (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010), 4.3e-4,
    alpha=0.1, alphas=ALPHAS, targets={0.1: 40.0, 0.05: 35.0, 0.2: 35.0, 0.35: 40.0},
)  # fmt: skip
CINIC10 = NetworkSetting(
    "cinic10", "cinic10", CNN_CINIC10, 0.03, 1024,
    (0.47889522, 0.47227842, 0.43047404), (0.24205776, 0.23828046, 0.25874835), 5.4e-4,
    alpha=0.1, targets={0.1: 35.0},
)  # fmt: skip
FEW_IMAGES = (
    "3,000 training and 2,000 test images, batches of 32, 60 rounds, rate 0.005; final accuracy of the last 15 rounds, "
    "the target 0.9 times FedAvg's best"
)
SMALL_MNIST = replace(
    MNIST, targets={}, rate=0.005, batch=32, rounds=60, tail=15, train_samples=3000, test_samples=2000,
    seeds=tuple(range(6)), substitute=f"MNIST; {FEW_IMAGES}",
)  # fmt: skip
SMALL_FASHION = replace(
    SMALL_MNIST, name="fashion_mnist", data="fashion_mnist", model=Softmax(784, 10), other_rate=0.0001, alphas=ALPHAS,
    mean=(0.2860,), std=(0.3530,), seeds=(0, 1, 2, 3, 4),
    substitute=f"logistic regression on Fashion-MNIST; {FEW_IMAGES}",
)  # fmt: skip
BLOBS = NetworkSetting(
    "image_blobs", ImageBlobs(4, 8, 40, 25, noise=60.0, seed=5),
    replace(CNN_MNIST, size=8, widths=(4, 8), hidden=(12,), classes=4), 0.1, 16, (), (), 2.43e-4,
    rounds=8, tail=2, alphas=ALPHAS, clients=4, draws=2,
    substitute="generated 8x8 images of 4 classes, 4 clients, 8 rounds",
)  # fmt: skip
SETTINGS = {"paper": (MNIST, CIFAR10, CINIC10), "reduced": (SMALL_MNIST, SMALL_FASHION), "smoke": (BLOBS,)}

VARIANTS = {"fedacs_uncalibrated": None, "fedacs_calibrated_at_server": Calibration(target="server")}
"""FedACS without the calibration of appendix I.2, and with the aggregate scaled instead of the local rate."""


def comparison(scale: str, system: str) -> tuple[Panel, ...]:
    """The panels of Figs. 6 and 9: all data sets in one system."""
    return tuple(panel(setting, system, setting.alpha) for setting in SETTINGS[scale])


def imbalance(scale: str) -> tuple[Panel, ...]:
    """The panels of Fig. 10: the dynamic system at three levels of class imbalance."""
    return tuple(panel(setting, "dynamic", alpha) for setting in SETTINGS[scale] for alpha in setting.alphas)


def panel(setting: NetworkSetting, system: str, alpha: Alpha) -> Panel:
    """The seven algorithms (and some variants) with one data set, partition and system, calibrated."""
    name = f"{setting.name.replace('_', '-')}-{system}"
    if alpha != setting.alpha:
        name += f"-alpha{alpha}".replace(".", "")
    experiments = tuple(experiment(setting, system, alpha, name, a) for name, a in algorithms(setting).items())
    return Panel(name, experiments, setting.seeds, setting.substitute)


def algorithms(setting: NetworkSetting) -> dict[str, FedAvg]:
    """The algorithms of section 6 with equal expected step lengths, and the variants."""
    found = benchmarks(setting.rate, setting.draws, Calibration(), probe_batch=setting.batch)
    for name, calibration in VARIANTS.items():
        found[name] = benchmarks(setting.rate, setting.draws, calibration)["fedacs"]
    if setting.other_rate:
        others = benchmarks(setting.other_rate, setting.draws, Calibration())
        found |= {f"{name}_other_rate": others[name] for name in ("fedacs", "fedavg", "fednova")}
    return found


def experiment(setting: NetworkSetting, system: str, alpha: Alpha, name: str, algorithm: FedAvg) -> Experiment:
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
    labels = {"system": system, "dataset": setting.name, "dirichlet_alpha": str(alpha), "algorithm": name}
    measured: dict[str, Any] = {"tail": setting.tail, "seconds_per_sample": setting.seconds}
    if alpha in setting.targets:
        measured["target_accuracy_pct"] = setting.targets[alpha]
    clock = Rounds(setting.rounds, work=True, by_class=alpha == ONE_CLASS)
    return Experiment(labels | measured, problem, _system(system, setting.clients), algorithm, clock)


def _system(name: str, clients: int) -> System:
    """The systems of appendix I.3.1; small steps for the four clients of the smoke scale."""
    found = {"static": systems.static(), "dynamic": systems.dynamic()}[name]
    if clients == 20:
        return found
    return replace(found, work=work.Halves((1, 2), (12, 16)) if name == "dynamic" else work.Linear(1, 6))
