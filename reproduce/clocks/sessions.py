"""The session clock: clients change between sessions and stay within one. Importable without torch.

Rounds count on through the sessions: session s consists of the rounds s T, ..., (s + 1) T - 1, the history's row
`round` = g + 1 is the evaluation after round g, and row 0 is the random model on the complete test set.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from reproduce.algorithms.base import Env, FedAvg, Play, RoundContext, State, Tensor, observe, record
from reproduce.algorithms.session_starts import Previous, Start
from reproduce.clocks.rounds import synchronous
from reproduce.clocks.step import Clock, diverged, measure, step
from reproduce.declare.values import Count, NonNegative, Probability
from reproduce.errors import UserError
from reproduce.systems.clients import Membership


@dataclass(frozen=True)
class Sessions(Clock):
    """`sessions` sessions of `rounds` rounds (S, T); `start` makes the initial model of each (dynamic_init, Sec. 4).

    views: evaluation view of each group of `membership`, used after every round of its sessions; without any, it is the
        test samples of the labels that the session's clients hold.
    pilots: sessions P at the beginning that train the pilot model; schemes without one skip them, and every scheme
    starts session P from the random model.
    floor, power: in round t of a session the learning rate is floor lr + (1 - floor) lr (1 - t / T)^power, unless
    `lr_decay` says otherwise; a fingerprint is taken with lr / 2.

    Every session, and every fingerprint, begins with fresh memories of the algorithm (`setup`). The clock's entries in
    the state: `opened` the latest session whose initial model has been made, `stored` the stored models of the latest
    sessions from P on, `fingerprints` of all these sessions, `random` the random model, `pilot` the pilot model or the
    sum that becomes it.
    """

    memory: ClassVar[tuple[str, ...]] = ("opened", "pending", "steps_done", "random", "stored", "fingerprints", "pilot")

    sessions: Count
    rounds: Count
    membership: Membership
    views: tuple[str, ...] = ()
    start: Start = field(default=Previous())
    pilots: Count = 1
    floor: Probability = 1.0
    power: NonNegative = 0.9

    def __post_init__(self) -> None:
        if self.pilots >= self.sessions:
            raise ValueError(f"{self.pilots} pilot sessions do not leave any of {self.sessions} sessions")

    def check(self, experiment: Any) -> None:
        """Raises ValueError if the experiment cannot be run by this clock."""
        clients = experiment.problem.clients
        if self.membership.clients != clients:
            raise ValueError(f"the sessions have {self.membership.clients} clients, the problem has {clients}")
        turns = {self.membership.group(session): session for session in range(self.sessions)}
        synchronous(experiment, members=min(self.membership.sizes[group] for group in turns))
        for view in dict.fromkeys(map(self._view, turns.values())):
            experiment.problem.check_view(view)

    def length(self, experiment: Any) -> int:
        """Rounds in all, for progress; a scheme without pilot sessions starts in the middle of them."""
        return self.sessions * self.rounds

    def evaluations(self, experiment: Any) -> int:
        """Evaluations in all."""
        return 1 + (self.sessions - self.pilots) * self.rounds

    @property
    def returns(self) -> int:
        """The first session whose clients have ended an earlier one after the pilot sessions: the first transition at
        which schemes can differ. The number of sessions if there is none."""
        group = self.membership.group
        again = (s for s in range(self.pilots, self.sessions) if group(s) in map(group, range(self.pilots, s)))
        return next(again, self.sessions)

    def samples(self, experiment: Any) -> float:
        """Expected training samples of one run."""
        amounts = experiment.system.work.amounts(0, 0, self.membership.clients)
        steps = 0
        for session in range(0 if self.start.pilot == "trained" else self.pilots, self.sessions):
            rounds = self.rounds + (self.start.rounds if session >= self.pilots else 0)
            steps += rounds * amounts[self.membership.members(session)].sum()
        return float(steps * experiment.problem.batches.size)

    def rate(self, lr: float, t: int) -> float:
        """The learning rate in round t of a session."""
        if self.lr_decay:
            return float(self.decayed(lr, t, self.rounds))
        return lr * (self.floor + (1 - self.floor) * (1 - t / self.rounds) ** self.power)

    def play(self, env: Env, algorithm: FedAvg, state: State) -> Play:
        """The requests of the run from `state["round"]` on."""
        if "opened" not in state:
            self._check_data(env)
            first = 0 if self.start.pilot == "trained" else self.pilots * self.rounds
            self.begin(
                state,
                round=first,
                opened=-1,
                pending=True,
                steps_done=np.zeros(env.clients, dtype=np.int64),
                random=state["x"],
                stored=[],
                fingerprints=[],
            )
            if self.start.pilot == "trained":
                state["pilot"] = env.zeros(env.parameters)
        while True:
            if state["pending"]:
                yield from self._evaluate(env, algorithm, state)
                state["pending"] = False
            if state["round"] == self.sessions * self.rounds or state["status"] != "ok":
                return
            session, t = divmod(state["round"], self.rounds)
            if state["opened"] < session:
                yield from self._open(env, algorithm, state, session)
                if state["status"] != "ok":
                    return
            now = self._now(env, algorithm, session, state["round"], self.rate(algorithm.lr, t), state["steps_done"])
            before = state["x"]
            done = yield from step(env, algorithm, state, algorithm.round(env, state, now), now.weights(env))
            state["steps_done"] = state["steps_done"] + done
            state["round"] += 1
            state["pending"] = not diverged(env, state) and session >= self.pilots
            if t + 1 == self.rounds:
                self._close(state, session, before if self.start.save_point == "before_last" else state["x"])

    def _evaluate(self, env: Env, algorithm: FedAvg, state: State) -> Play:
        if not state["history"]:
            yield from measure(env, algorithm, state, 0)
        else:
            session = (state["round"] - 1) // self.rounds
            yield from measure(env, algorithm, state, state["round"], self._view(session))

    def _view(self, session: int) -> str:
        if self.views:
            return self.views[self.membership.group(session)]
        return "held:" + ",".join(map(str, self.membership.members(session)))

    def _check_data(self, env: Env) -> None:
        """Raises UserError if a session's clients have no samples, which the split decides."""
        for session in range(self.sessions):
            if not env.samples[self.membership.members(session)].any():
                raise UserError(f"the clients of session {session} hold no samples: use fewer clients or another split")

    def _now(
        self, env: Env, algorithm: FedAvg, session: int, round: int, lr: float, steps_done: np.ndarray
    ) -> RoundContext:
        """The system in a round: the session's clients and the session's learning rate."""
        now = observe(env, algorithm, round, steps_done, lr)
        return replace(now, members=self.membership.members(session))

    def _open(self, env: Env, algorithm: FedAvg, state: State, session: int) -> Play:
        """Make the initial model of a session. All requests come first; then the state changes at once."""
        scratch, mixture = None, {}  # mixture: metric -> one number per stored model
        if session >= self.pilots and self.start.pilot:
            scratch = yield from self._fingerprint(env, algorithm, state, session)
        state["opened"] = session
        if scratch is not None:
            state["fingerprints"].append(env.only_trained(scratch["x"] - scratch["pilot"]))
            mixture["distance"] = self.start.distances(state["fingerprints"], env.trained)
            algorithm.fingerprinted(state, scratch)
            state.update({"sent": scratch["sent"]} if self.traffic else {})
        if session == self.pilots:
            # Batches are counted from here on: schemes with and without pilot sessions then ask for the same ones.
            state["steps_done"] = np.zeros(env.clients, dtype=np.int64)
        if session == self.pilots and self.start.session_p_start == "random":
            state["x"] = state["random"]
        elif session > self.pilots and state["stored"]:
            mixture["alpha"] = self.start.weights(len(state["stored"]), mixture.get("distance", np.empty(0)))
            if not np.isfinite(mixture["alpha"]).all():  # a fingerprint diverged, though no session did
                state["status"] = "diverged"
                return
            state["x"] = mixed(mixture["alpha"], state["stored"])
        for metric, values in mixture.items():
            for z, value in enumerate(values, start=session - len(values)):
                record(state, session * self.rounds, metric, value, key=f"{session}:{z}")
        algorithm.setup(env, state)

    def _fingerprint(self, env: Env, algorithm: FedAvg, state: State, session: int) -> Generator[Any, Any, State]:
        """A few rounds of the session's clients from the pilot model, in a state of their own, which is returned.

        Their batches are those of rounds beyond the end of the run.
        """
        pilot = self._pilot(env, state)
        scratch: State = {**state, "x": pilot, "pilot": pilot}
        algorithm.setup(env, scratch)
        for v in range(self.start.rounds):
            round = self.sessions * self.rounds + session * self.start.rounds + v
            now = self._now(env, algorithm, session, round, algorithm.lr / 2, state["steps_done"])
            yield from step(env, algorithm, scratch, algorithm.round(env, scratch, now), now.weights(env))
        return scratch

    def _pilot(self, env: Env, state: State) -> Tensor:
        if self.start.pilot == "trained":
            return state["pilot"]  # type: ignore[no-any-return]
        return env.random("pilot") if self.start.pilot == "fully_random" else env.initial("pilot")

    def _close(self, state: State, session: int, model: Tensor) -> None:
        """Stores `model` [P] at the end of a session. A pilot session adds its share to the mean `state["pilot"]`; a
        later one appends to `state["stored"]`. With the trigger "every_time", the first `pilots` stored models are
        averaged into the pilot model, and the store is emptied."""
        if session < self.pilots:
            state["pilot"] = state["pilot"] + model / self.pilots
            return
        state["stored"].append(model)
        if self.start.trigger == "every_time" and len(state["stored"]) == self.pilots:
            state["pilot"] = mixed(np.full(self.pilots, 1 / self.pilots), state["stored"])
            state["stored"] = []


def mixed(alpha: np.ndarray, models: list[Tensor]) -> Tensor:
    """sum_z alpha_z models_z; a model without weight is left out, so that weight 1 gives the model itself."""
    chosen = [(float(a), model) for a, model in zip(alpha, models, strict=True) if a > 0]
    if len(chosen) == 1 and chosen[0][0] == 1:
        return chosen[0][1]
    total = chosen[0][0] * chosen[0][1]
    for a, model in chosen[1:]:
        total = total + a * model
    return total
