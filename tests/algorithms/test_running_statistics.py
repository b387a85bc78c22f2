"""Running statistics of a network: averaged in every algorithm, on every clock, whatever the server's step is; and what
momenta, mixtures, fingerprints and models that stand still do with them."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from runs import run

from reproduce.algorithms.asynchronous import Asynchronous, Favano
from reproduce.algorithms.base import FedAvg, observe
from reproduce.algorithms.fedacg import FedACG
from reproduce.algorithms.moon import Moon
from reproduce.algorithms.scaffold import ScaffoldAsReleased
from reproduce.algorithms.session_starts import Proposed, RandomPilot
from reproduce.clocks.events import Events
from reproduce.clocks.rounds import Rounds
from reproduce.clocks.sessions import Sessions
from reproduce.data.batches import Cyclic, Fixed, Shuffled
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClassificationSplit, ClientSplits, Env
from reproduce.engine.requests import Train
from reproduce.engine.rule import Rule
from reproduce.engine.scheduler import Run
from reproduce.engine.trainer import Trainer
from reproduce.errors import UserError
from reproduce.models.declared import NormConvNet
from reproduce.partitions.dirichlet import DirichletClass
from reproduce.partitions.labels import IID
from reproduce.play.specs import NAMES
from reproduce.problem import Classification
from reproduce.settings import settings
from reproduce.systems import Steps, System
from reproduce.systems.clients import Alternating
from reproduce.systems.link import PerClient as PerClientLink
from reproduce.systems.policies import FavanoPolicy, FedAvgPolicy, FedBuffPolicy
from reproduce.systems.schedule import Pace
from reproduce.systems.work import PerClient

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


CLIENTS = 4


def net(normalisation: Literal["static", "running"] = "running") -> NormConvNet:
    return NormConvNet(1, 8, ((3, 2), (4,)), hidden=5, dropout=0.3, normalisation=normalisation)


def problem(model: NormConvNet) -> Classification:
    return Classification(
        "digits", model, IID(), clients=CLIENTS, batches=Cyclic(10), train_samples=183, test_samples=60
    )


def world(model: NormConvNet) -> tuple[Env, torch.Tensor]:
    """An environment, and where in the flat vector the running statistics are."""
    task = ClientSplits(settings(), torch.float64).get(problem(model), 3)
    assert isinstance(task, ClassificationSplit)
    layout = task.device_data.layout
    where = [n.endswith((".running_mean", ".running_var")) for n in layout.names]
    return Env(task, System(work=Steps(3)), 3), torch.tensor(np.repeat(where, layout.sizes))


@pytest.mark.parametrize("normalisation", ["static", "running"])
@pytest.mark.parametrize("strategy", ["stacked", "sequential"])
@pytest.mark.parametrize("kind", ["contrast", "distill"])
def test_models_that_stand_still_are_evaluated_batch_by_batch(kind: str, strategy: str, normalisation: Any) -> None:
    """In stacks, too, which here are of clients with equal batches: a model sees one client's batch at a time."""
    env, _ = world(net(normalisation))
    task = env.split
    far = torch.stack([task.initial("far", m) for m in range(CLIENTS)])
    rule, more = {
        "contrast": (Rule(momentum=0.5, contrast=2.0, temperature=0.4), {"previous": far}),
        "distill": (Rule(momentum=0.5, distill=0.7), {"teacher": far[0]}),
    }[kind]
    request = Train(np.arange(CLIENTS), np.full(CLIENTS, 3), task.initial(), 0.1, 1, rule, **more)
    answer = Trainer(strategy=strategy).train([(task, request)])[0]  # type: ignore[list-item]
    alone = Trainer(strategy="reference").train([(task, request)])[0]  # type: ignore[list-item]
    torch.testing.assert_close(answer.rows, alone.rows, rtol=0, atol=1e-10)
    plain = Trainer(strategy="reference").train([(task, replace(request, rule=Rule(momentum=0.5)))])[0]  # type: ignore[list-item]
    assert (plain.rows - alone.rows).abs().max() > 1e-3


