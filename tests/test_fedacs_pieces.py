"""The pieces of FedACS's experiments on their own: participation schemes, accumulation norms, probing."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reproduce.algorithms.base import DistinctClients, Full, RoundContext, WeightedDraws
from reproduce.algorithms.fedacs import FedACS
from reproduce.algorithms.os_sampling import OptimalSampling
from reproduce.engine.client_split import ClientSplits, Env
from reproduce.engine.requests import Gradient
from reproduce.engine.rule import Rule
from reproduce.problem import Quadratic
from reproduce.settings import settings
from reproduce.systems import System

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
