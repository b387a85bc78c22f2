"""The runs of dynamic_init: clients that come and go in sessions, five local algorithms, five ways to start a session.

The paper's tables say which settings there are (`reported/*.csv`); a `SessionScale` says what stands for a data set and
for a number of clients. Runs of a panel share partition, initial model and batches by (seed, round, client), so that
the schemes coincide until they differ (through session P + 1).
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from reproduce.algorithms.base import FedAvg
from reproduce.algorithms.fedacg import FedACG
from reproduce.algorithms.fedprox import FedProx
from reproduce.algorithms.moon import Distillation, Moon
from reproduce.algorithms.scaffold import ScaffoldAsReleased
from reproduce.algorithms.session_starts import Average, Previous, Proposed, RandomPilot, Start
from reproduce.clocks.sessions import Sessions
from reproduce.data.batches import Walk
from reproduce.declare.experiment import Experiment, Label, Panel
from reproduce.declare.paper import printed_settings
from reproduce.models.model import Model
from reproduce.papers.dynamic_init.settings import FEW, SCALES, Rate, Row, SessionData, SessionScale
from reproduce.partitions import groups
from reproduce.problem import Classification
from reproduce.report.names import pretty
from reproduce.systems import Steps, System
from reproduce.systems.clients import Alternating, Membership, Rotation

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
MAIN = ("dataset", "label_overlap", "dirichlet_alpha", "algorithm")
OLDER = ("label_distribution", "dataset", "algorithm")
THREE = ("proposed", "previous", "average")
FIGURES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[str, ...], ...]]] = {
    "fig1": (THREE, MAIN, (("mnist", "0.0", "0.3", "fedavg"),)),
    "fig2": (
        ("proposed", "continuous", "previous", "average"), MAIN,
        (
            ("cifar10", "0.0", "0.7", "scaffold"), ("cifar100", "0.2", "0.7", "fedacg"),
            ("ag_news", "0.0", "0.3", "fedacg"),
        ),
    ),
    "fig3": (
        THREE, OLDER,
        (
            ("two_shard", "cifar10", "fedavg"), ("partial_overlap", "svhn", "fedprox"),
            ("two_shard", "fashion_mnist", "scaffold"), ("partial_overlap", "cifar100", "moon"),
        ),
    ),
    "fig4": (
        THREE, OLDER,
        (
            ("half", "mnist", "fedavg"), ("distinct", "svhn", "fedprox"), ("half", "cifar10", "scaffold"),
            ("two_shard", "cifar100", "moon"),
        ),
    ),
}  # fmt: skip
"""Figure -> its schemes, the columns that name an axes, and the axes."""


@cache
def panels(names: tuple[str, ...], scale: str) -> tuple[Panel, ...]:
    """The panels that some tables or figures read."""
    here = SCALES[scale]
    found: dict[str, dict[tuple[float, ...], Experiment]] = {}
    about: dict[str, tuple[tuple[int, ...], dict[str, None]]] = {}
    for row in (row for name in names for row in rows(name)):
        data = here.data[row["dataset"]]
        name, seeds, e = _declared(scale, tuple(row.items()))
        departures = [data.substitute, *(departed(row, data, here) if data.substitute else ())]
        algorithm, scheme = ALGORITHMS.index(row["algorithm"]), SCHEMES.index(row["init_scheme"])
        found.setdefault(name, {})[algorithm, scheme, float(row.get("similarity_scale", 0))] = e
        about.setdefault(name, (seeds, {}))[1].update(dict.fromkeys(filter(None, departures)))
    return tuple(
        Panel(n, tuple(es[k] for k in sorted(es)), about[n][0], "; ".join(about[n][1])) for n, es in found.items()
    )


@cache
def _declared(scale: str, settings: tuple[tuple[str, str], ...]) -> tuple[str, tuple[int, ...], Experiment]:
    """Panel, seeds and experiment of a row, which several tables and figures may have."""
    row, here = dict(settings), SCALES[scale]
    declare = main if "label_overlap" in row else older
    return declare({**row, **here.always}, here.data[row["dataset"]], here)


def departed(row: Row, data: SessionData, here: SessionScale) -> list[str]:
    """Sentences on the clients and R of a row where they are not those that the paper prints."""
    main_table = "label_overlap" in row
    told = row.get("num_clients", "20" if main_table else "10")
    n = here.groups[told].clients if main_table else here.older[told]
    where = "per session" if main_table or row["label_distribution"] == "unseen" else "in all"
    found = [f"{n} clients {where} for {told}"] if n != int(told) else []
    paper = SCALES["paper"].data[row["dataset"]]
    if not main_table and "similarity_scale" not in row and paper.older_R != data.older_R:
        found.append(f"another similarity scale R: {data.older_R:g} for {paper.older_R:g} ({pretty(paper.name)})")
    return found


def rows(name: str) -> tuple[Row, ...]:
    """The settings of a table, as printed, or of a figure: columns as in reported/*.csv."""
    if name in FIGURES:
        schemes, columns, places = FIGURES[name]
        found = [{**dict(zip(columns, p, strict=True)), "init_scheme": s} for p in places for s in schemes]
        return tuple(r for r in found if (r["dataset"], r["init_scheme"]) != ("ag_news", "continuous"))  # nowhere
    rest, read = UNPRINTED.get(name, {}), printed_settings("dynamic_init", name)
    more = [{**row, "init_scheme": scheme} for scheme in BESIDES.get(name, ()) for row in read]
    return tuple({**row, **rest.get("", {}), **rest.get(row["algorithm"], {})} for row in (*read, *more))


def main(row: Row, data: SessionData, here: SessionScale) -> tuple[str, tuple[int, ...], Experiment]:
    """Panel, seeds and experiment of a row of Tables 1-7: two groups with their own label sets, Dirichlet inside."""
    told = row.get("num_clients", "20")
    group = here.groups[told]
    overlap, alpha, n = float(row["label_overlap"]), float(row["dirichlet_alpha"]), group.clients
    labels: dict[str, Label] = {
        "dataset": data.name, "label_overlap": overlap, "dirichlet_alpha": alpha, "num_clients": n,
    }  # fmt: skip
    share = data.overlaps.get(row["label_overlap"], overlap)
    partition, sets = groups.GroupedDirichlet(alpha, share), groups.label_groups(data.classes, share)
    federated = group.sessions, Alternating(2, n), sets
    e = experiment(labels, row, data, data.model, partition, federated, data.R, group.acg)
    name = f"{data.name}-n{n}-o{overlap}-a{alpha}".replace("_", "-").replace(".", "")
    return name, (told == "20" and data.seeds_20) or data.seeds or group.seeds, e


def older(row: Row, data: SessionData, here: SessionScale) -> tuple[str, tuple[int, ...], Experiment]:
    """Panel, seeds and experiment of a row of Tables 8-14."""
    kind, n = row["label_distribution"], here.older[row.get("num_clients", "10")]
    labels: dict[str, Label] = {
        "label_distribution": kind, "dataset": data.name, "model": data.kind, "num_clients": n,
    }  # fmt: skip
    R, prefix, scale = data.older_R, "pilot-" if row["init_scheme"] == "random_pilot" else "", {}
    if "similarity_scale" in row:
        R, prefix, scale = float(row["similarity_scale"]), "scale-", {"similarity_scale": int(row["similarity_scale"])}
    partition, members, sets = federation(kind, n, data.classes)
    seeds = data.older_seeds or here.further.get("scale" if scale else kind) or here.seeds
    sessions = 6 if kind == "unseen" else 4 + len(members.sizes)  # P, then every group, then every group again
    model = data.network(row["algorithm"])
    e = experiment(labels, row, data, model, partition, (sessions, members, sets), R, FEW, scale)
    return f"{prefix}{kind}-{data.name}-n{n}".replace("_", "-"), seeds, e


def federation(kind: str, n: int, classes: int) -> tuple[Any, Membership, tuple[tuple[int, ...], ...]]:
    """Partition, groups of clients, and the labels of each group (none: they depend on the seed)."""
    third = n // 3
    two, three = Alternating(2, n // 2), Rotation((third, third, n - 2 * third))

    def sets(*spans: tuple[int, int]) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(range(*span)) for span in spans)

    if kind == "two_shard":
        return groups.TwoShard(), three, ()
    if kind == "half":
        return groups.HalfLabels(), two, sets((0, classes // 2), (classes // 2, classes))
    if kind == "partial_overlap":
        return groups.PartialOverlap(), two, sets((0, round(0.6 * classes)), (round(0.4 * classes), classes))
    if kind == "distinct":
        a, b = third * classes // n, 2 * third * classes // n
        return groups.DistinctLabels(), three, sets((0, a), (a, b), (b, classes))
    a, b = 4 * classes // 10, 8 * classes // 10
    unseen = sets((0, a), (a, b), (b, classes))
    return groups.GroupedDirichlet(0.7, label_sets=unseen), Rotation((n, n, n), (0, 1, 0, 1, 0, 2)), unseen


def views(sets: tuple[tuple[int, ...], ...]) -> tuple[str, ...]:
    """The evaluation view of each group: its labels."""
    return tuple("labels:" + ",".join(map(str, group)) for group in sets)


def start(scheme: str, R: float) -> Start:
    """The start of a session under a scheme. "Continuous" carries on, with another local loss."""
    known: dict[str, Start] = {"proposed": Proposed(R=R), "random_pilot": RandomPilot(R=R), "average": Average()}
    return known.get(scheme, Previous())


def experiment(
    labels: Mapping[str, Label], row: Row, data: SessionData, model: Model, partition: Any,
    federated: tuple[int, Membership, tuple[tuple[int, ...], ...]], R: float, acg: Rate,
    more: Mapping[str, Label] | None = None,
) -> Experiment:  # fmt: skip
    """A run of a row. federated: sessions, who trains in which, and the labels of each group, on which it is evaluated
    (none: on what the clients hold). more: labels behind the others.

    Continuous replaces the local algorithm and depends on it through the learning rate only."""
    sessions, members, sets = federated
    named = {"init_scheme": row["init_scheme"], "algorithm": row["algorithm"]}
    problem = Classification(
        data.source or data.name, model, partition, members.clients, Walk(data.batch), mean=data.mean, std=data.std,
        augment=data.augment, test_samples=data.test_samples, tokenizer=data.tokenizer,
    )  # fmt: skip
    lr, floor = data.rate_of(row["algorithm"])
    clock = Sessions(sessions, data.rounds, members, views(sets), start(row["init_scheme"], R), floor=floor)
    continuous = row["init_scheme"] == "continuous"
    local = Distillation(lr, momentum=MOMENTUM, kappa=1.0) if continuous else algorithm(row["algorithm"], lr, acg)
    return Experiment({**labels, **named, **(more or {})}, problem, System(work=Steps(5)), local, clock)


def algorithm(name: str, lr: float, acg: Rate) -> FedAvg:
    """The local algorithms as the authors' code runs them (SCAFFOLD without control variates)."""
    known = {
        "fedavg": FedAvg(lr, momentum=MOMENTUM),
        "fedprox": FedProx(lr, momentum=MOMENTUM, mu=1.0),
        "scaffold": ScaffoldAsReleased(lr, momentum=MOMENTUM),
        "fedacg": FedACG(lr, momentum=MOMENTUM, lam=acg[0], beta=acg[1], with_statistics=True),
        "moon": Moon(lr, momentum=MOMENTUM, mu=1.0, temperature=1.0),
    }
    return known[name]
