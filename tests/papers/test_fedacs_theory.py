"""The fixed points on quadratics: golden values, the printed formulas, and the identities of the theory."""

import numpy as np
import pytest

from reproduce.declare.experiment import Experiment
from reproduce.engine.rule import Rule
from reproduce.papers.fedacs import runs, theory

STEPS, SUCCESS, E = np.array([[1, 3]]), np.array([[0.8, 0.5]]), np.array([[-1.0], [1.0]])
HALF = np.array([0.5, 0.5])


@pytest.mark.parametrize("mu", [0.0, 1.0])
def test_steps_are_those_of_the_closed_form_of_a_local_run(mu: float) -> None:
    """K_t = (1 - (1 - lr (1 + mu))^t) / (1 + mu), and unlike the printed (I - B)^{-1} c."""
    b, c = theory.expected_step("fedavg", STEPS, SUCCESS, 0.1, E, Rule(mu=mu))
    k = (1 - (1 - 0.1 * (1 + mu)) ** STEPS[0]) / (1 + mu)
    np.testing.assert_allclose(b, [[(HALF * SUCCESS[0] * k).sum()]], atol=1e-14)
    np.testing.assert_allclose(c, HALF * SUCCESS[0] * k @ E, atol=1e-14)
    assert np.linalg.solve(np.eye(1) - b, c) != pytest.approx(theory.fixed_point(b, c), abs=1e-2)


@pytest.mark.parametrize("rule", [Rule(), Rule(mu=1.0), Rule(decay=0.005), Rule(momentum=0.3), Rule(0.4, 0.6, 0.1)])
def test_local_map_is_the_local_loop(rule: Rule) -> None:
    e, x, lr = np.array([0.3, -1.0]), np.array([2.0, 1.0]), 0.07
    maps = theory.local_map(9, lr, rule)
    y, v = x.copy(), np.zeros(2)
    for t in range(9):
        np.testing.assert_allclose(y - x, maps[t] * (e - x), atol=1e-14)
        v = rule.momentum * v + (y - e) + rule.mu * (y - x)
        y = y - lr * (1 - rule.decay) ** t * v


def test_small_rates_lead_to_the_surrogate_optimum() -> None:
    """For every algorithm: sum Omega_m e_m."""
    steps, success, vectors = np.array([2, 5]), np.array([0.9, 0.6]), np.eye(2)
    for algorithm in theory.FACTORS:
        b, c = theory.expected_step(algorithm, steps[None], success[None], 1e-7, vectors)
        omega = theory.surrogate(algorithm, HALF, success, steps.astype(float))
        np.testing.assert_allclose(theory.fixed_point(b, c), omega @ vectors, atol=1e-6)
    assert omega == pytest.approx((0.5, 0.5)), "FedACS, the last: the true one"


PLANE = {
    "fedavg": (1.1721, 1.6056), "ca_fedavg": (1.5414, 1.6603), "fednova": (1.1253, 0.8754), "fedacs": (1.6760, 0.9515),
}  # fmt: skip
PLANE_TO_ZERO = {
    "fedavg": (1.1692, 1.6615), "ca_fedavg": (1.5238, 1.7143), "fednova": (1.1282, 0.9231), "fedacs": (1.6667, 1.0),
}  # fmt: skip


def plane(system: str, algorithm: str) -> Experiment:
    (panel,) = runs.plane("paper", system)
    return next(e for e in panel.experiments if e.labels["algorithm"] == algorithm)


@pytest.mark.parametrize("algorithm", list(PLANE))
def test_golden_points_of_the_plane(algorithm: str) -> None:
    e = plane("toy2d", algorithm)
    assert theory.limit(e) == pytest.approx(PLANE[algorithm], abs=1e-4)
    assert theory.limit_to_zero(e)[1] == pytest.approx(PLANE_TO_ZERO[algorithm], abs=1e-4)


def test_distances_of_the_static_system() -> None:
    """Root-mean-square distances over minimisers ~ N(0, I_10), and chi^2 of FedAvg (20 clients)."""
    w, s, a = np.full(20, 1 / 20), 0.6 + 0.02 * np.arange(20), 1.0 + 2 * np.arange(20)
    for algorithm, distance in (("fedavg", 0.4738), ("os", 0.4738), ("ca_fedavg", 0.4077), ("fednova", 0.1032)):
        omega = theory.surrogate(algorithm, w, s, a)
        assert np.sqrt(10 * ((omega - w) ** 2).sum()) == pytest.approx(distance, abs=1e-4)
    np.testing.assert_allclose(theory.surrogate("fedacs", w, s, a), w, atol=1e-15)
    omega = theory.surrogate("fedavg", w, s, a)
    chi2 = ((w - omega) ** 2 / omega).sum()
    assert chi2 == pytest.approx(2.2241, abs=1e-4)
    assert theory.RATES["fedacs"](w, s, a) == pytest.approx(1 + chi2, abs=1e-12)  # L1 H = 1 + chi^2
    assert theory.RATES["fedacs"](w, s, a) == pytest.approx(3.224066, abs=1e-6)
    assert theory.RATES["ca_fedavg"](w, s, a) == pytest.approx(0.8565, abs=1e-6)


def test_changing_systems_are_averaged_over_rounds() -> None:
    """FedAvg with two alternating systems: B and c are the means of the two; the calibrated rate differs by round."""
    e = np.array([[0.0], [1.0], [5.0]])
    steps, success = np.array([[1, 2, 3], [4, 1, 2]]), np.array([[0.5, 0.9, 0.7], [0.6, 0.8, 0.4]])
    for algorithm in ("fedavg", "fedacs"):
        both = theory.expected_step(algorithm, steps, success, 0.05, e, calibrated=True)
        each = [
            theory.expected_step(algorithm, steps[r : r + 1], success[r : r + 1], 0.05, e, calibrated=True)
            for r in (0, 1)
        ]
        for i in (0, 1):
            np.testing.assert_allclose(both[i], (each[0][i] + each[1][i]) / 2, atol=1e-15)
    plain = theory.expected_step("fedacs", steps, success, 0.05, e)
    assert both[0][0, 0] > 1.05 * plain[0][0, 0]


def test_expected_path_ends_at_the_fixed_point() -> None:
    b, c = theory.expected_step("fedavg", STEPS, SUCCESS, 0.2, E)
    path = theory.expected_path(b, c, np.array([3.0]), 60)
    limit = theory.fixed_point(b, c)
    np.testing.assert_allclose(path[7] - limit, (1 - b[0, 0]) ** 7 * (3.0 - limit), atol=1e-12)
    np.testing.assert_allclose(path[-1], limit, atol=1e-4)


def test_schemes_of_participation_have_the_same_exact_factors() -> None:
    w, s, p = np.array([0.2, 0.5, 0.3]), np.array([0.9, 0.6, 0.3]), np.array([0.5, 0.1, 0.4])
    for scheme in theory.SCHEMES:
        np.testing.assert_allclose(theory.exact_factors(scheme, w, s, p, 2), w * s, atol=1e-14)
    uneven = dict(theory.consistency())
    assert max(uneven.values()) < 1e-12
