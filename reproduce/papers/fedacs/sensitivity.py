"""What the results of FedACS depend on: choices that the paper leaves open, answered another way, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from reproduce.algorithms.base import WeightedDraws
from reproduce.algorithms.calibration import Calibration
from reproduce.algorithms.solvers import DecayFedAvg, FadingFedAvg
from reproduce.declare import Artifact
from reproduce.experiment import Experiment, Panel
from reproduce.papers.fedacs import networks, toys
from reproduce.papers.fedacs.looks import log_distance
from reproduce.problems.partitions import ClassPerClient, DirichletClass, DirichletClient
from reproduce.systems import System
from reproduce.systems import fedacs as systems

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories

SYSTEMS: dict[str, Callable[[Any], System]] = {
    "": lambda s: s,
    "halves exchanged": lambda s: replace(
        s,
        work=replace(s.work, first=s.work.second, second=s.work.first),
        link=replace(s.link, first=s.link.second, second=s.link.first),
    ),
    "steps": lambda s: replace(s, work=replace(s.work, unit="steps")),
    "pairing reversed": lambda s: replace(s, link=replace(s.link, pairing="reverse")),
}
"""Changes of a system by name. With the halves exchanged the slow clients own the last classes."""


@dataclass(frozen=True)
class Choice:
    """One answer to a question that the paper leaves open; the defaults are those of Fig. 6.

    rate, rounds: factors of the learning rate and of the rounds. all: also for the algorithms whose rate is never
    calibrated.
    """

    question: str
    answer: str
    partition: Any = field(default=ClassPerClient())
    system: str = "dynamic"
    change: str = ""
    calibration: Calibration | None = field(default=Calibration())
    rate: float = 1.0
    rounds: float = 1.0
    all: bool = True

    @property
    def name(self) -> str:
        return f"{self.question}: {self.answer}"


DEFAULT = "as in Fig. 6"
CHOICES = (
    Choice("default", DEFAULT),
    Choice("slow clients own", "the last five classes", change="halves exchanged"),
    Choice("slow clients own", "half of every class", partition=ClassPerClient("modulo")),
    Choice("partition", "Dirichlet 0.1, per class", partition=DirichletClass(0.1)),
    Choice("partition", "Dirichlet 0.1, per client", partition=DirichletClient(0.1)),
    Choice("T counts", "mini-batches", change="steps"),
    Choice("T counts", "mini-batches, 5 x rate", change="steps", rate=5.0),
    Choice("calibrated", "at the server", calibration=Calibration(target="server"), all=False),
    Choice("calibrated", "by the mean over rounds", calibration=Calibration("mean"), all=False),
    Choice("calibrated", "by the mean, at the server", calibration=Calibration("mean", "server"), all=False),
    Choice("calibrated", "not", calibration=None, all=False),
    Choice("rate", "4 x", rate=4.0),
    Choice("rate", "0.4 x, 2.5 x rounds", rate=0.4, rounds=2.5),
    Choice("rate", "1/10", rate=0.1),
    Choice("rate", "1/50", rate=0.02),
    Choice("rate", "1/50, slow own last five", change="halves exchanged", rate=0.02),
    Choice("rate", "1/50, slow own half of every class", partition=ClassPerClient("modulo"), rate=0.02),
    Choice("static system", "slow clients badly linked", system="static"),
    Choice("static system", "slow clients well linked", system="static", change="pairing reversed"),
)
BRIEF = ("default", "slow clients own", "calibrated: at the server", "calibrated: not", "rate: 4 x")
"""The choices that the network is asked at reduced scale, by the beginnings of their names."""

NETWORKS: dict[str, dict[str, tuple[int, tuple[str, ...]]]] = {
    "paper": {"mnist": (200, ("fedacs", "fedavg", "ca_fedavg", "fednova"))},
    "reduced": {
        "fashion_mnist": (60, ("fedacs", "fedavg", "ca_fedavg", "fednova")),
        "mnist": (200, ("fedacs", "fedavg")),
    },
    "smoke": {"image_blobs": (8, ("fedacs", "fedavg"))},
}
"""Scale -> data set -> rounds, algorithms. The network needs more than the 60 rounds of the other reduced panels."""

CALIBRATED = ("fedacs", "ca_fedavg")
DECAYS = {
    "fedavg_sgd": "no decay",
    "fedavg_decay_sgd": "0.5 % per local step",
    "fedavg_fading_sgd": "0.5 % per round",
}


def panels(scale: str) -> tuple[Panel, ...]:
    """One per data set, and the local solver that decays in Fig. 4."""
    return (*(panel(scale, dataset) for dataset in NETWORKS[scale]), decays(scale))


def panel(scale: str, dataset: str) -> Panel:
    """Every choice on one data set."""
    rounds, algorithms = NETWORKS[scale][dataset]
    setting = replace(networks.SETTINGS[scale][dataset], rounds=rounds)
    brief = (scale, dataset) == ("reduced", "mnist")
    chosen = [c for c in CHOICES if not brief or c.name.startswith(BRIEF)]
    experiments = tuple(e for c in chosen for e in varied(c, setting, dataset, algorithms))
    phrase = setting.substitute.replace("60 rounds", f"{rounds} rounds")
    return Panel(f"sensitivity-{dataset.replace('_', '-')}", experiments, setting.seeds, phrase)


def varied(
    choice: Choice, setting: networks.Setting, dataset: str, algorithms: tuple[str, ...]
) -> Iterator[Experiment]:
    """The algorithms under one choice."""
    rate = choice.rate * setting.rate
    found = toys.benchmarks(rate, setting.draws, choice.calibration, probe_batch=setting.batch)
    for name in algorithms:
        if not choice.all and name not in CALIBRATED:
            continue
        e = networks.experiment(setting, choice.system, dataset, networks.ONE_CLASS, name, found[name])
        problem: Any = e.problem
        yield Experiment(
            {"dataset": dataset, "question": choice.question, "answer": choice.answer, "algorithm": name},
            replace(problem, partition=choice.partition),
            SYSTEMS[choice.change](e.system),
            e.algorithm,
            replace(e.clock, rounds=round(choice.rounds * setting.rounds), by_class=False, work=False),
        )


def decays(scale: str) -> Panel:
    """The two readings of the 'decay rate' of Fig. 4, in its system of unequal clients."""
    problem, k, clock, seeds, _ = toys.size(scale, toys.FIG4_PROBLEM, 15)
    plain, draws = toys.solvers(0.001, k), WeightedDraws(k)
    solvers = {
        "fedavg_sgd": plain["fedavg_sgd"],
        "fedavg_decay_sgd": DecayFedAvg(0.001, draws, decay=0.005),
        "fedavg_fading_sgd": FadingFedAvg(0.001, draws, decay=0.005),
    }
    labels = {"dataset": "quadratic", "question": "decay of the rate"}
    experiments = tuple(
        Experiment(
            {**labels, "answer": DECAYS[name], "algorithm": name},
            problem,
            systems.figure4("heterogeneous"),
            solver,
            replace(clock, trace=0),
        )
        for name, solver in solvers.items()
    )
    return Panel("sensitivity-decay", experiments, seeds)


def cells(histories: Histories) -> pd.DataFrame:
    """`final_accuracy` as in Fig. 6; for the quadratic `distance_plateau` as in Fig. 4."""
    import pandas as pd

    from reproduce.report import metrics

    parts = []
    for dataset, rows in histories.frame.groupby("dataset", sort=False):
        if dataset == "quadratic":
            end = int(rows["round"].max())
            parts.append(metrics.plateau(rows, "distance", int(0.8 * end) + 1, end, name="distance_plateau"))
        else:
            tail = networks.SETTINGS[histories.scale][str(dataset)].tail
            parts.append(metrics.last(rows, "accuracy", tail, name="final_accuracy"))
    return pd.concat(parts, ignore_index=True)


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    from reproduce.report import figures
    from reproduce.report.names import pretty

    *data, last = panels(histories.scale)
    fig, axes = figures.sheet(1, len(data) + 1, height=4.0)
    for i, (ax, p) in enumerate(zip(axes[0], data, strict=False)):
        dataset = str(p.experiments[0].labels["dataset"])
        problem: Any = p.experiments[0].problem
        kind = "LR" if type(problem.model).__name__ == "Softmax" else "CNN"
        ax.set_title(f"{pretty(dataset)}, {kind}, {len(p.seeds)} seeds")
        rows = cells[cells["dataset"] == dataset]
        if rows.empty:
            figures.missing(ax, histories.reason(p.name) or "no results")
        else:
            _dots(ax, rows, label=i == 0)
    ax = axes[0, -1]
    ax.set_title(f"Fig. 4, decay, {len(last.seeds)} seeds")
    rows = histories.frame[histories.frame["metric"] == "distance"]
    if rows.empty:
        figures.missing(ax, histories.reason(last.name) or "no results")
    else:
        looks = dict(zip(DECAYS, figures.lines(["fedavg", "fedau", "os"]).values(), strict=True))
        rows = rows[rows["round"] % 10 == 0]
        figures.curves(ax, rows, order=tuple(DECAYS), styles=looks, names=DECAYS)
        log_distance(ax, 0.9 * rows["value"].min(), 1.1 * rows["value"].max())
        ax.set(xlabel="round", ylabel=r"$\|X_r - X^*\|$")
    figures.legend(fig)
    return fig


def _dots(ax: Axes, rows: pd.DataFrame, label: bool) -> None:
    """A line of the plot per choice, a dot per algorithm with the range of its seeds."""
    from reproduce.report import figures
    from reproduce.report.names import pretty

    looks = figures.lines(toys.ALGORITHMS)
    places = {(c.question, c.answer): -i for i, c in enumerate(CHOICES)}
    offsets = dict(zip(("fedacs", "fedavg", "ca_fedavg", "fednova"), (0.27, 0.09, -0.09, -0.27), strict=True))
    for name, off in offsets.items():
        groups = rows[rows["algorithm"] == name].groupby(["question", "answer"], sort=False)["value"]
        if not groups.ngroups:
            continue
        mean, low, high = (groups.agg(how) for how in ("mean", "min", "max"))
        at = [places[key] + off for key in mean.index]
        look = looks[name]
        ax.errorbar(
            mean, at, xerr=[mean - low, high - mean], label=pretty(name), color=look.color, marker=look.marker,
            linestyle="none", markersize=3.4, elinewidth=0.7,
        )  # fmt: skip
        if ("default", DEFAULT) in mean.index:
            ax.axvline(mean["default", DEFAULT], color=look.color, linewidth=0.5, alpha=0.5, zorder=1)
    texts = [c.name.removeprefix("default: ") for c in CHOICES]
    ax.set_yticks(list(places.values()), texts if label else [""] * len(texts))
    ax.set(xlabel="final accuracy (%)", ylim=(-len(CHOICES) + 0.4, 0.6))
    for i in range(1, len(CHOICES)):
        if CHOICES[i].question != CHOICES[i - 1].question:
            ax.axhline(0.5 - i, color="#c0c0c0", linewidth=0.6)
    ax.grid(visible=False, axis="y")


ARTIFACT = Artifact(
    "fedacs",
    "sensitivity",
    "Dependence of the results on what the paper leaves open",
    panels,
    cells,
    draw,
    options={
        "stamp": "Mean over seeds, from least to greatest; thin vertical lines: the default (dynamic system, "
        "contiguous classes, T in passes over the data, rates calibrated locally in every round). Rows without a "
        "dot were not run or cannot differ from the default. Not a figure of the paper."
    },
)
