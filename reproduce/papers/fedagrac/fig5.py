"""Fig. 5: accuracy over training time of the five algorithms, two mean step counts, AlexNet and logistic regression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reproduce.clocks.rounds import Rounds
from reproduce.declare import Artifact
from reproduce.experiment import Panel
from reproduce.papers.fedagrac import clock, headline, settings
from reproduce.problems import Classification

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories

SETTING = ("dataset", "model", "partition", "k_mean", "k_variance", "k_mode")
LR = {"dataset": "a9a", "model": "lr", "partition": "dp1"}
RATES = (0.005, 0.001, 0.0005)
"""The grid of logistic regression; the figure has the first."""
SLACK = 0.2
"""FedaGrac counts as not below SCAFFOLD if it is at most so many points below."""


def panel(
    labels: dict[str, Any],
    problem: Classification,
    algorithms: dict[str, Any],
    rounds: int,
    substitute: str = "",
    seeds: tuple[int, ...] = settings.SEEDS,
) -> Panel:
    """The five algorithms, or the points of a grid, at one mean step count, in fixed mode."""
    labels = {**labels, "k_mode": "fixed"}
    system = settings.working(settings.gaussian(labels["k_mean"], labels["k_variance"], "fixed"))
    experiments = headline.points(labels, problem, system, algorithms, Rounds(rounds))
    kind = "tuned" if "point" in experiments[0].labels else "fig5"
    return Panel(f"{kind}-{labels['model']}-{labels['k_mean']}".replace("_", "-"), experiments, seeds, substitute)


def panels(scale: str) -> tuple[Panel, ...]:
    """The panels of the figure, and at paper scale the tuned grid of logistic regression (rates of Section 6.1)."""
    if scale != "paper":
        return drawn(scale)
    means = [{**LR, "k_mean": mean, "k_variance": 10000} for mean in (100, 500)]
    return (*drawn(scale), *(panel(m, settings.a9a(), headline.grid(RATES, (1.0,)), 200) for m in means))


def drawn(scale: str) -> tuple[Panel, ...]:
    """Networks with DP2 first, logistic regression on a9a with DP1 behind; the smaller mean first."""
    if scale == "paper":
        net = {"dataset": "cifar10", "model": "alexnet", "partition": "dp2", "k_mean": 100, "k_variance": 10000}
        block = headline.blocks(scale)[1]
        small = panel(net, block.problem, dict(block.algorithms), 200)
        means = [{**LR, "k_mean": mean, "k_variance": 10000} for mean in (100, 500)]
        linear = [panel(m, settings.a9a(), settings.algorithms(0.005, 1.0, 0.1), 200) for m in means]
        return (small, block.panel(10000, "fixed"), *linear)
    found = []
    for mean, variance in ((3, 2), (4, 2)) if scale == "smoke" else ((10, 100), (50, 100)):
        at = {"k_mean": mean, "k_variance": variance}
        if scale == "smoke":
            tiny = {"dataset": "image_blobs", "model": "tiny_cnn", "partition": "dp1", **at}
            found.append(panel(tiny, settings.TINY_CNN, settings.algorithms(0.3, 0.3, 0.01), 5, "", (0, 1)))
            tiny = {"dataset": "gaussian", "model": "lr", "partition": "dp1", **at}
            found.append(panel(tiny, settings.TINY_LR, settings.algorithms(0.1, 1.0, 0.1), 5, "", (0, 1)))
            continue
        net = {"dataset": "fashion_mnist", "model": "cnn2", "partition": "dp2", **at}
        problem = settings.fashion(settings.CNN2, settings.DP2)
        phrase = "small CNN on Fashion-MNIST for AlexNet on CIFAR-10: 10 clients, mean K 10 and 50 for 100 and 500"
        found.append(panel(net, problem, settings.algorithms(0.03, 0.3, 0.01), 40, phrase))
        phrase = "logistic regression with mean K 10 and 50 for 100 and 500, ten times the learning rate, 100 rounds"
        found.append(panel({**LR, **at}, settings.a9a(), settings.algorithms(0.05, 1.0, 0.1), 100, phrase))
    return (*found[::2], *found[1::2])


def timed(histories: Histories, overheads: bool = True) -> pd.DataFrame:
    """The accuracies with the simulated second of every evaluation in the column `time`."""
    import pandas as pd

    frame = _figure(histories.frame[histories.frame["metric"] == "accuracy"])
    parts = []
    runs = dict(iter(frame.groupby([*SETTING, "algorithm", "seed"], sort=False)))
    for p in drawn(histories.scale):
        for e in p.experiments:
            for seed in p.seeds:
                run = runs.get((*(e.labels[c] for c in SETTING), e.labels["algorithm"], seed))
                if run is not None:
                    parts.append(run.assign(time=clock.seconds(e, seed, overheads)[run["round"].to_numpy(int)]))
    return pd.concat(parts, ignore_index=True)


def _figure(frame: pd.DataFrame) -> pd.DataFrame:
    """Without the runs of the grid."""
    return frame[frame["point"].isna()].drop(columns="point") if "point" in frame else frame


def tuned(histories: Histories) -> list[pd.DataFrame]:
    """`last10_tuned` of the best point of the grid, and the point, where the grid was trained."""
    from reproduce.report import metrics

    frame = histories.frame
    if "point" not in frame:
        return []
    last = metrics.last(frame[frame["point"].notna()], "accuracy", 10, name="last10")
    return [headline.best_points(last, [*SETTING, "algorithm"], lower=False)]


def cells(histories: Histories) -> pd.DataFrame:
    """Final accuracy, rounds to the best accuracy that all reach, comparison with SCAFFOLD, simulated costs."""
    import pandas as pd

    from reproduce.report import metrics

    frame = timed(histories)
    by = [*SETTING, "seed"]
    best = frame.groupby([*by, "algorithm"])["value"].max().groupby(by).min().rename("target").reset_index()
    reached = metrics.first_reaching(
        frame.merge(best, on=by), "accuracy", "target", name="rounds_to_best_common_accuracy"
    ).drop(columns="target")
    rival = frame[frame["algorithm"] == "scaffold"][[*by, "round", "value"]].rename(columns={"value": "rival"})
    late = frame[frame["round"] >= min(10, frame["round"].max() // 2)].merge(rival, on=[*by, "round"])
    ahead = late.assign(value=(late["value"] >= late["rival"] - SLACK).astype(float))
    share = ahead.groupby([*by, "algorithm"])["value"].mean().reset_index()
    last = frame[frame["round"] == frame.groupby(by)["round"].transform("max")]
    total = last[[*by, "algorithm"]].assign(metric="simulated_time_total_s", value=last["time"])
    bare = timed(histories, overheads=False).loc[last.index, "time"]
    without = total.assign(metric="simulated_time_without_overheads_s", value=bare)
    models: dict[Any, Any] = {}
    for p in drawn(histories.scale):
        problem: Any = p.experiments[0].problem
        models[p.experiments[0].labels["model"]] = problem.model
    sizes = [clock.bytes_per_round(a, models[m]) for a, m in zip(last["algorithm"], last["model"], strict=True)]
    sent = last[[*by, "algorithm"]].assign(metric="bytes_per_round", value=sizes)
    return pd.concat(
        [
            metrics.last(frame, "accuracy", 10, name="last10"),
            reached,
            share.assign(metric="fraction_of_rounds_not_below_scaffold"),
            total,
            without,
            sent,
            *tuned(histories),
        ],
        ignore_index=True,
    )


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    from reproduce.report import figures
    from reproduce.report.names import pretty

    shown = drawn(histories.scale)
    fig, axes = figures.sheet(len(shown) // 2, 4, height=1.75)
    frame = timed(histories) if len(histories.frame) else histories.frame
    for i, p in enumerate(shown):
        labels = p.experiments[0].labels
        for j, x in enumerate(("time", "round")):
            ax: Axes = axes[i // 2, 2 * (i % 2) + j]
            rows = frame[(frame["model"] == labels["model"]) & (frame["k_mean"] == labels["k_mean"])]
            if j == 0:
                ax.set_title(
                    f"({'abcd'[i]}) {pretty(labels['model'])}, {pretty(labels['dataset'])}, "
                    f"{pretty(labels['partition'])}, mean K {labels['k_mean']}",
                    loc="left",
                )
            if rows.empty:
                figures.missing(ax, histories.reason(p.name) or "no results")
                continue
            figures.curves(ax, rows, x=x, order=settings.ALGORITHMS)
            ax.set_xlabel("simulated time (s)" if x == "time" else "round")
            _focus(ax, rows)
    for row in axes:
        row[0].set_ylabel("accuracy (%)")
    figures.legend(fig)
    return fig


def _focus(ax: Axes, rows: pd.DataFrame) -> None:
    """Leave out what the random initial models score."""
    later = rows.loc[rows["round"] > 0, "value"]
    ax.set_ylim(later.min() - 1, later.max() + 1)


ARTIFACT = Artifact(
    "fedagrac",
    "fig5",
    "Test accuracy over training time, step counts from a Gaussian with large variance",
    panels,
    cells,
    draw,
    options={
        "stamp": "Time is simulated (slowest client's steps plus transfer), since the paper's cluster is gone: that "
        "FedProx takes longer than FedAvg is built into the model. Mean step counts and λ are ours."
    },
)
