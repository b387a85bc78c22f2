"""What is run: clients that come and go in sessions, five local algorithms, five ways to start a session.

The paper's tables say which settings there are (`reported/*.csv`); a `SessionScale` says what stands for a data set and
for a number of clients. Runs of a panel share partition, initial model and batches by (seed, round, client), so that
the schemes coincide until they differ (through session P + 1).
"""

from __future__ import annotations

from collections.abc import Mapping
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
from reproduce.data.batches import Walk
from reproduce.declare.artifact import printed
from reproduce.declare.experiment import Experiment, Label, Panel
from reproduce.models.model import Model
from reproduce.papers.dynamic_init.scales import FEW, SCALES, Rate, Row, SessionData, SessionScale
from reproduce.partitions.groups import (
    DistinctLabels,
    GroupedDirichlet,
    HalfLabels,
    PartialOverlap,
    TwoShard,
    label_groups,
)
from reproduce.problem import Classification
from reproduce.report.names import pretty
from reproduce.systems import Steps, System
from reproduce.systems.membership import Alternating, Membership, Rotation

ALGORITHMS = ("fedavg", "fedprox", "scaffold", "fedacg", "moon")
SCHEMES = ("proposed", "continuous", "previous", "average", "random_pilot")
MOMENTUM = 0.9


# What the tables do not print: the distribution of Tables 12 and 13. (10 clients where nothing is said.)
UNPRINTED: Mapping[str, Mapping[str, Row]] = {
    "table12": {"": {"label_distribution": "unseen", "num_clients": "20"}},
    "table13": {"fedavg": {"label_distribution": "half"}, "fedprox": {"label_distribution": "partial_overlap"}},
}
# The text names another baseline than the header of Table 10: both.
BESIDES = {"table10": ("average",)}
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
    about: dict[str, tuple[tuple[int, ...], dict[str, None]]] = {}
    for row in (row for name in names for row in rows(name)):
        data = here.data.get(row["dataset"])
        if data is None:
            continue
        name, seeds, e = (main if "label_overlap" in row else older)({**row, **here.always}, data, here)
        departures = [data.substitute, *(departed(row, data, here) if data.substitute else ())]
        order = (
            ALGORITHMS.index(row["algorithm"]),
            SCHEMES.index(row["init_scheme"]),
            float(row.get("similarity_scale", 0)),
        )
        found.setdefault(name, {})[order] = e
        about.setdefault(name, (seeds, {}))[1].update(dict.fromkeys(filter(None, departures)))
    return tuple(
        Panel(n, tuple(es[k] for k in sorted(es)), about[n][0], "; ".join(about[n][1])) for n, es in found.items()
    )


def departed(row: Row, data: SessionData, here: SessionScale) -> list[str]:
    """In words where the clients and R of a row are not those that the paper prints."""
    main_table = "label_overlap" in row
    printed_n = row.get("num_clients", "20" if main_table else "10")
    n = here.groups[printed_n].clients if main_table else here.older[printed_n]
    where = "per session" if main_table or row["label_distribution"] == "unseen" else "in all"
    found = [f"{n} clients {where} for {printed_n}"] if n != int(printed_n) else []
    paper = SCALES["paper"].data[row["dataset"]]
    if not main_table and "similarity_scale" not in row and paper.older_R != data.older_R:
        found.append(f"R = {data.older_R:g} for {paper.older_R:g} ({pretty(paper.name)})")
    return found


def rows(name: str) -> tuple[Row, ...]:
    """The settings of a table, as printed, or of a figure: columns as in reported/*.csv."""
    if name in FIGURES:
        schemes, columns, places = FIGURES[name]
        found = [{**dict(zip(columns, p, strict=True)), "init_scheme": s} for p in places for s in schemes]
        return tuple(r for r in found if (r["dataset"], r["init_scheme"]) != ("ag_news", "continuous"))  # nowhere
    rest, read = UNPRINTED.get(name, {}), printed("dynamic_init", name)
    more = [{**row, "init_scheme": scheme} for scheme in BESIDES.get(name, ()) for row in read]
    return tuple({**row, **rest.get("", {}), **rest.get(row["algorithm"], {})} for row in (*read, *more))


def main(row: Row, data: SessionData, here: SessionScale) -> tuple[str, tuple[int, ...], Experiment]:
    """Panel, seeds and experiment of a row of Tables 1-7: two groups with their own label sets, Dirichlet inside."""
    printed_n = row.get("num_clients", "20")
    group = here.groups[printed_n]
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
    return name, (printed_n == "20" and data.seeds_20) or data.seeds or group.seeds, e


def older(row: Row, data: SessionData, here: SessionScale) -> tuple[str, tuple[int, ...], Experiment]:
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
    return f"{prefix}{kind}-{data.name}-n{n}".replace("_", "-"), data.older_seeds or here.seeds, e


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
    return GroupedDirichlet(0.7, label_sets=sets), Rotation((n, n, n), (0, 1, 0, 1, 0, 2)), sets


def views(groups: tuple[tuple[int, ...], ...]) -> tuple[str, ...]:
    """Evaluation on the labels of each group; without groups, on what the clients hold."""
    return tuple("labels:" + ",".join(map(str, group)) for group in groups)


def start(scheme: str, R: float) -> Start:
    """How a session starts. Continuous carries on, with another local loss."""
    if scheme in ("proposed", "random_pilot"):
        return Proposed(R=R) if scheme == "proposed" else RandomPilot(R=R)
    return Average() if scheme == "average" else Previous()


def experiment(
    labels: Mapping[str, Label], row: Row, data: SessionData, model: Model, partition: Any, clock: Sessions, acg: Rate
) -> Experiment:
    """Continuous replaces the local algorithm and depends on it through the learning rate only."""
    problem = Classification(
        data=data.source or data.name,
        model=model,
        partition=partition,
        clients=clock.membership.clients,
        batches=Walk(data.batch),
        mean=data.mean,
        std=data.std,
        augment=data.augment,
        test_samples=data.test_samples,
        tokenizer=data.tokenizer,
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
        "fedacg": FedACG(lr, momentum=MOMENTUM, lam=acg[0], beta=acg[1], with_statistics=True),
        "moon": Moon(lr, momentum=MOMENTUM, mu=1.0, temperature=1.0),
    }
    return known[name]
