"""What is run: readings of Tables 1 and 2 that their printed numbers suggest, beside what is declared.

The split of the published code, one for all seeds; rates of logistic regression; clients drawn with replacement. How
curves are read (the first hit, or that of a mean over ten rounds) needs no run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from reproduce.algorithms.base import WeightedDraws
from reproduce.declare.experiment import Experiment, Panel, changed
from reproduce.papers.fedagrac import runs, settings

OWN, CODES, DRAWN = "a split per seed", "the code's split", "the code's split, clients drawn with replacement"
SPLITS: Mapping[str, Mapping[str, Any]] = {
    CODES: {"problem.partition.data_seed": settings.NON_IID.data_seed},
    DRAWN: {
        "problem.partition.data_seed": settings.NON_IID.data_seed,
        "algorithm": lambda a: replace(a, participation=WeightedDraws(10)),
    },
}
RATES = {"lr": "0.001", "lr_eta001": "0.01", "lr_eta003": "0.03"}
"""Of logistic regression in Table 1, by the name of the model in the results."""
FIRST, TEN = "first hit", "mean of ten rounds"
PRINTED = {("rpi4", "fednova"): 25, ("jetson_nano", "fednova"): 50}
"""Utilisations that Table 2 prints, if not 100 %; with clients drawn these alone are run."""


def readings(scale: str) -> tuple[Panel, ...]:
    """What is declared for both tables, and the readings beside it; at reduced scale none: nothing is printed of it."""
    if scale == "reduced":
        return ()
    declared = (*runs.table1(scale), *runs.table2(scale))
    return (*declared, *_beside(declared))


def _beside(declared: Iterable[Panel]) -> Iterable[Panel]:
    """The panels on the code's split, with its seed in place of one for each run."""
    for panel in declared:
        for name, split in (("code", CODES), ("drawn", DRAWN)):
            found = [e for e in panel.experiments if split == CODES or _drawn(e)]
            if found:
                made = tuple(_under(e, split) for e in found)
                yield replace(panel, name=f"{name}-{panel.name}", experiments=made, seeds=_seeds(panel, split))
        if panel.name == "table1-lr":
            yield replace(panel, name=f"rate-{panel.name}", experiments=tuple(_between(panel)), seeds=panel.seeds[:3])


def _between(panel: Panel) -> Iterable[Experiment]:
    """Logistic regression at the rate between those of Table 1, on the code's split."""
    for e in panel.experiments:
        if e.labels["model"] == "lr":
            labels = {**e.labels, "model": "lr_eta001"}
            yield _under(changed(replace(e, labels=labels), {"algorithm.lr": float(RATES["lr_eta001"])}), CODES)


def _under(e: Experiment, split: str) -> Experiment:
    return changed(replace(e, labels={**e.labels, "split": split}), SPLITS[split])  # type: ignore[no-any-return]


def _drawn(e: Experiment) -> bool:
    """Is it run with clients drawn, too? The network on the code's split, at printed utilisations."""
    told = e.labels
    if "utilization" in told:
        device, algorithm = str(told["slow_device"]), str(told["algorithm"])
        return told["utilization"] == PRINTED.get((device, algorithm), 100)
    return bool(told["non_iid"]) and not str(told["model"]).startswith("lr")


def _seeds(panel: Panel, split: str) -> tuple[int, ...]:
    """Beside the two kinds of GTX there are more on the code's split."""
    if split == DRAWN:
        return panel.seeds[:3]
    return tuple(range(8)) if "gtx" in panel.name else panel.seeds
