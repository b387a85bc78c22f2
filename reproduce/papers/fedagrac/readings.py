"""The runs of readings of Tables 1 and 2 that their printed numbers suggest, beside what is declared.

The split of the published code, one for all seeds; on it, clients drawn with replacement. How curves are read (the
first hit, or that of a mean over ten rounds) needs no run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from reproduce.algorithms.base import WeightedDraws
from reproduce.declare.experiment import Experiment, Panel, changed
from reproduce.papers.fedagrac import runs, settings

OWN, CODES = "a split per seed", "the code's split"
DRAWN = f"{CODES}, clients drawn with replacement"
RATES = {"lr": "0.001", "lr_eta003": "0.03"}
"""Of logistic regression in Table 1, by the name of the model in the results."""
FIRST, TEN, BEST = "first hit", "mean of ten rounds", "best of all rounds"
PRINTED = {("rpi4", "fednova"): 25, ("jetson_nano", "fednova"): 50}
"""Utilisations that Table 2 prints, if not 100 %; with clients drawn these alone are run."""


def readings(scale: str) -> tuple[Panel, ...]:
    """The declared panels of both tables, and the readings beside them. None at reduced scale, of which the paper
    prints no numbers."""
    if scale == "reduced":
        return ()
    declared = (*runs.table1(scale), *runs.table2(scale))
    code = (beside(p, "code", CODES, p.experiments) for p in declared)
    more = (replace(p, seeds=tuple(range(8))) if "gtx" in p.name else p for p in code)
    drawn = ((p, tuple(filter(asked, p.experiments))) for p in declared)
    return (
        *declared,
        *more,
        *(beside(replace(p, seeds=p.seeds[:3]), "drawn", DRAWN, some) for p, some in drawn if some),
    )


def beside(panel: Panel, name: str, split: str, experiments: Iterable[Experiment]) -> Panel:
    """Experiments of a panel on the code's split."""
    changes: dict[str, Any] = {"problem.partition.data_seed": settings.NON_IID.data_seed}
    changes |= {"algorithm.participation": WeightedDraws(10)} if split == DRAWN else {}
    made = tuple(changed(replace(e, labels={**e.labels, "split": split}), changes) for e in experiments)
    return replace(panel, name=f"{name}-{panel.name}", experiments=made)


def asked(e: Experiment) -> bool:
    """Tells whether the experiment also runs with clients drawn: the network on non-i.i.d. data, at printed
    utilisations."""
    if "utilization" in e.labels:
        return e.labels["utilization"] == PRINTED.get((str(e.labels["slow_device"]), str(e.labels["algorithm"])), 100)
    return bool(e.labels["non_iid"]) and e.labels["model"] == "cnn2"
