"""What momenta, mixtures, fingerprints and models that stand still do with running statistics of batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
import torch
from runs import run

from reproduce.algorithms.base import FedAvg, observe
from reproduce.algorithms.fedacg import FedACG
from reproduce.algorithms.scaffold import ScaffoldAsReleased
from reproduce.algorithms.session_starts import Proposed, RandomPilot
from reproduce.clocks.sessions import Sessions
from reproduce.engine.requests import Train
from reproduce.engine.rule import Rule
from reproduce.engine.task import ClassificationTask, Env, Tasks
from reproduce.engine.trainer import Trainer
from reproduce.experiment import Experiment
from reproduce.problems import Classification
from reproduce.problems.batches import Cyclic
from reproduce.problems.normalised import NormConvNet
from reproduce.problems.partitions import IID
from reproduce.settings import settings
from reproduce.systems import Steps, System
from reproduce.systems.membership import Alternating

C = 4


def net(normalisation: Literal["static", "running"] = "running") -> NormConvNet:
    return NormConvNet(1, 8, ((3, 2), (4,)), hidden=5, dropout=0.3, normalisation=normalisation)


def problem(model: NormConvNet) -> Classification:
    return Classification("digits", model, IID(), clients=C, batches=Cyclic(10), train_samples=183, test_samples=60)


def world(model: NormConvNet) -> tuple[Env, torch.Tensor]:
    """An environment, and where in the flat vector the running statistics are."""
    task = Tasks(settings(), torch.float64).get(problem(model), 3)
    assert isinstance(task, ClassificationTask)
    layout = task.arena.layout
    where = [n.endswith((".running_mean", ".running_var")) for n in layout.names]
    return Env(task, System(work=Steps(3)), 3), torch.tensor(np.repeat(where, layout.sizes))


@pytest.mark.parametrize("normalisation", ["static", "running"])
@pytest.mark.parametrize("strategy", ["stacked", "sequential"])
@pytest.mark.parametrize("kind", ["contrast", "distill"])
def test_models_that_stand_still_are_evaluated_batch_by_batch(kind: str, strategy: str, normalisation: Any) -> None:
    """In stacks, too, which here are of clients with equal batches: a model sees one client's batch at a time."""
    env, _ = world(net(normalisation))
    task = env.task
    far = torch.stack([task.initial("far", m) for m in range(C)])
    rule, more = {
        "contrast": (Rule(momentum=0.5, contrast=2.0, temperature=0.4), {"previous": far}),
        "distill": (Rule(momentum=0.5, distill=0.7), {"teacher": far[0]}),
    }[kind]
    request = Train(np.arange(C), np.full(C, 3), task.initial(), 0.1, 1, rule, **more)
    answer = Trainer(strategy=strategy).train([(task, request)])[0]  # type: ignore[list-item]
    alone = Trainer(strategy="reference").train([(task, request)])[0]  # type: ignore[list-item]
    torch.testing.assert_close(answer.rows, alone.rows, rtol=0, atol=1e-10)
    plain = Trainer(strategy="reference").train([(task, replace(request, rule=Rule(momentum=0.5)))])[0]  # type: ignore[list-item]
    assert (plain.rows - alone.rows).abs().max() > 1e-3


@pytest.mark.parametrize("with_statistics", [True, False])
def test_the_momentum_of_fedacg_covers_statistics_or_leaves_them_alone(with_statistics: bool) -> None:
    env, statistics = world(net())
    algorithm = FedACG(0.1, momentum=0.9, lam=0.8, with_statistics=with_statistics)
    state: dict[str, Any] = {"x": env.initial(), "work": 0.0}
    algorithm.setup(env, state)
    m = torch.zeros_like(state["x"])
    for g in range(3):
        now = observe(env, algorithm, g, np.zeros(C, dtype=np.int64))
        x, play = state["x"], algorithm.round(env, state, now)
        request = next(play)
        look = torch.from_numpy(np.where(statistics, 0.8 * with_statistics, 0.8))
        torch.testing.assert_close(request.start, x + look * m, rtol=0, atol=1e-12)
        trained = Trainer().train([(env.task, request)])[0]  # type: ignore[list-item]
        m = look * m + trained.sums[0]
        with pytest.raises(StopIteration):
            play.send(trained)
        torch.testing.assert_close(state["x"], x + m, rtol=0, atol=1e-12)
    assert m[statistics].abs().max() > 1e-3


