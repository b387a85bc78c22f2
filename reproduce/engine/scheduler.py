"""Many runs at once: the scheduler plays the runs' generators in step and executes equal requests together.

Runs that are behind (in rounds, and in preparing a session) have their turn first: runs that skip or insert something
meet again, and with them the requests that can share work.

A run is a generator of requests over a state dictionary that changes only after the last request of a round; a run that
is resumed from its state asks again from the beginning of its round. Whenever the last run has left a round all runs
stand at the beginning of one, since those ahead wait there. That is where checkpoints are taken: nothing is asked again
but what every run waits for, so that after a resumption the same requests meet in every turn as without.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch

from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClientSplit, ClientSplits, Env
from reproduce.engine.evaluate import batch_key, evaluate
from reproduce.engine.order import Contents, contents
from reproduce.engine.requests import Evaluate, Gradient, Request, Train, listed
from reproduce.engine.trainer import Trainer
from reproduce.engine.user_code import checked, run_isolated

STATE = ("x", "history", "status", "round", "work", "done")
"""The entries of every run's state: the server's model, what was recorded, "ok" or "diverged", the rounds behind it,
the samples processed, is it at its end. The clock and the algorithm keep what their `memory` names."""


@dataclass
class Run:
    """One experiment with one seed. `state` is all there is to it: counters, models, memories, history."""

    experiment: Experiment
    seed: int
    env: Env
    state: dict[str, Any] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        return bool(self.state.get("done"))

    @property
    def apart(self) -> bool:
        """True of a run with a process of its own: of a user's own algorithm, or of a network without a graph."""
        model = self.experiment.problem.model
        return self.experiment.foreign or (model is not None and model.kind == "module")

    @property
    def place(self) -> tuple[int, int]:
        """The progress of the run: the round, and the latest session that it has opened."""
        return self.state["round"], self.state.get("opened", 0)

    def play(self) -> Generator[Any, Any, None]:
        """The requests of the rest of the run."""
        algorithm, state = self.experiment.algorithm, self.state
        if "x" not in state:
            state.update(x=self.env.split.initial(), history=[], status="ok", round=0, work=0.0)
            algorithm.setup(self.env, state)
        play = self.experiment.clock.play(self.env, algorithm, state)
        yield from checked(self.env.split, play) if self.experiment.foreign else play
        state["done"] = True


def prepare(experiments: Sequence[Experiment], seeds: Sequence[int], splits: ClientSplits) -> list[Run]:
    """All runs of a panel, experiments in order, seeds within."""
    return [Run(e, seed, Env(splits.get(e.problem, seed), e.system, seed)) for e in experiments for seed in seeds]


