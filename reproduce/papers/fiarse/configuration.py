"""The hyper-parameters of the paper scale beside those of the paper's Table 3; nothing is trained."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas as pd

from reproduce.papers.fiarse import runs
from reproduce.papers.fiarse.scales import SCALES
from reproduce.report.tables import reported, spelled

if TYPE_CHECKING:
    from reproduce.report.histories import Histories

Entries = list[tuple[str, int, str, float | str]]


def configured() -> Entries:
    """(dataset, option, metric, value) of every data set of the paper scale."""
    entries: Entries = []
    for dataset, setting in SCALES["paper"].all().items():
        values: dict[str, list[float | str]] = {
            "local_epochs": [setting.work.amounts(0, 0, 1)[0]],
            "batch_size": [setting.problem.batches.size],
            "communication_rounds": [setting.clock.rounds],
            "optimizer": ["adamw" if setting.betas else "sgd"],
        }
        used = runs.algorithms(setting, "four", setting.participants).values()
        values["log10_learning_rate_grid"] = [round(math.log10(lr), 6) for lr in dict.fromkeys(a.lr for a in used)]
        if setting.betas:
            values["adamw_betas"] = list(setting.betas)
        else:
            values["sgd_momentum_grid"] = list(dict.fromkeys(a.momentum for a in used))
        entries += [entry for metric, found in values.items() for entry in _options(dataset, metric, found)]
    return entries


def _options(dataset: str, metric: str, values: list[float | str]) -> Entries:
    """Each value as the option of the paper's grid that it equals, else in the order of the configuration."""
    paper = reported("fiarse", "table3")
    assert paper is not None
    here = paper[(paper["dataset"] == dataset) & (paper["metric"] == metric)]
    option = dict(zip(here["paper_text"], here["option"].astype(int), strict=True))
    return [(dataset, option.get(spelled(v), i), metric, v) for i, v in enumerate(values)]


def mismatches() -> dict[str, int]:
    """Data set -> how many entries of the paper's table the configuration does not have, or has otherwise."""
    ours = {(dataset, str(option), metric): spelled(value) for dataset, option, metric, value in configured()}
    paper = reported("fiarse", "table3")
    assert paper is not None
    rows = paper[["dataset", "option", "metric", "paper_text"]].itertuples(index=False, name=None)
    differ = [(dataset, ours.get((dataset, *key)) != text) for dataset, *key, text in rows]
    return {dataset: sum(wrong for name, wrong in differ if name == dataset) for dataset, _ in differ}


def cells(histories: Histories) -> pd.DataFrame:
    """One cell per entry of the configuration; words stand in `text`. And the mismatches with the paper's table."""
    common = {"algorithm": "all", "metric": "config_mismatches", "seed": -1}
    differ = [
        {"dataset": dataset, "option": "", **common, "value": float(count), "text": ""}
        for dataset, count in mismatches().items()
    ]
    rows = [
        {
            "dataset": dataset,
            "option": str(option),
            "algorithm": "all",
            "metric": metric,
            "seed": -1,
            "value": float("nan") if isinstance(value, str) else float(value),
            "text": value if isinstance(value, str) else "",
        }
        for dataset, option, metric, value in configured()
    ]
    return pd.DataFrame([*rows, *differ])
