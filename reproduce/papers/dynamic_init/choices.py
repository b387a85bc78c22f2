"""Other readings of Algorithm 1 and of the baselines, one at a time: the printed lines, SCAFFOLD as published, and MOON
as the published code runs it."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from operator import mul
from typing import Any, NamedTuple

from reproduce.algorithms.scaffold import Scaffold
from reproduce.declare.experiment import Experiment, Panel, changed
from reproduce.models.declared import NormConvNet
from reproduce.papers.dynamic_init import runs, variants
from reproduce.papers.dynamic_init.settings import FASHION, FEW, GAUSSIAN, SCALES, SessionData, SessionScale
from reproduce.partitions.groups import GroupedShares, label_groups
from reproduce.systems import Epochs
from reproduce.systems.link import Same


class Choice(NamedTuple):
    """An algorithm and a scheme with something changed (`changed`). standard: the algorithm as published, at FedAvg's
    learning rate, since SCAFFOLD's is tuned to the form that the authors' code runs. row: further settings."""

    text: str
    algorithm: str = "fedavg"
    scheme: str = "proposed"
    changes: Mapping[str, Any] = {}
    standard: bool = False
    row: Mapping[str, str] = {}


THREE = ("proposed", "previous", "average")


def compared(text: str, changes: Mapping[str, Any], algorithm: str = "fedavg", **more: Any) -> tuple[Choice, ...]:
    """One change, under each of the schemes that are compared."""
    return tuple(Choice(text, algorithm, scheme, changes, **more) for scheme in THREE)


AS_RUN = "as in the tables"
CHOICES = (
    *compared(AS_RUN, {}),
    Choice("eq. (4) as printed: one round less, none for V = 1", changes={"clock.start.gradient_index": "V-1"}),
    Choice("eq. (5) as printed: plain distance of the gradients", changes={"clock.start.distance": "global_l2"}),
    Choice("eq. (3) as printed: the model before the last round", changes={"clock.start.save_point": "before_last"}),
    Choice("line 13 as printed: a new pilot after every session", changes={"clock.start.trigger": "every_time"}),
    Choice("session P goes on from the pilot sessions", changes={"clock.start.session_p_start": "carry"}),
    Choice("fingerprints of five rounds (V = 5)", changes={"clock.start.V": 5}),
    Choice("only the last two sessions are mixed", changes={"clock.start.history": 2}),
    Choice("a pilot model that never trained", scheme="random_pilot"),
    *compared(AS_RUN, {}, "scaffold"),
    *compared("with control variates", {}, "scaffold", standard=True),
)


FEWER = "20 clients in all"
TRIPLED = {"algorithm.lr": partial(mul, 3)}
MORE = (
    *compared("three times the rate", TRIPLED),
    *compared("a third of the rate", {"algorithm.lr": partial(mul, 1 / 3)}),
    *compared("an epoch for five steps", {"system.work": Epochs(1)}),
    *compared(FEWER, {}),
    *compared("a fifth of the updates is lost", {"system.link": Same(0.2)}),
)
"""What the paper leaves open of the whole experiment, not of the method alone: with the schemes beside it."""
WEIGHTS = (
    Choice(AS_RUN, scheme="continuous"),
    Choice("half the weight of the distillation", scheme="continuous", changes={"algorithm.kappa": partial(mul, 0.5)}),
)
"""The distillation of Continuous, whose weight the paper's lists and its sample command say differently."""
SHARES = {"problem.partition": lambda partition: GroupedShares(partition.alpha, partition.overlap)}
DISTILLED = {
    "fedprox": variants.DistilledFedProx, "scaffold": variants.DistilledScaffold, "fedacg": variants.DistilledFedACG,
}  # fmt: skip


def added(name: str) -> Choice:
    """Distillation added to an algorithm that has the fields of the tables."""
    names = {"fedprox": "FedProx", "scaffold": "SCAFFOLD", "fedacg": "FedACG"}
    local = {"algorithm": lambda base: DISTILLED[name](**vars(runs.algorithm(name, base.lr, FEW)), kappa=base.kappa)}
    return Choice(f"distillation added to {names[name]}", name, "continuous", local)


FURTHER = (
    *compared("shares of a class over clients", SHARES),
    Choice(AS_RUN, "fedprox"),
    Choice(AS_RUN, "fedprox", "continuous"),
    added("fedprox"),
)
"""Which way the Dirichlet shares go; Continuous as an addition to an algorithm, where the authors' code replaces it."""
SHORTER = {"clock.rounds": lambda rounds: round(2 * rounds / 3)}


def fingerprinted(share: float) -> Mapping[str, Any]:
    """Fingerprints at a share of the first rate."""
    return {"clock": lambda clock: variants.OtherFingerprints(**vars(clock), share=share)}


