"""What is run: Section 6, five algorithms compared (Table 6, Fig. 5), and FedaGrac over its two rates (Fig. 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from reproduce.algorithms.base import FedAvg
from reproduce.algorithms.fednova import FedNova
from reproduce.algorithms.fedprox import FedProx
from reproduce.algorithms.scaffold import Scaffold
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Cyclic
from reproduce.declare.experiment import Panel
from reproduce.models.declared import MLP
from reproduce.models.model import Model
from reproduce.papers.fedagrac import runs
from reproduce.papers.fedagrac.runs import (
    CNN2,
    DP1,
    DP2,
    TEN,
    TINY_CNN,
    TINY_LR,
    experiment,
    fashion,
    fedagrac,
    panel,
)
from reproduce.problem import Classification
from reproduce.systems.work import Gaussian, Mode, Steps, Work


def cifar10(model: Model, partition: Any = DP2) -> Classification:
    """CIFAR-10 with random crops and flips, 20 clients, batches of 25."""
    mean, std = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
    return Classification("cifar10", model, partition, 20, Cyclic(25), mean=mean, std=std, augment="crop_flip")


A9A = Classification("a9a", runs.LR_A9A, DP1, 20, Cyclic(20))
DIGITS = Classification("digits", MLP(64, 32, 10), DP2, 10, Cyclic(16), mean=(0.5,), std=(0.4,))
"""scikit-learn's 1,797 images."""


def algorithms(lr: float, lam: float, mu: float) -> dict[str, FedAvg]:
    """The five algorithms at one learning rate."""
    return {
        "fedagrac": fedagrac(lr, lam),
        "fedavg": FedAvg(lr),
        "fednova": FedNova(lr),
        "scaffold": Scaffold(lr),
        "fedprox": FedProx(lr, mu=mu),
    }


RATES, MUS, LAMBDAS = (0.01, 0.008, 0.005), (1.0, 0.1, 0.01), (0.01, 0.02, 0.03, 0.04, 0.05)
"""The grids of Section 6.1; Table 6 takes the first rate, the last mu and the middle lambda."""


def grid(rates: tuple[float, ...] = RATES, lambdas: tuple[float, ...] = LAMBDAS) -> dict[str, FedAvg]:
    """The tuned grid of Section 6.1 as "algorithm/point": all have a rate, FedaGrac also λ, FedProx also μ."""
    found: dict[str, FedAvg] = {}
    for lr in rates:
        found |= {f"fedagrac/{lr:g}/{lam:g}": fedagrac(lr, lam) for lam in lambdas}
        found |= {f"fedprox/{lr:g}/{mu:g}": FedProx(lr, mu=mu) for mu in MUS}
        found |= {f"fedavg/{lr:g}": FedAvg(lr), f"fednova/{lr:g}": FedNova(lr), f"scaffold/{lr:g}": Scaffold(lr)}
    return found


class LocalSteps(NamedTuple):
    """K_i of Section 6: a Gaussian; without variance (mode "none") no step asynchronism."""

    mean: int
    variance: int
    mode: Mode | Literal["none"] = "fixed"

    @property
    def work(self) -> Work:
        """Drawn as in the published code."""
        return Steps(self.mean) if self.mode == "none" else Gaussian(self.mean, self.variance, self.mode)


@dataclass(frozen=True)
class StepComparison:
    """The five algorithms with one model and partition; rates: learning rate, λ and μ; `target` that of Table 6;
    seeds: if not the scale's."""

    model: str
    partition: str
    problem: Classification
    rates: tuple[float, float, float]
    rounds: int = 200
    target: float = 0.0
    substitute: str = ""
    seeds: tuple[int, ...] = ()

    def panel(
        self, name: str, scale: str, k: LocalSteps, points: Mapping[str, FedAvg] | None = None, stop: bool = False
    ) -> Panel:
        """One distribution of the numbers of steps; with `points` a grid of hyper-parameters, of which
        "fedprox/0.01/0.1" is FedProx at the point 0.01/0.1. stop: runs end at their target."""
        labels: dict[str, Any] = {"model": self.model, "partition": self.partition}
        labels |= {"k_mean": k.mean, "k_variance": k.variance, "k_mode": k.mode}
        labels |= {"target_accuracy": self.target, "max_rounds": self.rounds} if self.target else {}
        clock = Rounds(self.rounds, until=("accuracy", self.target) if stop else None)
        experiments = []
        for key, algorithm in (points or algorithms(*self.rates)).items():
            base, _, point = key.partition("/")
            named = {**labels, "algorithm": base, **({"point": point} if point else {})}
            experiments.append(experiment(named, self.problem, k.work, algorithm, clock))
        return panel(name, experiments, scale, self.substitute, self.seeds)


