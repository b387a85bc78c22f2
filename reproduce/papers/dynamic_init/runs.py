"""What is run: clients that come and go in sessions, five local algorithms, five ways to start a session.

The paper's tables say which settings there are (`reported/*.csv`); a `Scale` says what stands for a data set and for a
number of clients. Runs of a panel share partition, initial model and batches by (seed, round, client), so that the
schemes coincide until they differ (through session P + 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from reproduce.algorithms.base import FedAvg
from reproduce.algorithms.distillation import Distillation
from reproduce.algorithms.fedacg import FedACG
from reproduce.algorithms.fedprox import FedProx
from reproduce.algorithms.moon import Moon
from reproduce.algorithms.scaffold import ScaffoldAsReleased
from reproduce.algorithms.session_starts import Average, Previous, Proposed, RandomPilot, Start
from reproduce.clocks.sessions import Sessions
from reproduce.declare import printed
from reproduce.experiment import Experiment, Label, Panel
from reproduce.problems import Classification
from reproduce.problems.batches import Walk
from reproduce.problems.models import Model, Softmax
from reproduce.problems.normalised import NormConvNet
from reproduce.problems.partition_groups import (
    DirichletGroups,
    DistinctLabels,
    GroupedDirichlet,
    HalfLabels,
    PartialOverlap,
    TwoShard,
    label_groups,
)
from reproduce.systems import Steps, System
from reproduce.systems.membership import Alternating, Membership, Rotation

ALGORITHMS = ("fedavg", "fedprox", "scaffold", "fedacg", "moon")
SCHEMES = ("proposed", "continuous", "previous", "average", "random_pilot")
MOMENTUM = 0.9
Rate = tuple[float, float]
Row = Mapping[str, str]


@dataclass(frozen=True)
class Data:
    """What a data set brings along: model, rounds T per session, learning rates (lr at the start of a session, share
    of it that is left at the end).

    rate: of all algorithms but those in `rates`. kind: the model of Tables 8-14 in the paper's words; networks: the
    model itself where it is another one there, by algorithm ("" for the rest). R, older_R: similarity scale of Tables
    1-7 and 8-14. overlaps: printed overlap -> the one that is run. seeds: those of Tables 1-7, if not the usual ones.
    """

    name: str
    model: Model
    rounds: int
    rate: Rate
    rates: Mapping[str, Rate] = field(default_factory=dict)
    kind: str = "mlp"
    networks: Mapping[str, Model] = field(default_factory=dict)
    R: float = 10.0
    older_R: float = 10.0
    classes: int = 10
    batch: int = 128
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    overlaps: Mapping[str, float] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    substitute: str = ""

    def rate_of(self, algorithm: str) -> Rate:
        return self.rates.get(algorithm, self.rate)

    def network(self, algorithm: str) -> Model:
        """The model in Tables 8-14."""
        return self.networks.get(algorithm, self.networks.get("", self.model))


@dataclass(frozen=True)
class Group:
    """Clients n of a session (2 n in all) in Tables 1-7, sessions S, and FedACG's (lambda, beta)."""

    clients: int
    sessions: int
    acg: tuple[float, float]
    seeds: tuple[int, ...] = (0, 1, 2)


@dataclass(frozen=True)
class Scale:
    """data: the paper's data set -> what is run for it. groups: printed n of Tables 1-7 -> clients. older: printed
    number of clients of Tables 8-14, in all (in a session for Table 12) -> as run. always: settings that all rows have.
    """

    data: Mapping[str, Data]
    groups: Mapping[str, Group]
    older: Mapping[str, int]
    always: Row = field(default_factory=dict)
    seeds: tuple[int, ...] = (0, 1, 2)


