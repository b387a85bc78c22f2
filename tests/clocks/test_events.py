"""The event clock: what is trained from what, when it is evaluated, when it ends, and that it resumes."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from runs import run as play_all

from reproduce.algorithms.asynchronous import Asynchronous
from reproduce.clocks.events import Events
from reproduce.clocks.step import Target
from reproduce.data.batches import WithReplacement
from reproduce.data.embedded import GaussianClasses
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClientSplits
from reproduce.engine.scheduler import Run, Scheduler, prepare
from reproduce.engine.trainer import Trainer
from reproduce.models.declared import Softmax
from reproduce.partitions.labels import IID
from reproduce.problem import Classification
from reproduce.settings import settings
from reproduce.systems import Steps, System
from reproduce.systems.policies import DeFedAvgIIDPolicy, DeFedAvgNIIDPolicy, FedAvgPolicy, FedBuffPolicy
from reproduce.systems.schedule import Explicit, Pace, Policy, Schedule

PACE = Pace(step=0.017, upload=0.044, download=0.044)
GAUSSIAN = Classification(
    GaussianClasses(10, 20, 60, 20, 1.0, 0, mean_scale=2.0), Softmax(20, 10), IID(), 10, WithReplacement(10)
)


def clients(steps: int = 5, pace: Pace | None = PACE) -> System:
    return System(work=Steps(steps), pace=pace)


def schedule(policy: Policy) -> Schedule:
    return Schedule(policy, 10, 5, PACE)


def experiment(clock: Events, algorithm: Any, problem: Classification = GAUSSIAN, steps: int = 5) -> Experiment:
    return Experiment({"algorithm": "x"}, problem, clients(steps), algorithm, clock)


def play(e: Experiment, seeds: tuple[int, ...] = (0,)) -> list[Run]:
    runs = play_all([e], seeds)
    return runs


def history(run: Run, metric: str) -> list[tuple[int, float, float]]:
    return [(r, t, v) for r, t, m, _, v in run.state["history"] if m == metric]


def test_evaluations_on_the_grid_of_virtual_times() -> None:
    """At j * grid the newest version is evaluated, once: against a walk over the grid."""
    clock = Events(FedAvgPolicy(2), horizon=3.1, grid=0.25)
    made = [0.0, *(a.time for a in schedule(clock.policy).simulate(0, horizon=3.1))]
    expected: list[tuple[int, float]] = []
    for j in range(13):
        version = sum(t <= j * 0.25 for t in made) - 1
        if not expected or version != expected[-1][0]:
            expected.append((version, j * 0.25))
    run = play(experiment(clock, Asynchronous(0.1)))[0]
    seen = [(r, t) for r, t, _ in history(run, "accuracy")]
    assert [r for r, _ in seen] == [r for r, _ in expected]
    assert [t for _, t in seen] == pytest.approx([t for _, t in expected])
    assert len(made) - 1 > len(seen) - 2, "several versions fall between two points of the grid"
    coarse = Events(FedAvgPolicy(2), horizon=3.1, grid=1.0)
    assert coarse.evaluations(e := experiment(coarse, Asynchronous())) == 4 < coarse.length(e)
    fine = Events(FedAvgPolicy(2), horizon=3.1, grid=0.05)
    assert len(history(play(experiment(fine, Asynchronous(0.1)))[0], "accuracy")) == len(made)


def test_evaluations_every_k_aggregations_and_at_the_end() -> None:
    clock = Events(DeFedAvgIIDPolicy(3), aggregations=11, every=4, train_view="train:100", train_every=2)
    run = play(experiment(clock, Asynchronous(0.1)))[0]
    times = [0.0, *(a.time for a in schedule(clock.policy).simulate(0, 11))]
    assert [(r, t) for r, t, _ in history(run, "loss")] == [(r, times[r]) for r in (0, 4, 8, 11)]
    assert [r for r, _, _ in history(run, "train_loss")] == [0, 8]
    assert clock.length(experiment(clock, Asynchronous())) == 11
    assert clock.samples(experiment(clock, Asynchronous())) == 11 * 3 * 5 * 10


def test_only_the_models_that_are_still_needed_are_kept() -> None:
    """In every state that could be saved: exactly the start versions of later updates up to the present one."""
    clock = Events(DeFedAvgNIIDPolicy(3, variant="hold"), aggregations=40, every=100)
    drawn = schedule(clock.policy).simulate(0, 40)
    runs = prepare([experiment(clock, Asynchronous(0.1))], (0,), ClientSplits(settings()))
    seen = []

    def tick() -> None:
        state = runs[0].state
        if "starts" in state and state["round"] < 40:
            needed = {u.start_version for a in drawn[state["round"] :] for u in a.updates}
            assert set(state["starts"]) == {v for v in needed if v <= state["round"]}
            seen.append(len(state["starts"]))

    Scheduler(runs, Trainer(), tick).run()
    assert len(seen) >= 40
    assert 4 < max(seen) <= 1 + max(s for a in drawn for s in a.staleness), "the bound that is promised"
    assert runs[0].state["starts"] == {}


def test_a_target_is_a_mean_of_the_latest_evaluations_of_all_clients() -> None:
    rows = [(0, "accuracy", "", 9.0), (1, "accuracy", "", 4.0), (2, "accuracy", "", 5.0)]
    rows += [(2, "accuracy", "3", 8.0), (2, "loss", "", 8.0)]
    state = {"history": [(round, np.nan, *row) for round, *row in rows]}
    for over, mean in ((1, 5.0), (2, 4.5), (3, 6.0), (9, 6.0)):
        assert Target("accuracy", mean, over).reached(state)
        assert not Target("accuracy", mean + 0.1, over).reached(state)
    assert not Target("accuracy", 0.0).reached({"history": []})


@pytest.mark.parametrize("over", [1, 3])
def test_a_run_ends_at_its_target_but_not_before_its_least_time(over: int) -> None:
    clock = Events(DeFedAvgIIDPolicy(3), horizon=20.0, grid=0.1)
    full = history(play(experiment(clock, Asynchronous(0.1)))[0], "accuracy")
    means = [np.mean([v for _, _, v in full[max(0, i + 1 - over) : i + 1]]) for i in range(len(full))]
    value = float(max(means[:20]))
    hit = next(i for i, m in enumerate(means) if m >= value)
    assert 0 < hit < len(full) - 5
    target = Target("accuracy", value, over=over)
    early = history(play(experiment(replace(clock, until=target), Asynchronous(0.1)))[0], "accuracy")
    assert early == full[: hit + 1]
    least = full[hit][1] + 1.05
    late = history(play(experiment(replace(clock, until=target, least=least), Asynchronous(0.1)))[0], "accuracy")
    assert late == full[: len(late)]
    assert least - 0.2 < late[-1][1] <= least + 0.1


def test_on_a_grid_a_model_counts_for_the_target_as_often_as_it_is_there() -> None:
    """Several times of the grid lie in a round; the target is reached at one where nothing new is evaluated."""
    clock = Events(FedAvgPolicy(2), horizon=12.0, grid=0.05)
    full = history(play(experiment(clock, Asynchronous(0.02)))[0], "accuracy")
    values = [[v for _, t, v in full if t <= j * 0.05 + 1e-9][-1] for j in range(241)]
    means = [float(np.mean(values[max(0, j - 3) : j + 1])) for j in range(241)]
    evaluated = {round(t / 0.05) for _, t, _ in full}
    hits = [j for j in range(20, 200) if means[j] > max(means[:j]) and j not in evaluated]
    for hit in (hits[0], hits[-1]):
        target = Target("accuracy", means[hit] - 1e-9, over=4)
        early = history(play(experiment(replace(clock, until=target), Asynchronous(0.02)))[0], "accuracy")
        assert early == [row for row in full if row[1] < hit * 0.05] + [next(r for r in full if r[1] >= hit * 0.05)]


@pytest.mark.parametrize("policy", [DeFedAvgIIDPolicy(1), FedBuffPolicy(2), DeFedAvgIIDPolicy(3, receive="keep")])
def test_a_cost_is_known_where_all_clients_are_equally_fast(policy: Policy) -> None:
    """The first hundreds of updates then arrive at once."""
    pace = Pace(step=0.017, upload=0.044, download=0.044, speeds=Explicit((1.0,) * 450))
    clock, problem = Events(policy, horizon=100.0, grid=1.0), replace(GAUSSIAN, clients=450)
    e = Experiment({"algorithm": "x"}, problem, clients(5, pace), Asynchronous(0.1), clock)
    made = len(Schedule(policy, 450, 5, pace).simulate(0, horizon=100.0))
    assert clock.length(e) == pytest.approx(made, rel=0.5)
    assert clock.evaluations(e) <= 102


@pytest.mark.parametrize("change", [{"grid": 0.5}, {"every": 0}, {"aggregations": None, "horizon": None}])
def test_nonsense_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"evaluate on a grid|say how many"):
        replace(Events(FedAvgPolicy(2), aggregations=3, every=1), **change)  # type: ignore[arg-type]


def test_a_schedule_without_aggregations_gives_an_empty_script() -> None:
    """A horizon before the first aggregation: the run is its initial model."""
    clock = Events(FedAvgPolicy(2), horizon=0.01, grid=0.005)
    run = play(experiment(clock, Asynchronous(0.1)))[0]
    assert [r for r, _, _ in history(run, "accuracy")] == [0]


def test_an_aggregation_without_updates_leaves_the_model() -> None:
    clock = Events(DeFedAvgNIIDPolicy(1, empty="skip"), aggregations=3, every=1)
    assert not schedule(clock.policy).simulate(0, 1)[0].updates
    run = play(experiment(clock, Asynchronous(0.1)))[0]
    values = [v for _, _, v in history(run, "loss")]
    assert values[1] == values[0]


def test_a_version_made_on_the_grid_is_evaluated_there_whatever_rounding_says() -> None:
    clock = Events(FedAvgPolicy(2), horizon=0.7, grid=0.1)
    script: Any = SimpleNamespace(time=np.array([0.25, 0.1 + 0.2, 0.7]))
    assert [clock.due(script, version) for version in (1, 2, 3)] == [None, pytest.approx(0.3), pytest.approx(0.7)]