class StepRows(NamedTuple):
    """Table 6 at a scale: its models, mean and variances of the steps; `tuned`: also the grid of each row."""

    models: tuple[StepComparison, ...]
    mean: int
    variances: tuple[int, int]
    tuned: bool = False


PUBLISHED = (RATES[0], LAMBDAS[2], MUS[2])
NETWORK = (0.03, 0.3, 0.01)
PHRASE = "small CNN on Fashion-MNIST, 10 clients, mean K 25, V 0, 1, 25 for AlexNet on CIFAR-10, 65 % within 80 rounds"
TABLE6 = {
    "paper": StepRows(
        (
            StepComparison("alexnet", "dp1", cifar10(runs.ALEXNET, DP1), PUBLISHED, 200, 68.0),
            StepComparison("alexnet", "dp2", cifar10(runs.ALEXNET, DP2), PUBLISHED, 200, 70.0),
            StepComparison("vgg19", "dp2", cifar10(runs.VGG, DP2), PUBLISHED, 200, 80.0),
        ),
        500, (100, 10000), tuned=True,
    ),
    "reduced": StepRows(
        (
            StepComparison("cnn2", "dp1", fashion(CNN2, DP1), NETWORK, 80, 65.0, PHRASE),
            StepComparison("cnn2", "dp2", fashion(CNN2, DP2), NETWORK, 80, 65.0, PHRASE),
            StepComparison(
                "small_mlp", "dp2", DIGITS, (0.02, 0.3, 0.01), 80, 85.0,
                "a network with one hidden layer on scikit-learn's digits for VGG-19 on CIFAR-10, 85 % within 80 "
                "rounds",
            ),
        ),
        25, (1, 25),
    ),
    "smoke": StepRows(
        (StepComparison("tiny_cnn", "dp1", TINY_CNN, (0.3, 0.3, 0.01), 5, 50.0, "tiny data"),), 4, (1, 2),
    ),
}  # fmt: skip
SHARED = ("alexnet", "dp2", LocalSteps(500, 10000))
"""The row whose runs Fig. 5 follows to the end; all others end with their target."""


def rows(scale: str, tuned: bool = False) -> dict[tuple[str, str, LocalSteps], Panel]:
    """(model, partition, numbers of steps) -> the panel of the row, or its tuned grid."""
    models, mean, variances, _ = TABLE6[scale]
    modes: tuple[Mode, ...] = ("fixed", "random")
    kinds = [LocalSteps(mean, 0, "none"), *(LocalSteps(mean, v, mode) for v in variances for mode in modes)]
    found = {}
    for c in models:
        for k in kinds:
            row = (c.model, c.partition, k)
            name = f"{'tuned' if tuned else 'table6'}-{c.model}-{c.partition}-v{k.variance}-{k.mode}"
            found[row] = c.panel(name, scale, k, grid() if tuned else None, stop=tuned or row != SHARED)
    return found


def table6(scale: str) -> tuple[Panel, ...]:
    """One per row; at paper scale also the tuned grid of each row."""
    return runs.jobs(
        scale, "table6", [p for tuned in (False, True)[: 1 + TABLE6[scale].tuned] for p in rows(scale, tuned).values()]
    )


class TimeCurves(NamedTuple):
    """The network and logistic regression, the means and the variance of the steps; `tuned`: the rates of the grid of
    logistic regression, of which the figure has the first (Section 6.1)."""

    network: StepComparison
    regression: StepComparison
    means: tuple[int, int]
    variance: int
    tuned: tuple[float, ...] = ()