class Scheduler:
    """Plays runs to their end, or until all have `enough`; those with a user's own algorithm or network each in its own
    process, the others cohort after cohort.

    `tick` is called whenever every run waits for its first answer in a round (checkpoints, progress): before the first
    turn, and each time that the last run has left a round. `shared` counts the local runs (one client in one round)
    that were asked for, and those that were computed: what several runs have in common makes the difference. `cpu` are
    the runs' seconds of processor time; what several asked for is divided among them. `sources`: the
    files of a user's own that other processes have loaded, with their digests.
    """

    def __init__(self, runs: Sequence[Run], trainer: Trainer, tick: Callable[[], None] | None = None) -> None:
        self.runs, self.trainer, self.tick = runs, trainer, tick
        self.cohorts: Sequence[Sequence[int]] = [range(len(runs))]
        self.enough: Callable[[Run], bool] = lambda run: False
        self.seconds: dict[str, float] = defaultdict(float)
        self.shared = {"asked": 0, "computed": 0}
        self.cpu = [0.0] * len(runs)
        self.sources: dict[str, str] = {}

    def run(self) -> None:
        """Until every run is done, or all have enough."""
        left = [i for i, run in enumerate(self.runs) if not run.done]
        own = [i for i in left if self.runs[i].apart]
        run_isolated(self, own, (*STATE, "pending"))
        for cohort in self.cohorts:
            self.run_together([i for i in cohort if i in left and i not in own])
            if len(self.cohorts) > 1:  # the next has no room for what these remember
                for run in (self.runs[i] for i in cohort if self.runs[i].done):
                    run.state = {name: run.state[name] for name in STATE}

    def run_together(self, all_: Sequence[int]) -> None:
        """The runs of these numbers, in step."""
        waiting: dict[int, tuple[Generator[Any, Any, None], Any]] = {}
        for i in all_:
            self._advance(i, self.runs[i].play(), None, waiting)
        left = None
        while waiting:
            behind = min(self.runs[i].place for i in waiting)
            if behind[0] != left:  # the last run has left a round
                if self.tick:
                    self.tick()
                if all([self.enough(self.runs[i]) for i in all_]):
                    return
            left = behind[0]
            turn = sorted(i for i in waiting if self.runs[i].place == behind)  # the others wait for these
            requests = [(i, r) for i in turn for r in listed(waiting[i][1])]  # number of the run, request
            answers = self.execute([(self.runs[i].env.split, r) for i, r in requests])
            given: dict[int, list[Any]] = defaultdict(list)
            for (i, _), answer in zip(requests, answers, strict=True):
                given[i].append(answer)
                self.cpu[i] += getattr(answer, "took", 0.0)
            for i in turn:
                play, request = waiting.pop(i)
                self._advance(i, play, given[i] if isinstance(request, list) else given[i][0], waiting)

    def _advance(self, i: int, play: Generator[Any, Any, None], answer: Any, waiting: dict[int, Any]) -> None:
        try:
            waiting[i] = (play, play.send(answer))
        except StopIteration:
            return

    def execute(self, jobs: Sequence[tuple[ClientSplit, Request]]) -> list[Any]:
        """Answers in the order of the requests; what several runs ask for is computed once."""
        known: dict[Contents, int] = {}
        # First occurrence of each request: equal ones are branches of a prefix that runs share.
        first = [known.setdefault(content, i) for i, content in enumerate(contents(jobs))]
        computed = sorted(set(first))
        self.shared["asked"] += sum(_local_runs(r) for _, r in jobs)
        self.shared["computed"] += sum(_local_runs(jobs[i][1]) for i in computed)
        answers = dict(zip(computed, self._execute([jobs[i] for i in computed]), strict=True))
        for i, wanted in Counter(first).items():
            if hasattr(answers[i], "took"):
                answers[i].took /= wanted
        # Copies, because a run may change its answer in place.
        return [answers[f] if f == i else deepcopy(answers[f]) for i, f in enumerate(first)]

    def _execute(self, jobs: Sequence[tuple[ClientSplit, Request]]) -> list[Any]:
        answers: list[Any] = [None] * len(jobs)
        train = [i for i, (_, r) in enumerate(jobs) if isinstance(r, Train)]
        with _timed(self.seconds, "train"):
            trained = self.trainer.train([jobs[i] for i in train])  # type: ignore[misc]
        for i, answer in zip(train, trained, strict=True):
            answers[i] = answer
        with _timed(self.seconds, "gradient"), torch.no_grad():
            for i, (split, r) in enumerate(jobs):
                if isinstance(r, Gradient):
                    answers[i] = split.gradients(r)
        with _timed(self.seconds, "evaluate"):
            groups: dict[Any, list[int]] = defaultdict(list)
            for i, (split, r) in enumerate(jobs):
                if isinstance(r, Evaluate):
                    groups[batch_key(split, r)].append(i)
            for members in groups.values():
                split = jobs[members[0]][0]
                requests = [r for r in (jobs[i][1] for i in members) if isinstance(r, Evaluate)]
                before = process_time()
                evaluations = evaluate(split, requests, self.trainer.map)
                each = (process_time() - before) / sum(len(r.x) for r in requests)
                for i, r, evaluated in zip(members, requests, evaluations, strict=True):
                    evaluated.took = each * len(r.x)
                    answers[i] = evaluated
        return answers


def _local_runs(request: Request) -> int:
    return int(np.count_nonzero(request.steps)) if isinstance(request, Train) else 0


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    """Adds the seconds of a block to a counter."""
    start = perf_counter()
    yield
    seconds[name] += perf_counter() - start
