"""Running statistics of a network are averaged in every algorithm, on every clock, whatever the server's step is."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from runs import run

from reproduce.algorithms.asynchronous import Asynchronous, Favano
from reproduce.algorithms.base import DistinctClients, FedAvg, WeightedDraws
from reproduce.algorithms.fednova import FedNova
from reproduce.clocks.events import Events
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Shuffled
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClientSplits, Env
from reproduce.engine.requests import Train
from reproduce.engine.scheduler import Run
from reproduce.engine.trainer import Trainer
from reproduce.errors import UserError
from reproduce.models.declared import NormConvNet
from reproduce.partitions.dirichlet import DirichletClass
from reproduce.play.specs import NAMES
from reproduce.problem import Classification
from reproduce.settings import settings
from reproduce.systems import System
from reproduce.systems.link import PerClient as PerClientLink
from reproduce.systems.policies import FavanoPolicy, FedAvgPolicy, FedBuffPolicy
from reproduce.systems.schedule import Pace
from reproduce.systems.work import PerClient, Steps

C = 4
NET = NormConvNet(1, 8, ((3,), (4,)), hidden=5, dropout=0.0, normalisation="running")
PROBLEM = Classification("digits", NET, DirichletClass(1.0), C, Shuffled(8), train_samples=400, test_samples=60)
STEPS = (1, 9, 2, 5)
UNEQUAL = System(work=PerClient(STEPS))


def places() -> np.ndarray:
    """Where the running statistics are in the vector, and which of these are variances."""
    names = np.repeat(list(NET.shapes), [int(np.prod(s)) for s in NET.shapes.values()])
    return np.array([n.endswith((".running_mean", ".running_var")) for n in names])


STATISTICS = places()
VARIANCES = np.repeat([n.endswith("running_var") for n in NET.shapes], [int(np.prod(s)) for s in NET.shapes.values()])


def experiment(algorithm: Any, system: System = UNEQUAL, clock: Any = None) -> Experiment:
    return Experiment({"a": 0}, PROBLEM, system, algorithm, clock or Rounds(12, every=12))


def fitting() -> dict[str, Any]:
    """Every algorithm that has rounds and takes this network, at a rate and with a server's rate that it can bear."""
    found = {}
    for name, named in NAMES.items():
        try:
            algorithm = named.cls(lr=0.02, **named.options)
            experiment(algorithm)
            found[name] = algorithm
        except UserError:
            continue
    return found


ALGORITHMS = fitting()
RELEASED = {"scaffold_released"}
"""What the paper's code does with them is declared: it goes a part of the way."""


@pytest.mark.parametrize("name", [n for n in ALGORITHMS if n not in RELEASED])
@pytest.mark.parametrize("system", [UNEQUAL, System(work=PerClient(STEPS), link=PerClientLink((0.0, 0.99, 0.0, 0.0)))])
def test_after_a_round_they_are_the_mean_of_those_that_were_heard(
    monkeypatch: pytest.MonkeyPatch, name: str, system: System
) -> None:
    asked: list[tuple[Any, Train]] = []
    train = Trainer.train

    def noted(self: Trainer, jobs: Any) -> Any:
        asked.extend(jobs)
        return train(self, jobs)

    monkeypatch.setattr(Trainer, "train", noted)
    far = replace(ALGORITHMS[name], server_lr=6.0)
    (played,) = run([experiment(far, system, Rounds(1))], dtype=torch.float64)
    monkeypatch.undo()
    env = Env(ClientSplits(settings(), torch.float64).get(PROBLEM, 0), system, 0)
    arrived = system.link.arrived(0, 0, C)
    total, weights = 0.0, 0.0
    for _, request in asked:
        alone = Trainer(strategy="reference").train([(env.split, replace(request, weights=None))])[0]
        for row, client in enumerate(request.clients.tolist()):
            start = request.start if request.start.dim() == 1 else request.start[row]
            weight = len(env.split.indices[client]) * bool(arrived[client])  # type: ignore[union-attr]
            total = total + weight * (start + alone.updates[row]).numpy()[STATISTICS] if weight else total
            weights += weight
    assert weights
    np.testing.assert_allclose(played.state["x"].numpy()[STATISTICS], total / weights, atol=1e-10)


def variances(played: Run) -> torch.Tensor:
    found: torch.Tensor = played.state["x"][torch.from_numpy(VARIANCES)]
    return found


def test_variances_stay_positive_where_the_server_goes_far_for_those_that_are_drawn() -> None:
    drawn = [FedNova(0.02, WeightedDraws(2), server_lr=6.0), FedAvg(0.02, DistinctClients(2), server_lr=4.0)]
    for played in run([experiment(a) for a in drawn]):
        assert (variances(played) > 0).all(), played.experiment.algorithm


@pytest.mark.parametrize("server_lr", [0.3, 1.0, 6.0])
def test_events_average_them_too(server_lr: float) -> None:
    pace = Pace(0.01, 0.1, 0.1)
    system = System(work=Steps(3), pace=pace)
    for algorithm, policy in (
        (Asynchronous(0.02, server_lr=server_lr), FedBuffPolicy(2)),
        (Asynchronous(0.02, server_lr=server_lr), FedAvgPolicy(3)),
        (Favano(0.02, server_lr=server_lr, normalisation="stochastic"), FavanoPolicy(2)),
    ):
        (played,) = run([experiment(algorithm, system, Events(policy, aggregations=30, every=30))])
        assert (variances(played) > 0).all(), algorithm


def test_an_aggregation_keeps_the_share_of_the_server_that_no_update_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One client of a share below 1 at a time: x_b <- (1 - a) x_b + a end_b."""
    asked: list[Any] = []
    train = Trainer.train
    monkeypatch.setattr(Trainer, "train", lambda self, jobs: asked.extend(jobs) or train(self, jobs))
    policy, system = FavanoPolicy(2), System(work=Steps(3), pace=Pace(0.01, 0.1, 0.1))
    clock = Events(policy, aggregations=1, every=1)
    (played,) = run([experiment(Favano(0.02), system, clock)], dtype=torch.float64)
    monkeypatch.undo()
    ((task, request),) = asked
    first, end = task.initial(), Trainer(strategy="reference").train([(task, replace(request, weights=None))])[0]
    ends = (request.start + end.updates).numpy()[:, STATISTICS]
    a = len(request.clients) / (len(request.clients) + 1)
    expected = (1 - a) * first.numpy()[STATISTICS] + a * ends.mean(0)
    np.testing.assert_allclose(played.state["x"].numpy()[STATISTICS], expected, atol=1e-10)
