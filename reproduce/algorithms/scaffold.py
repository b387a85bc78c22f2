"""SCAFFOLD (Karimireddy et al., ICML 2020): control variates take the difference of the clients out of their steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from reproduce.algorithms.base import Env, FedAvg, Names, Participants, RoundContext, State, Tensor, received
from reproduce.engine.requests import Train, Trained
from reproduce.engine.rule import Rule


@dataclass(frozen=True)
class Scaffold(FedAvg):
    """y <- y - lr (g(y) + c - c_m) locally;  X <- X + server_lr * sum weight_m U_m;  c = sum over all of w_m c_m.

    c_m is the mean of the client's raw gradients in its last local run. That is Option II of the paper's Algorithm 1,
    c_m - c + (X - y_K) / (lr K), for plain SGD; in this form it holds for every local rule. With control "displacement"
    Option II is taken literally, the accumulation norm A_m in place of K: for momentum that is the mean with the
    weights that the rule gives the gradients. All c_m are 0 at the start; the weights of the objective (among the
    clients that exist in the round) stand in for the paper's 1/N. A client whose message is lost keeps the c_m that the
    server knows, so that c remains their mean.
    """

    memory: ClassVar[tuple[str, ...]] = ("c", "c_m")
    per_client: ClassVar[int] = 1

    control: Literal["mean_gradient", "displacement"] = "mean_gradient"

    def setup(self, env: Env, state: State) -> None:
        state["c_m"] = env.zeros(env.clients, env.parameters)
        state["c"] = env.zeros(env.parameters)

    def rule(self) -> Rule:
        return replace(super().rule(), mean_gradient=self.control == "mean_gradient")

    def reduction(self, env: Env, now: RoundContext, cohort: Participants) -> Tensor | None:
        return None if self.control == "displacement" else super().reduction(env, now, cohort)

    def local(self, env: Env, state: State, now: RoundContext, cohort: Participants) -> Train:
        # c - c_m [C, P], added to every gradient
        return replace(super().local(env, state, now, cohort), correction=state["c"] - state["c_m"][cohort.ids])

    def aggregate(self, env: Env, state: State, now: RoundContext, cohort: Participants, trained: Trained) -> None:
        if self.control == "displacement":
            length = env.tensor(self.learning_rate(env, now) * now.norm[cohort.ids])[:, None]
            # Option II: c_m - c + (X - y_K) / (A_m lr) [C, P]
            mean_gradient = state["c_m"][cohort.ids] - state["c"] - trained.updates / length
            weights = env.tensor(self.message_weights(env, now, cohort) * now.arrived[cohort.ids])
            trained = Trained(received(weights, trained.updates)[None], mean_gradient, summed=True)
        super().aggregate(env, state, now, cohort, trained)
        assert trained.mean_gradient is not None
        sends = (now.steps[cohort.ids] > 0) & now.arrived[cohort.ids]  # without data there is nothing to send
        state["c_m"][cohort.ids[sends]] = trained.mean_gradient[sends]
        w = env.weights[now.members] / env.weights[now.members].sum()
        state["c"] = env.tensor(w) @ state["c_m"][now.members]  # c = sum_m w_m c_m [P]


@dataclass(frozen=True)
class ScaffoldAsReleased(FedAvg):
    """X <- X + lr_t sum weight_m U_m: what the code of arXiv 2410.05662 runs under the name SCAFFOLD.

    Its control variates are computed but never applied, and the local learning rate of the round is the server's step.
    """

    names: ClassVar[Names] = {"scaffold_released": {}}
    averages_statistics: ClassVar[bool] = False

    def aggregate(self, env: Env, state: State, now: RoundContext, cohort: Participants, trained: Trained) -> None:
        state["x"] = state["x"] + self.learning_rate(env, now) * trained.sums[0]
