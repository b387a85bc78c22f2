"""The round clock: how runs end, and which batches clients take."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from runs import run
from softmax import gradient, logits

from reproduce.algorithms.base import (
    DistinctClients,
    FedAvg,
    Participants,
    Participation,
    RoundContext,
    State,
    WeightedDraws,
)
from reproduce.algorithms.fednova import FedNova
from reproduce.algorithms.scaffold import Scaffold
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Cyclic, Shuffled
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import Env
from reproduce.engine.requests import Train, Trained
from reproduce.engine.scheduler import Run
from reproduce.engine.trainer import Trainer
from reproduce.models.declared import MLP, Softmax
from reproduce.partitions.dirichlet import BalancedDirichlet
from reproduce.partitions.labels import IID
from reproduce.problem import Classification, Quadratic
from reproduce.systems import Steps, System
from reproduce.systems.work import PerClient

PROBLEM = Classification("digits", Softmax(64, 10), IID(), clients=5, batches=Shuffled(10), train_samples=400)


def trained(*clocks: Rounds) -> list[Run]:
    experiments = [Experiment({"n": i}, PROBLEM, System(work=Steps(3)), FedAvg(0.02), c) for i, c in enumerate(clocks)]
    return run(experiments, dtype=torch.float64)


def accuracies(run: Run) -> list[float]:
    return [v for _, _, metric, _, v in run.state["history"] if metric == "accuracy"]


@pytest.mark.parametrize("every", [1, 3])
def test_a_run_ends_with_the_first_evaluation_at_its_target(every: int) -> None:
    clock = Rounds(20, every=every)
    whole = trained(clock)[0]
    target = sorted(accuracies(whole))[len(accuracies(whole)) // 2]
    first = next(i for i, a in enumerate(accuracies(whole)) if a >= target)
    short, missed = trained(replace(clock, until=("accuracy", target)), replace(clock, until=("accuracy", 101.0)))
    assert 0 < first < len(accuracies(whole)) - 1
    assert accuracies(short) == accuracies(whole)[: first + 1]
    assert short.state["round"] == every * first
    assert accuracies(missed) == accuracies(whole)
    assert short.done
    assert missed.done


def test_a_resumed_run_remembers_that_it_was_there() -> None:
    run = trained(Rounds(20, until=("accuracy", 0.0)))[0]
    assert run.state["round"] == 0
    again = Run(run.experiment, 0, run.env, {k: v for k, v in run.state.items() if k != "done"})
    assert list(again.play()) == []


@pytest.mark.parametrize("participation", [DistinctClients(2), WeightedDraws(2)])
@pytest.mark.parametrize("algorithm", [FedAvg, FedNova, Scaffold])
def test_batches_are_counted_of_those_that_trained(
    monkeypatch: pytest.MonkeyPatch, algorithm: type[FedAvg], participation: Participation
) -> None:
    """A cyclic order goes on where the client stopped, whatever rounds it was not part of."""
    asked: list[Train] = []
    train = Trainer.train
    monkeypatch.setattr(Trainer, "train", lambda self, jobs: asked.extend(r for _, r in jobs) or train(self, jobs))
    problem = replace(PROBLEM, batches=Cyclic(10))
    experiment = Experiment(
        {"n": 0}, problem, System(work=PerClient((1, 2, 3, 4, 5))), algorithm(0.02, participation), Rounds(8)
    )
    (played,) = run([experiment], dtype=torch.float64)
    done = [0] * 5
    for request in asked:
        assert request.offset is not None
        for client, steps, offset in zip(request.clients, request.steps, request.offset, strict=True):
            assert offset == done[client]
            done[client] += int(steps)
    assert played.state["steps_done"].tolist() == done
    assert len({tuple(r.clients) for r in asked}) > 1, "the test tests something"


@dataclass(frozen=True)
class Told(FedAvg):
    def metrics(self, env: Env, state: State, answers: object) -> Iterator[tuple[str, str, float]]:
        yield "ending", "", state["ending"]


def test_the_last_evaluation_is_known_as_that() -> None:
    (played,) = run([Experiment({}, PROBLEM, System(), Told(0.02), Rounds(5, every=2))])
    assert [(r, v) for r, *_, v in played.state["history"]] == [(0, False), (2, False), (4, False), (5, True)]


@dataclass(frozen=True)
class Leap(FedAvg):
    """A server step to the largest numbers that there are, or beyond."""

    beyond: bool = False

    def aggregate(self, env: Env, state: State, now: RoundContext, cohort: Participants, trained: Trained) -> None:
        state["x"] = torch.full_like(state["x"], torch.inf if self.beyond else torch.finfo(state["x"].dtype).max)


@pytest.mark.parametrize("problem", [PROBLEM, replace(PROBLEM, model=MLP(64, 8, 10)), Quadratic(clients=2, dim=2)])
@pytest.mark.parametrize("beyond", [False, True])
def test_an_evaluation_that_is_not_finite_is_a_divergence(problem: Any, beyond: bool) -> None:
    """Parameters that are finite can say what is not: then no sample counts as right, and the run ends."""
    (played,) = run([Experiment({"n": 0}, problem, System(), Leap(0.02, beyond=beyond), Rounds(3))])
    assert played.state["status"] == "diverged"
    assert played.state["round"] == 1
    recorded = {metric: v for r, _, metric, _, v in played.state["history"] if r == 1}
    assert bool(recorded) == (not beyond), "of a model that is none there is no evaluation"
    assert recorded.get("accuracy", 0.0) == 0.0
    assert not any(math.isfinite(v) for metric, v in recorded.items() if metric != "accuracy")


def test_each_client_before_and_after_an_epoch_of_its_own() -> None:
    """One batch of all samples is one step of gradient descent; a client is judged by its own test samples."""
    clients, rate = 3, 0.5
    problem = Classification("digits", Softmax(64, 10), BalancedDirichlet(0.5), clients, Shuffled(500),
                             train_samples=200, test_partition=True)  # fmt: skip
    clock = Rounds(2, by_client=True)
    (done,) = run([Experiment({"n": 1}, problem, System(Steps(1)), FedAvg(rate), clock)], dtype=torch.float64)
    split: Any = done.env.split
    rows = {m: {int(k): v for r, _, n, k, v in done.state["history"] if n == m and r == 2}
            for m in ("per_client", "per_client_tuned")}  # fmt: skip
    assert not [r for r, _, m, _, _ in done.state["history"] if m == "per_client_tuned" and r < 2]
    x, y = split.device_data.train_x.numpy().reshape(200, 64), split.device_data.labels
    test_x, test_y = split.device_data.test_x.numpy().reshape(-1, 64), split.device_data.test_labels
    model = done.state["x"].numpy()
    for client in range(clients):
        mine, judged = split.indices[client], split.test_indices[client]
        tuned = model - rate * gradient(model, x[mine], y[mine])
        for metric, w in (("per_client", model), ("per_client_tuned", tuned)):
            right = logits(w, test_x[judged]).argmax(1) == test_y[judged]
            assert rows[metric][client] == pytest.approx(100 * right.mean()), metric
    assert rows["per_client"] != rows["per_client_tuned"]