class Plain(torch.nn.Module):
    """The network of `net` with PyTorch's modules."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1_1, self.conv1_2, self.conv2_1 = (
            torch.nn.Conv2d(*io, 3, padding=1) for io in ((1, 3), (3, 2), (2, 4))
        )
        self.bn1_1, self.bn1_2, self.bn2_1 = (torch.nn.BatchNorm2d(width) for width in (3, 2, 4))
        self.fc1, self.fc2 = torch.nn.Linear(16, 5), torch.nn.Linear(5, 10)

    def features(self, x: torch.Tensor) -> torch.Tensor:
        x = self.bn1_2(self.conv1_2(self.bn1_1(self.conv1_1(x)).relu())).relu()
        x = self.bn2_1(self.conv2_1(F.max_pool2d(x, 2))).relu()
        return self.fc1(F.max_pool2d(x, 2).flatten(1)).relu()


def as_released(
    task: Any, start: torch.Tensor, past: torch.Tensor, client: int, steps: int, passes: int
) -> torch.Tensor:
    """A local run of MOON as the code of dynamic_init has it: the update, running statistics included."""
    models = []
    for row in (start, start, past):
        model = Plain().double()
        found = model.load_state_dict(task.device_data.layout.named(row.clone()), strict=False)
        assert not found.unexpected_keys
        assert all(key.endswith("num_batches_tracked") for key in found.missing_keys)
        models.append(model)
    model, *poles = models[0], *(pole.eval() for pole in models[1:])
    sgd = torch.optim.SGD(model.parameters(), 0.1, momentum=0.5)
    mine = task.indices[client]
    for k in range(steps):
        x, y = (t[mine[10 * k : 10 * k + 10]] for t in (task.device_data.train_x, task.device_data.train_y))
        z = model.features(x)
        loss = F.cross_entropy(model.fc2(z), y)
        z = model.features(x) if passes == 2 else z
        cosines = [F.cosine_similarity(z, pole.features(x).detach()) / 0.4 for pole in poles]
        loss = loss + 2 * F.cross_entropy(torch.stack(cosines, 1), torch.zeros(len(x), dtype=torch.long))
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    end = model.state_dict()
    return torch.cat([end[name].flatten() for name in task.device_data.layout.names]) - start


@pytest.mark.parametrize("strategy", ["stacked", "sequential", "reference"])
@pytest.mark.parametrize("passes", [1, 2])
def test_a_second_pass_moves_running_statistics_twice(passes: int, strategy: str) -> None:
    """Five steps, the last of them on a short batch, against PyTorch's modules and optimiser."""
    still = replace(net(), dropout=0.0)
    task: Any = ClientSplits(settings(), torch.float64).get(replace(problem(still), batches=Fixed(10)), 3)
    far = torch.stack([task.initial("far", m) for m in range(CLIENTS)])
    rule = Moon(0.1, momentum=0.5, mu=2.0, temperature=0.4, second_pass=passes == 2).rule()
    request = Train(np.arange(CLIENTS), np.full(CLIENTS, 5), task.initial(), 0.1, 1, rule, previous=far)
    update = Trainer(strategy=strategy).train([(task, request)])[0].rows
    for m in range(CLIENTS):
        torch.testing.assert_close(
            update[m], as_released(task, task.initial(), far[m], m, 5, passes), rtol=0, atol=1e-10
        )


@pytest.mark.parametrize("with_statistics", [True, False])
def test_the_momentum_of_fedacg_covers_statistics_or_leaves_them_alone(with_statistics: bool) -> None:
    env, statistics = world(net())
    algorithm = FedACG(0.1, momentum=0.9, lam=0.8, with_statistics=with_statistics)
    assert algorithm.averages_statistics is not with_statistics
    state: dict[str, Any] = {"x": env.initial(), "work": 0.0}
    algorithm.setup(env, state)
    m = torch.zeros_like(state["x"])
    for g in range(3):
        now = observe(env, algorithm, g, np.zeros(CLIENTS, dtype=np.int64))
        x, play = state["x"], algorithm.round(env, state, now)
        request = next(play)
        look = torch.from_numpy(np.where(statistics, 0.8 * with_statistics, 0.8))
        torch.testing.assert_close(request.start, x + look * m, rtol=0, atol=1e-12)
        trained = Trainer().train([(env.split, request)])[0]  # type: ignore[list-item]
        m = look * m + trained.sums[0]
        with pytest.raises(StopIteration):
            play.send(trained)
        torch.testing.assert_close(state["x"], x + m, rtol=0, atol=1e-12)
    assert m[statistics].abs().max() > 1e-3


def test_the_released_scaffold_moves_statistics_by_its_step_too() -> None:
    env, statistics = world(net())
    algorithm = ScaffoldAsReleased(0.1)
    state: dict[str, Any] = {"x": env.initial(), "work": 0.0}
    play = algorithm.round(env, state, observe(env, algorithm, 0, np.zeros(CLIENTS, dtype=np.int64)))
    trained = Trainer().train([(env.split, next(play))])[0]  # type: ignore[list-item]
    with pytest.raises(StopIteration):
        play.send(trained)
    moved = (state["x"] - env.initial())[statistics]
    torch.testing.assert_close(moved, 0.1 * trained.sums[0][statistics], rtol=0, atol=1e-12)
    assert moved.abs().max() > 1e-3


@pytest.mark.parametrize("distance", ["per_tensor_unit", "global_l2"])
def test_fingerprints_are_of_parameters_and_mixtures_of_everything(distance: str) -> None:
    start = Proposed(R=1.0, distance=distance)
    clock = Sessions(4, 2, Alternating(2, CLIENTS // 2), start=start)
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
    random = ClassificationSplit.initial
    monkeypatch.setattr(ClassificationSplit, "initial", lambda task, *key: random(task, *key) + 1)
    for model, offset in (("factory", 1), ("fully_random", 0)):
        clock = Sessions(3, 2, Alternating(2, CLIENTS // 2), start=RandomPilot(model=model))
        experiment = Experiment({"a": 0}, problem(net()), System(work=Steps(3)), FedAvg(0.1), clock)
        (played,) = run([experiment], [3], torch.float64)
        pilot = played.env.split.device_data.layout.initial(3, "pilot").double() + offset  # type: ignore[union-attr]
        assert fingerprint(played, pilot).equal(played.state["fingerprints"][0])


def fingerprint(played: Any, pilot: torch.Tensor) -> torch.Tensor:
    """The displacement that a round of the first session's clients causes at `pilot`, parameters only."""
    env, clock = played.env, played.experiment.clock
    algorithm, state = played.experiment.algorithm, {"x": pilot, "work": 0.0}
    now = observe(env, algorithm, clock.sessions * clock.rounds + 1, np.zeros(CLIENTS, dtype=np.int64))
    play = algorithm.round(env, state, replace(now, members=clock.membership.members(1), lr=algorithm.lr / 2))
    with pytest.raises(StopIteration):
        play.send(Trainer().train([(env.split, next(play))])[0])
    return env.only_trained(state["x"] - pilot)
