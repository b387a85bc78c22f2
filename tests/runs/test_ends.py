"""Estimates of runs that may end at a target: as far as those that are most like them went."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reproduce import store
from reproduce.declare.experiment import Experiment, changed
from reproduce.papers.defedavg import runs, settings
from reproduce.runs import costs, ends, plan, rates, results, training
from reproduce.runs.costs import Cost
from reproduce.store import Stored

FASHION, CIFAR = settings.PAPER


def run(algorithm: str, n: int, setting: Any = FASHION, **more: Any) -> Experiment:
    pair = {"favano": (None, 0.1), "asysg": (0.1, None)}.get(algorithm, (1.0, 0.1))
    return runs.run(setting, "iid", n, algorithm, pair, further=False, **more)


def test_a_run_goes_as_far_as_those_that_are_most_like_it() -> None:
    """n = 20 is nearer to 40 than 80 is; another rate is farther than a little more of n; what is not alike at all,
    algorithm, network or data, says nothing."""
    there = {run("fedavg", 10): [0.5], run("fedavg", 40): [0.1, 0.2], run("asysg", 20): [0.9]}
    assert ends.share(run("fedavg", 18), there) == 0.5
    assert ends.share(run("fedavg", 80), there) == pytest.approx(0.15)
    slower = changed(run("fedavg", 80), {"algorithm.lr": 0.01})
    assert ends.share(slower, {run("fedavg", 80): [0.3], changed(slower, {"clock.policy.n": 70}): [0.7]}) == 0.7
    assert ends.share(run("favano", 10), there) is None
    assert ends.share(run("fedavg", 10, CIFAR), there) is None
    larger = replace(run("fedavg", 10), problem=settings.REDUCED.problem)
    assert ends.share(larger, there) is None


def test_a_run_goes_on_as_far_as_figures_show() -> None:
    """500 of 900 seconds, unless it shall end at its target."""
    whole = runs.run(FASHION, "iid", 10, "fedavg", (1.0, 0.1))
    there = {whole.to_target: [0.1]}
    assert ends.share(whole, there) == pytest.approx(5 / 9)
    assert ends.share(whole.to_target, there) == 0.1
    assert ends.share(whole, {whole: [0.7]}) == 0.7


def test_a_cost_says_what_is_expected_and_what_is_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "seconds", lambda e: 1000.0)
    monkeypatch.setattr(rates, "machine", lambda: 2.0)
    start = 2 * rates.START
    known, unknown = run("fedavg", 10), run("favano", 10)
    fixed = replace(known, clock=replace(known.clock, until=None))
    for experiments, seconds, most, loose in (
        ([fixed], 6000, 6000, 0),
        ([known], 1500, 6000, 0),
        ([known, unknown], 7500, 12000, 6000),
        ([unknown], 6000, 6000, 6000 + start),
    ):
        cost = costs.together(experiments, (0, 1, 2), {known: [0.25]})
        assert (cost.seconds, cost.most, cost.loose) == pytest.approx((seconds + start, most + start, loose))


@pytest.mark.parametrize(("costs_", "said"), [
    ([Cost(0, 0, 3600, 0, 3600), Cost(0, 0, 3600, 0, 3600)], "2 h 0 min"),
    ([Cost(0, 0, 3600, 0, 3600), Cost(0, 0, 3600, 0, 7200)], "about 2 h 0 min (≤ 3 h 0 min)"),
    ([Cost(0, 0, 3600, 0, 3600, 3600)], "≤ 1 h 0 min"),
    ([Cost(0, 0, 10800, 0, 18000, 3600)], "about 2 h 0 min (≤ 4 h 0 min) + ≤ 1 h 0 min"),
])  # fmt: skip
def test_how_long_it_takes_in_words(costs_: Sequence[Cost], said: str) -> None:
    assert costs.total_time(costs_) == said


def test_committed_runs_say_where_runs_of_another_setting_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job's own results and those of its neighbours count, as they are now, and a run that ended early as early."""
    monkeypatch.chdir(tmp_path)
    job = plan.job("smoke", "fedagrac", "table1-lr")
    bound = costs.cost(job)
    assert bound.loose == bound.seconds == bound.most > 0
    training.train(job)
    stored = results.standing(job).stored
    table, _ = store.result(Path(job.output))
    assert [r.last for r in stored] == [table["round"][r.start + r.rows - 1].as_py() for r in stored]
    assert len({r.last for r in stored}) > 1
    known = ends.committed(*ends.sources("smoke", "fedagrac"))
    lengths = {e: e.clock.length(e) for e in job.experiments}
    went = [ends.share(e, known) for e in job.experiments]
    for e, share in zip(job.experiments, went, strict=True):
        mine = [r.last for r in stored if r.labels == dict(e.labels)]
        assert share == pytest.approx(sum(mine) / len(mine) / lengths[e])
    cost = costs.cost(job)
    assert (cost.loose, cost.most) == (0, bound.most)
    assert 0 < cost.seconds < bound.seconds
    Path(job.output).unlink()
    assert costs.cost(job) == bound


def test_a_run_that_was_followed_to_its_target_is_known_as_that() -> None:
    e = runs.run(FASHION, "iid", 10, "fedavg", (1.0, 0.1))
    stored = Stored(e.record(), 0, {}, "", 1, last=e.clock.length(e) // 4)
    for early, name in ((False, e), (True, e.to_target)):
        known = ends.of([results.Joined(e, 0, "current", stored, early), results.Joined(e, 1, "missing")])
        assert list(known) == [name]
        assert known[name] == pytest.approx([0.25], rel=0.01)