LAST = (
    Choice("fingerprints at the whole first rate", changes=fingerprinted(1.0)),
    Choice("fingerprints at a twentieth of the first rate", changes=fingerprinted(0.05)),
    *(Choice("two thirds of the rounds", scheme=s, changes=SHORTER) for s in ("proposed", "previous", "continuous")),
    Choice(AS_RUN, "fedacg"),
    Choice(AS_RUN, "scaffold", "continuous"),
    *(added(name) for name in ("scaffold", "fedacg")),
)
"""The rate of fingerprints; 100 rounds for 150; Continuous as an addition to the others."""
TWICE_AS_MANY = "Table 9: 20 clients in all"
HALF = {"label_distribution": "half"}
HALVES = (
    *compared("Table 9", {}, row=HALF),
    *compared(TWICE_AS_MANY, {}, row=HALF),
    *compared("Table 9: three times the rate", TRIPLED, row=HALF),
)
"""Clients and rates of Tables 8 to 14."""
OTHER_SETS = (tuple(range(2, 6)), tuple(range(6, 10)), (0, 1))
OTHER_LABELS = {"problem.partition.label_sets": OTHER_SETS, "clock.views": runs.views(OTHER_SETS)}
LATEST = {"label_distribution": "unseen", "num_clients": "20"}
UNSEEN = (
    *compared("Table 12", {}, row=LATEST),
    *compared("Table 12: the labels 0 and 1 unseen", OTHER_LABELS, row=LATEST),
    *compared("Table 12: sessions B A B A B C", {"clock.membership.order": (1, 0, 1, 0, 1, 2)}, row=LATEST),
)
"""Labels and sessions of Table 12, of whose last session the numbers are: the one after the second transition."""
KINDS = {"half": "half of the labels", "partial_overlap": "partial overlap"}
SCALED = tuple(
    Choice(f"Table 13: {words}, R = {R}", algorithm, row={"label_distribution": kind, "similarity_scale": R})
    for algorithm in ("fedavg", "fedprox")
    for kind, words in KINDS.items()
    for R in ("50", "140")
)
"""Both distributions of Table 13 with both algorithms, at the least and the largest R that it has for SVHN."""
DATASETS, ROW = ("mnist", "fashion_mnist"), {"label_overlap": "0.0", "dirichlet_alpha": "0.3", "num_clients": "20"}
"""The settings of Table 3 in which the readings are compared."""
OVERLAPPING = ROW | {"label_overlap": "0.6"}
SIX_TENTHS = {
    "problem.partition": lambda partition: replace(partition, overlap=0.6),
    "clock.views": runs.views(label_groups(4, 0.6)),
}
OVERLAP = *compared(AS_RUN, {}), *compared("overlap 0.6 for 0.8", SIX_TENTHS)
"""Table 2's overlap on AG News, where the other tables say 0.8."""
MOON = (
    *compared("one forward pass a step, as in MOON's own code", {}, "moon"),
    *compared("a second forward pass in training mode, as in the code", {"algorithm.second_pass": True}, "moon"),
)
RUNNING = {
    "smoke": replace(
        GAUSSIAN, name="digits", model=NormConvNet(1, 8, ((3,), (4,)), 5, normalisation="running"), rounds=2,
        substitute="8x8 digits and a small network with running statistics instead of images, 2 rounds per session",
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
    do not have; and some of reduced scale alone."""
    setup = SCALES[scale]
    data = {setup.data[name].name: setup.data[name] for name in DATASETS}  # one may stand for both
    moon = (_panel("moon", RUNNING[scale], MOON, setup),) if scale in RUNNING else ()
    kinds = (
        ("sensitivity", CHOICES),
        *([("more", MORE), ("weights", WEIGHTS), ("further", FURTHER), ("last", LAST)] if scale in RUNNING else []),
    )
    panels = (*(_panel(kind, d, choices, setup) for kind, choices in kinds for d in data.values()), *moon)
    if scale != "reduced":
        return panels
    return (
        *panels,
        _panel("overlap", setup.data["ag_news"], OVERLAP, setup, OVERLAPPING),
        *(_panel("halves", d, HALVES, setup, {}) for d in data.values()),
        *(_panel("unseen", d, UNSEEN, setup, {}, setup.further["unseen"]) for d in data.values()),
        _panel("scaled", setup.data["svhn"], SCALED, setup, {}, setup.further["unseen"]),
    )


def _panel(
    kind: str, data: SessionData, choices: tuple[Choice, ...], setup: SessionScale, row: Mapping[str, str] = ROW,
    seeds: tuple[int, ...] = (),
) -> Panel:  # fmt: skip
    slug = f"{kind}-{data.name}".replace("_", "-")
    experiments = tuple(_experiment(choice, data, setup, row) for choice in choices)
    return Panel(slug, experiments, seeds or data.seeds or setup.groups["20"].seeds, data.substitute)


def _experiment(choice: Choice, data: SessionData, setup: SessionScale, settings: Mapping[str, str]) -> Experiment:
    if choice.text == FEWER:
        group = setup.groups["20"]
        setup = replace(setup, groups={**setup.groups, "20": replace(group, clients=group.clients // 2)})
    if choice.text == TWICE_AS_MANY:
        setup = replace(setup, older={**setup.older, "10": 2 * setup.older["10"]})
    row = {**settings, **setup.always, **choice.row, "algorithm": choice.algorithm, "init_scheme": choice.scheme}
    _, _, e = (runs.older if choice.row else runs.main)(row, data, setup)
    e = replace(e, labels={**e.labels, "choice": choice.text})
    if choice.standard:
        lr, floor = data.rate_of("fedavg")
        standard = Scaffold(lr, momentum=runs.MOMENTUM, control="displacement")
        e = changed(e, {"algorithm": standard, "clock.floor": floor})
    experiment: Experiment = changed(e, choice.changes)
    return experiment
