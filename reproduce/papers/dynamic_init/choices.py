"""Other readings of Algorithm 1 and of the baselines, one at a time: the printed lines, SCAFFOLD as published, and MOON
as the published code runs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from reproduce.algorithms.distilled_prox import DistilledFedProx
from reproduce.algorithms.scaffold import Scaffold
from reproduce.declare.experiment import Experiment, Panel, changed
from reproduce.models.declared import NormConvNet
from reproduce.papers.dynamic_init import runs
from reproduce.papers.dynamic_init.settings import FASHION, GAUSSIAN, SCALES, SessionData, SessionScale
from reproduce.partitions.group_shares import GroupedShares
from reproduce.partitions.groups import label_groups
from reproduce.systems import Epochs
from reproduce.systems.link import Same


class Choice(NamedTuple):
    """An algorithm and a scheme with something changed (`changed`). standard: the algorithm as published, at FedAvg's
    learning rate, since SCAFFOLD's is tuned to the form that the authors' code runs."""

    text: str
    algorithm: str = "fedavg"
    scheme: str = "proposed"
    changes: Mapping[str, Any] = {}
    standard: bool = False


AS_RUN = "as in the tables"
CHOICES = (
    Choice(AS_RUN),
    Choice(AS_RUN, scheme="previous"),
    Choice(AS_RUN, scheme="average"),
    Choice("eq. (4) as printed: one round less, none for V = 1", changes={"clock.start.gradient_index": "V-1"}),
    Choice("eq. (5) as printed: plain distance of the gradients", changes={"clock.start.distance": "global_l2"}),
    Choice("eq. (3) as printed: the model before the last round", changes={"clock.start.save_point": "before_last"}),
    Choice("line 13 as printed: a new pilot after every session", changes={"clock.start.trigger": "every_time"}),
    Choice("session P goes on from the pilot sessions", changes={"clock.start.session_p_start": "carry"}),
    Choice("fingerprints of five rounds (V = 5)", changes={"clock.start.V": 5}),
    Choice("only the last two sessions are mixed", changes={"clock.start.history": 2}),
    Choice("a pilot model that never trained", scheme="random_pilot"),
    Choice(AS_RUN, "scaffold"),
    Choice(AS_RUN, "scaffold", "previous"),
    Choice(AS_RUN, "scaffold", "average"),
    Choice("with control variates", "scaffold", standard=True),
    Choice("with control variates", "scaffold", "previous", standard=True),
    Choice("with control variates", "scaffold", "average", standard=True),
)


def times(factor: float) -> Any:
    """A change of a number."""
    return lambda number: factor * number


FEWER = "20 clients in all"
OTHERS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("three times the rate", {"algorithm.lr": times(3)}),
    ("a third of the rate", {"algorithm.lr": times(1 / 3)}),
    ("an epoch for five steps", {"system.work": Epochs(1)}),
    (FEWER, {}),
    ("a fifth of the updates is lost", {"system.link": Same(0.2)}),
)
MORE = tuple(
    Choice(text, scheme=scheme, changes=changes)
    for text, changes in OTHERS
    for scheme in ("proposed", "previous", "average")
)
"""What the paper leaves open of the whole experiment, not of the method alone: with the schemes beside it."""
WEIGHTS = (
    Choice(AS_RUN, scheme="continuous"),
    Choice("half the weight of the distillation", scheme="continuous", changes={"algorithm.kappa": times(0.5)}),
)
"""The distillation of Continuous, whose weight the paper's lists and its sample command say differently."""
SHARES = {"problem.partition": lambda given: GroupedShares(given.alpha, given.overlap)}
ADDED = {"algorithm": lambda given: DistilledFedProx(given.lr, momentum=given.momentum, kappa=given.kappa, mu=1.0)}
FURTHER = (
    *(Choice("shares of a class over clients", scheme=s, changes=SHARES) for s in ("proposed", "previous", "average")),
    Choice(AS_RUN, "fedprox"),
    Choice(AS_RUN, "fedprox", "continuous"),
    Choice("distillation added to FedProx", "fedprox", "continuous", ADDED),
)
"""Which way the Dirichlet shares go; Continuous as an addition to an algorithm, where the authors' code replaces it."""
DATASETS, ROW = ("mnist", "fashion_mnist"), {"label_overlap": "0.0", "dirichlet_alpha": "0.3", "num_clients": "20"}
"""The settings of Table 3 in which the readings are compared."""
OVERLAPPING = ROW | {"label_overlap": "0.6"}
SIX_TENTHS = {
    "problem.partition": lambda given: replace(given, overlap=0.6),
    "clock.views": runs.views(label_groups(4, 0.6)),
}
OVERLAP = tuple(
    Choice(text, scheme=scheme, changes=changes)
    for text, changes in ((AS_RUN, {}), ("overlap 0.6 for 0.8", SIX_TENTHS))
    for scheme in ("proposed", "previous", "average")
)
"""Table 2's overlap on AG News, where the other tables say 0.8."""
ONCE = "one forward pass a step, as in MOON's own code"
TWICE = "a second forward pass in training mode, as in the code"
MOON = tuple(
    Choice(text, "moon", scheme, changes)
    for text, changes in ((ONCE, {}), (TWICE, {"algorithm.second_pass": True}))
    for scheme in ("proposed", "previous", "average")
)
RUNNING = {
    "smoke": replace(
        GAUSSIAN, name="digits", model=NormConvNet(1, 8, ((3,), (4,)), 5, normalisation="running"), rounds=2,
        substitute="8x8 digits and a small network with running statistics for images, 2 rounds per session",
    ),
    "reduced": replace(
        FASHION, model=NormConvNet(1, 28, ((8,), (16,)), 32, normalisation="running"), rounds=10, rate=(0.05, 0.5),
        batch=32, test_samples=2000,
        substitute="Fashion-MNIST: two convolutions with running statistics from a random start, 10 rounds of batches "
        "of 32 per session, rate 0.05, 2,000 test images",
    ),
}  # fmt: skip
"""A network with running statistics that a processor trains in minutes; those of the paper's tables are larger."""


