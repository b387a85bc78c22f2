"""What FedACS's printed tables say without a run of ours: seconds a round, beside what a way to draw clients gives."""

from __future__ import annotations

import pandas as pd

from reproduce.papers.fedacs import settings, theory
from reproduce.report.tables import reported

SETTING = ["table", "system", "dataset", "dirichlet_alpha"]
SYSTEMS = {"dynamic": settings.DYNAMIC, "static": settings.STATIC}


def beside_fedavg() -> pd.Series[float]:
    """FedACS's printed seconds over printed rounds, over those of FedAvg, in each panel of Tables 1, 4 and 5."""
    tables = {name: reported("fedacs", name) for name in ("table1", "table4", "table5")}
    rows = pd.concat([found.assign(table=name) for name, found in tables.items() if found is not None])
    wide = rows.pivot_table(index=[*SETTING, "algorithm"], columns="metric", values="paper")
    each = (wide["computation_time_to_target_s"] / wide["rounds_to_target"]).unstack("algorithm")
    return each["fedacs"] / each["fedavg"]


def work(system: str, by_links: bool = False, k: int = 6, clients: int = 20) -> float:
    """Steps a round of clients drawn by (15), or by links alone, over those drawn evenly; all of one size. A client
    trains once, however often it is drawn: E = sum (1 - (1 - p)^k) T."""
    steps, success = theory.draws(SYSTEMS[system], clients)
    p = 1 / success if by_links else 1 / (success * steps)
    p = p / p.sum(1, keepdims=True)
    even = ((1 - (1 - 1 / clients) ** k) * steps).sum()
    return float(((1 - (1 - p) ** k) * steps).sum() / even)


def seconds_a_round() -> str:
    """The printed ratio in nine panels, and what two ways to draw give."""
    found, (by15, links) = beside_fedavg(), ([f"{work(s, how):.2f}" for s in SYSTEMS] for how in (False, True))
    return (
        f"FedACS's printed seconds a round are {found.min():.2f} to {found.max():.2f} of FedAvg's in {len(found)} "
        f"panels. Sampling by (15) gives {by15[0]} (dynamic) and {by15[1]} (static) with equal sizes, drawing by links "
        f"alone {links[0]} and {links[1]}."
    )
