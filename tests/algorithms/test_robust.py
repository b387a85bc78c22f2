"""Robust rules against NumPy, SciPy and a plain loop, of the updates that arrive; against vectors of any content."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import trim_mean

from reproduce.algorithms.base import FedAvg
from reproduce.algorithms.robust import Krum, TrimmedMean
from reproduce.play.specs import NAMES, parse

Rows = np.ndarray
ENV: Any = SimpleNamespace(statistics=torch.tensor([3]))  # the last coordinate is a running statistic


def krum(rows: Rows, share: float, multi: bool = False) -> Rows:
    """Section 4 of Blanchard et al., vector by vector."""
    n, f = len(rows), int(share * len(rows))
    scores = []
    for i in range(n):
        others = sorted(sum((rows[i][k] - rows[j][k]) ** 2 for k in range(3)) for j in range(n) if j != i)
        scores.append(sum(others[: max(1, n - f - 2)]))
    best = sorted(range(n), key=scores.__getitem__)
    return np.mean([rows[i] for i in best[: n - f if multi else 1]], axis=0)


RULES: dict[str, tuple[FedAvg, Callable[[Rows], Rows]]] = {
    "median": (TrimmedMean(trim=0.5), lambda rows: np.median(rows, axis=0)),
    "trimmed_mean": (TrimmedMean(), lambda rows: trim_mean(rows, 0.2, axis=0)),
    "krum": (Krum(share=0.3), lambda rows: krum(rows, 0.3)),
    "multi_krum": (Krum(share=0.3, multi=True), lambda rows: krum(rows, 0.3, multi=True)),
}


def stepped(rule: FedAvg, updates: Rows, arrived: Rows, steps: Rows) -> Rows:
    """The server's model after a round, of N + 2 clients of which all but the first two are in it; it was at 1."""
    now: Any = SimpleNamespace(arrived=np.append([True, True], arrived), steps=np.append([1, 1], steps))
    cohort: Any = SimpleNamespace(ids=np.arange(2, 2 + len(updates)), weight=np.linspace(0, 5, len(updates)))
    state, trained = {"x": torch.ones(4, dtype=torch.float64)}, SimpleNamespace(updates=torch.tensor(updates))
    assert rule.reduction(ENV, now, cohort) is None
    rule.aggregate(ENV, state, now, cohort, trained)  # type: ignore[arg-type]
    return state["x"].numpy()


@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_its_definition_over_what_was_sent(name: str) -> None:
    rule, oracle = RULES[name]
    for clients in range(1, 14):
        rng = np.random.default_rng(clients)
        updates = rng.standard_normal((clients, 4))
        arrived, steps = rng.random(clients) < 0.8, (rng.random(clients) < 0.8).astype(int)
        sent = updates[arrived & (steps > 0)]
        wanted = 1 + oracle(sent) if len(sent) else np.ones(4)
        np.testing.assert_allclose(stepped(rule, updates, arrived, steps), wanted, rtol=1e-12)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("sent", [np.nan, np.inf, -1e200])
def test_no_vector_of_a_few_clients_moves_it_far(name: str, sent: float) -> None:
    rng, every = np.random.default_rng(0), np.full(11, 1)
    updates = rng.standard_normal((11, 4))
    updates[[0, 7]] = sent
    moved = stepped(RULES[name][0], updates, every > 0, every) - 1
    honest = updates[np.isfinite(updates).all(1) & (np.abs(updates).max(1) < 1e9)]
    assert (honest.min(0) <= moved).all()
    assert (moved <= honest.max(0)).all()


def test_play_knows_them() -> None:
    assert {name: NAMES[name].cls for name in RULES} == {name: type(rule) for name, (rule, _) in RULES.items()}
    assert parse("krum(share=0.1)").options == (("share", 0.1),)
