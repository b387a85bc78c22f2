"""Fig. 4: accuracy over the grid of learning rate and calibration rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reproduce.algorithms.fedagrac import Constant, FedaGrac
from reproduce.clocks.rounds import Rounds
from reproduce.declare import Artifact
from reproduce.experiment import Experiment, Panel
from reproduce.papers.fedagrac import quarters, settings
from reproduce.problems import Classification

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories


@dataclass(frozen=True)
class Grid:
    """One model's grid; the variance of the step counts is that of the panels with step asynchronism."""

    model: str
    problem: Classification
    rates: tuple[float, ...]
    lambdas: tuple[float, ...]
    mean: int = 500
    variance: int = 10000
    rounds: int = 100
    substitute: str = ""
    seeds: tuple[int, ...] = settings.SEEDS


def grids(scale: str) -> tuple[Grid, Grid]:
    """The network's and that of logistic regression."""
    if scale == "paper":
        return (
            Grid(
                "alexnet", settings.cifar10(settings.ALEXNET, settings.DP1),
                (0.1, 0.05, 0.01, 0.005, 0.001, 0.0005), (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0),
            ),
            Grid(
                "lr", settings.a9a(), (0.05, 0.01, 0.005, 0.001, 0.0005, 0.0001), (0.01, 0.05, 0.1, 0.5, 1.0, 1.5, 2.0),
            ),
        )  # fmt: skip
    if scale == "reduced":
        return (
            Grid(
                "cnn2", settings.fashion(settings.CNN2, settings.DP1), (0.1, 0.03, 0.005), (0.05, 0.3, 1.0, 1.5),
                25, 25, 30, "small CNN on Fashion-MNIST for AlexNet on CIFAR-10: 10 clients, mean K 25, 30 rounds",
                (0, 1),
            ),
            Grid(
                "lr", settings.a9a(), (0.05, 0.01, 0.005, 0.001), (0.01, 0.1, 0.5, 1.0, 2.0),
                50, 100, 100, "LR with mean K 50 for 500",
            ),
        )  # fmt: skip
    return (
        Grid("cnn2", settings.TINY_CNN, (0.3, 0.03), (0.3, 1.0), 4, 2, 4, "", (0, 1)),
        Grid("lr", settings.TINY_LR, (0.1, 0.01), (0.3, 1.0), 4, 2, 4, "", (0, 1)),
    )


def panel(g: Grid, step_async: int, scale: str) -> Panel:
    """All points of one heat map."""
    variance = g.variance if step_async else 0
    labels: dict[str, Any] = {"dataset": settings.dataset(g.problem), "model": g.model, "step_async": step_async}
    return Panel(
        f"fig4-{g.model}-{'async' if step_async else 'equal'}",
        tuple(
            Experiment(
                {**labels, "learning_rate": rate, "lambda": lam, "algorithm": "fedagrac"},
                g.problem,
                settings.working(settings.gaussian(g.mean, variance, "fixed")),
                FedaGrac(rate, calibration=Constant(lam)),
                Rounds(g.rounds, every=g.rounds, dense_last=10),
            )
            for rate in g.rates
            for lam in g.lambdas
        ),
        g.seeds,
        g.substitute,
    )


def panels(scale: str) -> tuple[Panel, ...]:
    """(a) network and (b) LR with equal steps, (c) and (d) the same with unequal steps."""
    return tuple(panel(g, step_async, scale) for step_async in (0, 1) for g in grids(scale))


def cells(histories: Histories) -> pd.DataFrame:
    """Mean accuracy of the last ten rounds; NaN if the run diverged."""
    from reproduce.report import metrics

    return metrics.last(histories.frame, "accuracy", 10, name="last10")


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    return quarters.draw(histories, panels(histories.scale), cells, _map, height=1.9)


def _map(ax: Axes, rows: pd.DataFrame) -> None:
    from reproduce.report import figures

    figures.heatmap(ax, rows, x="lambda", y="learning_rate", names={"lambda": "λ", "learning_rate": "rate η"})


ARTIFACT = Artifact(
    "fedagrac",
    "fig4",
    "Accuracy of FedaGrac over learning rate and calibration rate",
    panels,
    cells,
    draw,
    options={
        "stamp": "Mean accuracy (%) of the last ten rounds; each panel has its own colours. The axes of the paper are "
        "in an image: the grid is ours and contains the values that the text names."
    },
)
