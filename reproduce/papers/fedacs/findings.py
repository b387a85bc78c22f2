"""What FedACS's printed tables say without a run of ours: seconds a round, beside what a way to draw clients gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from reproduce.papers.fedacs import settings, theory
from reproduce.papers.fedacs.theory import Floats
from reproduce.partitions.dirichlet import DirichletClass
from reproduce.report.tables import reported

SETTING = ["table", "system", "dataset", "dirichlet_alpha"]
DRAWN: Mapping[str, Callable[[Floats, Floats], Floats]] = {
    "by (15)": lambda s, t: 1 / (s * t),
    "by links alone": lambda s, t: 1 / s,
}
"""Probabilities of the clients, up to a factor, from their success probabilities and steps [R, N]; equal weights."""


def seconds() -> pd.Series[float]:
    """Printed seconds over printed rounds, of each algorithm in each panel of Tables 1, 4 and 5 that has both."""
    tables = {name: reported("fedacs", name) for name in ("table1", "table4", "table5")}
    parts = [rows.assign(table=name) for name, rows in tables.items() if rows is not None]
    wide = pd.concat(parts).pivot_table(index=[*SETTING, "algorithm"], columns="metric", values="paper")
    found: pd.Series[float] = (wide["computation_time_to_target_s"] / wide["rounds_to_target"]).dropna()
    return found


def beside_fedavg() -> pd.Series[float]:
    """FedACS's printed seconds a round over FedAvg's, panel by panel."""
    each = seconds().unstack("algorithm")
    return each["fedacs"] / each["fedavg"]


def growth() -> pd.Series[float]:
    """Printed seconds a round on CINIC-10 over those on CIFAR-10, of each algorithm in both systems."""
    each = seconds().droplevel("dirichlet_alpha").drop("table5").unstack("dataset")
    return (each["cinic10"] / each["cifar10"]).dropna()


def work(system: str, drawn: str, k: int = 6, clients: int = 20) -> float:
    """Steps a round of those who are drawn so, over those with equal probabilities; equal sizes. A client trains once,
    however often it is drawn: E = sum (1 - (1 - p)^k) T."""
    steps, success = theory.draws({"static": settings.STATIC, "dynamic": settings.DYNAMIC}[system], clients)
    p = DRAWN[drawn](success, steps.astype(float))
    p = p / p.sum(1, keepdims=True)
    even = ((1 - (1 - 1 / clients) ** k) * steps).sum()
    return float(((1 - (1 - p) ** k) * steps).sum() / even)


def samples(unit: str, per_class: int, seeds: int = 30, k: int = 6, clients: int = 20) -> float:
    """Samples that those drawn in a round go through for one unit of T each, with Dirichlet(0.1) and batches of 1,024:
    all that a client has, or a batch of it; mean over splits."""
    labels, found = np.repeat(np.arange(10), per_class), []
    for seed in range(seeds):
        n = np.array([len(part) for part in DirichletClass(0.1).split(labels, clients, seed)])
        each = n if unit == "passes" else n / np.ceil(n / settings.CIFAR10.batch)
        found.append(((1 - (1 - n / n.sum()) ** k) * each).sum())
    return float(np.mean(found))


def growing(unit: str) -> float:
    """What `growth` would be: samples times the operations of a sample, 26.6 and 22.7 million (Table 3's networks)."""
    return samples(unit, 9000) / samples(unit, 5000) * 26.56 / 22.71


def seconds_a_round() -> str:
    """The printed ratio in nine panels, and what two ways to draw give."""
    found, systems = beside_fedavg(), ("dynamic", "static")
    by15, links = ([work(system, drawn) for system in systems] for drawn in DRAWN)
    return (
        f"FedACS's printed seconds a round are {found.min():.2f} to {found.max():.2f} of FedAvg's in {len(found)} "
        f"panels. Sampling by (15) gives {by15[0]:.2f} (dynamic) and {by15[1]:.2f} (static) with equal sizes, drawing "
        f"by links alone {links[0]:.2f} and {links[1]:.2f}."
    )


def seconds_and_data() -> str:
    """How the printed seconds a round grow from one data set to the other, and what T in passes and batches gives."""
    found, passes, batches = growth(), growing("passes"), growing("mini-batches")
    return (
        f"On CINIC-10 the printed seconds a round are {found.min():.1f} to {found.max():.1f} times those on CIFAR-10, "
        f"in {len(found)} pairs. Passes over the data give {passes:.1f}, mini-batches {batches:.1f}."
    )
