"""How many seeds would decide what is undecided: as many as do, when they come with the same means and spreads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reproduce.verdicts.claims import Metric
from reproduce.verdicts.judging import INF, MOST, Region, enough, judge
from reproduce.verdicts.observations import read_cells
from reproduce.verdicts.verdict import Outcome, Prospect, evaluate, under_readings

METRICS = {"acc": Metric("acc", "points", "higher", "")}
LEADS = st.lists(st.tuples(st.floats(-3, 3), st.floats(0.05, 4)), min_size=1, max_size=4)
CHECKS: dict[str, dict[str, Any]] = {
    "all": {"better": "a", "than": ["b"]},
    "a margin": {"better": "a", "than": ["b"], "margin": 0.7},
    "any": {"better": "a", "than": ["b"], "quantifier": "any"},
    "mean": {"better": "a", "than": ["b"], "quantifier": "mean"},
    "equal": {"equal": ["a", "b"], "within": 1.0},
    "parts": {"all_of": [{"better": "a", "than": ["b"]}, {"equal": ["a", "b"], "within": 2.0}]},
}


def spread_out(mean: float, deviation: float, n: int) -> list[float]:
    """`n` numbers with this mean and this sample standard deviation."""
    z = np.linspace(-1, 1, n)
    found: list[float] = (mean + z * deviation / z.std(ddof=1)).tolist()
    return found


def outcome(path: Path, leads: list[tuple[float, float]], n: int, check: dict[str, Any]) -> Outcome:
    """Of settings 0, 1, ... in which a leads b by (mean, deviation) over `n` seeds."""
    lines = ["setting,algorithm,seed,metric,value"]
    for k, (mean, deviation) in enumerate(leads):
        for seed, lead in enumerate(spread_out(mean, deviation, n)):
            lines += [f"{k},a,{seed},acc,{lead!r}", f"{k},b,{seed},acc,0"]
    file = path / "cells.csv"
    file.write_text("\n".join(lines))
    return evaluate({"metric": "acc", **check}, read_cells(file, (), METRICS), METRICS)


@settings(deadline=None)
@given(st.floats(-3, 3), st.floats(0.05, 4), st.sampled_from([Region(0.0, strict=True), Region(-1, 1), Region(high=2)]))
def test_enough_seeds_are_the_fewest_whose_interval_decides(mean: float, deviation: float, region: Region) -> None:
    def open_with(n: int) -> bool:
        return judge([(v, v) for v in spread_out(mean, deviation, n)], region).says == "open"

    if open_with(3):
        expected = next((n for n in range(4, MOST + 1) if not open_with(n)), None)
        assert enough([(v, v) for v in spread_out(mean, deviation, 3)], region) == expected


def test_seeds_that_agree_wait_for_the_interval_of_the_median_or_for_the_grid() -> None:
    def open_with(n: int, step: float) -> bool:
        return judge([(100.0, 100.0)] * n, Region(99.0), step=step).says == "open"

    for step in (0.0, 0.5, 2.0):
        assert open_with(3, step) or step == 0.5
        expected = next(n for n in range(4, MOST) if not open_with(n, step))
        assert enough([(100.0, 100.0)] * 3, Region(99.0), step=step) == expected
    assert enough([(100.0, 100.0)] * 3, Region(100.0, 100.0)) == 6, "a number asked for exactly"


@pytest.mark.parametrize("seeds", [[(INF, INF)] * 3, [(INF, INF), (6.0, 6.0)], [(-INF, -INF)] * 4])
def test_diverged_runs_wait_for_the_interval_of_the_median(seeds: list[tuple[float, float]]) -> None:
    several = [judge((seeds * n)[:n], Region(5.0)).says for n in range(len(seeds), 10)]
    assert several[0] == "open"
    assert enough(seeds, Region(5.0)) == next(n for n, says in enumerate(several, len(seeds)) if says != "open") == 6


def test_no_number_is_told_where_there_is_none() -> None:
    assert enough([(1.0, 1.0)], Region(0.0)) is None, "one seed has no spread"
    assert enough([(1.0, 2.0), (1.0, INF), (3.0, 3.0)], Region(2.0)) is None, "bounds"
    assert enough([(-INF, -INF), (1.0, 1.0), (3.0, 3.0)], Region(2.0)) is None, "diverged, the others on both sides"
    assert enough([(INF, INF)], Region(2.0)) is None, "diverged, one seed"
    assert enough([(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)], Region(2.0)) is None, "its mean lies on the end"
    assert enough([(-9.0, -9.0), (0.1, 0.1), (9.0, 9.0)], Region(0.0)) is None, "more seeds than anybody would train"


@pytest.mark.parametrize("name", CHECKS)
@settings(deadline=None, max_examples=25)
@given(leads=LEADS)
def test_the_verdict_is_the_one_that_was_in_prospect_and_not_earlier(
    name: str, leads: list[tuple[float, float]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path, check = tmp_path_factory.getbasetemp(), CHECKS[name]
    if name == "mean":  # seeds differ alike in all settings, so that the spread of their mean is known
        leads = [(mean, leads[0][1]) for mean, _ in leads]
    now = outcome(path, leads, 3, check)
    if now.verdict != "undecided":
        assert now.prospect is None
    elif now.prospect:
        assert now.prospect.now == 3
        assert outcome(path, leads, now.prospect.seeds, check).verdict == now.prospect.verdict
        if now.prospect.seeds > 4:
            assert outcome(path, leads, now.prospect.seeds - 1, check).verdict == "undecided"
    else:
        assert outcome(path, leads, MOST, check).verdict == "undecided"


def test_what_is_incomplete_can_be_supported_or_contradicted(tmp_path: Path) -> None:
    check = {"metric": "acc", "better": "a", "than": ["b"], "for": {"setting": [0, 1, 2]}}
    for leads, prospect in (
        ([(1.0, 1.0), (1.0, 1.0)], Prospect("supported where run", 7, 3)),
        ([(1.0, 1.0), (-1.0, 1.0)], Prospect("contradicted", 9, 3)),
    ):
        found = outcome(tmp_path, leads, 3, check)
        assert "incomplete" in found.reason
        assert found.prospect == prospect
        whole = outcome(tmp_path, [*leads, (9.0, 1.0)], 3, check)
        assert whole.prospect
        assert whole.prospect.verdict == prospect.verdict.replace("supported where run", "reproduced")


def test_the_seeds_there_are_those_of_the_setting_that_wants_more(tmp_path: Path) -> None:
    lines = [f"{k},a,{s},acc,{v}" for k, n in ((0, 10), (1, 3)) for s, v in enumerate(spread_out(1.0, 1.0, n))]
    file = tmp_path / "cells.csv"
    file.write_text("\n".join(["setting,algorithm,seed,metric,value", *lines]))
    found = evaluate({"metric": "acc", "is": "> 0"}, read_cells(file, (), METRICS), METRICS)
    assert (found.verdict, found.prospect) == ("undecided", Prospect("reproduced", 7, 3))


def test_a_part_without_runs_and_several_readings_leave_it_open(tmp_path: Path) -> None:
    lead, gone = {"better": "a", "than": ["b"]}, {"better": "c", "than": ["b"]}
    assert outcome(tmp_path, [(1.0, 1.0)], 3, {"all_of": [lead, gone]}).prospect == Prospect(
        "supported where run", 7, 3
    )
    wrong = outcome(tmp_path, [(-1.0, 1.0)], 3, {"all_of": [lead, gone]})
    assert (wrong.verdict, wrong.prospect and wrong.prospect.verdict) == ("undecided", "contradicted")
    one = outcome(tmp_path, [(1.0, 1.0)], 3, lead)
    none = outcome(tmp_path, [(1.0, 1.0)], 3, gone)
    assert under_readings("the rate", {"printed": one, "other": none}).prospect == one.prospect
    assert under_readings("the rate", {"printed": one, "other": one}).prospect is None