FIG5 = {
    "paper": TimeCurves(
        StepComparison("alexnet", "dp2", cifar10(runs.ALEXNET, DP2), PUBLISHED),
        StepComparison("lr", "dp1", A9A, (0.005, 1.0, 0.1), seeds=TEN),
        (100, 500), 10000, tuned=(0.005, 0.001, 0.0005),
    ),
    "reduced": TimeCurves(
        StepComparison(
            "cnn2", "dp2", fashion(CNN2, DP2), NETWORK, 40,
            substitute="small CNN on Fashion-MNIST for AlexNet on CIFAR-10: 10 clients, mean K 10 and 50 for 100 and "
            "500, V 100 for 10,000, rate 0.03, λ 0.3, 40 rounds",
        ),
        StepComparison(
            "lr", "dp1", A9A, (0.05, 1.0, 0.1), 100,
            substitute="logistic regression with mean K 10 and 50 for 100 and 500, ten times the learning rate, "
            "100 rounds", seeds=TEN,
        ),
        (10, 50), 100,
    ),
    "smoke": TimeCurves(
        StepComparison("tiny_cnn", "dp1", TINY_CNN, (0.3, 0.3, 0.01), 5),
        StepComparison("lr", "dp1", TINY_LR, (0.1, 1.0, 0.1), 5),
        (3, 4), 2,
    ),
}  # fmt: skip


def fig5(scale: str) -> tuple[Panel, ...]:
    """Networks first, logistic regression behind, the smaller mean first; at paper scale also the tuned grid."""
    s = FIG5[scale]
    found = []
    for c in (s.network, s.regression):
        for k in (LocalSteps(mean, s.variance) for mean in s.means):
            row = (c.model, c.partition, k)
            found.append(rows(scale)[row] if row == SHARED else c.panel(f"fig5-{c.model}-{k.mean}", scale, k))
    points = grid(s.tuned, s.regression.rates[1:2])
    for mean in s.means if s.tuned else ():
        found.append(s.regression.panel(f"tuned-lr-{mean}", scale, LocalSteps(mean, s.variance), points))
    return tuple(found)


class Map(NamedTuple):
    """One model's learning rates and λ; mean and variance of the steps, the latter where they are unequal."""

    model: str
    problem: Classification
    rates: tuple[float, ...]
    lambdas: tuple[float, ...]
    mean: int = 500
    variance: int = 10000
    rounds: int = 100
    substitute: str = ""
    seeds: tuple[int, ...] = ()


FIG4 = {
    "paper": (
        Map(
            "alexnet", cifar10(runs.ALEXNET, DP1),
            (0.1, 0.05, 0.01, 0.005, 0.001, 0.0005), (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0),
        ),
        Map(
            "lr", A9A, (0.05, 0.01, 0.005, 0.001, 0.0005, 0.0001), (0.01, 0.05, 0.1, 0.5, 1.0, 1.5, 2.0), seeds=TEN,
        ),
    ),
    "reduced": (
        Map(
            "cnn2", fashion(CNN2, DP1), (0.1, 0.03, 0.005), (0.05, 0.3, 1.0, 1.5), 25, 25, 30,
            "small CNN on Fashion-MNIST for AlexNet on CIFAR-10: 10 clients, mean K 25, V 25, 30 rounds", (0, 1),
        ),
        Map(
            "lr", A9A, (0.05, 0.01, 0.005, 0.001), (0.01, 0.1, 0.5, 1.0, 2.0), 50, 100, 100,
            "LR with mean K 50 for 500, V 100 for 10,000, ten times the learning rate", TEN,
        ),
    ),
    "smoke": (
        Map("cnn2", TINY_CNN, (0.3, 0.03), (0.3, 1.0), 4, 2, 4, "", (0, 1)),
        Map("lr", TINY_LR, (0.1, 0.01), (0.3, 1.0), 4, 2, 4, "", (0, 1)),
    ),
}  # fmt: skip


def fig4(scale: str) -> tuple[Panel, ...]:
    """(a) network and (b) LR with equal steps, (c) and (d) the same with unequal steps."""
    found = []
    for kind in ("equal", "async"):
        for m in FIG4[scale]:
            work = LocalSteps(m.mean, m.variance, "fixed" if kind == "async" else "none").work
            experiments = (
                experiment(
                    {"model": m.model, "step_async": int(kind == "async"), "learning_rate": rate, "lambda": lam,
                     "algorithm": "fedagrac"},
                    m.problem, work, fedagrac(rate, lam), Rounds(m.rounds, every=m.rounds, dense_last=10),
                )
                for rate in m.rates
                for lam in m.lambdas
            )  # fmt: skip
            found.append(panel(f"fig4-{m.model}-{kind}", experiments, scale, m.substitute, m.seeds))
    return tuple(found)
