"""Algorithms that know of no capacities on clients that hold parts: NumPy loops, and what they must be equal to."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from reproduce.algorithms.asynchronous import Asynchronous
from reproduce.algorithms.base import DistinctClients, FedAvg, Full, Now
from reproduce.algorithms.fedlin import FedLin
from reproduce.algorithms.heterofl import HeteroFL
from reproduce.algorithms.scaffold import Scaffold
from reproduce.algorithms.sliced import Sliced, sliced
from reproduce.clocks.rounds import Rounds
from reproduce.declare.experiment import Experiment
from reproduce.engine.requests import Evaluate, Evaluated, Gradient, Train, Trained
from reproduce.engine.rule import Rule
from reproduce.engine.task import Env, Tasks
from reproduce.errors import UserError
from reproduce.models.declared import Softmax
from reproduce.play.benchmarks import find, reason
from reproduce.play.names import NAMES
from reproduce.play.specs import Spec
from reproduce.settings import settings
from reproduce.streams import rng
from reproduce.systems import Epochs, System
from reproduce.systems.capacity import SplitCapacity
from tests.runs import run
from tests.test_fiarse_narrower import (
    CLASSES,
    CLIENTS,
    LR,
    PROBLEM,
    ROUNDS,
    SIZES,
    finished,
    gradient,
    kept,
    named,
)  # fmt: skip

DRAW = DistinctClients(5, average=True)


def places(size: float) -> np.ndarray:
    """Which coordinates of the flat vector a client of a size holds."""
    numbers = named(np.arange(PROBLEM.model.parameters), PROBLEM.model.shapes)
    at = kept(math.sqrt(size), 0)
    return np.concatenate([n[np.ix_(*at[name])].ravel() for name, n in numbers.items()])


# --- whole runs -------------------------------------------------------------------------------------------------------


def test_fedavg_is_heterofl() -> None:
    found, expected = finished(Sliced.of(FedAvg(LR, DRAW))), finished(HeteroFL(LR, DRAW))
    np.testing.assert_allclose(found.state["x"], expected.state["x"], rtol=0, atol=1e-12)
    rows = [[row[:4] for row in r.state["history"]] for r in (found, expected)]
    assert rows[0] == rows[1]
    judged = {key for _, _, metric, key, _ in found.state["history"] if metric == "accuracy"}
    assert judged == {"1", "0.36", "0.16", "0.04"}


def plain_scaffold(of: Any) -> np.ndarray:
    """Who does not hold a coordinate has the holders' mean as its update and as its control variate."""
    task = of.env.task
    x, features = task.initial().numpy().copy(), task.arena.train_x.numpy()
    labels = np.eye(CLASSES)[task.arena.labels]
    variates, c = np.zeros((CLIENTS, len(x))), np.zeros(len(x))
    for t in range(ROUNDS):
        ids = np.sort(rng("sampling", of.seed, t).choice(np.arange(CLIENTS), size=DRAW.k, replace=False))
        updates, means = np.full((2, len(ids), len(x)), np.nan)
        for row, i in enumerate(ids):
            at = places(SIZES[i * len(SIZES) // CLIENTS])
            small = PROBLEM.model.narrowed(math.sqrt(SIZES[i * len(SIZES) // CLIENTS])).shapes
            y, mean = x[at].copy(), np.zeros(len(at))
            mine = task.indices[i]
            batches = [mine[b : b + 4] for b in range(0, len(mine), 4)] * 2
            for batch in batches:
                grads = gradient(named(y, small), features[batch], labels[batch])
                g = np.concatenate([grads[n].ravel() for n in small])
                mean += g / len(batches)
                y = y - LR * (g + c[at] - variates[i, at])
            updates[row, at], means[row, at] = y - x[at], mean
        for told in (updates, means):
            for j in range(len(x)):
                held = ~np.isnan(told[:, j])
                told[~held, j] = told[held, j].mean() if held.any() else 0.0
        x = x + updates.mean(0)
        variates[ids] = means
        c = variates.mean(0)
    return x


def test_scaffold_equals_the_plain_loop() -> None:
    found = finished(Sliced.of(Scaffold(LR, DRAW)))
    expected = plain_scaffold(found)
    np.testing.assert_allclose(found.state["x"].numpy(), expected, rtol=0, atol=1e-11)
    assert np.abs(expected - finished(Sliced.of(FedAvg(LR, DRAW))).state["x"].numpy()).max() > 1e-3


WHOLE = [n for n, named_ in NAMES.items() if not issubclass(named_.cls, Asynchronous) and not named_.cls().trains_parts]


@pytest.mark.parametrize("name", WHOLE)
def test_capacities_of_one_make_the_algorithm_itself(name: str) -> None:
    """To the bit, and at the size 1 also what is evaluated."""
    algorithm = NAMES[name].cls(lr=0.2, participation=Full(), **NAMES[name].options)
    if NAMES[name].cls.draws:
        algorithm = replace(algorithm, participation=find("fedacs-static", "smoke").template.algorithm.participation)
    system = System(Epochs(2))
    pair = [
        Experiment({"algorithm": text}, PROBLEM, system, a, Rounds(3))
        for text, a in (("plain", algorithm), ("sliced", Sliced.of(algorithm)))
    ]
    plain, parts = run(pair, [1])
    assert torch.equal(plain.state["x"], parts.state["x"])
    numbers = [[row[-1] for row in r.state["history"] if row[2] == "accuracy"] for r in (plain, parts)]
    assert numbers[0] == numbers[1]


@pytest.mark.parametrize("name", WHOLE)
def test_every_algorithm_runs_in_parts(name: str) -> None:
    benchmark = find("capacities", "smoke")
    assert not reason(Spec(name), benchmark)
    (played,) = run([benchmark.experiment(Spec(name))])
    assert isinstance(played.experiment.algorithm, Sliced)
    assert played.state["status"] == "ok"
    assert all(math.isfinite(row[-1]) for row in played.state["history"])


# --- one request ------------------------------------------------------------------------------------------------------


def world() -> Env:
    system = System(Epochs(2), capacity=SplitCapacity(SIZES))
    return Env(Tasks(settings(), torch.float64).get(PROBLEM, 1), system, 1)


CLIENTS_ASKED = np.array([0, 2, 3, 5, 6, 7])
STEPS = np.array([2, 0, 3, 1, 2, 4])
ARRIVED = np.arange(CLIENTS) != 5
HEARD = (STEPS > 0) & ARRIVED[CLIENTS_ASKED]


def asked(env: Env, request: Any) -> tuple[Any, list[Any], list[np.ndarray]]:
    """The merged answer to a request whose parts are answered at random; the parts; the reports [C, P] before filling,
    NaN where a client holds nothing."""
    stream, play = np.random.default_rng(0), sliced(env, request, ARRIVED)
    parts = play.send(None)
    clients = CLIENTS_ASKED.tolist()
    reports = [np.full((len(clients), env.parameters), np.nan) for _ in range(2)]
    answers = []
    for part in parts:
        at = places(SIZES[part.clients[0] * len(SIZES) // CLIENTS])
        told = stream.normal(size=(2, len(part.clients), len(at)))
        for row, client in enumerate(part.clients.tolist()):
            if isinstance(request, Train) and not STEPS[clients.index(client)]:
                told[:, row] = 0
            for report, values in zip(reports, told, strict=True):
                report[clients.index(client), at] = values[row]
        u, g = (env.tensor(t) for t in told)
        if isinstance(request, Gradient):
            answers.append(u)
        else:
            summed = part.weights is not None
            answers.append(Trained(part.weights @ u if summed else u, g, summed=summed))
    with pytest.raises(StopIteration) as end:
        play.send(answers)
    return end.value.value, parts, reports


def filled(report: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Coordinate by coordinate, client by client."""
    out = report.copy()
    for j in range(report.shape[1]):
        held = ~np.isnan(report[:, j]) & (weight > 0)
        mean = (report[held, j] * weight[held]).sum() / weight[held].sum() if held.any() else 0.0
        for c in range(len(report)):
            if np.isnan(report[c, j]):
                out[c, j] = mean if weight[c] > 0 else 0.0
    return out


def train(env: Env, **more: Any) -> Train:
    rule = Rule(mean_gradient=True)
    return Train(CLIENTS_ASKED, STEPS, env.initial(), 0.1, 0, rule, offset=np.zeros(6, dtype=np.int64), **more)


def test_reports_are_filled_up_with_the_mean_of_those_that_trained_and_were_heard_and_hold() -> None:
    env = world()
    answer, parts, (updates, gradients) = asked(env, train(env))
    np.testing.assert_allclose(answer.rows, filled(updates, HEARD.astype(float)), atol=1e-14)
    np.testing.assert_allclose(answer.mean_gradient, filled(gradients, HEARD.astype(float)), atol=1e-14)
    assert np.abs(filled(updates, (STEPS > 0).astype(float)) - answer.rows.numpy()).max() > 0.1
    assert answer.first_gradient is None
    assert sorted(c for p in parts for c in p.clients) == CLIENTS_ASKED.tolist()


def test_sums_are_those_of_the_filled_reports_with_their_weights() -> None:
    """Unequal weights, and one update that is lost."""
    env = world()
    weights = np.array([[0.3, 0.1, 0.2, 0.0, 0.25, 0.15], [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]])
    answer, _, (updates, _) = asked(env, train(env, weights=env.tensor(weights)))
    for m, weight in enumerate(weights * (STEPS > 0)):
        expected = (weight[:, None] * filled(updates, weight)).sum(0)
        np.testing.assert_allclose(answer.rows[m], expected, atol=1e-14)


def test_probed_gradients_are_filled_up() -> None:
    env = world()
    answer, parts, (gradients, _) = asked(env, Gradient(CLIENTS_ASKED, env.initial(), 0))
    np.testing.assert_allclose(answer, filled(gradients, np.ones(6)), atol=1e-14)
    assert [p.model is None for p in parts] == [True, False, False, False]


def test_what_is_sent_is_cut_to_the_client_s_submodel() -> None:
    env = world()
    stream = np.random.default_rng(1)
    one, each = (env.tensor(stream.normal(size=s)) for s in (env.parameters, (6, env.parameters)))
    request = train(env, correction=each, anchor=one, teacher=one, previous=each)
    rates = np.arange(1.0, 7.0)
    for part in asked(env, replace(request, lr=rates))[1]:
        at = places(SIZES[part.clients[0] * len(SIZES) // CLIENTS])
        rows = np.flatnonzero(np.isin(CLIENTS_ASKED, part.clients))
        for name, whole in (("start", env.initial()), ("anchor", one), ("teacher", one)):
            np.testing.assert_array_equal(getattr(part, name), whole[at])
        for name in ("correction", "previous"):
            np.testing.assert_array_equal(getattr(part, name), each[rows][:, at])
        assert part.lr.tolist() == rates[rows].tolist()
        assert part.steps.tolist() == STEPS[rows].tolist()


def test_probed_gradients_of_parts_are_those_of_their_networks() -> None:
    env = world()
    small = PROBLEM.model.narrowed(0.6)
    at = torch.from_numpy(places(0.36))
    x = env.initial()[at]
    (found,) = env.task.gradients(Gradient(np.array([3]), x, 0, model=small))
    mine = env.task.indices[3]
    features = env.task.arena.train_x.numpy()[mine]
    labels = np.eye(CLASSES)[env.task.arena.labels[mine]]
    by_hand = gradient(named(x.numpy(), small.shapes), features, labels)
    np.testing.assert_allclose(found, np.concatenate([by_hand[n].ravel() for n in small.shapes]), atol=1e-13)


def test_other_requests_and_lists_pass() -> None:
    env, seen = world(), []

    class Asks(FedAvg):
        def round(self, env: Env, state: dict[str, Any], now: Now) -> Any:
            seen.append((yield Evaluate(state["x"][None])))
            seen.append((yield [Gradient(np.array([0, 7]), state["x"], 0), Evaluate(state["x"][None])]))

    now = SimpleNamespace(arrived=ARRIVED)
    play = Sliced.of(Asks()).round(env, {"x": env.initial()}, now)  # type: ignore[arg-type]
    assert isinstance(play.send(None), Evaluate)
    parts = play.send(Evaluated())
    assert [type(p) for p in parts] == [Gradient, Gradient]
    assert isinstance(play.send([p.x[None] for p in parts]), Evaluate)
    with pytest.raises(StopIteration):
        play.send(Evaluated())
    assert seen[1][0].shape == (2, env.parameters)


# --- what cannot be ---------------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="HeteroFL is not for Sliced"):
        Sliced.of(HeteroFL())
    with pytest.raises(ValueError, match="rates of its algorithm"):
        Sliced(0.1, algorithm=FedAvg(0.2))
    env = world()
    for own in ({"model": PROBLEM.model.narrowed(0.6)}, {"thresholds": env.zeros(6, 6)}):
        with pytest.raises(ValueError, match="submodels or masks of its own"):
            next(sliced(env, train(env, **own), ARRIVED))
    system = System(Epochs(1), capacity=SplitCapacity((1.0, 0.25)))
    linear = replace(PROBLEM, model=Softmax(5, CLASSES))
    with pytest.raises(UserError, match="cannot be run"):
        Experiment({}, linear, system, Sliced.of(FedLin()), Rounds(1))
