"""Runs that end at their target: the beginning of the whole run, and what is said of their results."""

from pathlib import Path

import pandas as pd
import pytest

from reproduce.declare.experiment import SCALES
from reproduce.papers.defedavg import measures, runs, settings
from reproduce.report.histories import Source, load
from reproduce.runs import plan, results, training

LONGER = [j for j in plan.jobs("smoke") if any(e.to_target is not e for e in j.experiments)]


def test_only_clocks_that_go_on_after_a_target_are_cut() -> None:
    found = [(e, e.to_target) for scale in SCALES for j in plan.jobs(scale) for e in j.experiments]
    assert {e.labels["distribution"] for e, short in found if short is not e} == set(settings.DISTRIBUTIONS)
    for e, short in found:
        if short is e:
            assert getattr(e.clock, "until", None) is None or not getattr(e.clock, "least", 0)
        else:
            assert (short.clock.least, short.to_target) == (0.0, short)
            assert short.declaration != e.declaration


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """REPRODUCE_TO_TARGET -> a folder with the results of all these jobs."""
    found = {}
    for setting in ("0", "1"):
        found[setting] = tmp_path_factory.mktemp(setting)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(found[setting])
            patch.setenv("REPRODUCE_TO_TARGET", setting)
            for job in LONGER:
                training.train(job)
    return found


@pytest.mark.parametrize("job", LONGER, ids=lambda job: job.name)
def test_a_run_to_its_target_is_the_beginning_of_the_whole_run(
    job: plan.Job, folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folders["0"])
    monkeypatch.setenv("REPRODUCE_TO_TARGET", "1")
    assert results.standing(job).holds, "whole runs have all that is asked for"
    whole, short = (pd.read_parquet(folder / job.output) for folder in folders.values())
    monkeypatch.chdir(folders["1"])
    early = results.standing(job)
    assert (early.state, early.holds) == ("current", True)
    by = [*job.experiments[0].labels, "seed"]
    some = False
    for key, rows in short.groupby(by):
        same = whole[(whole[by] == list(key)).all(axis=1)].reset_index(drop=True)
        head, rows = same.iloc[: len(rows)], rows.reset_index(drop=True)
        # Softmax models are evaluated in one matrix product, and some libraries round it otherwise for fewer of them.
        loss = rows["metric"].str.endswith("loss")
        pd.testing.assert_frame_equal(head[~loss], rows[~loss], check_exact=True)
        pd.testing.assert_frame_equal(head[loss], rows[loss], rtol=1e-6, atol=0)
        some |= len(rows) < len(same)
    assert some
    monkeypatch.delenv("REPRODUCE_TO_TARGET")
    now = results.standing(job)
    assert (now.state, now.usable, now.holds) == ("current", True, False)
    assert "followed only to the target" in now.words
    assert now.words == early.words


def test_times_are_those_of_whole_runs_and_values_after_the_end_are_not_made_up(folders: dict[str, Path]) -> None:
    wanted = [e for j in LONGER for e in j.experiments]
    whole, early = (
        load([Source(j.panel.name, folder / j.output) for j in LONGER], "smoke", experiments=wanted)
        for folder in folders.values()
    )
    pd.testing.assert_frame_equal(measures.to_target(whole), measures.to_target(early))
    by = [*measures.COLUMNS, "algorithm", "seed", "metric"]
    values, known = (measures.at_target_times(h).set_index(by) for h in (whole, early))
    assert not values["censored"].any()
    assert set(known.index) == set(values.index), "no seed is left out"
    unknown = known[known["censored"]]
    assert (unknown["value"] == 0).all()
    rest = known[~known["censored"]]
    pd.testing.assert_frame_equal(rest, values.loc[rest.index])
    times = measures.to_target(whole)
    times = times[(times["metric"] == "time_to_target_s") & ~times["censored"]]
    proposed = times[times["algorithm"] == times["distribution"].map(runs.PROPOSED)]
    both = times.merge(proposed[["distribution", "seed", "value"]], on=["distribution", "seed"], suffixes=("", "_ours"))
    earlier = both[both["value"] < both["value_ours"]]
    assert len(earlier), "nobody is faster than DeFedAvg: the test sees nothing"
    lost = [(*row, "test_accuracy_pct_at_target_time") for row in earlier[by[:-1]].itertuples(index=False, name=None)]
    assert set(lost) <= set(unknown.index)
