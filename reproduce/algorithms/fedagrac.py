"""FedaGrac (Wu et al., TPDS 2023): local steps calibrated towards an estimate of the global gradient; FedLin (Mitra et
al., NeurIPS 2021), which measures that gradient at X."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from reproduce.algorithms.base import Env, FedAvg, Participants, RoundContext, State, Tensor, received
from reproduce.declare.values import Floats, Ints, NonNegative, Whole
from reproduce.engine.requests import Gradient, Request, Train, Trained
from reproduce.engine.rule import Rule


@dataclass
class Measured(Participants):
    """A cohort whose mean gradients [C, P] at the server model are known."""

    gradients: Tensor | None = None


@dataclass(frozen=True)
class FedLin(FedAvg):
    """y <- y - lr_m (g(y) - grad F_m(X) + sum over the cohort of weight_m grad F_m(X)), lr_m = lr * mean(K) / K_m.

    The rate divides by the client's steps as in the paper; the mean of the cohort's steps, weighted, makes `lr` mean
    the same as in the other algorithms. Nothing is sparsified.
    """

    def probe(self, env: Env, state: State, now: RoundContext) -> Generator[Request, Any, Any]:
        return (yield Gradient(now.members, state["x"], now.round))

    def choose(self, env: Env, now: RoundContext, probe: Any) -> Participants:
        return measured(super().choose(env, now, probe), now, probe)

    def local(self, env: Env, state: State, now: RoundContext, cohort: Participants) -> Train:
        assert isinstance(cohort, Measured)
        assert cohort.gradients is not None
        request = super().local(env, state, now, cohort)
        mean = env.tensor(cohort.weight) @ cohort.gradients  # [C] @ [C, P]: the cohort's gradient at X
        # eta_m = eta mean(K) / K_m [C]; a client without samples has 0 steps
        scale = (cohort.weight * request.steps).sum() / np.maximum(request.steps, 1)
        return replace(request, lr=request.lr * scale, correction=mean - cohort.gradients)


def measured(cohort: Participants, now: RoundContext, gradients: Tensor | None) -> Measured:
    """The cohort with its rows of the members' gradients."""
    rows = None if gradients is None else gradients[np.searchsorted(now.members, cohort.ids)]
    return Measured(cohort.ids, cohort.weight, rows)


class Rate(Protocol):
    """A calibration rate lambda as a function of the round (from 0)."""

    def at(self, round: int) -> float: ...


@dataclass(frozen=True)
class Constant:
    """The same lambda in every round."""

    value: NonNegative

    def at(self, round: int) -> float:
        return self.value


@dataclass(frozen=True)
class Increase:
    """values[i] until `ends[i]` rounds are done, the last value from then on; the default is that of Fig. 2(b)."""

    values: tuple[NonNegative, ...] = (0.1, 0.5, 1.0)
    ends: tuple[Whole, ...] = (50, 150)

    def at(self, round: int) -> float:
        return self.values[sum(round >= end for end in self.ends)]


