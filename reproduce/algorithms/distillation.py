"""Distillation from the model with which the last session ended: the baseline "Continuous" of dynamic_init."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from reproduce.algorithms.base import Env, FedAvg, Participants, RoundContext, State
from reproduce.declare.values import NonNegative
from reproduce.engine.requests import Train
from reproduce.engine.rule import Rule


@dataclass(frozen=True)
class Distillation(FedAvg):
    """FedAvg with the local loss CE + kappa KL(softmax(teacher) || softmax(student)) over all classes.

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
