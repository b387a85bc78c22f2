"""Choices that the paper leaves open, answered another way, one at a time: what the results of FedACS depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from reproduce.algorithms.base import WeightedDraws
from reproduce.algorithms.calibration import Calibration
from reproduce.algorithms.solvers import FadingFedAvg
from reproduce.declare.experiment import Experiment, Label, Panel
from reproduce.papers.fedacs import runs
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


@dataclass(frozen=True)
class Asked:
    """A data set that is asked: under these choices, with these algorithms. part: of the panel's name, where a data set
    is asked twice."""

    setting: runs.NetworkSetting
    algorithms: tuple[str, ...] = ("fedacs", "fedavg", "ca_fedavg", "fednova")
    choices: tuple[Choice, ...] = CHOICES
    part: str = ""


LONGER = replace(
    runs.SMALL_MNIST,
    rounds=200,
    seeds=(0, 1),
    substitute="MNIST: 3,000 training images, batches of 32, 200 rounds, rate 0.005",
)
"""The network needs more than the 60 rounds of the other reduced panels."""
ASKED = {
    "paper": (Asked(runs.MNIST),),
    "reduced": (
        Asked(runs.SMALL_FASHION),
        Asked(LONGER, ("fedacs", "fedavg"), BRIEF),
        Asked(LONGER, FEDNOVA, STEEP, "-fednova"),
    ),
    "smoke": (Asked(runs.BLOBS, ("fedacs", "fedavg")), Asked(runs.BLOBS, FEDNOVA, STEEP, "-fednova")),
}


def panels(scale: str) -> tuple[Panel, ...]:
    """One per data set, and the local solver that decays in Fig. 4."""
    return (*map(panel, ASKED[scale]), decays(scale))


def panel(asked: Asked) -> Panel:
    """Every choice on one data set."""
    setting = asked.setting
    experiments = tuple(e for choice in asked.choices for e in varied(choice, setting, asked.algorithms))
    name = f"sensitivity-{setting.name.replace('_', '-')}{asked.part}"
    return Panel(name, experiments, setting.seeds, setting.substitute)


def varied(choice: Choice, setting: runs.NetworkSetting, algorithms: tuple[str, ...]) -> Iterator[Experiment]:
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
        e = runs.experiment(setting, choice.system, runs.ONE_CLASS, name, algorithm)
        problem: Any = e.problem
        yield Experiment(
            {**asked, "algorithm": name, "tail": setting.tail},
            replace(problem, partition=choice.partition),
            SYSTEMS[choice.change](e.system),
            e.algorithm,
            replace(e.clock, rounds=round(choice.rounds * setting.rounds), by_class=False, work=False),
        )


def decays(scale: str) -> Panel:
    """The two readings of the 'decay rate' of Fig. 4, in its system of unequal clients."""
    toy = runs.TOYS[scale]["fig4"]
    solvers = runs.solvers(0.001, toy.draws)
    answers = {
        "fedavg_sgd": ("no decay", solvers["fedavg_sgd"]),
        "fedavg_decay_sgd": ("0.5 % per local step", solvers["fedavg_decay_sgd"]),
        "fedavg_fading_sgd": ("0.5 % per round", FadingFedAvg(0.001, WeightedDraws(toy.draws), decay=0.005)),
    }
    labels: dict[str, Label] = {"dataset": "quadratic", "question": "decay of the rate"}
    chosen = [
        ({**labels, "answer": answer, "algorithm": name}, runs.FIG4_SYSTEMS["middle"], solver)
        for name, (answer, solver) in answers.items()
    ]
    return replace(toy, clock=replace(toy.clock, trace=0), substitute="").panel("sensitivity-decay", chosen)
