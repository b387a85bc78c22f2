"""Asynchronous training against a loop in NumPy written from the paper: six policies, their options, identities."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from softmax import Floats, gradient

from reproduce.algorithms.asynchronous import Asynchronous, Favano
from reproduce.clocks.events import Events
from reproduce.data.batches import WithReplacement
from reproduce.data.embedded import GaussianClasses
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClassificationSplit, ClientSplits
from reproduce.engine.scheduler import Scheduler, prepare
from reproduce.engine.trainer import Trainer
from reproduce.models.declared import Softmax
from reproduce.partitions.labels import IID, TwoClasses
from reproduce.problem import Classification
from reproduce.settings import settings
from reproduce.systems import Steps, System, policies
from reproduce.systems.schedule import Aggregation, Pace, Policy

CLIENTS, K, CLASSES, DIM = 10, 5, 10, 6
PACE = Pace(step=0.017, upload=0.044, download=0.044)
DATA = GaussianClasses(CLASSES, DIM, 40, 10, 1.0, 3, mean_scale=2.0)


def problem(iid: bool = True) -> Classification:
    return Classification(DATA, Softmax(DIM, CLASSES), IID() if iid else TwoClasses(), CLIENTS, WithReplacement(4))


def clock(policy: Policy, aggregations: int = 25) -> Events:
    return Events(policy, aggregations=aggregations, every=1)


def clients(policy: Policy, pace: Pace = PACE, steps: int = K) -> System:
    return System(work=Steps(1 if isinstance(policy, policies.AsySGPolicy) else steps), pace=pace)


def simulate(events: Events, seed: int = 4) -> list[Aggregation]:
    return events.schedule(clients(events.policy), CLIENTS).simulate(seed, events.aggregations)


def train(
    events: Events, algorithm: Asynchronous, iid: bool = True, seed: int = 4, system: System | None = None
) -> list[Floats]:
    """The models before and after every aggregation."""
    experiment = Experiment({}, problem(iid), system or clients(events.policy), algorithm, events)
    run = prepare([experiment], [seed], ClientSplits(settings(), torch.float64))[0]
    seen: dict[int, Floats] = {}

    def tick() -> None:
        seen[run.state["round"]] = run.state["x"].numpy().copy()

    Scheduler([run], Trainer(), tick).run()
    assert run.state["status"] == "ok"
    return [seen[t] for t in sorted(seen)]


class Naive:
    """Clients of a softmax problem: plain SGD on the mean cross-entropy of mini-batches."""

    def __init__(self, iid: bool, seed: int = 4) -> None:
        task = ClientSplits(settings(), torch.float64).get(problem(iid), seed)
        assert isinstance(task, ClassificationSplit)
        self.split, self.x, self.y = task, task.device_data.train_x.numpy(), task.device_data.labels

    def job(self, start: Floats, client: int, job: int, steps: int, lr: float) -> Floats:
        """The model at the end of a job."""
        y = start.copy()
        if steps:
            for batch in self.split.plan(client, steps, job, 0):
                y -= lr * gradient(y, self.x[batch], self.y[batch])
        return y

    def replay(self, events: Events, algorithm: Asynchronous, seed: int = 4) -> list[Floats]:
        """All versions of the server model."""
        w = [self.split.initial().numpy().astype(float)]
        contacts: dict[int, list[int]] = {i: [K] for i in range(CLIENTS)}
        for a in simulate(events, seed):
            new, n = w[-1].copy(), len(a.updates)
            if isinstance(algorithm, Favano):
                new /= n + 1
            for u in a.updates:
                start = w[u.start_version]
                end = self.job(start, u.client, u.job, u.steps, algorithm.lr)
                if isinstance(algorithm, Favano):
                    history = contacts[u.client]
                    alpha = {
                        "none": 1.0,
                        "deterministic": float(np.mean(history)),
                        "stochastic": float(np.mean([q > 0 for q in history])) * u.steps,
                    }[algorithm.normalisation]
                    new += (start if u.steps == 0 else start + (end - start) / alpha) / (n + 1)
                    contacts[u.client] = [*history, u.steps]
                else:
                    scale = 1 / np.sqrt(1 + a.index - u.start_version) if algorithm.staleness_power else 1.0
                    new -= algorithm.server_lr * u.weight * scale * (start - end)
            w.append(new)
        return w


CASES = [
    (policies.FedAvgPolicy(4), Asynchronous(0.1, server_lr=0.5)),
    (policies.DeFedAvgNIIDPolicy(4), Asynchronous(0.1, server_lr=0.5)),
    (policies.DeFedAvgNIIDPolicy(4, variant="hold"), Asynchronous(0.1, server_lr=0.5)),
    (policies.DeFedAvgNIIDPolicy(4, empty="skip"), Asynchronous(0.1, server_lr=0.5)),
    (policies.DeFedAvgNIIDPolicy(1, empty="skip"), Asynchronous(0.1, server_lr=0.5)),
    (policies.DeFedAvgIIDPolicy(4), Asynchronous(0.1, server_lr=0.5)),
    (policies.FedBuffPolicy(4), Asynchronous(0.1, server_lr=0.5)),
    (policies.FedBuffPolicy(4), Asynchronous(0.1, server_lr=0.5, staleness_power=0.5)),
    (policies.AsySGPolicy(4), Asynchronous(1.0, server_lr=0.1)),
    (policies.FavanoPolicy(4), Favano(0.1)),
    (policies.FavanoPolicy(4, contact="parallel", wait=4 / 3), Favano(0.1, normalisation="deterministic")),
    (policies.FavanoPolicy(4, contact="parallel"), Favano(0.1, normalisation="stochastic")),
]


@pytest.mark.parametrize(("policy", "algorithm"), CASES)
@pytest.mark.parametrize("iid", [True, False])
def test_training_is_the_naive_replay(policy: Policy, algorithm: Asynchronous, iid: bool) -> None:
    events = clock(policy)
    ours, theirs = train(events, algorithm, iid), Naive(iid).replay(events, algorithm)
    assert len(ours) == len(theirs) == 26
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-11)
    assert np.abs(ours[-1] - ours[0]).max() > 0.02


def test_favano_keeps_a_model_that_nobody_changes() -> None:
    """The weights of the server's own and of the clients' models sum to one."""
    w = train(clock(policies.FavanoPolicy(4)), Favano(1e-300))
    np.testing.assert_allclose(w, np.broadcast_to(w[0], np.shape(w)), rtol=0, atol=1e-12)
    rate = train(clock(policies.FavanoPolicy(4)), replace(Favano(0.1), server_lr=5.0))
    np.testing.assert_array_equal(rate, train(clock(policies.FavanoPolicy(4)), Favano(0.1)), "it has no global rate")
