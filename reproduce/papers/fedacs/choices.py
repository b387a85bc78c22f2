"""Choices that the paper leaves open, answered another way, one at a time: what the results of FedACS depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from reproduce.algorithms.base import WeightedDraws
from reproduce.algorithms.calibration import Calibration
from reproduce.algorithms.solvers import FadingFedAvg
from reproduce.declare.experiment import Experiment, Label, Panel
from reproduce.papers.fedacs import runs, settings
from reproduce.partitions.named import ClassPerClient, DirichletClass, DirichletClient
from reproduce.systems import System

SYSTEMS: dict[str, Callable[[Any], System]] = {
    "": lambda s: s,
    "halves exchanged": lambda s: replace(
        s,
        work=replace(s.work, first=s.work.second, second=s.work.first),
        link=replace(s.link, first=s.link.second, second=s.link.first),
    ),
    "steps": lambda s: replace(s, work=replace(s.work, unit="steps")),
    "pairing reversed": lambda s: replace(s, link=replace(s.link, pairing="reverse")),
}
"""Changes of a system by name. With the halves exchanged the slow clients own the last classes."""


@dataclass(frozen=True)
class Choice:
    """One answer to a question that the paper leaves open; the defaults are those of Fig. 6.

    rate, rounds: factors of the learning rate and of the rounds. heard: FedNova's effective number of steps is that of
    the clients that were heard. only: the algorithms that it can change; (): all. brief: also asked of the network at
    reduced scale.
    """

    question: str
    answer: str
    partition: Any = field(default=ClassPerClient())
    system: str = "dynamic"
    change: str = ""
    calibration: Calibration | None = field(default=Calibration())
    rate: float = 1.0
    rounds: float = 1.0
    heard: bool = False
    only: tuple[str, ...] = ()
    brief: bool = False


DEFAULT = "as in Fig. 6"
CALIBRATED, FEDNOVA = ("fedacs", "ca_fedavg"), ("fednova",)
CHOICES = (
    Choice("default", DEFAULT, brief=True),
    Choice("slow clients own", "the last five classes", change="halves exchanged", brief=True),
    Choice("slow clients own", "half of every class", partition=ClassPerClient("modulo"), brief=True),
    Choice("partition", "Dirichlet 0.1, per class", partition=DirichletClass(0.1)),
    Choice("partition", "Dirichlet 0.1, per client", partition=DirichletClient(0.1)),
    Choice("T counts", "mini-batches", change="steps"),
    Choice("T counts", "mini-batches, 5 x rate", change="steps", rate=5.0),
    Choice("calibrated", "at the server", calibration=Calibration(target="server"), only=CALIBRATED, brief=True),
    Choice("calibrated", "by the mean over rounds", calibration=Calibration("mean"), only=CALIBRATED),
    Choice("calibrated", "by the mean, at the server", calibration=Calibration("mean", "server"), only=CALIBRATED),
    Choice("calibrated", "not", calibration=None, only=CALIBRATED, brief=True),
    Choice("rate", "4 x", rate=4.0, brief=True),
    Choice("rate", "0.4 x, 2.5 x rounds", rate=0.4, rounds=2.5),
    Choice("rate", "1/10", rate=0.1),
    Choice("rate", "1/50", rate=0.02),
    Choice("rate", "1/50, slow own last five", change="halves exchanged", rate=0.02),
    Choice("rate", "1/50, slow own half of every class", partition=ClassPerClient("modulo"), rate=0.02),
    Choice("static system", "slow clients badly linked", system="static"),
    Choice("static system", "slow clients well linked", system="static", change="pairing reversed"),
    Choice("FedNova's steps", "of those heard", heard=True, only=FEDNOVA),
    Choice("FedNova's steps", "of those heard, 4 x rate", heard=True, rate=4.0, only=FEDNOVA),
)
BRIEF = tuple(c for c in CHOICES if c.brief)
STEEP = tuple(c for c in CHOICES if c.heard or c.answer in (DEFAULT, "4 x", "1/10"))
"""What may explain that FedNova learns nothing on the network."""
FOUR = ("fedacs", "fedavg", "ca_fedavg", "fednova")
ASKED: dict[str, tuple[tuple[settings.NetworkSetting, tuple[str, ...], tuple[Choice, ...], str], ...]] = {
    "paper": ((settings.MNIST, FOUR, CHOICES, ""),),
    "reduced": (
        (settings.SMALL_FASHION, FOUR, CHOICES, ""),
        (settings.LONGER_MNIST, ("fedacs", "fedavg"), BRIEF, ""),
        (settings.LONGER_MNIST, FEDNOVA, STEEP, "-fednova"),
    ),
    "smoke": (
        (settings.BLOBS, ("fedacs", "fedavg"), CHOICES, ""),
        (settings.BLOBS, FEDNOVA, STEEP, "-fednova"),
    ),
}
"""Data set, algorithms, choices, and the end of the panel's name where a data set is asked twice."""


def panels(scale: str) -> tuple[Panel, ...]:
    """One per data set, and the local solver that decays in Fig. 4."""
    found = [
        Panel(
            f"sensitivity-{setting.name.replace('_', '-')}{part}",
            tuple(e for choice in choices for e in varied(choice, setting, algorithms)),
            setting.seeds, setting.substitute,
        )
        for setting, algorithms, choices, part in ASKED[scale]
    ]  # fmt: skip
    return (*found, decays(scale))


def varied(choice: Choice, setting: settings.NetworkSetting, algorithms: tuple[str, ...]) -> Iterator[Experiment]:
    """The algorithms under one choice."""
    rate = choice.rate * setting.rate
    found = runs.benchmarks(rate, setting.draws, choice.calibration, probe_batch=setting.batch)
    asked: dict[str, Label] = {"dataset": setting.name, "question": choice.question, "answer": choice.answer}
    for name in algorithms:
        if choice.only and name not in choice.only:
            continue
        algorithm: Any = found[name]
        if choice.heard:
            algorithm = replace(algorithm, effective_steps="received")
        e: Any = runs.experiment(setting, choice.system, settings.ONE_CLASS, name, algorithm)
        yield replace(
            e,
            labels={**asked, "algorithm": name, "tail": setting.tail},
            problem=replace(e.problem, partition=choice.partition),
            system=SYSTEMS[choice.change](e.system),
            clock=replace(e.clock, rounds=round(choice.rounds * setting.rounds), by_class=False, work=False),
        )


def decays(scale: str) -> Panel:
    """The two readings of the 'decay rate' of Fig. 4, in its system of unequal clients."""
    toy = settings.TOYS[scale]["fig4"]
    known = runs.solvers(toy.draws)
    fading = FadingFedAvg(settings.RATES["fig4"], WeightedDraws(toy.draws), decay=0.005)
    answers = {
        "fedavg_sgd": ("no decay", known["fedavg_sgd"]),
        "fedavg_decay_sgd": ("0.5 % per local step", known["fedavg_decay_sgd"]),
        "fedavg_fading_sgd": ("0.5 % per round", fading),
    }
    labels: dict[str, Label] = {"dataset": "quadratic", "question": "decay of the rate"}
    chosen = [
        ({**labels, "answer": answer, "algorithm": name}, settings.FIG4_SYSTEMS["middle"], solver)
        for name, (answer, solver) in answers.items()
    ]
    return runs.toys(replace(toy, clock=replace(toy.clock, trace=0), substitute=""), "sensitivity-decay", chosen)
