"""The session clock: clients change between sessions and stay within one. Importable without torch.

Rounds count on through the sessions: session s consists of the rounds s T, ..., (s + 1) T - 1, the history's row
`round` = g + 1 is the evaluation after round g, and row 0 is the random model on the complete test set.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduce.algorithms.base import observe, record
from reproduce.algorithms.session_starts import Previous, Start
from reproduce.clocks.record import diverged, measure
from reproduce.clocks.rounds import synchronous
from reproduce.systems.membership import Alternating

if TYPE_CHECKING:
    from torch import Tensor

    from reproduce.algorithms.base import FedAvg, Now, State
    from reproduce.engine.task import Env

Play = Generator[Any, Any, None]


@dataclass(frozen=True)
class Sessions:
    """`sessions` sessions of `rounds` rounds (S, T); `start` makes the initial model of each (dynamic_init, Sec. 4).

    views: evaluation view of each group of `membership`, used after every round of its sessions.
    pilots: sessions P at the beginning that train the pilot model; schemes without one skip them, and every scheme
    starts session P from the random model.
    floor, power: in round t of a session the learning rate is floor lr + (1 - floor) lr (1 - t / T)^power; a
    fingerprint is taken with lr / 2.

    Every session, and every fingerprint, begins with fresh memories of the algorithm (`setup`). The clock's entries in
    the state: `opened` the latest session whose initial model has been made, `finals` the models that ended the
    sessions from P on, `fingerprints` of the same sessions, `random` the random model, `pilot` the pilot model or the
    sum that becomes it.
    """

    sessions: int
    rounds: int
    membership: Alternating
    views: tuple[str, ...]
    start: Start = field(default=Previous())
    pilots: int = 1
    floor: float = 1.0
    power: float = 0.9

    def __post_init__(self) -> None:
        if len(self.views) != self.membership.groups:
            raise ValueError(f"{len(self.views)} evaluation views for {self.membership.groups} groups of clients")
        if not 1 <= self.pilots < self.sessions:
            raise ValueError(f"{self.pilots} pilot sessions do not leave any of {self.sessions} sessions")

    def check(self, experiment: Any) -> None:
        """Raises ValueError if the experiment cannot be run by this clock."""
        clients = experiment.problem.clients
        if self.membership.clients != clients:
            raise ValueError(f"the sessions have {self.membership.clients} clients, the problem has {clients}")
        synchronous(experiment, members=min(len(self.membership.members(s)) for s in range(self.sessions)))
        for view in self.views:
            experiment.problem.check_view(view)

    @property
    def length(self) -> int:
        """Rounds in all, for progress; a scheme without pilot sessions starts in the middle of them."""
        return self.sessions * self.rounds

    @property
    def evaluations(self) -> int:
        return 1 + (self.sessions - self.pilots) * self.rounds

    def samples(self, experiment: Any) -> float:
        """Expected training samples of one run."""
        fingerprints = self.start.rounds * (self.sessions - self.pilots)
        sessions = self.sessions - (0 if self.start.pilot == "trained" else self.pilots)
        amounts = experiment.system.work.amounts(0, 0, self.membership.clients)[: self.membership.clients_per_group]
        return float((sessions * self.rounds + fingerprints) * amounts.sum() * experiment.problem.batches.size)

    def rate(self, lr: float, t: int) -> float:
        """The learning rate in round t of a session."""
        return lr * (self.floor + (1 - self.floor) * (1 - t / self.rounds) ** self.power)

    def play(self, env: Env, algorithm: FedAvg, state: State) -> Play:
        """The requests of the run from `state["round"]` on."""
        if "opened" not in state:
            first = 0 if self.start.pilot == "trained" else self.pilots * self.rounds
            state.update(
                round=first,
                opened=-1,
                pending=True,
                steps_done=np.zeros(env.clients, dtype=np.int64),
                random=state["x"],
                finals=[],
                fingerprints=[],
            )
            if self.start.pilot == "trained":
                state["pilot"] = env.zeros(env.parameters)
        while True:
            if state["pending"]:
                yield from self._evaluate(env, algorithm, state)
                state["pending"] = False
            if state["round"] == self.length or state["status"] != "ok":
                return
            session, t = divmod(state["round"], self.rounds)
            if state["opened"] < session:
                yield from self._open(env, algorithm, state, session)
            now = self._now(env, algorithm, session, state["round"], self.rate(algorithm.lr, t), state["steps_done"])
            yield from algorithm.round(env, state, now)
            state["steps_done"][now.members] += now.steps[now.members]
            state["round"] += 1
            state["pending"] = not diverged(state) and session >= self.pilots
            if t + 1 == self.rounds:
                self._close(state, session)

    def _evaluate(self, env: Env, algorithm: FedAvg, state: State) -> Play:
        if not state["history"]:
            yield from measure(env, algorithm, state, 0)
        else:
            session = (state["round"] - 1) // self.rounds
            yield from measure(env, algorithm, state, state["round"], self.views[self.membership.group(session)])

    def _now(self, env: Env, algorithm: FedAvg, session: int, round: int, lr: float, steps_done: np.ndarray) -> Now:
        """The system in a round: the session's clients and the session's learning rate."""
        now = observe(env, algorithm, round, steps_done)
        return replace(now, members=self.membership.members(session), lr=lr, norm=algorithm.norms(now.steps, lr))

    def _open(self, env: Env, algorithm: FedAvg, state: State, session: int) -> Play:
        """Make the initial model of a session. All requests come first; then the state changes at once."""
        fingerprint, mixture = None, {}  # mixture: metric -> one number per stored model
        if session >= self.pilots and self.start.pilot:
            fingerprint = yield from self._fingerprint(env, algorithm, state, session)
        state["opened"] = session
        if fingerprint is not None:
            state["fingerprints"].append(fingerprint)
            mixture["distance"] = self.start.distances(state["fingerprints"], env.blocks)
        if session == self.pilots:
            # Batches are counted from here on: schemes with and without pilot sessions then ask for the same ones.
            state["steps_done"] = np.zeros(env.clients, dtype=np.int64)
        if session == self.pilots and not self.start.carry:
            state["x"] = state["random"]
        elif session > self.pilots:
            mixture["alpha"] = self.start.weights(len(state["finals"]), mixture.get("distance", np.empty(0)))
            state["x"] = mixed(mixture["alpha"], state["finals"])
        for metric, values in mixture.items():
            for z, value in enumerate(values, start=self.pilots):
                record(state, session * self.rounds, metric, value, key=f"{session}:{z}")
        algorithm.setup(env, state)

    def _fingerprint(self, env: Env, algorithm: FedAvg, state: State, session: int) -> Generator[Any, Any, Tensor]:
        """Displacement of the pilot model by a few rounds of the session's clients; leaves the state as it is.

        Their batches are those of rounds beyond the end of the run.
        """
        pilot = state["pilot"] if self.start.pilot == "trained" else env.initial("pilot")
        scratch: State = {"x": pilot, "finals": state["finals"], "work": 0.0}
        algorithm.setup(env, scratch)
        for v in range(self.start.rounds):
            round = self.length + session * self.start.rounds + v
            now = self._now(env, algorithm, session, round, algorithm.lr / 2, state["steps_done"])
            yield from algorithm.round(env, scratch, now)
        return scratch["x"] - pilot

    def _close(self, state: State, session: int) -> None:
        """Keep the session's final model."""
        if session >= self.pilots:
            state["finals"].append(state["x"])
        else:
            state["pilot"] = state["pilot"] + state["x"] / self.pilots


def mixed(alpha: np.ndarray, models: list[Tensor]) -> Tensor:
    """sum_z alpha_z models_z; a model without weight is left out, so that weight 1 gives the model itself."""
    chosen = [(float(a), model) for a, model in zip(alpha, models, strict=True) if a > 0]
    if len(chosen) == 1 and chosen[0][0] == 1:
        return chosen[0][1]
    total = chosen[0][0] * chosen[0][1]
    for a, model in chosen[1:]:
        total = total + a * model
    return total
