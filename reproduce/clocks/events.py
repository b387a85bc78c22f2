"""The event clock: training replays a simulated schedule, aggregation after aggregation. Importable without torch.

The schedule does not depend on what is learned (`systems.schedule`), so it is simulated first, and again when a run is
resumed. A job is trained when the server uses it, from the stored model of its start version; jobs that are never used
are never trained. The history's `round` is the server's version, the number of aggregations so far.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduce.algorithms.asynchronous import Arrivals, Asynchronous
from reproduce.clocks.record import Target, diverged, measure, record
from reproduce.engine.requests import Evaluate, Ints
from reproduce.systems.schedule import Aggregation, EventClock

if TYPE_CHECKING:
    from torch import Tensor

    from reproduce.algorithms.base import Floats, State
    from reproduce.engine.task import Env

Play = Generator[Any, Any, None]
EPSILON = 1e-9


@dataclass(frozen=True)
class Events:
    """The first `aggregations` server steps of `schedule`, or those up to `horizon` virtual seconds, or the fewer.

    grid: evaluate at the virtual times 0, grid, 2 grid, ..., unless the model is still that of the time before;
    every: instead, after every so many aggregations. Exactly one of the two is positive.
    until, least: the run ends when the target is reached, but not before `least` virtual seconds.
    view: which data the evaluation uses. train_view, train_every: also record `train_loss`, the loss on that view, at
    every so many evaluations ("": never).

    The clock's entries in the state: `starts` version -> model, of the versions that a later update starts from;
    `evaluated` how many evaluations there were; `reached` whether the target was.
    """

    schedule: EventClock
    aggregations: int | None = None
    horizon: float | None = None
    grid: float = 0.0
    every: int = 0
    until: Target | None = None
    least: float = 0.0
    view: str = "test"
    train_view: str = ""
    train_every: int = 1

    def __post_init__(self) -> None:
        if (self.grid > 0) == (self.every > 0) or self.grid < 0 or self.every < 0:
            raise ValueError(f"evaluate on a grid of times or every k aggregations: {self.grid}, {self.every}")
        if self.aggregations is None and self.horizon is None:
            raise ValueError("an event clock needs a number of aggregations or a horizon")

    def check(self, experiment: Any) -> None:
        """Raises ValueError if the experiment cannot be run by this clock."""
        problem, algorithm = experiment.problem, experiment.algorithm
        if not isinstance(algorithm, Asynchronous):
            raise ValueError(f"{type(algorithm).__name__} has rounds; the event clock needs an asynchronous rule")
        if self.schedule.clients != problem.clients:
            raise ValueError(f"the schedule has {self.schedule.clients} clients, the problem has {problem.clients}")
        algorithm.check(problem, experiment.system)
        for view in filter(None, (self.view, self.train_view)):
            problem.check_view(view)

    @property
    def length(self) -> int:
        """Aggregations in all, about, for progress and cost; a run that reaches its target ends earlier."""
        fits = math.inf if self.horizon is None else self.horizon / _pace(self.schedule)[0]
        return max(1, round(min(fits, math.inf if self.aggregations is None else self.aggregations)))

    @property
    def evaluations(self) -> int:
        """Evaluations in all, about, those of the training loss included."""
        seconds, count = _pace(self.schedule)[0], self.length
        tests = count // self.every if self.every else min(count, round(count * seconds / self.grid))
        return 1 + tests + (tests // self.train_every if self.train_view else 0)

    def samples(self, experiment: Any) -> float:
        """Expected training samples of one run that goes on to the end."""
        return float(self.length * _pace(self.schedule)[1] * experiment.problem.batches.size)

    def play(self, env: Env, algorithm: Asynchronous, state: State) -> Play:
        """The requests of the run from version `state["round"]` on."""
        script = Script.of(self.schedule.simulate(env.seed, self.aggregations, self.horizon))
        if "starts" not in state:
            state.update(starts={0: state["x"]}, pending=True, evaluated=0, reached=False)
        while True:
            version = state["round"]
            if state["pending"]:
                yield from self._evaluate(env, algorithm, state, script)
                state["pending"] = False
            ended = version == len(script.time) or (state["reached"] and script.time[version] > self.least)
            if ended or state["status"] != "ok":
                return
            yield from algorithm.aggregation(env, state, script.arrivals(version, state["starts"], self.schedule.steps))
            version += 1
            state["round"] = version
            kept = {v: x for v, x in state["starts"].items() if script.last_use[v] >= version}
            if script.last_use[version] >= version:
                kept[version] = state["x"]
            state["starts"] = kept
            state["pending"] = not diverged(state) and self.due(script, version) is not None

    def due(self, script: Script, version: int) -> float | None:
        """The virtual time at which a version is evaluated, None if it is not."""
        if version == 0:
            return 0.0
        made, last = script.time[version - 1], version == len(script.time)
        if self.every:
            return float(made) if last or version % self.every == 0 else None
        at = math.ceil(made / self.grid - EPSILON) * self.grid
        if last:
            return at if self.horizon is None or at <= self.horizon + EPSILON * self.grid else None
        return at if at < script.time[version] - EPSILON * self.grid else None

    def _evaluate(self, env: Env, algorithm: Asynchronous, state: State, script: Script) -> Play:
        """All requests come first; then the state changes at once."""
        version, loss = state["round"], None
        time = self.due(script, version)
        assert time is not None
        if self.train_view and state["evaluated"] % self.train_every == 0:
            answer = yield Evaluate(state["x"][None], self.train_view)
            loss = float(answer.metrics["loss"][0])
        yield from measure(env, algorithm, state, version, self.view, time)
        if loss is not None:
            record(state, version, "train_loss", loss, time=time)
        state["evaluated"] += 1
        state["reached"] = state["reached"] or (self.until is not None and self.until.reached(state))


@dataclass(frozen=True)
class Script:
    """A schedule of T aggregations with U updates as arrays, which take a tenth of the memory of the records.

    time [T]: when; first [T + 1]: where each aggregation's updates begin; client, job, version, steps, weight [U] as in
    `Update`; last_use [T + 1]: the last aggregation that uses an update which started from a version, -1 if none.
    """

    time: Floats
    first: Ints
    client: Ints
    job: Ints
    version: Ints
    steps: Ints
    weight: Floats
    last_use: Ints

    @classmethod
    def of(cls, aggregations: list[Aggregation]) -> Script:
        updates = [u for a in aggregations for u in a.updates]
        counts = [len(a.updates) for a in aggregations]
        version = np.array([u.start_version for u in updates], dtype=np.int64)
        last_use = np.full(len(aggregations) + 1, -1, dtype=np.int64)
        np.maximum.at(last_use, version, np.repeat(np.arange(len(counts)), counts))
        return cls(
            time=np.array([a.time for a in aggregations]),
            first=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            client=np.array([u.client for u in updates], dtype=np.int64),
            job=np.array([u.job for u in updates], dtype=np.int64),
            version=version,
            steps=np.array([u.steps for u in updates], dtype=np.int64),
            weight=np.array([u.weight for u in updates]),
            last_use=last_use,
        )

    def arrivals(self, index: int, starts: dict[int, Tensor], limit: int) -> Arrivals:
        """The updates of aggregation `index`, whose start versions are in `starts`."""
        part = slice(self.first[index], self.first[index + 1])
        versions = self.version[part]
        start = starts[int(versions[0])]
        if (versions != versions[0]).any():
            rows = start.new_empty(len(versions), len(start))
            for row, version in zip(rows, versions, strict=True):
                row.copy_(starts[int(version)])
            start = rows
        return Arrivals(
            clients=self.client[part],
            jobs=self.job[part],
            steps=self.steps[part],
            staleness=index - versions,
            weight=self.weight[part],
            start=start,
            limit=limit,
        )


@cache
def _pace(schedule: EventClock) -> tuple[float, float]:
    """Seconds and local steps per aggregation: mean of 50 of seed 0, after the first 50 with many joint starts."""
    drawn = schedule.simulate(0, aggregations=100)[49:]
    return (drawn[-1].time - drawn[0].time) / 50, sum(u.steps for a in drawn[1:] for u in a.updates) / 50
