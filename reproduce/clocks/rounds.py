"""The round clock: synchronous rounds, evaluation on a schedule. Importable without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from reproduce.algorithms.asynchronous import Asynchronous
from reproduce.algorithms.base import Env, FedAvg, Play, State, observe, record
from reproduce.clocks.step import Clock, Target, diverged, measure, step
from reproduce.declare.values import Count, Whole
from reproduce.systems import System


@dataclass(frozen=True)
class Rounds(Clock):
    """`rounds` synchronous rounds with all clients as members.

    every: evaluate after every so many rounds, at the start (round 0) and at the end; `dense_last`: in the last so
    many rounds evaluate after each. trace: record the model's coordinates every so many rounds (toys only).
    work: record the samples processed so far by all clients that trained. view: which data the evaluation uses.
    by_class: also record the accuracy on each label; by_client: on the data of each client (`measure`), at the end
    also after a local epoch.
    until: ("accuracy", 80.0) ends the run with the first evaluation whose metric is at or above the number.
    """

    memory: ClassVar[tuple[str, ...]] = ("steps_done", "pending", "ending")
    """Names in the run's state: batches that each client has done [N]; is an evaluation due; is it the last."""

    rounds: Whole
    every: Count = 1
    dense_last: Whole = 0
    trace: Whole = 0
    work: bool = False
    view: str = "test"
    until: tuple[str, float] | None = None
    by_class: bool = False
    by_client: bool = False

    def check(self, experiment: Any) -> None:
        """Raises ValueError if the experiment cannot be run by this clock."""
        problem = experiment.problem
        synchronous(experiment, members=problem.clients)
        problem.check_view(self.view)
        if (self.by_class or self.by_client) and problem.model is None:
            raise ValueError("a quadratic has no classes to tell apart")
        if self.by_client and self.view != "test":
            raise ValueError("clients are told apart on the view 'test'")

    def due(self, done: int) -> bool:
        """Tells whether an evaluation follows `done` rounds."""
        return done % self.every == 0 or done == self.rounds or done > self.rounds - self.dense_last

    def length(self, experiment: Any) -> int:
        """Rounds in all, for progress and cost."""
        return self.rounds

    def evaluations(self, experiment: Any) -> int:
        """Evaluations in all."""
        return sum(self.due(r) for r in range(self.rounds + 1))

    def samples(self, experiment: Any) -> float:
        """Expected training samples of one run: participants per round x their work in the first round."""
        problem, system = experiment.problem, experiment.system
        amounts = system.work.amounts(0, 0, problem.clients)
        per_client = problem.sizes[0] / problem.clients
        each = amounts * (per_client if system.work.unit == "epochs" else problem.batches.size)
        share = getattr(experiment.algorithm.participation, "k", problem.clients) / problem.clients
        return float(self.rounds * each.mean() * problem.clients * min(1.0, share))

    def play(self, env: Env, algorithm: FedAvg, state: State) -> Play:
        """The requests of the run from `state["round"]` on."""
        if "steps_done" not in state:
            self.begin(state, steps_done=np.zeros(env.clients, dtype=np.int64), pending=True)
        while True:
            if state["pending"]:
                state["ending"] = state["round"] == self.rounds
                finer = {"by_class": self.by_class, "by_client": self.by_client}
                finer["tuned"] = self.by_client and state["ending"] and not algorithm.trains_parts
                yield from measure(env, algorithm, state, state["round"], self.view, **finer)
                if self.work:
                    record(state, state["round"], "work", state["work"])
                state["pending"] = False
            reached = self.until is not None and Target(*self.until).reached(state)
            if state["round"] == self.rounds or state["status"] != "ok" or reached:
                return
            lr = float(self.decayed(algorithm.lr, state["round"], self.rounds)) if self.lr_decay else None
            # steps, links, arrivals, all [N]
            now = observe(env, algorithm, state["round"], state["steps_done"].copy(), lr)
            done = yield from step(env, algorithm, state, algorithm.round(env, state, now), now.weights(env))
            state["steps_done"] = state["steps_done"] + done  # [N]
            state["round"] += 1
            state["pending"] = not diverged(env, state) and self.due(state["round"])
            if self.trace and state["round"] % self.trace == 0:
                for i, value in enumerate(state["x"].tolist()):
                    record(state, state["round"], "x", value, key=str(i))


def synchronous(experiment: Any, members: int) -> None:
    """Raises ValueError unless the system, the algorithm and its sampling allow synchronous rounds of at least
    `members` clients."""
    problem, system, algorithm = experiment.problem, experiment.system, experiment.algorithm
    if not isinstance(system, System):
        raise ValueError("rounds need a System, which says how much work the clients do")
    if isinstance(algorithm, Asynchronous):
        raise ValueError(f"{type(algorithm).__name__} is a rule of the event clock and has no rounds")
    system.check(problem.clients)
    algorithm.participation.check(members, problem.clients)
    algorithm.check(problem, system)
