"""The mean update as a gradient of an optimizer on the server, by what it keeps of earlier rounds.

D [P] is the weighted sum of the received updates. FedAvgM is that of Hsu et al. (arXiv 1909.06335); FedAdagrad, FedAdam
and FedYogi are Algorithm 2 of Reddi et al. (ICLR 2021, arXiv 2003.00295).
"""

from dataclasses import dataclass
from typing import ClassVar

from reproduce.algorithms.base import Env, FedAvg, Participants, RoundContext, State, Tensor
from reproduce.declare.values import Fraction, Positive
from reproduce.engine.requests import Trained


@dataclass(frozen=True)
class FedAvgM(FedAvg):
    """m <- beta m + D;  X <- X + eta_s m. beta = 0 is FedAvg."""

    memory: ClassVar[tuple[str, ...]] = ("m",)

    beta: Fraction = 0.9

    def setup(self, env: Env, state: State) -> None:
        state["m"] = env.zeros(env.parameters)

    def aggregate(self, env: Env, state: State, now: RoundContext, cohort: Participants, trained: Trained) -> None:
        state["m"] = self.beta * state["m"] + trained.sums[0]  # [P]
        state["x"] = state["x"] + self.server_lr * state["m"]


@dataclass(frozen=True)
class FedAdagrad(FedAvg):
    """m <- beta1 m + (1 - beta1) D;  v <- v + D^2;  X <- X + eta_s m / (sqrt(v) + tau), where v starts as tau^2.

    server_lr: eta_s, of the size of a coordinate's step, so that FedAvg's 1 is too long.
    """

    memory: ClassVar[tuple[str, ...]] = ("m", "v")

    server_lr: Positive = 0.1
    beta1: Fraction = 0.0
    tau: Positive = 1e-3

    def setup(self, env: Env, state: State) -> None:
        state["m"] = env.zeros(env.parameters)
        state["v"] = env.zeros(env.parameters) + self.tau**2

    def aggregate(self, env: Env, state: State, now: RoundContext, cohort: Participants, trained: Trained) -> None:
        mean = trained.sums[0]  # D [P]
        state["m"] = self.beta1 * state["m"] + (1 - self.beta1) * mean
        state["v"] = self.second(state["v"], mean**2)
        state["x"] = state["x"] + self.server_lr * state["m"] / (state["v"].sqrt() + self.tau)

    def second(self, v: Tensor, square: Tensor) -> Tensor:
        """The next v [P], given D^2 [P]."""
        return v + square


@dataclass(frozen=True)
class FedAdam(FedAdagrad):
    """v <- beta2 v + (1 - beta2) D^2, all else as in FedAdagrad."""

    beta1: Fraction = 0.9
    beta2: Fraction = 0.99

    def second(self, v: Tensor, square: Tensor) -> Tensor:
        return self.beta2 * v + (1 - self.beta2) * square


@dataclass(frozen=True)
class FedYogi(FedAdam):
    """v <- v - (1 - beta2) D^2 sign(v - D^2), all else as in FedAdam."""

    def second(self, v: Tensor, square: Tensor) -> Tensor:
        return v - (1 - self.beta2) * square * (v - square).sign()
