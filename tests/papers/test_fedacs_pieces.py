"""The pieces of FedACS's experiments on their own: participation schemes, accumulation norms, probing."""

import numpy as np
import pytest
import torch
from runs import run as play_all

from reproduce.algorithms.base import DistinctClients, FedAvg, Full, RoundContext, WeightedDraws
from reproduce.algorithms.fedacs import FedACS
from reproduce.algorithms.os_sampling import OptimalSampling
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Shuffled
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClientSplits, Env
from reproduce.engine.requests import Gradient
from reproduce.engine.rule import Rule
from reproduce.models.declared import Softmax
from reproduce.partitions.dirichlet import CappedDirichlet
from reproduce.partitions.labels import ClassPerClient
from reproduce.problem import Classification, Quadratic
from reproduce.settings import settings
from reproduce.streams import rng
from reproduce.systems import System, link, work

M, D, K = 6, 3, 4
W = np.full(M, 1 / M)
DRAWS = WeightedDraws(K)


@pytest.mark.parametrize(
    ("rule", "golden"),
    [
        (Rule(), (1, 15, 30)), (Rule(mu=1.0), (1, 14.895, 29.569)), (Rule(decay=0.005), (1, 14.486, 27.923)),
        (Rule(momentum=0.3), (1, 20.816, 42.245)),
    ],
)  # fmt: skip
def test_accumulation_norms(rule: Rule, golden: tuple[float, ...]) -> None:
    """Golden values at rate 0.001, the closed forms of Fig. 4, and the coefficients a_t of the gradients."""
    steps, lr = np.array([1, 15, 30]), 0.001
    norms = rule.norms(steps, lr)
    assert norms == pytest.approx(golden, abs=1e-3)
    mu, rho, delta = rule.mu, rule.momentum, rule.decay
    for t, norm in zip(steps, norms, strict=True):
        if mu:
            assert norm == pytest.approx((1 - (1 - lr * mu) ** t) / (lr * mu))
        elif delta:
            assert norm == pytest.approx((1 - (1 - delta) ** t) / delta)
        else:
            assert norm == pytest.approx((t - rho * (1 - rho**t) / (1 - rho)) / (1 - rho))
        total = 0.0
        for one in range(t):  # the coefficient of gradient number `one`, from a run in which it alone is not zero
            y, v = 0.0, 0.0
            for k in range(t):
                v = rho * v + float(k == one) + mu * y
                y -= lr * (1 - delta) ** k * v
            total += abs(y / lr)
        assert norm == pytest.approx(total)


def test_the_norm_of_a_pull_that_overshoots_is_no_signed_sum() -> None:
    """1 - lr mu = -2: the coefficients are (-2)^t."""
    assert Rule(mu=30.0).norms(np.array([20]), 0.1) == pytest.approx([2**20 - 1])


def env() -> Env:
    return Env(ClientSplits(settings(), torch.float64).get(Quadratic(M, D), 7), System(), 7)


def test_draws_are_among_the_members_by_their_share_of_the_objective() -> None:
    """Clients 1, 3 and 4 of six are there; the others' steps and links, which would end FedACS, do not matter."""
    here, there = env(), np.array([1, 3, 4])
    here.split.weights = np.array([0.1, 0.2, 0.1, 0.3, 0.1, 0.2])
    norm, success = np.array([0.0, 2.0, 0.0, 1.0, 4.0, 0.0]), np.array([1.0, 0.5, 0.0, 1.0, 1.0, 1.0])
    zeros, totals = np.zeros(M, dtype=np.int64), {name: np.zeros(M) for name in ("w", "us", "full", "fedacs", "os")}
    gradients = torch.tensor([[3.0, 4.0, 0.0], [0.0, 1.0, 0.0], [2.0, 0.0, 0.0]], dtype=torch.float64)
    rounds = 4000
    for r in range(rounds):
        now = RoundContext(r, there, zeros, norm, success, np.ones(M, dtype=bool), zeros)
        probing = OptimalSampling(0.1, DRAWS)
        asking = probing.probe(here, {"x": torch.zeros(D)}, now)
        assert next(asking).clients.tolist() == there.tolist()
        with pytest.raises(StopIteration) as told:
            asking.send(gradients)
        for name, cohort in (
            ("w", DRAWS.draw(here, now)),
            ("us", DistinctClients(2).draw(here, now)),
            ("full", Full().draw(here, now)),
            ("fedacs", FedACS(0.1, DRAWS).choose(here, now, None)),
            ("os", probing.choose(here, now, told.value.value)),
        ):
            assert set(cohort.ids) <= set(there)
            totals[name][cohort.ids] += cohort.weight / rounds
    w = np.array([0.2, 0.3, 0.1]) / 0.6
    p = w / (norm * success)[there]
    for name, expected in {"w": w, "us": w, "full": w, "fedacs": p / p.sum(), "os": w}.items():
        np.testing.assert_allclose(totals[name][there], expected, atol=0.02)