@dataclass(frozen=True)
class FedaGrac(FedAvg):
    """y <- y - lr (g(y) + lambda (nu - nu_m)) locally (Algorithm 1);  nu = sum over the cohort of weight_m s_m.

    nu_m is the mean gradient of the client's last local run, s_m what it sends: its mean or its first gradient. What is
    lost (the paper has no losses) changes neither: nu is the mean of what arrived, and stays if nothing did, and a
    client whose update was lost keeps its nu_m.
    scheme: who sends the first gradient (Sec. 4.2): "fedagrac" - clients with more steps than the weighted mean; "avg"
        - nobody, which with lambda = 1 is SCAFFOLD; "first" - all; "reverse" - clients with at most the mean.
    first_gradient: "single" - the first mini-batch gradient (Algorithm 1); "pass_mean" - replaced by the mean of the
        gradients until the client's pass over its data ends within the round (published code); "full_local" - the
        gradient on all data of the client.
    start: nu and nu_m in the first round: "zeros" (published code) or "full_gradient" (the paper: at the first model).
    own: nu_m of fast clients: "mean" (Algorithm 1 and the code) or "first" (eq. 4).
    """

    memory: ClassVar[tuple[str, ...]] = ("nu", "nu_m")
    per_client: ClassVar[int] = 1

    calibration: Rate = field(default=Constant(1.0))
    scheme: Literal["fedagrac", "avg", "first", "reverse"] = "fedagrac"
    first_gradient: Literal["single", "pass_mean", "full_local"] = "pass_mean"
    start: Literal["zeros", "full_gradient"] = "zeros"
    own: Literal["mean", "first"] = "mean"

    def setup(self, env: Env, state: State) -> None:
        state["nu_m"] = env.zeros(env.clients, env.parameters)
        state["nu"] = env.zeros(env.parameters)

    def probe(self, env: Env, state: State, now: RoundContext) -> Generator[Request, Any, Any]:
        if self.first_gradient == "full_local" or (now.round == 0 and self.start == "full_gradient"):
            return (yield Gradient(now.members, state["x"], now.round))
        return None

    def probe_bytes(self, env: Env, round: int) -> int:
        # Without a mean of all gradients at the start each is a part of the client's local work.
        return super().probe_bytes(env, round) if round == 0 and self.start == "full_gradient" else 0

    def choose(self, env: Env, now: RoundContext, probe: Any) -> Participants:
        return measured(super().choose(env, now, probe), now, probe)

    def rule(self) -> Rule:
        first = "" if self.first_gradient == "full_local" else self.first_gradient
        return replace(super().rule(), mean_gradient=True, first_gradient=first)

    def local(self, env: Env, state: State, now: RoundContext, cohort: Participants) -> Train:
        assert isinstance(cohort, Measured)
        nu, own = state["nu"], state["nu_m"][cohort.ids]
        if now.round == 0 and self.start == "full_gradient":
            assert cohort.gradients is not None
            nu, own = env.tensor(cohort.weight) @ cohort.gradients, cohort.gradients
        correction = self.calibration.at(now.round) * (nu - own)  # lambda (nu - nu_m) [C, P]
        return replace(super().local(env, state, now, cohort), correction=correction)

    def aggregate(self, env: Env, state: State, now: RoundContext, cohort: Participants, trained: Trained) -> None:
        super().aggregate(env, state, now, cohort, trained)
        assert isinstance(cohort, Measured)
        assert trained.mean_gradient is not None
        mean = trained.mean_gradient  # 1/K_m sum_k g(y_k) [C, P]
        first = cohort.gradients if self.first_gradient == "full_local" else trained.first_gradient
        first = mean if first is None else first
        fast = ahead(cohort.weight, now.steps[cohort.ids])  # K_m > mean K [C]
        senders = {"fedagrac": fast, "avg": fast & False, "first": fast | True, "reverse": ~fast}[self.scheme]
        sent = mean.where(~_column(env, senders), first)  # s_m [C, P]: the first gradient of who is fast, Sec. 4.2
        kept = mean.where(~_column(env, fast), first) if self.own == "first" else mean  # nu_m [C, P]
        arrived = now.arrived[cohort.ids]
        state["nu_m"][cohort.ids[arrived]] = kept[arrived]
        weight = cohort.weight * arrived
        if weight.sum() > 0:
            # nu = sum_m p_m s_m over the received updates, their weights made up to those of the cohort [P]
            state["nu"] = received(env.tensor(weight * (cohort.weight.sum() / weight.sum())), sent)


def ahead(weight: Floats, steps: Ints) -> NDArray[np.bool_]:
    """Marks clients with more steps than the mean over the cohort, by its weights (draws, where clients are drawn).

    By more than rounding, which could make equal step counts exceed their own mean, and turn one scheme into another.
    """
    return np.asarray(steps * weight.sum() > (weight * steps).sum() * (1 + 1e-9))


def _column(env: Env, flags: NDArray[np.bool_]) -> Any:
    import torch

    return torch.as_tensor(flags, device=env.tensor(0.0).device)[:, None]
