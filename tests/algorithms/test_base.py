"""Algorithms know nothing of what a lost message holds; a client without samples takes part in vain."""

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from plain_sessions import LR, PROBLEM
from runs import run

from reproduce.algorithms.base import FedAvg, Full, RoundContext
from reproduce.algorithms.scaffold import Scaffold
from reproduce.algorithms.submodels import Submodels
from reproduce.clocks.rounds import Rounds
from reproduce.clocks.sessions import Sessions
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import Env
from reproduce.engine.requests import Train
from reproduce.errors import UserError
from reproduce.models.declared import MLP
from reproduce.play.benchmarks import find
from reproduce.play.match import Match
from reproduce.play.specs import NAMES, Spec
from reproduce.runs import plan
from reproduce.systems import Steps, System
from reproduce.systems.link import Same

KNOWN = {
    "Moon": "a client remembers its own last model, whoever heard of it",
    "OptimalSamplingOriginal": "the norms of the updates are sent ahead and do arrive",
}
"""Who may use what the other algorithms may not, and why."""
DECLARED: dict[str, Experiment] = {
    f"{type(e.algorithm).__name__}-{'network' if e.problem.model else 'quadratic'}": e
    for job in plan.jobs("smoke")
    for e in job.experiments
    if isinstance(e.clock, Rounds | Sessions) and e.clock.length(e) < 100
}
"""An experiment of each algorithm that papers declare, where messages can be lost."""
PLAYED = {
    f"{e.spec.name}-{benchmark}": e.experiment
    for benchmark in ("fedacs-dynamic", "capacities")
    for e in Match([*map(Spec, NAMES)], [find(benchmark, "smoke")], lenient=True).entries
    if e.experiment
}
"""And of each that can be tried, on whole models and on parts."""


def spoilt(request: Any, answer: Any, now: RoundContext) -> Any:
    """The answer to a request, with no numbers where a client's message is lost."""
    if isinstance(request, list):
        return [spoilt(r, a, now) for r, a in zip(request, answer, strict=True)]
    if not isinstance(request, Train):
        return answer
    lost = torch.as_tensor(~now.arrived[request.clients])

    def rows(value: torch.Tensor | None) -> torch.Tensor | None:
        return None if value is None else value.masked_fill(lost[:, None], torch.nan)

    update = answer.rows if request.weights is not None else rows(answer.rows)
    return replace(
        answer, rows=update, mean_gradient=rows(answer.mean_gradient), first_gradient=rows(answer.first_gradient)
    )


CASES = {name: e for name, e in (DECLARED | PLAYED).items() if type(e.algorithm).__name__ not in KNOWN}


@pytest.mark.parametrize("name", CASES)
def test_no_algorithm_uses_what_is_lost(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = CASES[name]
    lossy = replace(declared, system=replace(declared.system, link=Same(0.5)))
    (expected,) = run([lossy])
    original, lost = type(declared.algorithm).round, []

    def round(self: FedAvg, env: Env, state: dict[str, Any], now: RoundContext) -> Generator[Any, Any, None]:
        play, answer = original(self, env, state, now), None
        while True:
            try:
                request = play.send(answer)
            except StopIteration:
                return
            answer = spoilt(request, (yield request), now)
            lost.append(not now.arrived.all())

    monkeypatch.setattr(type(declared.algorithm), "round", round)
    (found,) = run([lossy])
    assert any(lost)
    assert found.state["status"] == "ok"
    assert torch.equal(found.state["x"], expected.state["x"])
    assert found.state["history"] == expected.state["history"]


@dataclass(frozen=True)
class Idle:
    """The first four clients share the samples."""

    leaves_empty: ClassVar[bool] = True
    data_seed: ClassVar[int] = 0

    def split(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        return [np.arange(len(labels))[i : len(labels) if i < 4 else 0 : 4] for i in range(clients)]


Idle.__module__ = FedAvg.__module__  # as one of the package, around which no hook of an algorithm is watched


def experiment(algorithm: FedAvg, clients: int) -> Experiment:
    problem = replace(PROBLEM, model=MLP(20, 7, 10), partition=Idle(), clients=clients)
    return Experiment({"n": clients}, problem, System(work=Steps(5)), algorithm, Rounds(4))


def fitting() -> dict[str, FedAvg]:
    """Every algorithm that has rounds and takes this network."""
    found: dict[str, FedAvg] = {"displacement": Scaffold(LR, control="displacement")}
    for name, named in NAMES.items():
        algorithm = named.cls(lr=LR, **named.options)
        try:
            experiment(algorithm, 4)
            found[name] = algorithm
        except UserError:
            continue
    return found


ALGORITHMS = fitting()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_it_takes_part_in_vain(name: str) -> None:
    algorithm = ALGORITHMS[name]
    with_it, without = run([experiment(algorithm, 5), experiment(algorithm, 4)], dtype=torch.float64)
    assert with_it.state["status"] == "ok"
    if isinstance(algorithm, Submodels) or name == "os_original":
        assert with_it.state["x"].isfinite().all(), "plain means over holders, and luck drawn client by client, differ"
    else:
        torch.testing.assert_close(with_it.state["x"], without.state["x"], rtol=0, atol=1e-12)


def test_all_that_have_rounds_are_asked() -> None:
    assert len(ALGORITHMS) >= 18
    assert all(a.participation == Full() for a in ALGORITHMS.values())
