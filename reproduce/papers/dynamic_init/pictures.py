"""Special pictures: the timeline of Figure 1; accuracy with the starts of sessions."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle
from matplotlib.path import Path

from reproduce.clocks.sessions import Sessions
from reproduce.papers.dynamic_init.measures import weights
from reproduce.report import captions, figures, styles
from reproduce.report.histories import Histories

SCHEMES = ("proposed", "previous", "average")
ALL_SCHEMES = ("proposed", "continuous", "previous", "average")


def timeline(histories: Histories, cells: pd.DataFrame) -> Figure:
    """Figure 1: which group trains when, what each session starts from, and the accuracy."""
    timing = histories.experiments[0].clock
    fig, axes = figures.sheet(2, 1, height=1.9, sharex=True)
    top, bottom = axes[:, 0]
    means = weights(histories).groupby(["session", "stored"])["value"].mean()
    mixtures = dict(zip(means.index.to_list(), means.to_list(), strict=True))
    _timeline(top, mixtures, timing)
    curve = histories.frame[histories.frame["metric"] == "accuracy"]
    figures.curves(bottom, curve, series="init_scheme", order=SCHEMES, markers=14, start=1)
    for session in range(1, timing.sessions):
        figures.reference(bottom, session * timing.rounds, upright=True)
    bottom.set(
        xlabel="global round", ylabel="accuracy on the\nsession's labels (%)", xlim=(0, timing.sessions * timing.rounds)
    )
    bottom.margins(x=0)
    captions.legend(fig)
    return fig


def recovery(ax: Axes, histories: Histories, cells: pd.DataFrame) -> None:
    """Accuracy over global rounds from the end of the pilot sessions on; sessions begin at dotted lines."""
    timing = histories.experiments[0].clock
    rows = histories.frame[histories.frame["metric"] == "accuracy"]
    spread: figures.Spread = "band" if rows["seed"].nunique() >= figures.FEW else "seeds"  # at transitions, too
    figures.curves(ax, rows, series="init_scheme", order=ALL_SCHEMES, start=1, spread=spread)
    for session in range(timing.pilots + 1, timing.sessions):
        figures.reference(ax, session * timing.rounds, upright=True)
    ax.set(xlabel="global round", xlim=(timing.pilots * timing.rounds, timing.sessions * timing.rounds))


def _timeline(ax: Axes, mixtures: Mapping[tuple[int, int], float], timing: Sessions) -> None:
    """A lane per group of clients, filled where it is active; above, the stored models and what is mixed from them."""
    length, groups = timing.rounds, len(timing.membership.sizes)
    colors = (styles.SKY, styles.SAND)
    level = groups + 0.4  # of the stored models
    for session in range(timing.sessions):
        active = timing.membership.group(session)
        pilot = session < timing.pilots
        for group in range(groups):
            on = group == active
            face: dict[str, Any] = {
                "facecolor": colors[group] if on else "#f2f2f2",
                "edgecolor": "white",
                "hatch": "////" if on and pilot else "",
            }
            ax.add_patch(Rectangle((session * length, groups - 1 - group + 0.08), length, 0.84, linewidth=1.2, **face))
        where = (session + 0.5) * length
        name = "pilot" if pilot else f"session {session}"
        ax.text(where, groups - 1 - active + 0.5, name, ha="center", va="center", fontsize=styles.TEXT)
        if not pilot:
            end = (session + 1) * length
            ax.plot(
                end, level, "o", color=colors[active], markeredgecolor="#404040", markersize=5, zorder=4, clip_on=False
            )
            ax.annotate(f"$w_{session}$", (end, level), (-4, -2), textcoords="offset points", ha="right", va="top")
    for (session, stored), weight in mixtures.items():
        if weight < 0.01:
            continue
        lane = groups - timing.membership.group(session) - 0.08  # upper edge of the lane that the arrow ends in
        rise = 1.3 * (session - stored - 1) ** 0.5
        (x0, y0), (x1, y1) = ((stored + 1) * length, level), ((session + 0.1) * length, lane)
        bow = ((x0 + x1) / 2, level + rise)
        path = Path([(x0, y0), bow, (x1, y1)], [Path.MOVETO, Path.CURVE3, Path.CURVE3])
        style: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 7, "shrinkA": 0, "shrinkB": 0, "zorder": 3}
        color = colors[timing.membership.group(stored)]
        ax.add_patch(FancyArrowPatch(path=path, color=color, linewidth=0.4 + 1.8 * weight, **style))
        if session > stored + 1:
            top = (0.42 * a + 0.46 * b + 0.12 * c for a, b, c in zip((x0, y0), bow, (x1, y1), strict=True))
            style = {"fontsize": styles.TEXT, "color": styles.DARK}
            ax.annotate(f"{weight:.2f}", tuple(top), (-3, 3), textcoords="offset points", ha="right", **style)
    names = [f"group {chr(ord('A') + g)}" for g in range(groups)]
    ax.set_yticks([level, *(groups - 0.5 - g for g in range(groups))], ["stored\nmodels", *names])
    ax.set(ylim=(0, level + 0.95))
    ax.tick_params(length=0)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
