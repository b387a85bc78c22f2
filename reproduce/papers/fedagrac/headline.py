"""The panels of Section 6 (Table 6, and the AlexNet panels of Fig. 5): five algorithms per step-count distribution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reproduce.algorithms.base import FedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.experiment import Experiment, Panel
from reproduce.papers.fedagrac import settings
from reproduce.problems import Classification
from reproduce.problems.batches import Cyclic
from reproduce.problems.models import MLP
from reproduce.systems import System

if TYPE_CHECKING:
    import pandas as pd

RATES, MUS, LAMBDAS = (0.01, 0.008, 0.005), (1.0, 0.1, 0.01), (0.01, 0.02, 0.03, 0.04, 0.05)
"""The grids of Section 6.1; the headline takes the first rate, the last mu and the middle lambda."""


@dataclass(frozen=True)
class Block:
    """The rows of Table 6 with one model and partition, at some scale."""

    dataset: str
    model: str
    partition: str
    target: float
    problem: Classification
    algorithms: Mapping[str, FedAvg]
    k_mean: int
    variances: tuple[int, int, int]
    rounds: int
    substitute: str = ""
    seeds: tuple[int, ...] = settings.SEEDS

    def distributions(self) -> Iterator[tuple[int, str]]:
        """(variance, mode) of the rows."""
        none, small, large = self.variances
        yield none, "none"
        for variance in (small, large):
            yield from ((variance, "fixed"), (variance, "random"))

    def stops(self, variance: int, mode: str) -> bool:
        """May the row's runs end with their target? Fig. 5 goes on with those of one row."""
        shared = (self.model, self.partition, variance, mode) == ("alexnet", "dp2", 10000, "fixed")
        return not shared

    def panel(
        self, variance: int, mode: str, algorithms: Mapping[str, FedAvg] | None = None, stop: bool = False
    ) -> Panel:
        """One row; with `algorithms` a grid of hyper-parameters (`grid`)."""
        chosen = algorithms or self.algorithms
        labels: dict[str, Any] = {
            "dataset": self.dataset,
            "model": self.model,
            "partition": self.partition,
            "k_mean": self.k_mean,
            "k_variance": variance,
            "k_mode": mode,
        }
        clock = Rounds(self.rounds, until=("accuracy", self.target) if stop else None)
        system = settings.working(settings.gaussian(self.k_mean, variance, mode))
        experiments = points(labels, self.problem, system, chosen, clock)
        kind = "tuned" if algorithms else "table6"
        name = f"{kind}-{self.model}-{self.partition}-v{variance}-{mode}".replace("_", "-")
        return Panel(name, experiments, self.seeds, self.substitute)


def points(
    labels: Mapping[str, Any], problem: Classification, system: System, algorithms: Mapping[str, FedAvg], clock: Rounds
) -> tuple[Experiment, ...]:
    """An experiment per algorithm; "fedprox/0.01/0.1" is FedProx at the point 0.01/0.1 of a grid."""
    found = []
    for name, algorithm in algorithms.items():
        base, _, point = name.partition("/")
        named = {**labels, "algorithm": base, **({"point": point} if point else {})}
        found.append(Experiment(named, problem, system, algorithm, clock))
    return tuple(found)


def grid(rates: tuple[float, ...] = RATES, lambdas: tuple[float, ...] = LAMBDAS) -> dict[str, FedAvg]:
    """The tuned grid of Section 6.1 as "algorithm/point": all have a rate, FedaGrac also λ, FedProx also μ."""
    found: dict[str, FedAvg] = {}
    for lr in rates:
        for lam in lambdas:
            found[f"fedagrac/{lr:g}/{lam:g}"] = settings.algorithms(lr, lam, 0.01)["fedagrac"]
        for mu in MUS:
            found[f"fedprox/{lr:g}/{mu:g}"] = settings.algorithms(lr, 0.03, mu)["fedprox"]
        plain = settings.algorithms(lr, 0.03, 0.01)
        found |= {f"{name}/{lr:g}": plain[name] for name in ("fedavg", "fednova", "scaffold")}
    return found


def best_points(cells: pd.DataFrame, by: list[str], lower: bool) -> pd.DataFrame:
    """Of cells with a column `point` (one metric) those of the best point of every group, as `<metric>_tuned`; and, as
    rows without a seed, the point that was chosen: `tuned_learning_rate`, `tuned_lambda`, `tuned_mu`.

    The mean over seeds decides, ties go to the first in the order of the grid; a point that diverged is never chosen.
    """
    import pandas as pd

    groups = cells.groupby([*by, "point"], sort=False)["value"]
    means = groups.mean().where(groups.count() == groups.size()).dropna().reset_index()
    places = means.groupby(by, sort=False)["value"]
    best = means.loc[places.idxmin() if lower else places.idxmax(), [*by, "point"]]
    chosen = cells.merge(best, on=[*by, "point"])
    chosen = chosen.assign(metric=chosen["metric"] + "_tuned").drop(columns="point")
    names = {"fedagrac": ("learning_rate", "lambda"), "fedprox": ("learning_rate", "mu")}
    rows = []
    for record in best.to_dict("records"):
        values = str(record.pop("point")).split("/")
        for name, value in zip(names.get(record["algorithm"], ("learning_rate",)), values, strict=True):
            rows.append({**record, "seed": -1, "metric": f"tuned_{name}", "value": float(value)})
    return pd.concat([chosen, pd.DataFrame(rows)], ignore_index=True)


def blocks(scale: str) -> tuple[Block, ...]:
    """In the order of the table."""
    if scale == "paper":
        common = settings.algorithms(RATES[0], LAMBDAS[2], MUS[2])
        return tuple(
            Block("cifar10", name, partition, target, settings.cifar10(model, split), common, 500, (0, 100, 10000), 200)
            for name, model, partition, split, target in (
                ("alexnet", settings.ALEXNET, "dp1", settings.DP1, 68.0),
                ("alexnet", settings.ALEXNET, "dp2", settings.DP2, 70.0),
                ("vgg19", settings.VGG, "dp2", settings.DP2, 80.0),
            )
        )
    if scale == "smoke":
        tiny = settings.algorithms(0.3, 0.3, 0.01)
        return (
            Block(
                "image_blobs", "tiny_cnn", "dp1", 50.0, settings.TINY_CNN, tiny, 4, (0, 1, 2), 5, "tiny data", (0, 1)
            ),
        )
    nets = settings.algorithms(0.03, 0.3, 0.01)
    phrase = "small CNN on Fashion-MNIST, 10 clients, mean K 25, V 0, 1, 25 for AlexNet on CIFAR-10"
    digits = Classification(
        "digits", MLP(64, 32, 10), settings.DP2, 10, Cyclic(16), mean=(0.5,), std=(0.4,)
    )  # scikit-learn's 1,797 images
    return (
        Block(
            "fashion_mnist", "cnn2", "dp1", 65.0, settings.fashion(settings.CNN2, settings.DP1), nets, 25, (0, 1, 25),
            80, phrase,
        ),
        Block(
            "fashion_mnist", "cnn2", "dp2", 65.0, settings.fashion(settings.CNN2, settings.DP2), nets, 25, (0, 1, 25),
            80, phrase,
        ),
        Block(
            "digits", "small_mlp", "dp2", 85.0, digits, settings.algorithms(0.02, 0.3, 0.01), 25, (0, 1, 25), 80,
            "a network with one hidden layer on scikit-learn's digits for VGG-19 on CIFAR-10",
        ),
    )  # fmt: skip
