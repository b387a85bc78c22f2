"""FedaGrac: who is fast, clients that are drawn twice, and the numbers of Fig. 1."""

from typing import Any

import numpy as np
import pytest
import torch
from runs import run

from reproduce.algorithms.base import FedAvg, WeightedDraws
from reproduce.algorithms.fedagrac import Constant, FedaGrac, Increase, ahead
from reproduce.clocks.rounds import Rounds
from reproduce.declare.experiment import Experiment
from reproduce.papers.fedagrac import runs, theory
from reproduce.problem import Quadratic
from reproduce.streams import rng
from reproduce.systems import System
from reproduce.systems.work import PerClient, Work


def models(problem: Any, work: Work, algorithms: list[FedAvg], rounds: int, dtype: Any = torch.float64) -> list[Any]:
    """The last server models, trained together."""
    experiments = [
        Experiment({"n": i}, problem, System(work=work), a, Rounds(rounds, every=rounds))
        for i, a in enumerate(algorithms)
    ]
    return [one.state["x"] for one in run(experiments, dtype=dtype)]


@pytest.mark.parametrize("k", [1, 3, 7, 10, 26, 52, 697])
def test_equal_steps_are_never_above_their_mean(k: int) -> None:
    """Of seven such weights the float mean is below k for some of these. One step of 60,000 samples' mean is seen."""
    seven = np.array([9706, 7294, 6322, 5436, 5599, 9349, 2773])
    assert not ahead(seven / seven.sum(), np.full(7, k)).any()
    weight = np.array([701, 1203, 29_000, 29_096]) / 60_000
    assert ahead(weight, np.array([k, k, k + 1, k])).tolist() == [False, False, True, False]
    mean = np.array([10, 20, 30, 21]) @ weight
    assert ahead(weight, np.array([10, 20, 30, 21])).tolist() == [mean < 10, mean < 20, mean < 30, mean < 21]


def test_of_drawn_clients_the_mean_is_that_of_the_draws() -> None:
    """Against a plain loop over draws with replacement (2.9): who is drawn twice counts twice, for nu and the mean."""
    e, h, problem = quadratics()
    steps, drawing, rounds = np.array([2, 12, 7]), WeightedDraws(4), 8
    algorithm = FedaGrac(ETA, participation=drawing, first_gradient="single", calibration=Constant(0.5))
    found = models(problem, PerClient(tuple(steps.tolist())), [algorithm], rounds)[0].numpy()
    x, nu, own = np.zeros(3), np.zeros(3), np.zeros((3, 3))
    twice = 0
    for t in range(rounds):
        drawn = rng("sampling", 0, t).choice(3, size=4, p=np.full(3, 1 / 3))
        ends, sent, means = [], [], dict[int, np.ndarray]()
        for m in drawn.tolist():
            z, gradients = x.copy(), []
            for _ in range(steps[m]):
                gradients.append(h[m] @ (z - e[m]))
                z -= ETA * (gradients[-1] + 0.5 * (nu - own[m]))
            means[m] = np.mean(gradients, axis=0)
            ends.append(z)
            sent.append(gradients[0] if steps[m] > steps[drawn].mean() else means[m])
        x, nu = np.mean(ends, axis=0), np.mean(sent, axis=0)
        for m, mean in means.items():
            own[m] = mean
        names = np.unique(drawn)
        twice += any((steps[m] > steps[drawn].mean()) != (steps[m] > steps[names].mean()) for m in names)
    assert twice, "in some round the mean over the distinct clients would choose others"
    np.testing.assert_allclose(found, x, rtol=0, atol=1e-12)


def test_increasing_lambda_has_the_rounds_of_the_paper() -> None:
    """0.1 for t = 1..50, 0.5 for 51..150, 1 for 151..200 (Fig. 2b); rounds of the engine start at 0."""
    rate = Increase()
    assert [rate.at(t - 1) for t in (1, 50, 51, 150, 151, 200)] == [0.1, 0.1, 0.5, 0.5, 1.0, 1.0]


ETA = 0.05


def quadratics() -> tuple[np.ndarray, np.ndarray, Quadratic]:
    """Three clients in R^3 with random Hessians between 0.5 and 3.5."""
    draw = np.random.default_rng(8)
    e = draw.normal(0, 2, (3, 3))
    h = []
    for _ in range(3):
        q, _ = np.linalg.qr(draw.normal(size=(3, 3)))
        h.append(q @ np.diag(draw.uniform(0.5, 3.5, 3)) @ q.T)
    nested = [tuple(tuple(map(float, row)) for row in m) for m in (e, *h)]
    return e, np.array(h), Quadratic(3, 3, minimisers=nested[0], hessians=tuple(nested[1:]))


GOLDEN = {
    "fedavg": (0.9126, 0.8445, 0.8565, 0.9972, 0.757, (-1.1797, 0.8347)),
    "fednova": (0.6247, 0.2239, 0.0446, 0.0869, 0.0447, (0.9329, 1.8246)),
    "fedprox": (0.9134, 0.8439, 0.8527, 0.9886, 0.749, (-1.1607, 0.8367)),
    "fedlin": (0.6530, 0.2807, 0.0808, 0.0023, 0.0305, (0.9268, 1.6571)),
    "scaffold": (0.6968, 0.2642, 0.0606, 0.0008, 0.0514, (0.9268, 1.6571)),
    "fedagrac": (0.6968, 0.1937, 0.0079, 0.0001, 0.0202, (0.9268, 1.6571)),
    "fedagrac_first": (0.6968, 0.1910, 0.0086, 0.0001, 0.0205, (0.9268, 1.6571)),
    "fedagrac_reverse": (0.6968, 0.2620, 0.0595, 0.0008, 0.0516, (0.9268, 1.6571)),
}
"""Relative distance after 1, 3, 6, 15 rounds, largest perpendicular deviation, limit."""


def test_the_golden_numbers_of_figure_1() -> None:
    (panel,) = runs.fig1("paper")
    best = theory.problem().optimum()
    np.testing.assert_allclose(best, (0.9268, 1.6571), atol=5e-5)
    np.testing.assert_allclose(theory.problem().minima(), [(1.1929, 2.6060), (-2.9526, 0.7082)], atol=5e-5)
    length = np.linalg.norm(best)
    for played in run(panel.experiments, panel.seeds, torch.float64):
        name = str(played.experiment.labels["algorithm"])
        *near, deviation, end = GOLDEN[name]
        path = np.zeros((301, 2))
        for t, _, metric, key, value in played.state["history"]:
            if metric == "x":
                path[t, int(key)] = value
        distances = np.linalg.norm(path - best, axis=1) / length
        np.testing.assert_allclose(distances[[1, 3, 6, 15]], near, atol=5.1e-5, err_msg=name)
        across = np.abs(path @ (-best[1], best[0])).max() / length**2
        np.testing.assert_allclose(across, deviation, atol=5.1e-5 if deviation < 0.1 else 5.1e-4, err_msg=name)
        np.testing.assert_allclose(path[300], end, atol=5.1e-5, err_msg=name)
        # So are the paths without the engine, by which random instances are judged and local paths drawn.
        e, h = theory.problem().minima()[None], np.array(theory.problem().hessians)[None]
        algorithm = played.experiment.algorithm
        np.testing.assert_allclose(theory.server_paths(algorithm, e, h)[:, 0], path, atol=1e-12, err_msg=name)
        assert theory.deviations(algorithm, e, h)[0] == pytest.approx(across)
        first = theory.local_paths(played.experiment, 2)[1]
        assert [len(way) for way in first] == [3, 41]
        assert np.allclose([way[0] for way in first], path[1])