def test_probing_uses_the_declared_batch() -> None:
    now = RoundContext(
        3, np.arange(M), np.ones(M, dtype=np.int64), np.ones(M), np.ones(M), np.ones(M, bool), np.zeros(M, int)
    )
    request = next(OptimalSampling(0.1, DRAWS, probe_batch=5).probe(env(), {"x": torch.zeros(D)}, now))
    assert isinstance(request, Gradient)
    assert (request.batch, request.round, len(request.clients)) == (5, 3, M)


def test_accuracy_by_class_and_work_are_recorded() -> None:
    """The class accuracies are those of the final model, and their weighted mean is the accuracy; the work is what the
    sampled clients, arrived or not, went through."""
    problem = Classification("digits", Softmax(64, 10), ClassPerClient(), clients=10, batches=Shuffled(20))
    system = System(work.PerClient(tuple(range(1, 11)), "epochs"), link.Same(0.5))
    clock = Rounds(4, every=2, work=True, by_class=True)
    runs = play_all([Experiment({}, problem, system, FedAvg(0.1, WeightedDraws(4)), clock)], [3])
    run = runs[0]
    task = run.env.split
    x, y = task.device_data.test_x.flatten(1), task.device_data.test_y
    weight, bias = run.state["x"].split([640, 10])
    right = ((x @ weight.view(10, 64).T + bias).argmax(1) == y).numpy()
    rows = {(r, m, k): v for r, _, m, k, v in run.state["history"]}
    for c in range(10):
        assert np.isclose(rows[4, "class_accuracy", str(c)], 100 * right[y.numpy() == c].mean())
    assert np.isclose(rows[4, "accuracy", ""], 100 * right.mean())
    assert (1, "accuracy", "") not in rows
    expected, sizes = 0.0, task.samples
    for r in range(4):
        drawn = set(rng("sampling", 3, r).choice(10, size=4, p=task.weights).tolist())
        expected += sum((m + 1) * sizes[m] for m in drawn)
    assert rows[4, "work", ""] == expected
    assert torch.isfinite(run.state["x"]).all()


WORKS = work.Epochs(0.5), work.Steps(1)
"""The same where a client's samples are two batches at most."""


@pytest.mark.parametrize("split", [False, True])
def test_the_worst_client_and_the_spread_are_those_of_the_final_model(split: bool) -> None:
    """Sample by sample: of a split test set a client has its part; else each of its samples counts as much as the share
    of the test samples of its label that are right. A part of an epoch trains what as many steps do."""
    partition = CappedDirichlet(0.3)
    problem = Classification("digits", Softmax(64, 10), partition, 6, Shuffled(500), test_partition=split)
    clock = Rounds(3, every=3, by_client=True)
    half, one = (Experiment({"a": i}, problem, System(w), FedAvg(0.1), clock) for i, w in enumerate(WORKS))
    run, same = play_all([half, one], [3])
    assert torch.equal(run.state["x"], same.state["x"])
    task, data = run.env.split, run.env.split.device_data
    weight, bias = run.state["x"].split([640, 10])
    right = ((data.test_x.flatten(1) @ weight.view(10, 64).T + bias).argmax(1) == data.test_y).numpy()
    if split:
        each = [100 * right[part].mean() for part in task.test_indices if len(part)]
    else:
        shares = [right[data.test_labels == c].mean() for c in range(10)]
        each = [100 * np.mean([shares[label] for label in data.labels[part]]) for part in task.indices]
    rows = {m: v for r, _, m, _, v in run.state["history"] if r == 3}
    assert rows["worst_client"] == pytest.approx(min(each))
    assert rows["client_spread"] == pytest.approx(np.std(each))
    assert np.std(each) > 1, "the test tests something"
