"""Checks of the theory without a counterpart in the paper: one surrogate for all schemes of participation (appendix B),
and no bias where success probability times local work is the same for all clients (Corollary 2.2)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from reproduce.declare import Artifact, no_panels
from reproduce.papers.fedacs import closed_form, toys
from reproduce.papers.fedacs.closed_form import Floats
from reproduce.streams import rng

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from reproduce.report.histories import Histories

SCHEMES = ("is", "us", "os", "full")
SEEDS, DRAWS, RATE = range(5), 200_000, 0.002
STEPS, SUCCESS = np.array([2, 4, 8]), np.array([0.8, 0.4, 0.2])
POINTS = np.array([[0.0, 0.0], [4.0, 0.0], [1.0, 3.0]])
NAMES = {"is": "importance", "us": "uniform", "os": "optimal", "full": "all clients"}


def exact_factors(scheme: str, w: Floats, s: Floats, p: Floats, k: int) -> Floats:
    """f_m [M]: the expected factor of client m's update in the aggregate, summed over all draws of the scheme.

    Equations (18)-(21), with the number of sampled clients in place of that of received ones in (19), as (24) needs.
    """
    m = len(w)
    if scheme == "full":
        return w * s
    f = np.zeros(m)
    if scheme == "us":
        sets = list(itertools.combinations(range(m), k))
        for chosen in sets:
            f[list(chosen)] += m / k * w[list(chosen)] / len(sets)
        return f * s
    p, weight = (w, np.ones(m)) if scheme == "is" else (p, w / p)
    for chosen in itertools.product(range(m), repeat=k):
        for c in chosen:
            f[c] += np.prod(p[list(chosen)]) * weight[c] / k
    return f * s


def consistency() -> Iterator[tuple[str, float]]:
    """(scheme, distance of the limit to X*) for clients with equal s_m A_m, as the rate goes to zero."""
    w = np.full(3, 1 / 3)
    p = np.linalg.norm(POINTS - np.array([1.0, 1.0]), axis=1)  # gradient norms at some model
    for scheme in SCHEMES:
        omega = exact_factors(scheme, w, SUCCESS, p / p.sum(), 2) * STEPS
        yield scheme, float(np.linalg.norm(omega @ POINTS / omega.sum() - POINTS.mean(0)))


def deviations(seed: int) -> Iterator[tuple[str, float]]:
    """(scheme, relative deviation of a simulated mean aggregate from that of full participation), static system."""
    clients, k = 20, 6
    system = toys.fig7_systems()["static"]
    steps, success = system.work.amounts(0, 0, clients), 1 - system.link.failure(0, 0, clients)
    w = np.full(clients, 1 / clients)
    e = rng("quadratic", 0).standard_normal((clients, 10))
    updates = (1 - (1 - RATE) ** steps)[:, None] * e
    truth = (w * success) @ updates
    for scheme in SCHEMES[:3]:
        stream = rng("theory", seed, SCHEMES.index(scheme))
        p = np.linalg.norm(e, axis=1)
        p = p / p.sum() if scheme == "os" else w
        if scheme == "us":
            chosen = np.argsort(stream.random((DRAWS, clients)), axis=1)[:, :k]
            factor = clients / k * w
        else:
            chosen, factor = stream.choice(clients, size=(DRAWS, k), p=p), w / p / k
        arrived = stream.random((DRAWS, clients)) < success
        heard = np.take_along_axis(arrived, chosen, axis=1)
        total = np.bincount(chosen.ravel(), weights=heard.ravel(), minlength=clients) / DRAWS
        yield scheme, float(np.linalg.norm((total * factor) @ updates - truth) / np.linalg.norm(truth))


def cells(histories: Histories) -> pd.DataFrame:
    import pandas as pd

    rows = [(f"fedavg_{scheme}", -1, "closed_form_distance_eta_to_0", value) for scheme, value in consistency()]
    for seed in SEEDS:
        rows += [(f"fedavg_{scheme}", seed, "expected_update_deviation", value) for scheme, value in deviations(seed)]
    return pd.DataFrame(rows, columns=["algorithm", "seed", "metric", "value"])


def draw(histories: Histories, cells: pd.DataFrame) -> Figure:
    from reproduce.report import figures
    from reproduce.report.names import pretty

    fig, axes = figures.sheet(1, 2, height=2.3)
    looks = figures.lines(toys.ALGORITHMS)
    left, right = axes[0]
    system = toys.fig7_systems()["static"]
    steps, success = system.work.amounts(0, 0, 20), 1 - system.link.failure(0, 0, 20)
    w = np.full(20, 1 / 20)
    for name in ("fedacs", "fedavg", "ca_fedavg", "fednova"):
        omega = closed_form.surrogate(name, w, success, steps.astype(float))
        left.plot(np.arange(20), omega, label=pretty(name), markevery=3, **looks[name].plot)
    left.set(
        xlabel="client (slow and badly connected first)", ylabel="weight in the surrogate objective", ylim=(0, None)
    )
    left.set_xticks(range(0, 20, 5))
    rows = cells[cells["metric"] == "expected_update_deviation"]
    for i, scheme in enumerate(SCHEMES[:3]):
        values = rows.loc[rows["algorithm"] == f"fedavg_{scheme}", "value"]
        right.plot(np.full(len(values), i), values, "o", color="#404040", alpha=0.6)
    right.axhline(0.02, color="#808080", linestyle="--", linewidth=0.8)
    right.annotate("tolerance of the claim", (2.4, 0.0204), ha="right", fontsize=6.5, color="#505050")
    right.set_xticks(range(3), [f"{NAMES[s]} sampling" for s in SCHEMES[:3]])
    right.set(ylabel="deviation from full participation", xlim=(-0.5, 2.5), ylim=(0, 0.023))
    figures.legend(fig)
    return fig


ARTIFACT = Artifact(
    "fedacs",
    "theory",
    "One surrogate objective for all schemes of participation",
    no_panels,
    cells,
    draw,
    options={
        "stamp": "Left: limit weights in the static system; the true ones are FedACS's. Right: mean aggregate of "
        "200,000 simulated rounds against its expectation with all clients, relative norm, one dot per seed. Not a "
        "figure of the paper."
    },
)
