"""The event clock: training replays a simulated schedule, aggregation after aggregation. Importable without torch.

The schedule does not depend on what is learned (`systems.schedule`), so it is simulated first, and again when a run is
resumed. A job is trained when the server uses it, from the stored model of its start version; jobs that are never used
are never trained. The history's `round` is the server's version, the number of aggregations so far.
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from reproduce.algorithms.asynchronous import Arrivals, Asynchronous, Favano
from reproduce.algorithms.base import Env, Play, State, Tensor, record
from reproduce.clocks.step import Clock, Target, diverged, measure, step
from reproduce.declare.values import Count, Floats, Ints, NonNegative, Positive, Whole
from reproduce.engine.requests import Evaluate
from reproduce.systems import Steps, System
from reproduce.systems.policies import FavanoPolicy
from reproduce.systems.schedule import Policy, Schedule

EPSILON = 1e-9


@dataclass(frozen=True)
class Events(Clock):
    """The first `aggregations` server steps under `policy`, or those up to `horizon` virtual seconds, or the fewer.

    grid: evaluate at the virtual times 0, grid, 2 grid, ..., unless the model is still that of the time before;
    every: instead, after every so many aggregations. Exactly one of the two is positive.
    until, least: the run ends when the target is reached, but not before `least` virtual seconds. On a grid the target
    is a mean over its last times, where a model that stays counts as often as it was there (`on_grid`).
    view: which data the evaluation uses. train_view, train_every: also record `train_loss`, the loss on that view, at
    every so many evaluations ("": never).

    The clock's entries in the state: `starts` version -> model, of the versions that a later update starts from;
    `evaluated` how many evaluations there were; `reached` whether the target was. A model is freed when no later update
    starts from it, so that there are never more of them than the largest staleness of an update, and one.
    """

    memory: ClassVar[tuple[str, ...]] = ("starts", "evaluated", "reached", "pending")

    policy: Policy
    aggregations: Count | None = None
    horizon: Positive | None = None
    grid: NonNegative = 0.0
    every: Whole = 0
    until: Target | None = None
    least: NonNegative = 0.0
    view: str = "test"
    train_view: str = ""
    train_every: Count = 1

    def __post_init__(self) -> None:
        if (self.grid > 0) == (self.every > 0):
            raise ValueError(f"evaluate on a grid of times or every k aggregations: {self.grid}, {self.every}")
        if self.aggregations is None and self.horizon is None:
            raise ValueError("say how many aggregations, or how many virtual seconds, to simulate")

    def schedule(self, system: System, clients: int) -> Schedule:
        """The schedule of `clients` clients; ValueError if the system says too little, or the policy refuses it."""
        if not isinstance(system, System) or system.pace is None:
            raise ValueError("the event clock needs a system with a pace: how long steps and transfers take")
        if not isinstance(system.work, Steps):
            raise ValueError(f"the event clock counts steps: its work is Steps(k), not {type(system.work).__name__}")
        return Schedule(self.policy, clients, system.work.k, system.pace)

    def check(self, experiment: Any) -> None:
        """Raises ValueError if the experiment cannot be run by this clock."""
        problem, system, algorithm = experiment.problem, experiment.system, experiment.algorithm
        if not isinstance(algorithm, Asynchronous):
            raise ValueError(f"{type(algorithm).__name__} has rounds; the event clock needs an asynchronous rule")
        if isinstance(algorithm, Favano) != isinstance(self.policy, FavanoPolicy):
            raise ValueError(f"{type(algorithm).__name__} does not fit the policy {type(self.policy).__name__}")
        self.schedule(system, problem.clients)
        algorithm.check(problem, system)
        for view in filter(None, (self.view, self.train_view)):
            problem.check_view(view)

    def length(self, experiment: Any) -> int:
        """Aggregations in all, about, for progress and cost; a run that reaches its target ends earlier."""
        fits = math.inf if self.horizon is None else self.horizon / self._usual(experiment)[0]
        return max(1, round(min(fits, math.inf if self.aggregations is None else self.aggregations)))

    def evaluations(self, experiment: Any) -> int:
        """Evaluations in all, about, those of the training loss included."""
        seconds, count = self._usual(experiment)[0], self.length(experiment)
        tests = count // self.every if self.every else min(count, round(count * seconds / self.grid))
        return 1 + tests + (tests // self.train_every if self.train_view else 0)

    def samples(self, experiment: Any) -> float:
        """Expected training samples of one run that goes on to the end."""
        return float(self.length(experiment) * self._usual(experiment)[1] * experiment.problem.batches.size)

    def _usual(self, experiment: Any) -> tuple[float, float]:
        return _usual(self.schedule(experiment.system, experiment.problem.clients))

    def play(self, env: Env, algorithm: Asynchronous, state: State) -> Play:
        """The requests of the run from version `state["round"]` on."""
        schedule = self.schedule(env.system, env.clients)
        script = Script.of(schedule, env.seed, self.aggregations, self.horizon)
        if "starts" not in state:
            self.begin(state, starts={0: state["x"]}, pending=True, evaluated=0, reached=False)
        while True:
            version = state["round"]
            if state["pending"]:
                yield from self._evaluate(env, algorithm, state, script)
                state["pending"] = False
            ended = version == len(script.time) or (state["reached"] and script.time[version] > self.least)
            if ended or state["status"] != "ok":
                return
            if script.first[version] < script.first[version + 1]:
                arrivals = script.arrivals(version, state["starts"], schedule.steps)
                if self.lr_decay:
                    arrivals.lr = self.decayed(algorithm.lr, version - arrivals.staleness, len(script.time))
                play = algorithm.aggregation(env, state, arrivals)
                yield from step(env, algorithm, state, play, arrivals.weights, arrivals.kept)
            if self.traffic and self.policy.broadcasts:  # to those, too, whose updates the step did not take
                others = env.clients - int(script.first[version + 1] - script.first[version])
                state["sent"] = state["sent"] + np.array([others * state["x"].nbytes, 0])
            version += 1
            state["round"] = version
            kept = {v: x for v, x in state["starts"].items() if script.last_use[v] >= version}
            if script.last_use[version] >= version:
                kept[version] = state["x"]
            state["starts"] = kept
            state["pending"] = not diverged(env, state) and self.due(script, version) is not None

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
        state["reached"] = state["reached"] or self._reached(state)

    def _reached(self, state: State) -> bool:
        """Tells whether the latest evaluation, or the grid before it, reaches the target."""
        if self.until is None or self.every or self.until.over == 1:
            return self.until is not None and self.until.reached(state)
        curve = [(time, v) for _, time, metric, key, v in state["history"] if metric == self.until.metric and not key]
        times, values = np.array(curve, dtype=float).T
        last = np.arange(round(times[-1] / self.grid) + 1) * self.grid
        seen = values[on_grid(times, last, self.grid)]
        means = [seen[max(0, i + 1 - self.until.over) : i + 1].mean() for i in range(len(seen))]
        return bool(max(means) >= self.until.value)


def on_grid(times: Floats, grid: Floats, step: float) -> Ints:
    """Index of the last of the evaluations at `times` [T] at or before each time of a grid [G]; -1 before the first."""
    return np.searchsorted(times, grid + EPSILON * step, side="right") - 1


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
    def of(cls, schedule: Schedule, seed: int, aggregations: int | None, horizon: float | None) -> Script:
        """The script of a run: what the schedule's `simulate` gives."""
        time, first, last_use = array("d"), array("q", [0]), array("q", [-1])
        columns: list[array[Any]] = [array(kind) for kind in "qqqqd"]  # of the updates, as above
        for a in schedule.stream(seed, aggregations, horizon):
            time.append(a.time)
            for u in a.updates:
                for column, value in zip(columns, (u.client, u.job, u.start_version, u.steps, u.weight), strict=True):
                    column.append(value)
                last_use[u.start_version] = a.index
            first.append(len(columns[0]))
            last_use.append(-1)
        return cls(*map(np.array, (time, first, *columns, last_use)))

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
def _usual(schedule: Schedule) -> tuple[float, float]:
    """Seconds and local steps per aggregation: mean of 50 of seed 0, after the first 50 with many joint starts; of more
    where many equal clients end at once. ValueError if no time passes."""
    for half in (50 * 4**i for i in range(6)):
        drawn = schedule.simulate(0, aggregations=2 * half)[half - 1 :]
        if seconds := drawn[-1].time - drawn[0].time:
            return seconds / half, sum(u.steps for a in drawn[1:] for u in a.updates) / half
    raise ValueError(f"{2 * half} aggregations take no time: steps or transfers must take some")
