"""FedaGrac, its schemes and its baselines against a naive loop, one client and one gradient after the other."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from runs import run as play_all
from softmax import gradient

from reproduce.algorithms.base import FedAvg
from reproduce.algorithms.fedagrac import Constant, FedaGrac, FedLin, Increase
from reproduce.algorithms.fednova import FedNova
from reproduce.algorithms.fedprox import FedProx
from reproduce.algorithms.scaffold import Scaffold
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Cyclic
from reproduce.data.embedded import GaussianClasses
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClassificationSplit, ClientSplits
from reproduce.models.declared import Softmax
from reproduce.partitions.dirichlet import CappedDirichlet
from reproduce.problem import Classification
from reproduce.settings import settings
from reproduce.systems import System
from reproduce.systems.link import Link, Reliable, Same
from reproduce.systems.work import Gaussian

PROBLEM = Classification(
    GaussianClasses(3, 6, 30, 5, noise=1.0, seed=4), Softmax(6, 3), CappedDirichlet(0.5), clients=5, batches=Cyclic(7)
)
WORK = Gaussian(6, 25, "random")
ROUNDS, LR = 6, 0.2
RELIABLE, OFTEN_SILENT = Reliable(), Same(0.8)


class Client:
    """A client's data, and its stream of batches in a fixed order that is never reset."""

    def __init__(self, x: np.ndarray, y: np.ndarray, batch: int) -> None:
        self.x, self.y = x, y
        self.starts = list(range(0, len(y), batch))
        self.batch = batch
        self.todo: list[int] = list(self.starts)
        self.fresh = True

    def gradient(self, model: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        return gradient(model, self.x[rows], self.y[rows])

    def step(self, model: np.ndarray) -> tuple[np.ndarray, bool]:
        """The gradient on the next batch, and whether the stream had come to its end before it."""
        ended = not self.todo
        if ended:
            self.todo = list(self.starts)
        at = self.todo.pop(0)
        return self.gradient(model, slice(at, at + self.batch)), ended


def naive(
    clients: list[Client],
    x: np.ndarray,
    lam: Callable[[int], float] = lambda t: 0.0,
    fast_sends: str = "mean",
    slow_sends: str = "mean",
    estimate: str = "pass_mean",
    start: str = "zeros",
    fast_keeps: str = "mean",
    mu: float = 0.0,
    nova: bool = False,
    lin: bool = False,
    control: bool = False,
    link: Link = RELIABLE,
) -> list[np.ndarray]:
    """The server's models; every algorithm of the paper is a choice of the options. control: nu is the mean of what the
    clients keep, of those too that were not heard (SCAFFOLD)."""
    n = np.array([len(c.y) for c in clients])
    w = n / n.sum()
    zero = np.zeros_like(x)
    own, nu = [zero] * len(clients), zero
    if start == "full_gradient":
        own = [c.gradient(x) for c in clients]
        nu = sum(wi * g for wi, g in zip(w, own, strict=True))
    path = [x]
    for t in range(ROUNDS):
        steps = WORK.amounts(0, t, len(clients)).tolist()
        average = sum(wi * k for wi, k in zip(w, steps, strict=True))
        full = [c.gradient(x) for c in clients]
        if lin:
            own, nu = full, sum(wi * g for wi, g in zip(w, full, strict=True))
        ends, sent, kept = [], [], []
        for i, client in enumerate(clients):
            z, gradients, ended_before = x.copy(), [], False
            first = None
            for k in range(steps[i]):
                g, ended = client.step(z)
                if ended and not ended_before:
                    ended_before = True
                    if k >= 1:
                        first = np.mean(gradients, axis=0)
                gradients.append(g)
                rate = LR * average / steps[i] if lin else LR
                factor = 1.0 if lin else lam(t)
                z = z - rate * (g + factor * (nu - own[i]) + mu * (z - x))
            if first is None or estimate == "single":
                first = gradients[0]
            if estimate == "full_local":
                first = full[i]
            values = {"mean": np.mean(gradients, axis=0), "first": first}
            fast = steps[i] > average + 1e-9
            ends.append(z)
            sent.append(values[fast_sends if fast else slow_sends])
            kept.append(values[fast_keeps if fast else "mean"])
        heard = link.arrived(0, t, len(clients))
        if nova:
            x = x + average * sum(wi * (z - x) / k for wi, z, k in zip(w, ends, steps, strict=True))
        else:
            x = x + sum(wi * (z - x) for wi, z, h in zip(w, ends, heard, strict=True) if h)
        own = [new if h else old for new, old, h in zip(kept, own, heard, strict=True)]
        if control:
            nu = sum(wi * c for wi, c in zip(w, own, strict=True))
        elif heard.any():
            nu = sum(wi * s for wi, s, h in zip(w, sent, heard, strict=True) if h) / w[heard].sum()
        path.append(x)
    return path


def trained(algorithm: FedAvg, rounds: int = ROUNDS, link: Link = RELIABLE) -> np.ndarray:
    experiment = Experiment({}, PROBLEM, System(WORK, link), algorithm, Rounds(rounds, every=rounds))
    (run,) = play_all([experiment], (0,), dtype=torch.float64)
    return np.asarray(run.state["x"])


def start() -> tuple[list[Client], np.ndarray]:
    task = ClientSplits(settings(), torch.float64).get(PROBLEM, 0)
    assert isinstance(task, ClassificationSplit)
    x, y = task.device_data.train_x.numpy(), task.device_data.labels
    return [Client(x[i], y[i], 7) for i in task.indices], task.initial().numpy()


SENDS = {
    "fedagrac": ("first", "mean"),
    "avg": ("mean", "mean"),
    "first": ("first", "first"),
    "reverse": ("mean", "first"),
}
CASES: list[tuple[FedAvg, dict[str, Any]]] = [
    (FedAvg(LR), {}),
    (FedProx(LR, mu=0.3), {"mu": 0.3}),
    (FedNova(LR), {"nova": True}),
    (FedNova(LR, effective_steps="received"), {"nova": True}),
    (Scaffold(LR), {"lam": lambda t: 1.0}),
    (FedLin(LR), {"lin": True}),
    (FedaGrac(LR, calibration=Increase((0.1, 0.5, 1.0), (2, 4))), {
        "lam": lambda t: 0.1 if t < 2 else 0.5 if t < 4 else 1.0, "fast_sends": "first",
    }),
    (FedaGrac(LR, calibration=Constant(0.7), own="first"), {
        "lam": lambda t: 0.7, "fast_sends": "first", "fast_keeps": "first",
    }),
    *[
        (FedaGrac(LR, calibration=Constant(0.4), scheme=s, first_gradient=f, start=b), {
            "lam": lambda t: 0.4, "fast_sends": SENDS[s][0], "slow_sends": SENDS[s][1], "estimate": f, "start": b,
        })
        for s in SENDS for f in ("single", "pass_mean", "full_local") for b in ("zeros", "full_gradient")
    ],
]  # fmt: skip


@pytest.mark.parametrize(("algorithm", "options"), CASES, ids=lambda v: type(v).__name__)
def test_an_algorithm_equals_the_naive_loop(algorithm: FedAvg, options: dict[str, Any]) -> None:
    """Batches in a cycle across rounds, short last batches, step counts that change from round to round."""
    clients, x = start()
    expected = naive(clients, x, **options)[-1]
    np.testing.assert_allclose(trained(algorithm), expected, rtol=0, atol=1e-10)
    assert np.abs(expected - x).max() > 0.1


LOSSY: list[tuple[FedAvg, dict[str, Any]]] = [
    (Scaffold(LR), {"lam": lambda t: 1.0, "control": True}),
    (Scaffold(LR, control="displacement"), {"lam": lambda t: 1.0, "control": True}),
    (FedLin(LR), {"lin": True}),
    *[
        (FedaGrac(LR, calibration=Constant(0.4), scheme=s, own=own), {
            "lam": lambda t: 0.4, "fast_sends": SENDS[s][0], "slow_sends": SENDS[s][1], "fast_keeps": own,
        })
        for s in SENDS for own in ("mean", "first")
    ],
]  # fmt: skip


@pytest.mark.parametrize("link", [Same(0.5), OFTEN_SILENT, Same(1.0)], ids=("half", "often silent", "all"))
@pytest.mark.parametrize(("algorithm", "options"), LOSSY, ids=lambda v: type(v).__name__)
def test_the_server_learns_nothing_from_what_is_lost(algorithm: FedAvg, options: dict[str, Any], link: Link) -> None:
    clients, x = start()
    expected = naive(clients, x, **options, link=link)[-1]
    np.testing.assert_allclose(trained(algorithm, link=link), expected, rtol=0, atol=1e-10)
    assert (np.abs(expected - x).max() > 0.05) == (link != Same(1.0))