# Learning rates of the authors' lr_poly.json.
MNIST = Data("mnist", Softmax(784, 10), 50, (0.001, 0.6), {"scaffold": (0.03, 0.9)}, mean=(0.1307,), std=(0.3081,))
FASHION = Data(
    "fashion_mnist", Softmax(784, 10), 50, (0.003, 0.3), {"scaffold": (0.03, 0.9)}, mean=(0.2861,), std=(0.3530,)
)
SVHN = Data(
    "svhn", NormConvNet(), 200, (0.005, 0.2), {"scaffold": (0.1, 0.9), "moon": (0.01, 0.2)}, "cnn", older_R=100.0,
    mean=(0.4377, 0.4438, 0.4728), std=(0.1980, 0.2010, 0.1970),
)  # fmt: skip
# With a random start, few rounds at a smaller rate would not yet tell the schemes apart.
GAUSSIAN = Data(
    "gaussian", Softmax(20, 10), 10, (0.02, 0.6), {"scaffold": (0.3, 0.6)}, batch=32,
    substitute="Gaussian classes in 20 dimensions for images and texts, 4 to 10 clients and 10 rounds per session",
)  # fmt: skip


def linear(data: Data) -> Data:
    """The linear model at reduced scale: larger steps, fewer rounds."""
    return replace(
        data,
        rounds=20,
        rate=(0.0025, 0.6),
        rates={"scaffold": (0.05, 0.9)},
        substitute="10 clients and 20 rounds per session",
    )


SETS = ("mnist", "fashion_mnist", "svhn", "cifar10", "cifar100", "tiny_imagenet", "ag_news")
FEW, MANY = (0.85, 0.01), (0.5, 0.1)
SCALES = {
    "smoke": Scale(
        data=dict.fromkeys(SETS, GAUSSIAN),
        groups={"20": Group(4, 6, FEW, (0, 1)), "100": Group(6, 7, MANY, (0, 1))},
        older={"10": 10, "20": 10, "50": 12, "100": 20},
        always={"label_overlap": "0.0", "dirichlet_alpha": "0.3"},
        seeds=(0, 1),
    ),
    "reduced": Scale(
        data={"mnist": linear(MNIST), "fashion_mnist": linear(FASHION)},
        groups={"20": Group(10, 6, FEW), "100": Group(20, 7, MANY)},
        older={"10": 10, "20": 10, "50": 10, "100": 20},
    ),
    "paper": Scale(
        data={"mnist": MNIST, "fashion_mnist": FASHION, "svhn": SVHN},
        groups={"20": Group(20, 6, FEW), "100": Group(100, 7, MANY, (100, 200, 300))},
        older={"10": 10, "20": 20, "50": 50, "100": 100},
    ),
}

# What the tables do not print: the distribution of Tables 12 and 13, and 10 clients where nothing is said.
UNPRINTED: Mapping[str, Mapping[str, Row]] = {
    "table12": {"": {"label_distribution": "unseen", "num_clients": "20"}},
    "table13": {"fedavg": {"label_distribution": "half"}, "fedprox": {"label_distribution": "partial_overlap"}},
}
# The panels of the figures are not named in the paper.
MAIN, OLDER = (
    ("dataset", "label_overlap", "dirichlet_alpha", "algorithm"),
    ("label_distribution", "dataset", "algorithm"),
)
THREE = ("proposed", "previous", "average")
FIGURES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[str, ...], ...]]] = {
    "fig1": (THREE, MAIN, (("mnist", "0.0", "0.3", "fedavg"),)),
    "fig2": (
        ("proposed", "continuous", "previous", "average"),
        MAIN,
        (
            ("cifar10", "0.0", "0.7", "scaffold"),
            ("cifar100", "0.2", "0.7", "fedacg"),
            ("ag_news", "0.0", "0.3", "fedacg"),
        ),
    ),
    "fig3": (
        THREE,
        OLDER,
        (
            ("two_shard", "cifar10", "fedavg"),
            ("partial_overlap", "svhn", "fedprox"),
            ("two_shard", "fashion_mnist", "scaffold"),
            ("partial_overlap", "cifar100", "moon"),
        ),
    ),
    "fig4": (
        THREE,
        OLDER,
        (
            ("half", "mnist", "fedavg"),
            ("distinct", "svhn", "fedprox"),
            ("half", "cifar10", "scaffold"),
            ("two_shard", "cifar100", "moon"),
        ),
    ),
}


