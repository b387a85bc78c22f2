"""SCAFFOLD (Karimireddy et al., ICML 2020): control variates take the difference of the clients out of their steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reproduce.algorithms.base import Cohort, FedAvg, Now, State
from reproduce.algorithms.rule import Rule
from reproduce.engine.requests import Train, Trained

if TYPE_CHECKING:
    from reproduce.engine.task import Env


@dataclass(frozen=True)
class Scaffold(FedAvg):
    """y <- y - lr (g(y) + c - c_m) locally;  X <- X + server_lr * sum weight_m U_m;  c = sum over all of w_m c_m.

    c_m is the mean of the client's raw gradients in its last local run. That is Option II of the paper's Algorithm 1,
    c_m - c + (X - y_K) / (lr K), for plain SGD; in this form it holds for every local rule. All c_m are 0 at the start;
    the weights of the objective stand in for the paper's 1/N.
    """

    def setup(self, env: Env, state: State) -> None:
        state["c_m"] = env.zeros(env.clients, env.parameters)
        state["c"] = env.zeros(env.parameters)

    def rule(self) -> Rule:
        return replace(super().rule(), mean_gradient=True)

    def local(self, env: Env, state: State, now: Now, cohort: Cohort) -> Train:
        return replace(super().local(env, state, now, cohort), correction=state["c"] - state["c_m"][cohort.ids])

    def aggregate(self, env: Env, state: State, now: Now, cohort: Cohort, trained: Trained) -> None:
        super().aggregate(env, state, now, cohort, trained)
        assert trained.mean_gradient is not None
        state["c_m"][cohort.ids] = trained.mean_gradient
        state["c"] = env.tensor(env.weights) @ state["c_m"]
