"""The search for the sessions that Tables 8, 9 and 11 print numbers of, by comparison with our curves, and findings
from the printed numbers alone, in sentences with them.

A row group of a table (a setting with one algorithm) has three transitions and three schemes. Its sessions are the
increasing triple that brings our means over seeds nearest to the printed numbers. A scheme is compared at the triple
that the other schemes' printed numbers choose: no printed number has a say in where it is compared itself. Rows of one
sequence, whose last two transitions are the first two of the next row, have sessions in one increasing order.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import combinations, permutations

import pandas as pd

from reproduce.declare.artifact import Window
from reproduce.papers.dynamic_init.readings import SCHEMES, SESSIONS
from reproduce.papers.dynamic_init.settings import SCALES
from reproduce.report import metrics, tables
from reproduce.report.histories import Histories
from reproduce.report.names import pretty

Key = tuple[str, ...]
THREE, DATA = ("first", "second", "third"), ("mnist", "fashion_mnist")
FIRST = 3
"""The first session before which two models are stored: in the one before it, the schemes coincide."""
CENT = 0.0101
"""Printed numbers that differ by a hundredth count as equal: one of two may have been rounded otherwise."""
GROUP = ["label_distribution", "dataset", "num_clients", "algorithm"]
COPIED = {("table8", "partial_overlap", "mnist", "fedprox"), ("table8", "two_shard", "mnist", "fedprox")}
"""Row groups whose numbers another one has as well (`COPIED8`), and which are left out."""


def printed(name: str) -> pd.DataFrame:
    """The printed numbers of a table, as text but for `paper`; where it does not say how many clients: 10."""
    frame = tables.reported("dynamic_init", name)
    assert frame is not None
    rows = frame.drop(columns=["paper_std", "paper_text", "paper_censored"])
    return rows if "num_clients" in rows else rows.assign(num_clients="10")


@cache
def groups(table: str) -> dict[Key, pd.DataFrame]:
    """(label distribution, data set, clients, algorithm) -> transitions x schemes as printed."""
    rows = printed(table).pivot(index=[*GROUP, "transition"], columns="init_scheme", values="paper")
    return {tuple(map(str, key)): group.droplevel([*GROUP]).loc[list(THREE)] for key, group in rows.groupby(GROUP)}


@cache
def followers(table: str) -> dict[Key, Key]:
    """Row group -> the one of its setting that begins one session later in the same sequence."""
    return {
        a: b
        for (a, x), (b, y) in permutations(groups(table).items(), 2)
        if a[:3] == b[:3] and (abs(x[1:].to_numpy() - y[:-1].to_numpy()) <= CENT).all()
    }


def possible(table: str, key: Key) -> set[tuple[int, ...]]:
    """The triples of sessions that a row group may have."""
    after = followers(table)
    earlier = _chain({b: a for a, b in after.items()}, key)
    every = combinations(range(FIRST, SESSIONS), len(THREE) + earlier + _chain(after, key))
    return {sessions[earlier:][: len(THREE)] for sessions in every}


def _chain(following: Mapping[Key, Key], key: Key) -> int:
    return 1 + _chain(following, following[key]) if key in following else 0


def readings(histories: Histories) -> pd.DataFrame:
    """Ours beside every printed number, under each reading; `session`, of seed -1, says where it was compared."""
    window = Window("accuracy", 1, 10, {str(s): s for s in range(FIRST, SESSIONS)})
    ours = metrics.measured(window, histories).rename(columns={"transition": "session"})
    ours = ours.astype({"session": int, "num_clients": str})
    ours["dataset"] = ours["dataset"].replace({SCALES[histories.scale].data["mnist"].name: "mnist"})
    parts = [part for name in ("table8", "table9", "table11") for part in _compared(name, ours)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _compared(name: str, ours: pd.DataFrame) -> Iterator[pd.DataFrame]:
    by_key = {key: rows for key, rows in printed(name).groupby(GROUP) if (name, key[0], key[1], key[3]) not in COPIED}
    for (reading, *labels), curves in ours.groupby(["reading", *GROUP]):
        key = tuple(map(str, labels))
        means = curves.pivot_table(index="session", columns="init_scheme", values="value")
        rows = by_key.get(key)
        if rows is None or len(means.columns) < len(SCHEMES):  # not printed, or run in part
            continue
        target, triples = groups(name)[key][means.columns].to_numpy(), possible(name, key)
        off = {t: ((means.loc[list(t)].to_numpy() - target) ** 2).sum(0) for t in triples}
        for i, scheme in enumerate(means.columns):
            at = min(triples, key=lambda t: float(off[t].sum() - off[t][i]))
            where = pd.DataFrame({"transition": THREE, "session": at})
            about = rows[rows["init_scheme"] == scheme].drop(columns="paper").merge(where, on="transition")
            about = about.assign(table=name, reading=str(reading))
            values = curves.loc[curves["init_scheme"] == scheme, ["session", "seed", "value"]]
            yield about.merge(values, on="session").drop(columns="session")
            yield about.assign(metric="session", seed=-1, value=about["session"].astype(float)).drop(columns="session")


def one_sequence() -> str:
    pairs = followers("table11").items()
    order = ", ".join(dict.fromkeys(f"{pretty(b[3])}'s begins one session after {pretty(a[3])}'s" for a, b in pairs))
    count = f"{6 * len(pairs)} of {6 * len(pairs)} numbers are equal"
    return f"The rows of Table 11 are parts of one sequence of sessions: {order} ({count})."


def one_average_of_two() -> str:
    places = [("table8", "partial_overlap"), ("table9", "half")]
    rows = [groups(table)[kind, data, "10", a] for a in ("fedavg", "moon") for table, kind in places for data in DATA]
    equal = pd.concat(rows[:4]) == pd.concat(rows[4:])
    average, rest = equal.pop("average"), equal.to_numpy()
    return (
        f"Average has the same numbers with FedAvg as with MOON in {average.sum()} of {average.size} places; the other "
        f"schemes have in {rest.sum()} of {rest.size} (both MNIST sets; Table 8, partial overlap; Table 9, half)."
    )


def one_average_of_three() -> str:
    table = pd.concat([groups("table9")["half", "mnist", "10", a] for a in ("fedavg", "fedprox", "moon")])
    most = table["average"].mode()[0]
    cells = table.loc[table["average"] == most, "proposed"]
    where = f"{cells.size} of {len(table)} transitions"
    return (
        f"Table 9, half, MNIST, prints {most} for Average at {where}. Proposed has {min(cells)} to {max(cells)} there."
    )


def equal_rows() -> str:
    rows = [
        (f"Table {table.removeprefix('table')}, {', '.join(map(pretty, (kind, data, algorithm)))}", frame)
        for table in ("table8", "table9")
        for (kind, data, _, algorithm), frame in groups(table).items()
    ]
    pairs = [f"{a}, and {b}" for (a, x), (b, y) in combinations(rows, 2) if x.equals(y)]
    return f"These rows are equal in all nine numbers: {'; '.join(pairs)}."
