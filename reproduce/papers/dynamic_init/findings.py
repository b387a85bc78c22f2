"""Findings from the printed numbers of Tables 8, 9 and 11 alone, in sentences with their numbers."""

from __future__ import annotations

from itertools import combinations

import pandas as pd

from reproduce.papers.dynamic_init.transitions import followers, groups
from reproduce.report.names import pretty

DATA = ("mnist", "fashion_mnist")


def one_sequence() -> str:
    pairs = followers("table11").items()
    said = ", ".join(dict.fromkeys(f"{pretty(b[3])}'s begins one session after {pretty(a[3])}'s" for a, b in pairs))
    count = f"{6 * len(pairs)} of {6 * len(pairs)} numbers are equal"
    return f"The rows of Table 11 are stretches of one sequence of sessions: {said} ({count})."


def one_average_of_two() -> str:
    places = [("table8", "partial_overlap"), ("table9", "half")]
    rows = [groups(table)[kind, data, "10", a] for a in ("fedavg", "moon") for table, kind in places for data in DATA]
    equal = pd.concat(rows[:4]) == pd.concat(rows[4:])
    average, others = equal.pop("average"), equal.to_numpy()
    return (
        f"Average has the same numbers with FedAvg as with MOON in {average.sum()} of {average.size} places, the other "
        f"schemes in {others.sum()} of {others.size} (both MNIST sets; Table 8, partial overlap, and Table 9, half)."
    )


def one_average_of_three() -> str:
    table = pd.concat([groups("table9")["half", "mnist", "10", a] for a in ("fedavg", "fedprox", "moon")])
    most = table["average"].mode()[0]
    there = table.loc[table["average"] == most, "proposed"]
    where = f"{there.size} of {len(table)} transitions"
    return (
        f"Table 9, half, MNIST, prints {most} for Average at {where}. Proposed has {min(there)} to {max(there)} there."
    )


def equal_rows() -> str:
    rows = [
        (f"Table {table.removeprefix('table')}, {', '.join(map(pretty, (kind, data, algorithm)))}", frame)
        for table in ("table8", "table9")
        for (kind, data, _, algorithm), frame in groups(table).items()
    ]
    pairs = [f"{a}, and {b}" for (a, x), (b, y) in combinations(rows, 2) if x.equals(y)]
    return f"Equal in all nine numbers: {'; '.join(pairs)}."
