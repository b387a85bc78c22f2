"""The chance that a claim is decided, and how many seeds would decide it: as often as the rules do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import nct, t

from reproduce.verdicts import power
from reproduce.verdicts.claims import Metric
from reproduce.verdicts.observations import read_cells
from reproduce.verdicts.verdict import Outcome, Prospect, evaluate, judged, under_readings

METRICS = {"acc": Metric("acc", "points", "higher", "")}
CHECKS: dict[str, dict[str, Any]] = {
    "all": {"better": "a", "than": ["b"]},
    "a margin": {"better": "a", "than": ["b"], "margin": 0.7},
    "any": {"better": "a", "than": ["b"], "quantifier": "any"},
    "most": {"better": "a", "than": ["b"], "quantifier": {"fraction": 0.6}},
    "few": {"better": "a", "than": ["b"], "margin": 0.85, "quantifier": {"count": [1, 4]}},
    "equal": {"equal": ["a", "b"], "within": 1.0},
    "parts": {"all_of": [{"better": "a", "than": ["b"]}, {"equal": ["a", "b"], "within": 2.0}]},
}


def spread_out(mean: float, deviation: float, n: int) -> list[float]:
    """`n` numbers with this mean and this sample standard deviation."""
    z = np.linspace(-1, 1, n)
    found: list[float] = (mean + z * deviation / z.std(ddof=1)).tolist()
    return found


def scattered(mean: float, deviation: float, n: int, draw: np.random.Generator) -> list[float]:
    """Such numbers in any order and places."""
    z = draw.standard_normal(n)
    found: list[float] = (mean + (z - z.mean()) * deviation / z.std(ddof=1)).tolist()
    return found


def spread(path: Path, leads: list[list[float]]) -> pd.DataFrame:
    """Settings 0, 1, ... in which a leads b by so much in each seed."""
    lines = ["setting,algorithm,seed,metric,value"]
    for k, seeds in enumerate(leads):
        for seed, lead in enumerate(seeds):
            lines += [f"{k},a,{seed},acc,{lead!r}", f"{k},b,{seed},acc,0"]
    file = path / "cells.csv"
    file.write_text("\n".join(lines))
    return read_cells(file, (), METRICS)


def outcome(path: Path, leads: list[tuple[float, float]], n: int, check: dict[str, Any]) -> Outcome:
    """Of settings in which a leads b by (mean, deviation) over `n` seeds."""
    frame = spread(path, [spread_out(*lead, n) for lead in leads])
    return evaluate({"metric": "acc", **check}, frame, METRICS, ahead=True)


def decided(
    check: dict[str, Any], leads: list[tuple[float, float]], n: int, path: Path, draws: int
) -> dict[str, float]:
    """How often each verdict comes out of runs that are drawn with these means and spreads, judged one by one."""
    draw, found = np.random.default_rng(n), []
    for _ in range(draws):
        frame = spread(path, [draw.normal(mean, deviation, n).tolist() for mean, deviation in leads])
        found.append(evaluate({"metric": "acc", **check}, frame, METRICS).verdict)
    return {verdict: found.count(verdict) / draws for verdict in set(found)}


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("n", [5, 9])
def test_the_chance_to_decide_is_how_often_the_rules_decide(name: str, n: int, tmp_path: Path) -> None:
    """Five settings of different spread, so that they moderate each other: the drawn means and variances, judged all at
    once, against drawn seeds that the rules judge one by one."""
    leads = [(0.9, 0.5), (0.8, 0.4), (1.0, 0.6), (1.2, 1.0), (0.5, 0.3)]
    check = CHECKS[name]
    draw = np.random.default_rng(5)
    frame = spread(tmp_path, [scattered(*lead, n, draw) for lead in leads])
    parts = [design for _, design in judged({"metric": "acc", **check}, frame, METRICS) if design]
    yes, no = power.chance(parts)
    found = decided(check, leads, n, tmp_path, 40)
    error = 3 * 0.5 / np.sqrt(40) + 0.02
    assert yes == pytest.approx(found.get("reproduced", 0), abs=error)
    assert no == pytest.approx(found.get("contradicted", 0), abs=error)
    assert (yes, no) == power.chance(parts), "it repeats itself"


def test_seeds_are_the_fewest_with_which_it_is_decided_in_half_of_the_cases(tmp_path: Path) -> None:
    """One setting, and the textbook's power of a t-test, by SciPy's noncentral t; more seeds are a second look, at half
    the error. The lead is one with which no chance is near one half, where draws could err."""
    lead = 1.6
    now = outcome(tmp_path, [(lead, 1.0)], 3, CHECKS["all"])
    chances = [nct.sf(t.ppf(0.9875, n - 1), n - 1, lead * np.sqrt(n)) for n in range(2, 20)]
    expected = next(n for n, chance in enumerate(chances, 2) if chance >= 0.5)
    assert min(abs(chance - 0.5) for chance in chances) > 0.06, "about two standard errors of 200 draws"
    assert now.prospect == Prospect("reproduced", expected, 3)
    assert now.decides == f"about {expected} seeds in every setting, where one has 3: then reproduced"


@pytest.mark.parametrize(("leads", "n", "said"), [
    ([(0.0, 1.0)], 3, "cannot be decided: with 100 seeds it stays open; a ahead of b is on the border"),
    ([(1.0, 0.0)], 1, "more than one seed: one shows no spread"),
])  # fmt: skip
def test_what_would_decide_is_said_where_more_seeds_would_not(
    leads: list[tuple[float, float]], n: int, said: str, tmp_path: Path
) -> None:
    found = evaluate(
        {"metric": "acc", **CHECKS["all"]},
        spread(tmp_path, [[mean] if n == 1 else spread_out(mean, s, n) for mean, s in leads]), METRICS, ahead=True,
    )  # fmt: skip
    assert (found.verdict, found.prospect, found.decides) == ("undecided", None, said)


def test_what_the_runs_could_have_said(tmp_path: Path) -> None:
    """One seed decides nothing, three answers yes or no neither; one of two settings with one seed can still refute."""
    lead, best = CHECKS["all"], {"best_at": ["a"], "over": "algorithm"}
    for check, numbers, able in (
        (lead, [[1.0]], (False, False)),
        (lead, [[1.0, 2.0]], (True, True)),
        (lead, [[1.0], [1.0, 2.0]], (False, True)),
        (best, [[1.0, 2.0, 3.0]], (False, False)),
        (best, [[1.0] * 6], (True, True)),
    ):
        parts = [d for _, d in judged({"metric": "acc", **check}, spread(tmp_path, numbers), METRICS)]
        assert power.possible([p for p in parts if p]) == able


def test_what_is_incomplete_can_be_supported_or_contradicted(tmp_path: Path) -> None:
    check = {"metric": "acc", "better": "a", "than": ["b"], "for": {"setting": [0, 1, 2]}}
    for leads, expected in (
        ([(1.0, 1.0), (1.0, 1.0)], "supported where run"),
        ([(1.0, 1.0), (-1.0, 1.0)], "contradicted"),
    ):
        found = outcome(tmp_path, leads, 3, check)
        assert found.prospect
        assert (found.prospect.verdict, found.prospect.now) == (expected, 3)
        assert "then" in found.decides
        assert "incomplete, lacks setting 2" in found.decides
        whole = outcome(tmp_path, [*leads, (9.0, 1.0)], 3, check)
        assert whole.prospect
        assert whole.prospect.verdict == expected.replace("supported where run", "reproduced")
    mean = outcome(tmp_path, [(-1.0, 1.0), (-1.0, 1.0)], 3, {**check, "quantifier": "mean"})
    assert mean.decides.startswith("the settings that are missing"), "those that lack may turn a mean"


def test_settings_with_enough_seeds_keep_theirs(tmp_path: Path) -> None:
    frame = spread(tmp_path, [spread_out(1.0, 1.0, 30), spread_out(1.0, 1.0, 3)])
    found = evaluate({"metric": "acc", "better": "a", "than": ["b"]}, frame, METRICS, ahead=True)
    alone = outcome(tmp_path, [(1.0, 1.0)], 3, CHECKS["all"])
    assert found.prospect
    assert alone.prospect
    assert found.prospect.now == 3
    assert found.prospect.seeds == pytest.approx(alone.prospect.seeds, abs=1)


def test_a_part_without_runs_and_several_readings(tmp_path: Path) -> None:
    lead, gone = {"better": "a", "than": ["b"]}, {"better": "c", "than": ["b"]}
    found = outcome(tmp_path, [(1.0, 1.0)], 3, {"all_of": [lead, gone]})
    assert found.prospect
    assert found.prospect.verdict == "supported where run"
    wrong = outcome(tmp_path, [(-1.0, 1.0)], 3, {"all_of": [lead, gone]})
    assert (wrong.verdict, wrong.prospect and wrong.prospect.verdict) == ("undecided", "contradicted")
    one = outcome(tmp_path, [(1.0, 1.0)], 3, lead)
    for other in (outcome(tmp_path, [(1.0, 1.0)], 3, gone), outcome(tmp_path, [(9.0, 1.0)], 3, lead)):
        both = under_readings("the rate", {"printed": one, "other": other})
        assert (both.verdict, both.prospect, both.decides) == ("undecided", one.prospect, one.decides)
