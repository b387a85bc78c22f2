"""What the small network depends on: what a first gradient is, what fast clients keep, and the calibration rate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reproduce.algorithms.base import FedAvg
from reproduce.algorithms.fedagrac import Constant, FedaGrac
from reproduce.algorithms.fednova import FedNova
from reproduce.clocks.rounds import Rounds
from reproduce.declare import Artifact
from reproduce.experiment import Experiment, Panel
from reproduce.papers.fedagrac import settings
from reproduce.problems.partitions import Head
from reproduce.systems.work import Uniform

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories

READINGS = {
    "fedagrac": "FedaGrac, published code",
    "fedagrac_single": "first gradient: one mini-batch",
    "fedagrac_full": "first gradient: all data of the client",
    "fedagrac_eq4": "fast clients keep it too (eq. 4)",
    "fedagrac_avg": "mean gradients from all (λ = 1: SCAFFOLD)",
}
REFERENCES = {"fedavg": "FedAvg", "fednova": "FedNova"}
SIZES = {"paper": (100, 400, 200, 1.0), "reduced": (10, 40, 60, 0.1), "smoke": (2, 6, 4, 0.5)}
"""Least and most steps, rounds, and the share of the data that keeps the paper's ratio of steps to a pass."""


@dataclass(frozen=True)
class Question:
    """The readings and rates that are compared on one share of the data."""

    name: str
    share: float
    title: str
    readings: tuple[str, ...]
    lambdas: tuple[float, ...]


def questions(scale: str) -> tuple[Question, ...]:
    """All data; at a smaller scale, where steps are fewer, also so little that a round is as many passes as in the
    paper: the published code takes the mean over the rest of a pass for a first gradient, if it ends in the round."""
    share = SIZES[scale][-1]
    everything = Question(
        "uniform", 1.0, "all data", ("fedagrac", "fedagrac_single", "fedagrac_eq4", "fedagrac_avg"), (0.05, 0.3, 1.0)
    )
    readings = ("fedagrac", "fedagrac_single", "fedagrac_full", "fedagrac_avg")
    part = Question(
        "uniform_part", share, f"{share:.0%} of the data: passes per round as in the paper", readings, (0.3,)
    )
    return (everything, part) if share < 1 else (everything,)


def algorithms(question: Question, rate: float) -> dict[tuple[str, float], FedAvg]:
    """(name, λ) -> algorithm; FedAvg and FedNova, which have none, at λ = 0."""
    found: dict[tuple[str, float], FedAvg] = {("fedavg", 0.0): FedAvg(rate), ("fednova", 0.0): FedNova(rate)}
    for lam in question.lambdas:
        plain = FedaGrac(rate, calibration=Constant(lam))
        variants = {
            "fedagrac": plain,
            "fedagrac_single": replace(plain, first_gradient="single"),
            "fedagrac_full": replace(plain, first_gradient="full_local"),
            "fedagrac_eq4": replace(plain, own="first"),
            "fedagrac_avg": replace(plain, scheme="avg"),
        }
        found |= {(name, lam): variants[name] for name in question.readings}
    return found


def panels(scale: str) -> tuple[Panel, ...]:
    """One per share of the data; numbers of local steps uniform over the clients."""
    return tuple(panel(scale, q) for q in questions(scale))


def panel(scale: str, question: Question) -> Panel:
    """All readings of one question."""
    least, most, rounds, _ = SIZES[scale]
    problem = settings.tiny("cnn2", settings.DP1) if scale == "smoke" else settings.fashion(settings.CNN2)
    if question.share < 1:
        problem = replace(problem, partition=Head(problem.partition, question.share))
    experiments = tuple(
        Experiment(
            {
                "dataset": settings.dataset(problem),
                "model": "cnn2",
                "local_steps": question.name,
                "lambda": lam,
                "algorithm": name,
            },
            problem,
            settings.working(Uniform(least, most)),
            algorithm,
            Rounds(rounds),
        )
        for (name, lam), algorithm in algorithms(question, 0.3 if scale == "smoke" else 0.03).items()
    )
    phrase = "K uniform in 10 to 40 for 100 to 400, 60 rounds" if scale == "reduced" else ""
    return Panel(f"sensitivity-{question.name}".replace("_", "-"), experiments, settings.seeds(scale), phrase)


def cells(histories: Histories) -> pd.DataFrame:
    """Mean accuracy of the last ten rounds."""
    from reproduce.report import metrics

    return metrics.last(histories.frame, "accuracy", 10, name="last10")


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    from reproduce.report import figures

    asked = questions(histories.scale)
    fig, axes = figures.sheet(1, len(asked), height=2.3)
    for ax, question, p in zip(axes[0], asked, panels(histories.scale), strict=True):
        ax.set_title(question.title)
        rows = cells[cells["local_steps"] == question.name]
        if rows.empty:
            figures.missing(ax, histories.reason(p.name) or "no results")
        else:
            _panel(ax, rows, question)
    axes[0, 0].set_ylabel("accuracy, last ten rounds (%)")
    figures.legend(fig, columns=3)
    return fig


def _panel(ax: Axes, rows: pd.DataFrame, question: Question) -> None:
    """Accuracy over λ, a line per reading; level lines for the algorithms without λ."""
    from reproduce.report import figures

    # Lines that are neither FedAvg's nor FedNova's.
    lines = figures.lines(["fedagrac", "fedau", "os", "fedprox", "scaffold"])
    looks = dict(zip(READINGS, lines.values(), strict=True))
    for k, name in enumerate(question.readings):
        groups = rows[rows["algorithm"] == name].groupby("lambda")["value"]
        mean, low, high = groups.mean(), groups.min(), groups.max()
        at = [i + 0.06 * (k - 1.5) for i in range(len(mean))]
        ax.errorbar(at, mean, yerr=[mean - low, high - mean], label=READINGS[name], elinewidth=0.8, **looks[name].plot)
        for x, y, lost, of in zip(at, mean, groups.size() - groups.count(), groups.size(), strict=True):
            if lost:
                ax.annotate(f"{lost}/{of} diverged", (x, y), (4, -9), textcoords="offset points", fontsize=6)
    references = figures.lines(REFERENCES)
    for name, text in REFERENCES.items():
        level = rows.loc[rows["algorithm"] == name, "value"]
        look = references[name]
        ax.axhline(level.mean(), label=text, color=look.color, linestyle=look.dashes, linewidth=0.9)
        ax.axhspan(level.min(), level.max(), color=look.color, alpha=0.12, linewidth=0)
    ax.set_xticks(range(len(question.lambdas)), [f"{lam:g}" for lam in question.lambdas])
    ax.set(xlabel="calibration rate λ", xlim=(-0.5, len(question.lambdas) - 0.5))


ARTIFACT = Artifact(
    "fedagrac",
    "sensitivity",
    "Dependence of the small network on the first gradient and the calibration rate",
    panels,
    cells,
    draw,
    options={
        "stamp": "Mean over seeds, from least to greatest. Published code: the first gradient is the mean until the "
        "client's pass over its data ends within the round, and fast clients keep their mean gradient. Not a figure of "
        "the paper."
    },
)