def test_the_released_scaffold_moves_statistics_by_its_step_too() -> None:
    env, statistics = world(net())
    algorithm = ScaffoldAsReleased(0.1)
    state: dict[str, Any] = {"x": env.initial(), "work": 0.0}
    play = algorithm.round(env, state, observe(env, algorithm, 0, np.zeros(C, dtype=np.int64)))
    trained = Trainer().train([(env.task, next(play))])[0]  # type: ignore[list-item]
    with pytest.raises(StopIteration):
        play.send(trained)
    moved = (state["x"] - env.initial())[statistics]
    torch.testing.assert_close(moved, 0.1 * trained.sums[0][statistics], rtol=0, atol=1e-12)
    assert moved.abs().max() > 1e-3


@pytest.mark.parametrize("distance", ["per_tensor_unit", "global_l2"])
def test_fingerprints_are_of_parameters_and_mixtures_of_everything(distance: str) -> None:
    start = Proposed(R=1.0, distance=distance)
    clock = Sessions(4, 2, Alternating(2, C // 2), start=start)
    experiment = Experiment({"a": 0}, problem(net()), System(work=Steps(3)), FedAvg(0.1), clock)
    (played,) = run([experiment], [3], torch.float64)
    env, statistics = world(net())
    first, _, last = played.state["fingerprints"]
    assert not first[statistics].any()
    assert first[~statistics].abs().max() > 1e-4
    tensors = [w for n, w in env.trained.items() if "bias" not in n]
    assert len(tensors) == 3 + 3 + 2  # convolutions, scales, linear layers
    units = [float((last[w] / last[w].norm() - first[w] / first[w].norm()).norm()) for w in tensors]
    plain = float((last - first)[~statistics].norm())
    recorded = {row[3]: row[4] for row in played.state["history"] if row[2] == "distance"}
    assert recorded["3:1"] == pytest.approx(np.mean(units) if distance == "per_tensor_unit" else plain)
    assert played.state["x"][statistics].abs().max() > 0.1


def test_a_random_pilot_is_of_the_factory_or_random_all_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a model starts from stored weights the two differ; the pilot sessions are skipped either way."""
    random = ClassificationTask.initial
    monkeypatch.setattr(ClassificationTask, "initial", lambda task, *key: random(task, *key) + 1)
    for model, offset in (("factory", 1), ("fully_random", 0)):
        clock = Sessions(3, 2, Alternating(2, C // 2), start=RandomPilot(model=model))
        experiment = Experiment({"a": 0}, problem(net()), System(work=Steps(3)), FedAvg(0.1), clock)
        (played,) = run([experiment], [3], torch.float64)
        pilot = played.env.task.arena.layout.initial(3, "pilot").double() + offset  # type: ignore[union-attr]
        assert fingerprint(played, pilot).equal(played.state["fingerprints"][0])


def fingerprint(played: Any, pilot: torch.Tensor) -> torch.Tensor:
    """The displacement that a round of the first session's clients causes at `pilot`, parameters only."""
    env, clock = played.env, played.experiment.clock
    algorithm, state = played.experiment.algorithm, {"x": pilot, "work": 0.0}
    now = observe(env, algorithm, clock.sessions * clock.rounds + 1, np.zeros(C, dtype=np.int64))
    play = algorithm.round(env, state, replace(now, members=clock.membership.members(1), lr=algorithm.lr / 2))
    with pytest.raises(StopIteration):
        play.send(Trainer().train([(env.task, next(play))])[0])
    return env.only_trained(state["x"] - pilot)