def sensitivity(scale: str) -> tuple[Panel, ...]:
    """A panel per data set, below paper scale more; one of a network with running statistics, which the linear models
    do not have; and one of news at reduced scale."""
    here = SCALES[scale]
    data = {here.data[name].name: here.data[name] for name in DATASETS}  # one may stand for both
    moon = (_panel("moon", RUNNING[scale], MOON, here),) if scale in RUNNING else ()
    asked = (
        ("sensitivity", CHOICES),
        *([("more", MORE), ("weights", WEIGHTS), ("further", FURTHER)] if scale in RUNNING else []),
    )
    news = (_panel("overlap", here.data["ag_news"], OVERLAP, here, OVERLAPPING),) if scale == "reduced" else ()
    return (*(_panel(kind, d, choices, here) for kind, choices in asked for d in data.values()), *moon, *news)


def _panel(
    kind: str, data: SessionData, choices: tuple[Choice, ...], here: SessionScale, row: Mapping[str, str] = ROW
) -> Panel:
    slug = f"{kind}-{data.name}".replace("_", "-")
    made = tuple(_experiment(choice, data, here, row) for choice in choices)
    return Panel(slug, made, data.seeds or here.groups["20"].seeds, data.substitute)


def _experiment(choice: Choice, data: SessionData, here: SessionScale, settings: Mapping[str, str]) -> Experiment:
    if choice.text == FEWER:
        group = here.groups["20"]
        here = replace(here, groups={**here.groups, "20": replace(group, clients=group.clients // 2)})
    row = {**settings, **here.always, "algorithm": choice.algorithm, "init_scheme": choice.scheme}
    _, _, e = runs.main(row, data, here)
    e = replace(e, labels={**e.labels, "choice": choice.text})
    if choice.standard:
        lr, floor = data.rate_of("fedavg")
        standard = Scaffold(lr, momentum=runs.MOMENTUM, control="displacement")
        e = changed(e, {"algorithm": standard, "clock.floor": floor})
    made: Experiment = changed(e, choice.changes)
    return made
