"""Fig. 3: which clients send their first gradient and which their mean gradient, four schemes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reproduce.clocks.rounds import Rounds
from reproduce.declare import Artifact
from reproduce.experiment import Experiment, Panel
from reproduce.papers.fedagrac import quarters, settings
from reproduce.problems import Classification
from reproduce.problems.partitions import Head
from reproduce.systems.work import Steps, Uniform

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories

SCHEMES = ("fedagrac", "fedagrac_avg", "fedagrac_first", "fedagrac_reverse")
NAMES = {
    "fedagrac": "FedaGrac",
    "fedagrac_avg": "FedaGrac-avg",
    "fedagrac_first": "FedaGrac-first",
    "fedagrac_reverse": "FedaGrac-reverse",
}


@dataclass(frozen=True)
class Curves:
    """One model's curves; `single`: also with the first gradient alone as estimate; `side`: further (name of the model
    in the results, rate, λ). The last two are in the cells, but not drawn."""

    model: str
    problem: Classification
    rate: float
    lam: float
    single: bool = True
    side: tuple[tuple[str, float, float], ...] = ()
    equal: int = 100
    least: int = 100
    most: int = 400
    rounds: int = 200
    substitute: str = ""


def curves(scale: str) -> tuple[Curves, Curves]:
    """Logistic regression and the network."""
    lr, cnn2 = settings.fashion(settings.LR), settings.fashion(settings.CNN2)
    if scale == "paper":
        return (
            Curves("lr", lr, 0.001, 1.0),
            Curves("cnn2", cnn2, 0.03, 0.1, True, (("cnn2_lambda1", 0.03, 1.0),)),
        )
    if scale == "reduced":
        part = replace(lr, partition=Head(settings.NON_IID, 0.1))
        return (
            Curves(
                "lr", part, 0.003, 1.0, True, (("lr_eta0001", 0.001, 1.0),), 25, 10, 40, 60,
                "LR on a tenth of Fashion-MNIST, rate 0.003, K 25 and 10 to 40, 60 rounds",
            ),
            Curves(
                "cnn2", cnn2, 0.03, 0.3, False, (), 25, 10, 40, 40, "CNN with K 25 and 10 to 40, λ 0.3, 40 rounds"
            ),
        )  # fmt: skip
    return (
        Curves("lr", settings.TINY_LR, 0.1, 1.0, True, (), 4, 2, 6, 5),
        Curves("cnn2", settings.TINY_CNN, 0.3, 0.3, True, (), 4, 2, 6, 5),
    )


def panel(c: Curves, step_async: int, scale: str) -> Panel:
    """The four schemes, and the runs that are not drawn."""
    work = Uniform(c.least, c.most) if step_async else Steps(c.equal)
    chosen = [(c.model, name, a) for name, a in settings.schemes(c.rate, c.lam).items()]
    chosen += [
        (c.model, f"{name}_single", replace(a, first_gradient="single"))
        for _, name, a in chosen
        if c.single and name != "fedagrac_avg"
    ]
    for model, rate, lam in c.side:
        chosen += [(model, name, a) for name, a in settings.schemes(rate, lam).items()]
    experiments = tuple(
        Experiment(
            {
                "dataset": settings.dataset(c.problem),
                "model": model,
                "step_async": step_async,
                "algorithm": name,
            },
            c.problem,
            settings.working(work),
            algorithm,
            Rounds(c.rounds),
        )
        for model, name, algorithm in chosen
    )
    kind = "async" if step_async else "equal"
    return Panel(f"fig3-{c.model}-{kind}", experiments, settings.seeds(scale), c.substitute)


def panels(scale: str) -> tuple[Panel, ...]:
    """(a) LR and (b) CNN with equal steps, (c) LR and (d) CNN with unequal steps."""
    return tuple(panel(c, step_async, scale) for step_async in (0, 1) for c in curves(scale))


def cells(histories: Histories) -> pd.DataFrame:
    """Mean accuracy of the last ten rounds."""
    from reproduce.report import metrics

    return metrics.last(histories.frame, "accuracy", 10, name="last10")


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    from reproduce.report import figures

    frame = histories.frame[histories.frame["metric"] == "accuracy"]
    fig = quarters.draw(histories, panels(histories.scale), frame, _curves, height=1.8)
    for ax in fig.axes[::2]:
        ax.set_ylabel("accuracy (%)")
    figures.legend(fig)
    return fig


def _curves(ax: Axes, rows: pd.DataFrame) -> None:
    from reproduce.report import figures

    figures.curves(ax, rows[rows["round"] > 0], order=SCHEMES, names=NAMES)
    # The first rounds climb steeply and would hide what the curves do later.
    late = rows.loc[(rows["round"] >= rows["round"].max() // 10) & rows["algorithm"].isin(SCHEMES), "value"]
    ax.set_ylim(late.quantile(0.02) - 1, late.max() + 1)
    ax.set_xlabel("round")


ARTIFACT = Artifact(
    "fedagrac",
    "fig3",
    "Reference orientation from first and from mean gradients, Fashion-MNIST",
    panels,
    cells,
    draw,
    options={
        "stamp": "λ = 1 for LR (0.1 for the CNN; reduced: 0.3). With equal steps nobody is fast: FedaGrac is "
        "FedaGrac-avg and FedaGrac-reverse is FedaGrac-first, so two curves hide behind the others. The first-gradient "
        "estimate is that of the published code; the cells also have the single mini-batch gradient of Algorithm 1."
    },
)
