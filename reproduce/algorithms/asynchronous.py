"""Server rules of asynchronous training: what the server makes of the updates of one aggregation.

Which updates these are, and from which models they started, is decided by the clock alone (`systems.schedule`). So one
rule serves FedAvg, DeFedAvg-nIID, DeFedAvg-IID, FedBuff and AsySG; FAVANO averages models instead of updates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from reproduce.algorithms.base import Env, FedAvg, Full, Names, Play, State, Tensor
from reproduce.declare.values import Floats, Ints, NonNegative
from reproduce.engine.requests import Train, Trained


@dataclass
class Arrivals:
    """The C updates of one aggregation; a client may occur twice.

    clients, jobs, steps, staleness [C]; weight [C]: shares given by the schedule; start [P] or [C, P]: the models that
    the clients started from; limit: K, the local steps of a complete job; lr [C]: the clock's learning rates, None
    leaves them to the algorithm.
    """

    clients: Ints
    jobs: Ints
    steps: Ints
    staleness: Ints
    weight: Floats
    start: Tensor
    limit: int
    lr: Floats | None = None

    def weights(self, request: Train) -> Floats:
        """The shares [C] of the clients of a request, of a client that occurs several times in the mean."""
        total = np.bincount(self.clients, self.weight, minlength=int(request.clients.max()) + 1)
        return total[request.clients] / np.maximum(np.bincount(self.clients, minlength=len(total))[request.clients], 1)

    @property
    def kept(self) -> float:
        """The server's own share if it takes the updates by their shares."""
        return max(0.0, 1 - float(self.weight.sum()))


@dataclass(frozen=True)
class Asynchronous(FedAvg):
    """w <- w - server_lr * sum_i weight_i Delta_i with Delta_i = start - end of client i's job.

    FedAvg (DeFedAvg, eqs. 2-3 with the sign of eqs. 5-6), DeFedAvg-nIID (Alg. 1, eqs. 4-8), DeFedAvg-IID (Alg. 2),
    FedBuff (Nguyen et al., AISTATS 2022, Alg. 1), and AsySG-con (Lian et al., NeurIPS 2015, Alg. 1) as jobs of one
    step with lr = 1 and the mean of the gradients instead of their sum.

    staleness_power: a weight is divided by (1 + staleness)^power (FedBuff's experiments: 0.5); 0 leaves it.
    """

    names: ClassVar[Names] = {name: {} for name in ("defedavg_iid", "defedavg_niid", "fedbuff", "asysg")}

    staleness_power: NonNegative = 0.0

    def check(self, problem: Any, system: Any) -> None:
        super().check(problem, system)
        if self.rule().network_terms or self.participation != Full():
            raise ValueError("an asynchronous rule has plain SGD as local work, and its schedule says who takes part")

    def aggregation(self, env: Env, state: State, arrivals: Arrivals) -> Play:
        """One server step as a generator of requests; `state` changes only after the last one."""
        trained = yield Train(
            clients=arrivals.clients,
            steps=arrivals.steps,
            start=arrivals.start,
            lr=self.lr if arrivals.lr is None else arrivals.lr,
            round=arrivals.jobs,
            rule=self.rule(),
            weights=env.tensor(self.shares(state, arrivals)[None, :]),
        )
        self.combine(env, state, arrivals, trained)
        state["work"] += env.processed(arrivals.clients, arrivals.steps)

    def shares(self, state: State, arrivals: Arrivals) -> Floats:
        """Factors [C] of the updates end - start in the server's step."""
        # eta_s p_i / (1 + tau_i)^power [C]
        return self.server_lr * arrivals.weight / (1.0 + arrivals.staleness) ** self.staleness_power

    def combine(self, env: Env, state: State, arrivals: Arrivals, trained: Trained) -> None:
        """The server step; changes `state` in place."""
        state["x"] = state["x"] + trained.sums[0]  # w - sum_i share_i Delta_i, Delta_i = start - end [P]


@dataclass(frozen=True)
class Favano(Asynchronous):
    """w <- (w + sum_i u_i) / (n + 1), u_i = start_i + (end_i - start_i) / alpha_i (Leconte et al., arXiv 2305.16099).

    q_i <= K is how many steps client i has completed since the server last contacted it. normalisation: "none" -
    alpha_i = 1; "deterministic" - an estimate of E[min(q_i, K)]; "stochastic" - an estimate of P(q_i > 0), times q_i.
    The estimates are client i's means over its earlier contacts, to which one contact with q = K is added.
    """

    memory: ClassVar[tuple[str, ...]] = ("contacts", "positive", "completed")

    normalisation: Literal["none", "deterministic", "stochastic"] = "none"

    def setup(self, env: Env, state: State) -> None:
        state.update(contacts=np.ones(env.clients), positive=np.ones(env.clients), completed=np.zeros(env.clients))

    def shares(self, state: State, arrivals: Arrivals) -> Floats:
        return arrivals.weight / self.alpha(state, arrivals)

    def alpha(self, state: State, arrivals: Arrivals) -> Floats:
        """Returns the divisors of the clients' progress [C]; 1 where there is none."""
        who, q = arrivals.clients, arrivals.steps.astype(float)
        if self.normalisation == "none":
            return np.ones(len(who))
        if self.normalisation == "deterministic":
            expected: Floats = (arrivals.limit + state["completed"][who]) / state["contacts"][who]
            return expected
        return np.where(q > 0, state["positive"][who] / state["contacts"][who] * q, 1.0)

    def combine(self, env: Env, state: State, arrivals: Arrivals, trained: Trained) -> None:
        weight, start = env.tensor(arrivals.weight), arrivals.start
        starts = weight.sum() * start if start.dim() == 1 else weight @ start  # sum_i start_i / (n + 1) [P]
        # (w + sum_i start_i + sum_i (end_i - start_i) / alpha_i) / (n + 1), where the weights are 1 / (n + 1) each
        state["x"] = (1 - weight.sum()) * state["x"] + starts + trained.sums[0]
        # Clients of a FAVANO round are distinct (drawn without replacement).
        memory = {name: state[name].copy() for name in ("contacts", "positive", "completed")}
        memory["contacts"][arrivals.clients] += 1
        memory["positive"][arrivals.clients] += arrivals.steps > 0
        memory["completed"][arrivals.clients] += arrivals.steps
        state.update(memory)
