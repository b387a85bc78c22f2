"""What the printed numbers of Tables 8, 9 and 11 say by themselves; each finding is some sentences with its numbers."""

from __future__ import annotations

from functools import cache
from itertools import combinations, permutations

import pandas as pd

from reproduce.papers.dynamic_init.transitions import GROUP, THREE, printed
from reproduce.report.names import pretty

CENT = 0.0101
"""Printed numbers that differ by a hundredth count as equal: one of two may have been rounded otherwise."""
Key = tuple[str, ...]


@cache
def groups(table: str) -> dict[Key, pd.DataFrame]:
    """(label distribution, data set, clients, algorithm) -> transitions x schemes as printed."""
    rows = printed(table).pivot(index=[*GROUP, "transition"], columns="init_scheme", values="paper")
    return {key: mine.droplevel(GROUP).loc[list(THREE)] for key, mine in rows.groupby(GROUP)}


def sequences() -> list[tuple[Key, Key]]:
    """Row groups of Table 11 of which the second starts one session later: its first two transitions are the other's
    last two."""
    pairs = permutations(groups("table11").items(), 2)
    return [
        (one, other)
        for (one, first), (other, second) in pairs
        if one[:3] == other[:3] and ((first[1:].to_numpy() - second[:-1].to_numpy()).__abs__() <= CENT).all()
    ]


def one_sequence() -> str:
    names, count = dict.fromkeys((one[3], other[3]) for one, other in sequences()), 6 * len(sequences())
    said = ", ".join(f"{pretty(b)}'s begins one session after {pretty(a)}'s" for a, b in names)
    return f"The rows of Table 11 are stretches of one sequence of sessions: {said} ({count} of {count} numbers)."


def equal_averages() -> tuple[int, int, int]:
    """FedAvg's and MOON's numbers in Tables 8 (partial overlap) and 9 (half): equal ones of Average, of the other
    schemes, and how many there are of Average."""
    equal = [
        groups(table)[kind, data, "10", "fedavg"].eq(groups(table)[kind, data, "10", "moon"])
        for table, kind in (("table8", "partial_overlap"), ("table9", "half"))
        for data in ("mnist", "fashion_mnist")
    ]
    both = pd.concat(equal)
    return int(both["average"].sum()), int(both[["proposed", "previous"]].to_numpy().sum()), len(both)


def one_average_of_two() -> str:
    average, others, count = equal_averages()
    return (
        f"Average has the same numbers with FedAvg as with MOON in {average} of {count} places, the other schemes in "
        f"{others} of {2 * count} (MNIST and Fashion-MNIST; Table 8, partial overlap, and Table 9, half)."
    )


def one_average_of_three() -> str:
    table = pd.concat([groups("table9")["half", "mnist", "10", a] for a in ("fedavg", "fedprox", "moon")])
    ((most, count),) = table["average"].value_counts()[:1].items()
    low, high = table.loc[table["average"] == most, "proposed"].agg(["min", "max"])
    return (
        f"Table 9, half, MNIST, prints {most:.2f} for Average at {count} of {len(table)} transitions. Proposed has "
        f"{low:.2f} to {high:.2f} there."
    )


def twins() -> list[tuple[tuple[str, Key], tuple[str, Key]]]:
    """Row groups of Tables 8 and 9 that are equal in all nine numbers."""
    rows = [((table, key), frame) for table in ("table8", "table9") for key, frame in groups(table).items()]
    return [(a, b) for (a, x), (b, y) in combinations(rows, 2) if x.equals(y)]


def equal_rows() -> str:
    def name(of: tuple[str, Key]) -> str:
        table, (kind, data, _, algorithm) = of
        return f"Table {table.removeprefix('table')}, {pretty(kind)}, {pretty(data)}, {pretty(algorithm)}"

    return f"Equal in all nine numbers: {'; '.join(f'{name(a)}, and {name(b)}' for a, b in twins())}."
