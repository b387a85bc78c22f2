"""Fig. 8: where the algorithms that correct nothing, one heterogeneity or both end, in the plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduce.declare import Artifact
from reproduce.experiment import Panel
from reproduce.papers.fedacs import plane, toy_cells, toys
from reproduce.papers.fedacs.closed_form import Floats
from reproduce.report.names import pretty

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories

ENDS = {
    "fedacs": "$X^*$: no bias\nFedACS", "fednova": "$\\tilde{X}_1$: links\nFedNova",
    "ca_fedavg": "$\\tilde{X}_2$: work\nCA-FedAvg, FedAU, FedVARP", "fedavg": "$\\tilde{X}_3$: both\nFedAvg, OS",
}  # fmt: skip


def panels(scale: str) -> tuple[Panel, ...]:
    return (toys.plane_panel(scale, "toy2d"),)


def cells(histories: Histories) -> pd.DataFrame:
    """How far the tail averages are from the closed forms at the rate of the simulation."""
    names = histories.frame["algorithm"].unique()
    targets = {name: plane.limit("toy2d", name) for name in names}
    return toy_cells.tail_average(histories.frame, "distance_of_tail_average_to_closed_form", targets)


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    from matplotlib.patches import Rectangle

    from reproduce.report import figures

    fig, axes = figures.sheet(1, 1, width=5.2, height=3.9)
    ax = axes[0, 0]
    ax.set(xlim=(0.55, 2.45), ylim=(0.6, 2.0), xlabel="$x_1$", ylabel="$x_2$", aspect="equal")
    inset = ax.inset_axes((0.64, 0.31, 0.355, 0.48))
    plane.ground(inset, "toy2d", short=True)
    inset.set(xticks=[], yticks=[], xlabel="", ylabel="", xlim=(-0.6, 5.0), ylim=(-1.4, 4.2))
    inset.spines[:].set(visible=True, color="#b0b0b0")
    inset.grid(visible=False)
    inset.add_patch(Rectangle((0.55, 0.6), 1.9, 1.4, fill=False, edgecolor="#404040", linewidth=0.6))
    looks = figures.lines(toys.ALGORITHMS)
    for name, ends in _tail_averages(histories).items():
        line = looks[name]
        ax.plot(
            *ends.T, marker=line.marker, color=line.color, markersize=3.2, markeredgewidth=0, alpha=0.75,
            linestyle="none", zorder=4, label=pretty(name),
        )  # fmt: skip
    points = {name: plane.surrogate("toy2d", name)[1] for name in ENDS}
    for start, end, color in (
        ("fedacs", "fednova", "black"), ("ca_fedavg", "fedavg", "black"),
        ("fedacs", "ca_fedavg", "#909090"), ("fednova", "fedavg", "#909090"),
    ):  # fmt: skip
        look = {"arrowstyle": "-|>", "color": color, "linewidth": 1.2, "shrinkA": 5, "shrinkB": 5}
        ax.annotate("", points[end], points[start], arrowprops=look, zorder=3)
    sides = {"fedacs": (0.12, -0.06), "fednova": (-0.09, -0.05), "ca_fedavg": (0.06, 0.11), "fedavg": (-0.09, 0.03)}
    for name, text in ENDS.items():
        ax.plot(*points[name], marker="o", markerfacecolor="none", markeredgecolor="black", markersize=9, zorder=5)
        dx, dy = sides[name]
        ax.annotate(text, points[name] + [dx, dy], ha="left" if dx > 0 else "right", va="center", fontsize=6.8)
    figures.legend(fig)
    return fig


def _tail_averages(histories: Histories) -> dict[str, Floats]:
    return {
        names["algorithm"]: x[:, rounds > rounds.max() / 2].mean(1)
        for names, x, rounds, _ in toy_cells.traces(histories.frame, ["system", "algorithm"])
        if names["algorithm"] in toys.ALGORITHMS
    }


ARTIFACT = Artifact(
    "fedacs",
    "fig8",
    "Convergence points of the benchmarks in the plane",
    panels,
    cells,
    draw,
    rows=("algorithm",),
    columns=("system",),
    options={
        "stamp": "Circles: closed-form limits as the rate goes to zero. Small marks: averages over the second half of "
        "simulated runs at rate 0.02, one per seed. Inset: the three "
        "clients. Arrows: what unequal links (black) and unequal work (grey) do to "
        "the end point. The paper's figure is a drawing without numbers; the three clients are ours.",
    },
)
