"""Findings from FedACS's published tables, without a run of ours: seconds per round, beside those of two samplings."""

from __future__ import annotations

import pandas as pd

from reproduce.papers.fedacs import settings, theory
from reproduce.report.tables import reported

SETTING = ["table", "system", "dataset", "dirichlet_alpha"]
SYSTEMS = {"dynamic": settings.DYNAMIC, "static": settings.STATIC}


def beside_fedavg() -> pd.Series[float]:
    """FedACS's published seconds over published rounds, over those of FedAvg, in each panel of Tables 1, 4 and 5."""
    tables = {name: reported("fedacs", name) for name in ("table1", "table4", "table5")}
    rows = pd.concat([printed.assign(table=name) for name, printed in tables.items() if printed is not None])
    wide = rows.pivot_table(index=[*SETTING, "algorithm"], columns="metric", values="paper")
    each = (wide["computation_time_to_target_s"] / wide["rounds_to_target"]).unstack("algorithm")
    return each["fedacs"] / each["fedavg"]


def work(system: str, by_links: bool = False, k: int = 6, clients: int = 20) -> float:
    """Steps per round of clients sampled by (15), or by uplinks alone, over those sampled uniformly; all of one size. A
    client trains once, however often it is sampled: E = sum (1 - (1 - p)^k) T."""
    steps, success = theory.draws(SYSTEMS[system], clients)
    p = 1 / success if by_links else 1 / (success * steps)
    p = p / p.sum(1, keepdims=True)
    even = ((1 - (1 - 1 / clients) ** k) * steps).sum()
    return float(((1 - (1 - p) ** k) * steps).sum() / even)


def seconds_a_round() -> str:
    """The published ratio in nine panels, that of two samplings, and the part of FedAvg's seconds that does not depend
    on T if sampling by (15) explains the rest: (ratio - work) / (1 - work)."""
    ratio, (by15, links) = beside_fedavg(), ([work(s, how) for s in SYSTEMS] for how in (False, True))
    less = ratio.index.get_level_values("system").map(dict(zip(SYSTEMS, by15, strict=True))).to_numpy()
    fixed = (ratio - less) / (1 - less)
    return (
        f"FedACS's published seconds per round are {ratio.min():.2f} to {ratio.max():.2f} of FedAvg's in {len(ratio)} "
        f"panels. Sampling by eq. (15) gives {by15[0]:.2f} (dynamic) and {by15[1]:.2f} (static) if clients have "
        f"equally many samples; sampling by uplinks alone gives {links[0]:.2f} and {links[1]:.2f}. To explain the "
        f"rest, a part that does not depend on T would have to be {100 * fixed.mean():.0f} % of FedAvg's seconds. In "
        f"{(fixed > 1).sum()} panels it would have to be more than all of them."
    )
