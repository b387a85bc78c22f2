"""What the small network depends on: what a first gradient is, what fast clients keep, and the calibration rate."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reproduce.algorithms.base import FedAvg
from reproduce.algorithms.fedagrac import Constant, FedaGrac
from reproduce.algorithms.fednova import FedNova
from reproduce.engine.rounds import Rounds
from reproduce.experiment import Artifact, Experiment, Panel
from reproduce.papers.fedagrac import settings
from reproduce.systems.work import DeviceClasses, Uniform, Work

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories

LAMBDAS = (0.05, 0.3, 1.0)
READINGS = {
    "fedagrac": "published code",
    "fedagrac_single": "first gradient: one mini-batch",
    "fedagrac_eq4": "fast clients keep it too (eq. 4)",
    "fedagrac_avg": "mean gradients from all (λ = 1: SCAFFOLD)",
}
REFERENCES = {"fedavg": "FedAvg", "fednova": "FedNova"}
SIZES = {"paper": (100, 400, 10, 100.0, 200), "reduced": (10, 40, 10, 20.0, 60), "smoke": (2, 6, 2, 4.0, 4)}
"""Least and most steps of the first system; steps of a slow device and the speed of the fast one in the second; rounds.
"""
TITLES = {"uniform": "uniform numbers of local steps", "one_fast": "one fast client beside nine slow ones"}


def algorithms(rate: float) -> dict[tuple[str, float], FedAvg]:
    """(name, λ) -> algorithm; FedAvg and FedNova, which have none, at λ = 0."""
    found: dict[tuple[str, float], FedAvg] = {("fedavg", 0.0): FedAvg(rate), ("fednova", 0.0): FedNova(rate)}
    for lam in LAMBDAS:
        plain = FedaGrac(rate, calibration=Constant(lam))
        found["fedagrac", lam] = plain
        found["fedagrac_single", lam] = replace(plain, first_gradient="single")
        found["fedagrac_eq4", lam] = replace(plain, own="first")
        found["fedagrac_avg", lam] = replace(plain, scheme="avg")
    return found


def panels(scale: str) -> tuple[Panel, ...]:
    """Step counts uniform over the clients, and one client that is much faster than the others (as in Table 2)."""
    least, most, base, ratio, rounds = SIZES[scale]
    problem = settings.tiny("cnn2", settings.DP1) if scale == "smoke" else settings.fashion(settings.CNN2)
    systems: dict[str, Work] = {"uniform": Uniform(least, most), "one_fast": DeviceClasses(base, ratio)}
    phrase = "K uniform in 10 to 40 for 100 to 400, or 10 and once 200; 60 rounds" if scale == "reduced" else ""
    return tuple(
        Panel(
            f"sensitivity-{name}".replace("_", "-"),
            tuple(
                Experiment(
                    {
                        "dataset": settings.dataset(problem),
                        "model": "cnn2",
                        "local_steps": name,
                        "lambda": lam,
                        "algorithm": algorithm,
                    },
                    problem,
                    settings.working(work),
                    declared,
                    Rounds(rounds),
                )
                for (algorithm, lam), declared in algorithms(0.3 if scale == "smoke" else 0.03).items()
            ),
            settings.seeds(scale),
            phrase,
        )
        for name, work in systems.items()
    )


def cells(histories: Histories) -> pd.DataFrame:
    """Mean accuracy of the last ten rounds."""
    from reproduce.report import metrics

    return metrics.last(histories.frame, "accuracy", 10, name="last10")


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    from reproduce.report import figures

    fig, axes = figures.sheet(1, 2, height=2.3)
    for ax, p in zip(axes[0], panels(histories.scale), strict=True):
        name = str(p.experiments[0].labels["local_steps"])
        ax.set_title(TITLES[name])
        rows = cells[cells["local_steps"] == name]
        if rows.empty:
            figures.missing(ax, histories.reason(p.name) or "no results")
        else:
            _panel(ax, rows)
    axes[0, 0].set_ylabel("accuracy, last ten rounds (%)")
    figures.legend(fig, columns=3)
    return fig


def _panel(ax: Axes, rows: pd.DataFrame) -> None:
    """Accuracy over λ, a line per reading; level lines for the algorithms without λ."""
    from reproduce.report import figures

    looks = dict(zip(READINGS, figures.lines(["fedagrac", "fedau", "fedprox", "scaffold"]).values(), strict=True))
    for k, (name, text) in enumerate(READINGS.items()):
        groups = rows[rows["algorithm"] == name].groupby("lambda")["value"]
        mean, low, high = groups.mean(), groups.min(), groups.max()
        at = [i + 0.06 * (k - 1.5) for i in range(len(mean))]
        ax.errorbar(at, mean, yerr=[mean - low, high - mean], label=text, elinewidth=0.8, **looks[name].plot)
    references = figures.lines(REFERENCES)
    for name, text in REFERENCES.items():
        level = rows.loc[rows["algorithm"] == name, "value"]
        look = references[name]
        ax.axhline(level.mean(), label=text, color=look.color, linestyle=look.dashes, linewidth=0.9)
        ax.axhspan(level.min(), level.max(), color=look.color, alpha=0.12, linewidth=0)
    ax.set_xticks(range(len(LAMBDAS)), [f"{lam:g}" for lam in LAMBDAS])
    ax.set_xlabel("calibration rate λ")


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