def panels(names: tuple[str, ...], scale: str) -> tuple[Panel, ...]:
    """The panels that some tables or figures read, as far as their data sets are run at a scale."""
    return _panels(names, scale)


@cache
def _panels(names: tuple[str, ...], scale: str) -> tuple[Panel, ...]:
    here = SCALES[scale]
    found: dict[str, dict[tuple[float, ...], Experiment]] = {}
    about: dict[str, tuple[tuple[int, ...], str]] = {}
    for row in (row for name in names for row in rows(name)):
        data = here.data.get(row["dataset"])
        if data is None:
            continue
        name, seeds, e = (main if "label_overlap" in row else older)({**row, **here.always}, data, here)
        order = (
            ALGORITHMS.index(row["algorithm"]),
            SCHEMES.index(row["init_scheme"]),
            float(row.get("similarity_scale", 0)),
        )
        found.setdefault(name, {})[order] = e
        about.setdefault(name, (seeds, data.substitute))
    return tuple(Panel(n, tuple(es[k] for k in sorted(es)), *about[n]) for n, es in found.items())


def rows(name: str) -> tuple[Row, ...]:
    """The settings of a table, as printed, or of a figure: columns as in reported/*.csv."""
    if name in FIGURES:
        schemes, columns, places = FIGURES[name]
        return tuple({**dict(zip(columns, p, strict=True)), "init_scheme": s} for p in places for s in schemes)
    rest = UNPRINTED.get(name, {})
    return tuple({**row, **rest.get("", {}), **rest.get(row["algorithm"], {})} for row in printed("dynamic_init", name))


def main(row: Row, data: Data, here: Scale) -> tuple[str, tuple[int, ...], Experiment]:
    """Panel, seeds and experiment of a row of Tables 1-7: two groups with their own label sets, Dirichlet inside."""
    group = here.groups[row.get("num_clients", "20")]
    overlap, alpha, n = float(row["label_overlap"]), float(row["dirichlet_alpha"]), group.clients
    labels: dict[str, Label] = {
        "dataset": data.name,
        "label_overlap": overlap,
        "dirichlet_alpha": alpha,
        "num_clients": n,
        "init_scheme": row["init_scheme"],
        "algorithm": row["algorithm"],
    }
    share = data.overlaps.get(row["label_overlap"], overlap)
    clock = Sessions(
        group.sessions,
        data.rounds,
        Alternating(2, n),
        views(label_groups(data.classes, share)),
        start(row["init_scheme"], data.R),
        floor=data.rate_of(row["algorithm"])[1],
    )
    e = experiment(labels, row, data, data.model, GroupedDirichlet(alpha, share), clock, group.acg)
    name = f"{data.name}-n{n}-o{overlap}-a{alpha}".replace("_", "-").replace(".", "")
    return name, data.seeds or group.seeds, e


def older(row: Row, data: Data, here: Scale) -> tuple[str, tuple[int, ...], Experiment]:
    """Panel, seeds and experiment of a row of Tables 8-14."""
    kind, n = row["label_distribution"], here.older[row.get("num_clients", "10")]
    labels: dict[str, Label] = {
        "label_distribution": kind,
        "dataset": data.name,
        "model": data.kind,
        "num_clients": n,
        "init_scheme": row["init_scheme"],
        "algorithm": row["algorithm"],
    }
    R, prefix = data.older_R, "pilot-" if row["init_scheme"] == "random_pilot" else ""
    if "similarity_scale" in row:
        R, prefix = float(row["similarity_scale"]), "scale-"
        labels["similarity_scale"] = int(row["similarity_scale"])
    partition, members, sets = federation(kind, n, data.classes)
    clock = Sessions(
        6 if kind == "unseen" else 4 + len(members.sizes),  # P, then every group, then every group again
        data.rounds,
        members,
        views(sets),
        start(row["init_scheme"], R),
        floor=data.rate_of(row["algorithm"])[1],
    )
    e = experiment(labels, row, data, data.network(row["algorithm"]), partition, clock, FEW)
    return f"{prefix}{kind}-{data.name}-n{n}".replace("_", "-"), here.seeds, e


