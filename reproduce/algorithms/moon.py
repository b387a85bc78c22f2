"""Losses that compare a client's model with others: MOON holds what it sees in a sample to what the server's sees, and
away from its own past; distillation holds its predictions to those of the last session's model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from reproduce.algorithms.base import Env, FedAvg, Participants, RoundContext, State, Tensor, received
from reproduce.declare.values import NonNegative, Positive
from reproduce.engine.requests import Train, Trained
from reproduce.engine.rule import Rule


@dataclass(frozen=True)
class Moon(FedAvg):
    """FedAvg with the local loss CE + mu * -log(e^(a/t) / (e^(a/t) + e^(b/t))) (Li et al., CVPR 2021, eq. 3).

    a and b are the cosines between a sample's representation in the client's model and those in the model that the
    round started from and in the client's previous one, t the `temperature`. The previous model is the one with which
    the client's latest local run ended, in whichever session that was; before its first run a random model of its own.
    mu = 0 is FedAvg.

    from_fingerprint: local runs for a session's fingerprint count as the latest ones (as in the code of
    arXiv 2410.05662); otherwise they leave no trace.
    second_pass: the representation comes from a forward pass of its own in training mode (`Rule.second_pass`), as in
    that code. The code of MOON itself has one pass.

    Memory: `previous` maps clients that have trained to their models [P].
    """

    memory: ClassVar[tuple[str, ...]] = ("previous",)
    per_client: ClassVar[int] = 1

    mu: NonNegative = 1.0
    temperature: Positive = 1.0
    from_fingerprint: bool = True
    second_pass: bool = False

    def setup(self, env: Env, state: State) -> None:
        state.setdefault("previous", {})  # outlives the session

    def fingerprinted(self, state: State, scratch: State) -> None:
        if self.from_fingerprint:
            state["previous"] = scratch["previous"]

    def rule(self) -> Rule:
        plain = super().rule()
        return replace(plain, contrast=self.mu, temperature=self.temperature, second_pass=self.second_pass)

    def reduction(self, env: Env, now: RoundContext, cohort: Participants) -> Tensor | None:
        return None

    def local(self, env: Env, state: State, now: RoundContext, cohort: Participants) -> Train:
        known = state["previous"]
        # [C, P]: the client's last model, or a random one of its own
        rows = [known[m] if m in known else env.initial("previous", m) for m in cohort.ids.tolist()]
        return replace(super().local(env, state, now, cohort), previous=env.stack(rows))

    def aggregate(self, env: Env, state: State, now: RoundContext, cohort: Participants, trained: Trained) -> None:
        start = state["x"]
        weights = env.tensor(self.message_weights(env, now, cohort) * now.arrived[cohort.ids])
        super().aggregate(env, state, now, cohort, Trained(received(weights, trained.updates)[None], summed=True))
        # y_K = X + U_m [P] is the client's previous model from now on
        ends = {m: start + u for m, u in zip(cohort.ids.tolist(), trained.updates, strict=True)}
        state["previous"] = {**state["previous"], **ends}


@dataclass(frozen=True)
class Distillation(FedAvg):
    """FedAvg with the local loss CE + kappa KL(softmax(teacher) || softmax(student)): "Continuous" of dynamic_init.

    After the class-semantic relation distillation of Dong et al. (CVPR 2022), in the form of the code of
    arXiv 2410.05662. The teacher is the last session's final model; in the first session it is the zero model, whose
    predictions are uniform. kappa = 0 is FedAvg.
    """

    memory: ClassVar[tuple[str, ...]] = ("teacher",)

    kappa: NonNegative = 1.0

    def setup(self, env: Env, state: State) -> None:
        stored = state.get("stored")
        state["teacher"] = stored[-1] if stored else env.zeros(env.parameters)

    def rule(self) -> Rule:
        return replace(super().rule(), distill=self.kappa)

    def local(self, env: Env, state: State, now: RoundContext, cohort: Participants) -> Train:
        return replace(super().local(env, state, now, cohort), teacher=state["teacher"])
