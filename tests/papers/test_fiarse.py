"""The cells of Figs. 1, 7, 8 and Table 2 from histories made by hand, and the first figure's from its runs."""

import math
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from runs import run

from reproduce.algorithms.submodels import size_key
from reproduce.clocks.rounds import Rounds
from reproduce.papers.fiarse import measures, runs
from reproduce.report.histories import Histories

SIZES = ("1", "0.25", "0.0625", "0.015625")


def histories(panel: Any, rows: list[tuple[int, str, str, float]], seeds: tuple[int, ...] = (0,)) -> Histories:
    (e,) = panel.experiments
    frame = pd.DataFrame(
        [
            {**e.labels, "seed": s, "round": t, "time": math.nan, "metric": m, "key": k, "value": v, "status": "ok"}
            for s in seeds
            for t, m, k, v in rows
        ]
    )
    return Histories(frame, "smoke", experiments=panel.experiments)


def value(cells: pd.DataFrame, metric: str, **where: Any) -> float:
    found = cells[(cells["metric"] == metric) & (cells["seed"] == 0)]
    for column, wanted in where.items():
        found = found[found[column] == wanted]
    assert len(found) == 1, (metric, where)
    return float(found["value"].iloc[0])


def test_early_and_late_growth() -> None:
    """Eleven rounds: E grows by 0.05, 0.04, then 0.01 a round; of the ten steps the first and the last two count."""
    explored = [0.1, 0.15, 0.19, *(0.19 + 0.01 * t for t in range(1, 9))]
    replaced = [0.5, 0.3, *(0.2 for _ in range(6)), 0.1, 0.06]
    rows = [(t, "explored", "0.25", e) for t, e in enumerate(explored)]
    rows += [(t, "replaced", "0.25", d) for t, d in enumerate(replaced, start=1)]
    rows += [(t, name, "1", 1.0) for t in range(11) for name in ("explored", "replaced")]
    rows += [(t, "untrained", "", 1 - t / 10) for t in range(11)]
    (panel,) = runs.panels("fig7", "smoke")
    found = measures.exploration(histories(panel, rows, (0, 1)))
    assert set(found["model_size"]) == {"1/4"}
    assert set(found["seed"]) == {0, 1}
    assert value(found, "exploration_rate_min_increment") == pytest.approx(0.01)
    assert value(found, "exploration_increment_first_fifth") == pytest.approx(0.045)
    assert value(found, "exploration_increment_last_fifth") == pytest.approx(0.01)
    assert value(found, "model_difference_first_fifth") == pytest.approx(0.4)
    assert value(found, "model_difference_last_fifth") == pytest.approx(0.08)
    assert value(measures.untrained(histories(panel, rows)), "untrained_fraction") == 0


def test_slices_and_their_holders() -> None:
    held, holders = dict(zip(SIZES, (100, 25, 6, 1), strict=True)), dict(zip(SIZES, (1, 2, 2, 4), strict=True))
    rows = [(t, "held", k, n + 5 * t) for t in (0, 1) for k, n in held.items()]
    rows += [(t, "holders", k, n + t) for t in (0, 1) for k, n in holders.items()]
    rows += [(t, "unnested", k, float(t + (k == "0.25"))) for t in (0, 1) for k in SIZES[1:]]
    (panel,) = runs.panels("table2", "smoke")
    found = measures.slices(histories(panel, rows))
    for size, coordinates, clients, here in (
        ("1.0", 75, 2, 1),
        ("1/4", 19, 4, 2),
        ("1/16", 5, 6, 2),
        ("1/64", 1, 8, 4),
    ):
        assert value(found, "slice_coordinates", model_size=size) == coordinates
        assert value(found, "slice_clients", model_size=size) == clients
        assert value(found, "slice_participants", model_size=size) == here
    assert value(found, "mask_nesting_violations", model_size="all") == 1 + 4


def test_a_run_that_diverged_misses_the_target_by_the_end_of_its_own_data_set() -> None:
    """Not by that of the rounds it made, nor by that of a data set with more."""
    (panel,) = runs.panels("fig7", "smoke")
    base, frames, declared = panel.experiments[0], [], []
    labels = {"size_set": "four", "participation": 0.1, "target_accuracy": 70.0, "algorithm": "fiarse"}
    for dataset, end, made in (("short", 5, 2), ("long", 9, 9)):
        declared.append(replace(base, labels={"dataset": dataset, **labels}, clock=Rounds(end)))
        rows = {"round": range(made + 1), "value": 50.0, "status": "ok" if made == end else "diverged"}
        frames.append(pd.DataFrame(rows).assign(**declared[-1].labels))
    key = size_key(base.system.capacity.sizes[0])  # type: ignore[attr-defined]
    frame = pd.concat(frames, ignore_index=True).assign(seed=0, time=math.nan, metric="accuracy", key=key)
    cells = measures.curves(Histories(frame, "smoke", experiments=tuple(declared)), ("fiarse",))
    assert value(cells, "rounds_to_target", dataset="short") == 5
    assert value(cells, "rounds_to_target", dataset="long") == 9
    assert cells.loc[cells["metric"] == "rounds_to_target", "censored"].all()


def recorded() -> pd.DataFrame:
    (panel,) = runs.patterns()
    played = run(panel.experiments)
    parts = [
        pd.DataFrame(r.state["history"], columns=["round", "time", "metric", "key", "value"]).assign(
            algorithm=r.experiment.labels["algorithm"], seed=0, status="ok"
        )
        for r in played
    ]
    return pd.concat(parts, ignore_index=True)


def test_patterns_of_extraction() -> None:
    """As the paper draws them; a mask that is changed by hand is noticed."""
    (panel,) = runs.patterns()
    frame = recorded()
    found = measures.patterns(Histories(frame, "smoke", experiments=panel.experiments))
    assert dict(zip(found["metric"], found["value"], strict=True)) == {
        "mask_changes": 0, "window_shift": 1, "mask_topk_mismatches": 0,
    }  # fmt: skip
    for algorithm, metric in (("heterofl", "mask_changes"), ("fiarse", "mask_topk_mismatches")):
        mine = (frame["algorithm"] == algorithm) & (frame["metric"] == "mask") & (frame["round"] == 1)
        part = frame[mine & frame["key"].str.startswith("0.25:")]
        one, other = part[part["value"] == 1].index[0], part[part["value"] == 0].index[0]
        wrong = frame.copy()
        wrong.loc[[one, other], "value"] = [0.0, 1.0]
        cells = measures.patterns(Histories(wrong, "smoke", experiments=panel.experiments))
        assert float(cells.loc[cells["metric"] == metric, "value"].iloc[0]) > 0