def federation(kind: str, n: int, classes: int) -> tuple[Any, Membership, tuple[tuple[int, ...], ...]]:
    """Partition, groups of clients, and the labels of each group (none: they depend on the seed)."""
    every = range(classes)
    if kind == "half":
        return HalfLabels(), Alternating(2, n // 2), (tuple(every[: classes // 2]), tuple(every[classes // 2 :]))
    if kind == "partial_overlap":
        begin, end = round(0.4 * classes), round(0.6 * classes)
        return PartialOverlap(), Alternating(2, n // 2), (tuple(every[:end]), tuple(every[begin:]))
    thirds = Rotation((n // 3, n // 3, n - 2 * (n // 3)))
    if kind == "two_shard":
        return TwoShard(), thirds, ()
    if kind == "distinct":
        cuts = [n // 3 * classes // n, 2 * (n // 3) * classes // n]
        return (
            DistinctLabels(),
            thirds,
            (tuple(every[: cuts[0]]), tuple(every[cuts[0] : cuts[1]]), tuple(every[cuts[1] :])),
        )
    sets = tuple(tuple(every[a * classes // 10 : b * classes // 10]) for a, b in ((0, 4), (4, 8), (8, 10)))
    return DirichletGroups(0.7, sets), Rotation((n, n, n), (0, 1, 0, 1, 0, 2)), sets


def views(groups: tuple[tuple[int, ...], ...]) -> tuple[str, ...]:
    """Evaluation on the labels of each group; without groups, on what the clients hold."""
    return tuple("labels:" + ",".join(map(str, group)) for group in groups)


def start(scheme: str, R: float) -> Start:
    """How a session starts. Continuous carries on, with another local loss."""
    if scheme in ("proposed", "random_pilot"):
        return Proposed(R=R) if scheme == "proposed" else RandomPilot(R=R)
    return Average() if scheme == "average" else Previous()


def experiment(
    labels: Mapping[str, Label], row: Row, data: Data, model: Model, partition: Any, clock: Sessions, acg: Rate
) -> Experiment:
    """Continuous replaces the local algorithm and depends on it through the learning rate only."""
    problem = Classification(
        data=data.name,
        model=model,
        partition=partition,
        clients=clock.membership.clients,
        batches=Walk(data.batch),
        mean=data.mean,
        std=data.std,
    )
    lr, continuous = data.rate_of(row["algorithm"])[0], row["init_scheme"] == "continuous"
    local = Distillation(lr, momentum=MOMENTUM, kappa=1.0) if continuous else algorithm(row["algorithm"], lr, acg)
    return Experiment(labels, problem, System(work=Steps(5)), local, clock)


def algorithm(name: str, lr: float, acg: tuple[float, float]) -> FedAvg:
    """The local algorithms as the authors' code runs them (SCAFFOLD without control variates)."""
    known = {
        "fedavg": FedAvg(lr, momentum=MOMENTUM),
        "fedprox": FedProx(lr, momentum=MOMENTUM, mu=1.0),
        "scaffold": ScaffoldAsReleased(lr, momentum=MOMENTUM),
        "fedacg": FedACG(lr, momentum=MOMENTUM, lam=acg[0], beta=acg[1]),
        "moon": Moon(lr, momentum=MOMENTUM, mu=1.0, temperature=1.0),
    }
    return known[name]
