"""What a lost message holds is nobody's knowledge: no algorithm that is declared or can be tried may use it."""

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest
import torch
from runs import run

from reproduce.algorithms.base import FedAvg, RoundContext
from reproduce.clocks.rounds import Rounds
from reproduce.clocks.sessions import Sessions
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import Env
from reproduce.engine.requests import Train
from reproduce.play.benchmarks import find
from reproduce.play.match import Match
from reproduce.play.specs import NAMES, Spec
from reproduce.runs import plan
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
