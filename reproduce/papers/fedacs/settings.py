"""The numbers of FedACS's runs at every scale: quadratics (Figs. 2 to 5, 7, 8) and networks (section 6, appendix I)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reproduce.clocks.rounds import Rounds
from reproduce.data.embedded import ImageBlobs
from reproduce.models.declared import ConvNet, Softmax
from reproduce.models.model import Model
from reproduce.problem import Quadratic
from reproduce.systems import System, link, work


@dataclass(frozen=True)
class Toy:
    """Quadratic, draws per round, length and seeds of a panel."""

    problem: Quadratic
    draws: int
    clock: Rounds
    seeds: tuple[int, ...]
    substitute: str = ""


LONG, TWENTY = Rounds(1000, every=10, dense_last=200, trace=20), tuple(range(20))
SMALL = Toy(Quadratic(6, 4), 3, Rounds(50, every=5, dense_last=10, trace=5), (0, 1), "6 clients in R^4, 50 rounds")
PLANE = Toy(
    Quadratic(3, 2, minimisers=((0.0, 0.0), (4.0, 0.0), (1.0, 3.0)), start=(4.5, 3.0)), 3,
    Rounds(2000, every=100, trace=2), tuple(range(8)),
)  # fmt: skip
SMALL_PLANE = replace(PLANE, clock=replace(PLANE.clock, rounds=100), seeds=(0, 1), substitute="100 rounds")
PAPER_TOYS = {
    "fig4": Toy(Quadratic(30, 10), 15, LONG, TWENTY),
    "fig7": Toy(Quadratic(20, 10), 6, LONG, TWENTY),
    "plane": PLANE,
}
TOYS = {"paper": PAPER_TOYS, "reduced": PAPER_TOYS, "smoke": {"fig4": SMALL, "fig7": SMALL, "plane": SMALL_PLANE}}
"""Reduced equals paper scale, these runs are cheap."""
RATES = {"fig4": 0.001, "fig7": 0.002, "plane": 0.02}

STATIC = System(work.Linear(1, 2), link.StaticLink(0.60, 0.02))
"""T_m = 1, 3, 5, ... epochs and success probabilities 0.60, 0.62, ... (appendix I.3.1); 20 clients or fewer."""
DYNAMIC = System(work.Halves(), link.Halves())
"""Slow clients with bad links in the first half, fast ones with good links in the second, redrawn every round."""
FIG4_SYSTEMS: Mapping[str, System] = {
    "left": System(work.Steps(15), link.Same(0.2)),
    "middle": System(work.Linear(1, 1, "steps"), link.StaticLink(0.70, 0.01)),
    "right": System(work.Halves(unit="steps"), link.Halves((0.2, 0.4), (0.0, 0.2))),
}
"""30 clients: homogeneous, heterogeneous, time-varying."""
FIG7_SYSTEMS: Mapping[str, System] = {
    "static": replace(STATIC, work=work.Linear(1, 2, "steps")),
    "dynamic": replace(DYNAMIC, work=work.Halves(unit="steps")),
}
"""The systems of appendix I.3.1, with T_m counted in local steps."""
UNEQUAL_WORK, UNEQUAL_LINKS = work.PerClient((4, 5, 12)), link.PerClient((0.05, 0.60, 0.40))
PLANE_SYSTEMS: Mapping[str, System] = {
    "toy2d": System(UNEQUAL_WORK, UNEQUAL_LINKS),
    "toy2d_comm_only": System(work.Steps(5), UNEQUAL_LINKS),
    "toy2d_comp_only": System(UNEQUAL_WORK, link.Reliable()),
}
"""Three clients in the plane: both biases, that of communication alone, that of computation alone."""

ONE_CLASS = "one_class_per_client"
Alpha = float | str

CNN_MNIST = ConvNet(1, 28, (10, 20), (50,), kernel=3, padding=1, dropout=0.2, dropout_at="first")
"""Table 3 prints neither activations nor pooling for MNIST; here it has the usual ones."""
CNN_CIFAR10 = ConvNet(3, 32, (32, 32), (256, 64), kernel=3, padding=1, initialisation="kaiming")
CNN_CINIC10 = ConvNet(3, 32, (32, 32), (512, 256), kernel=3, padding=1, dropout=0.2, initialisation="kaiming")


@dataclass(frozen=True)
class NetworkSetting:
    """One column of Table 3 with what the paper leaves open: normalisation, and seconds per sample on the authors' GPU
    (fitted to FedAvg's row of Table 1).

    alpha: the partition of Figs. 6 and 9 and Tables 1 and 4; alphas: those of Fig. 10 and Table 5. targets: partition
    -> target accuracy (%) of the tables; a smaller scale has none, there it is relative to FedAvg. tail: evaluations
    that make a final accuracy. more: further seeds of an algorithm in a system, where three cannot decide what the
    paper says of it. other_rate: three of the algorithms are also run with this rate, to show how much depends on it.
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
    more: tuple[tuple[str, str, tuple[int, ...]], ...] = ()
    other_rate: float = 0.0
    substitute: str = ""


ALPHAS = (0.05, 0.2, 0.35)
MNIST = NetworkSetting(
    "mnist", "mnist", CNN_MNIST, 0.02, 512, (0.1307,), (0.3081,), 2.43e-4, targets={ONE_CLASS: 70.0},
    more=(("static", "os", (3, 4, 5)),),
)  # fmt: skip
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
    "fewer images and rounds: 3,000 for training and 2,000 for tests, batches of 32, 60 rounds, rate 0.005, final "
    "accuracy of the last 15 rounds, the target 0.9 times FedAvg's best"
)
SMALL_MNIST = replace(
    MNIST, targets={}, more=(), rate=0.005, batch=32, rounds=60, tail=15, train_samples=3000, test_samples=2000,
    seeds=tuple(range(6)), substitute=f"MNIST; {FEW_IMAGES}",
)  # fmt: skip
SMALL_FASHION = replace(
    SMALL_MNIST, name="fashion_mnist", data="fashion_mnist", model=Softmax(784, 10), other_rate=0.0001, alphas=ALPHAS,
    mean=(0.2860,), std=(0.3530,), seeds=tuple(range(12)),
    substitute=f"logistic regression on Fashion-MNIST beside MNIST; {FEW_IMAGES}",
)  # fmt: skip
SMALL_CIFAR10 = replace(
    SMALL_FASHION, name="cifar10", data="cifar10", model=Softmax(3072, 10), mean=CIFAR10.mean, std=CIFAR10.std,
    seconds=CIFAR10.seconds, alpha=0.1, alphas=(), other_rate=0.0, seeds=tuple(range(30)),
    substitute=f"logistic regression on CIFAR-10 instead of both CNNs; {FEW_IMAGES}",
)  # fmt: skip
LONGER_MNIST = replace(
    SMALL_MNIST, rounds=200, seeds=(0, 1),
    substitute="MNIST; fewer images: 3,000 for training, batches of 32, 200 rounds, learning rate 0.005",
)  # fmt: skip
"""For the sensitivity: the network needs more than the 60 rounds of the other reduced panels."""
BLOBS = NetworkSetting(
    "image_blobs", ImageBlobs(4, 8, 40, 25, noise=60.0, seed=5),
    replace(CNN_MNIST, size=8, widths=(4, 8), hidden=(12,), classes=4), 0.1, 16, (), (), 2.43e-4,
    rounds=8, tail=2, alphas=ALPHAS, clients=4, draws=2, seeds=(0, 1),
    substitute="generated 8x8 images of 4 classes, 4 clients, 8 rounds",
)  # fmt: skip
SETTINGS = {
    "paper": (MNIST, CIFAR10, CINIC10),
    "reduced": (SMALL_MNIST, SMALL_FASHION, SMALL_CIFAR10),
    "smoke": (BLOBS,),
}
