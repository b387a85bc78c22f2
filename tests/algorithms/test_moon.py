"""MOON and groups in rotation: a network of two layers over sessions, against a plain NumPy loop in float64."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from plain_sessions import CONTRAST, FLOOR, LR, MOMENTUM, PROBLEM, TEMPERATURE, Plain, T, Turn, TwoLayer
from runs import run as play_all

from reproduce.algorithms.base import FedAvg
from reproduce.algorithms.moon import Moon
from reproduce.algorithms.session_starts import Average, Previous, Proposed, Start
from reproduce.clocks.rounds import Rounds
from reproduce.clocks.sessions import Sessions
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClientSplits
from reproduce.engine.requests import Train
from reproduce.engine.rule import Rule
from reproduce.engine.scheduler import Run, Scheduler, prepare
from reproduce.engine.trainer import Trainer
from reproduce.errors import UserError
from reproduce.models.declared import MLP, Softmax
from reproduce.partitions.groups import TwoShard
from reproduce.problem import Classification
from reproduce.settings import settings
from reproduce.systems import Steps, System
from reproduce.systems.clients import Membership, Rotation

SIZES, LABELS = (2, 3, 2), ((0, 1, 2, 3), (3, 4, 5, 6), (7, 8, 9))
MOON = Moon(LR, momentum=MOMENTUM, mu=CONTRAST, temperature=TEMPERATURE)


@dataclass(frozen=True)
class Groups:
    """Groups of `sizes` clients with their own labels; each takes every n-th sample; a label may be in two groups."""

    shares_samples: ClassVar[bool] = True
    leaves_empty: ClassVar[bool] = True
    data_seed: ClassVar[int] = 0
    sizes: tuple[int, ...] = SIZES
    labels: tuple[tuple[int, ...], ...] = LABELS

    def split(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        parts = []
        for size, held in zip(self.sizes, self.labels, strict=True):
            samples = np.flatnonzero(np.isin(labels, held))
            parts += [samples[i::size] for i in range(size)]
        return parts


Groups.__module__ = FedAvg.__module__  # as one of the package, around which no hook of an algorithm is watched
NETWORK = replace(PROBLEM, model=MLP(20, 7, 10), partition=Groups(), clients=7)
ROTATING, LAST = Rotation(SIZES), Rotation(SIZES, (0, 1, 0, 1, 0, 2))


def turns(membership: Membership) -> tuple[Turn, ...]:
    """Clients and labels of one cycle of turns, written out by hand for the oracle."""
    members = (range(0, 2), range(2, 5), range(5, 7))
    return tuple((members[g], LABELS[g]) for g in membership.turns)


def play(algorithm: FedAvg, start: Start, problem: Classification, membership: Membership, **changes: Any) -> Run:
    clock = replace(Sessions(6, T, membership, (), start, 1, FLOOR), **changes)
    experiment = Experiment({"algorithm": "a"}, problem, System(work=Steps(5)), algorithm, clock)
    (run,) = play_all([experiment], [2], dtype=torch.float64)
    return run


def accuracies(run: Run) -> dict[int, float]:
    return {row[0]: row[4] for row in run.state["history"] if row[2] == "accuracy" and row[0]}


@pytest.mark.parametrize("membership", [ROTATING, LAST], ids=["rotating", "unseen labels in the last session"])
@pytest.mark.parametrize("kind", ["moon", "moon_standard", "fedavg"])
@pytest.mark.parametrize("scheme", ["previous", "average", "proposed"])
def test_sessions_of_three_groups_equal_the_plain_loop(scheme: str, kind: str, membership: Any) -> None:
    start = {"previous": Previous(), "average": Average(), "proposed": Proposed(R=3.0)}[scheme]
    algorithm = {
        "moon": MOON,
        "moon_standard": replace(MOON, from_fingerprint=False),
        "fedavg": FedAvg(LR, momentum=MOMENTUM),
    }[kind]
    run = play(algorithm, start, NETWORK, membership)
    plain = Plain(kind, run.env.split, TwoLayer(), turns(membership))
    x, accuracy, alphas = plain.trajectory(scheme, R=3.0, sessions=6)
    np.testing.assert_allclose(run.state["x"].numpy(), x, rtol=0, atol=1e-10)
    assert accuracies(run) == pytest.approx(accuracy, abs=1e-9)
    if alphas:
        assert {r[3]: r[4] for r in run.state["history"] if r[2] == "alpha" and r[3] in alphas} == pytest.approx(alphas)
    if kind == "moon":
        assert sorted(run.state["previous"]) == sorted(plain.previous)
        for client, row in plain.previous.items():
            np.testing.assert_allclose(run.state["previous"][client].numpy(), row, rtol=0, atol=1e-10)


def test_fingerprints_count_as_local_runs_or_leave_no_trace() -> None:
    """The two variants differ for the proposed scheme only, and there from the first session after the pilots on."""
    for start, differ in ((Previous(), False), (Proposed(R=3.0), True)):
        runs = [
            play(replace(MOON, from_fingerprint=kept), start, NETWORK, Rotation(SIZES), sessions=2)
            for kept in (True, False)
        ]
        gap = float((runs[0].state["x"] - runs[1].state["x"]).abs().max())
        assert (gap > 1e-6) == differ


def test_models_are_kept_of_clients_that_have_trained() -> None:
    """Memory for previous models: two of three groups have had their turn."""
    run = play(MOON, Previous(), NETWORK, ROTATING, sessions=3)
    assert sorted(run.state["previous"]) == [2, 3, 4, 5, 6]
    rounds = Experiment({"algorithm": "a"}, NETWORK, System(work=Steps(3)), MOON, Rounds(2))
    (run,) = play_all([rounds], [0], dtype=torch.float64)
    assert sorted(run.state["previous"]) == list(range(7))


@pytest.mark.parametrize("strategy", ["stacked", "sequential"])
def test_runs_with_and_without_the_term_share_batches(strategy: str) -> None:
    """Strengths and temperatures of their own, one that distils, one plain: each comes out as if trained alone."""
    problem = replace(NETWORK, model=Softmax(20, 10))
    task = ClientSplits(settings(), torch.float64).get(problem, 3)
    far = torch.stack([task.initial("far", m) for m in range(7)])
    teacher = task.initial("teacher")
    rules = [
        (Rule(momentum=0.5, contrast=0.7, temperature=0.4), {"previous": far}),
        (Rule(momentum=0.5, contrast=1.5), {"previous": far.flip(0)}),
        (Rule(momentum=0.5, contrast=0.3, distill=0.6), {"previous": far[0], "teacher": teacher}),
        (Rule(momentum=0.5, distill=0.6), {"teacher": teacher}),
        (Rule(momentum=0.5), {}),
    ]
    jobs = [
        (task, Train(np.arange(7), np.array([3, 1, 4, 0, 2, 3, 4]), task.initial(), 0.1, 1, rule, **more))
        for rule, more in rules
    ]
    for job, answer in zip(jobs, Trainer(strategy=strategy).train(jobs), strict=True):
        alone = Trainer(strategy="reference").train([job])[0]
        torch.testing.assert_close(answer.rows, alone.rows, rtol=0, atol=1e-10)


def test_sessions_are_evaluated_on_the_labels_that_their_clients_hold() -> None:
    task = ClientSplits(settings(), torch.float64).get(NETWORK, 2)
    assert sorted(set(task.labels("held:2,3,4").tolist())) == [3, 4, 5, 6]
    assert task.view("held:0,5").tolist() == task.view("labels:0,1,2,3,7,8,9").tolist()
    run = play(FedAvg(LR), Previous(), NETWORK, ROTATING, sessions=2)
    named = play(FedAvg(LR), Previous(), NETWORK, ROTATING, sessions=2, views=tuple(map(view, LABELS)))
    assert accuracies(run) == accuracies(named)


def test_every_seed_is_evaluated_on_its_own_clients_labels() -> None:
    """Shards are dealt at random: two seeds in one cohort have other labels in the same session."""
    problem = replace(PROBLEM, partition=TwoShard(), clients=10)
    clock = Sessions(4, 2, Rotation((3, 3, 4)), (), Previous())
    experiment = Experiment({"algorithm": "a"}, problem, System(work=Steps(5)), FedAvg(LR), clock)
    tasks = ClientSplits(settings(), torch.float64)
    together = prepare([experiment], [2, 3], tasks)
    Scheduler(together, Trainer()).run()
    held = [set(run.env.split.labels("held:3,4,5").tolist()) for run in together]
    assert held[0] != held[1]
    for run in together:
        (alone,) = prepare([experiment], [run.seed], tasks)
        Scheduler([alone], Trainer()).run()
        assert accuracies(run) == accuracies(alone)


def view(labels: tuple[int, ...]) -> str:
    return "labels:" + ",".join(map(str, labels))


def test_a_session_without_data_is_an_error() -> None:
    with pytest.raises(UserError, match="clients of session 2 hold no samples"):
        play(FedAvg(LR), Previous(), replace(NETWORK, partition=Groups(labels=((0, 1), (2,), ()))), ROTATING)
