"""Fig. 2: accuracy against the calibration rate λ, with and without step asynchronism."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduce.algorithms.fedagrac import Constant, FedaGrac, Increase, Rate
from reproduce.clocks.rounds import Rounds
from reproduce.declare import Artifact
from reproduce.experiment import Experiment, Panel
from reproduce.papers.fedagrac import settings
from reproduce.systems.work import Steps, Uniform

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories

INCREASE = "increase"
LAMBDAS = {
    "paper": ((0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5), (0.0, 0.1, 0.5, 1.0)),
    "reduced": ((0.0, 0.05, 0.2, 0.5, 1.0, 1.5), (0.0, 0.1, 0.5, 1.0)),
    "smoke": ((0.0, 1.0), (0.0, 1.0)),
}
SIZES = {"paper": (100, 400, 100, 200), "reduced": (10, 40, 25, 60), "smoke": (2, 6, 4, 5)}
"""Least and most steps with step asynchronism, steps without, rounds."""


def panels(scale: str) -> tuple[Panel, ...]:
    """(a) step asynchronism, constant λ; (b) equal steps, constant and increasing λ."""
    least, most, steps, rounds = SIZES[scale]
    problem = settings.tiny("cnn2", settings.DP1) if scale == "smoke" else settings.fashion(settings.CNN2)
    phrase = "K uniform in 10 to 40 and constant 25 for 100 to 400 and 100, 60 rounds" if scale == "reduced" else ""
    found = []
    for step_async in (1, 0):
        rates: dict[str, Rate] = {f"{lam:g}": Constant(lam) for lam in LAMBDAS[scale][1 - step_async]}
        if not step_async:
            rates[INCREASE] = Increase(ends=(rounds // 4, rounds * 3 // 4))
        work = Uniform(least, most) if step_async else Steps(steps)
        labels = {"dataset": settings.dataset(problem), "model": "cnn2", "step_async": step_async}
        experiments = tuple(
            Experiment(
                {**labels, "lambda": name, "algorithm": "fedagrac"},
                problem,
                settings.working(work),
                FedaGrac(0.3 if scale == "smoke" else 0.03, calibration=rate),
                Rounds(rounds),
            )
            for name, rate in rates.items()
        )
        name = "fig2-async" if step_async else "fig2-equal"
        found.append(Panel(name, experiments, settings.seeds(scale), phrase))
    return tuple(found)


def cells(histories: Histories) -> pd.DataFrame:
    """The accuracy of the last round, and the mean of the last ten."""
    import pandas as pd

    from reproduce.report import metrics

    last = metrics.last(histories.frame, "accuracy", name="accuracy_at_last_round")
    return pd.concat([last, metrics.last(histories.frame, "accuracy", 10, name="last10")], ignore_index=True)


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    from reproduce.report import figures

    fig, axes = figures.sheet(1, 2, height=2.2)
    line = figures.lines(["fedagrac"])["fedagrac"]
    titles = ("(a) unequal numbers of local steps", "(b) equal numbers of local steps")
    for ax, step_async, title, panel in zip(axes[0], (1, 0), titles, panels(histories.scale), strict=True):
        ax.set_title(title, loc="left")
        rows = cells[(cells["step_async"] == step_async) & (cells["metric"] == "accuracy_at_last_round")]
        if rows.empty:
            figures.missing(ax, histories.reason(panel.name) or "no results")
            continue
        names = list(dict.fromkeys(str(e.labels["lambda"]) for e in panel.experiments))
        groups = rows.groupby("lambda")["value"]
        mean, low, high = (groups.agg(how).reindex(names) for how in ("mean", "min", "max"))
        ax.set(xlabel="calibration rate λ", ylabel="accuracy after the last round (%)")
        if step_async:
            at = [float(n) for n in names]
            ax.plot(at, mean, **line.plot)
            ax.fill_between(at, low, high, color=line.color, alpha=0.16, linewidth=0)
            for x, lost, of in zip(at, groups.size() - groups.count(), groups.size(), strict=True):
                if lost:
                    ax.annotate(f"{lost} of {of}\ndiverged", (x, 0.03), xycoords=("data", "axes fraction"), ha="center")
            ax.set_xlim(-0.05 * at[-1], 1.08 * at[-1])
            continue
        at = list(range(len(names)))
        ax.bar(at, mean, 0.6, color=line.color, yerr=[mean - low, high - mean], error_kw={"elinewidth": 0.8})
        ax.set_xticks(at, names)
        bottom = float(low.min())
        ax.set_ylim(max(0.0, bottom - 4), float(high.max()) + 2)
        for x, value, top in zip(at, mean, high, strict=True):
            ax.annotate(f"{value:.1f}", (x, top), (0, 2), textcoords="offset points", ha="center", fontsize=6.5)
        ax.grid(visible=False, axis="x")
    return fig


ARTIFACT = Artifact(
    "fedagrac",
    "fig2",
    "Accuracy against the calibration rate, small CNN on Fashion-MNIST",
    panels,
    cells,
    draw,
    options={
        "stamp": "Mean over seeds, from least to greatest. 'increase': λ 0.1 in the first quarter of the rounds, 1 in "
        "the last, 0.5 between. The paper's numbers are in an image; its values of λ are not known."
    },
)
