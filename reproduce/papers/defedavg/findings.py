"""What DeFedAvg's printed Tables I and II say under the paper's clock (Sec. 4.1.3), without a run of ours."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import pandas as pd

from reproduce.papers.defedavg import runs, settings
from reproduce.papers.defedavg.settings import ClockSetting, Pair
from reproduce.report.tables import reported

FASHION, CIFAR = settings.PAPER
N = settings.PARTICIPANTS
GRID = 20
"""Contacts between two times at which FAVANO seems to have been looked at."""


def times(dataset: str, distribution: str | None = None, algorithm: str | None = None) -> pd.DataFrame:
    """Rows of Table I that are no bounds."""
    table = reported("defedavg", "table1")
    assert table is not None
    asked = {"dataset": dataset, "distribution": distribution, "algorithm": algorithm}
    for column, value in asked.items():
        table = table[(table[column] == value) | (value is None)]
    return table[~table["paper_censored"]].assign(n=table["n"].astype(int))


def contact(setting: ClockSetting) -> float:
    """Seconds of a transfer to a client and of one back."""
    return setting.pace.download + setting.pace.upload


def hundredths(rows: pd.DataFrame) -> list[str]:
    """The times that are printed with two digits."""
    return [text for text in rows["paper_text"] if len(text.partition(".")[2]) == 2]


def on_grid(texts: Sequence[str], unit: float) -> int:
    """How many of them are a contact more than whole multiples of `GRID` contacts, to the last digit."""
    whole = [round((float(text) / unit - 1) / GRID) for text in texts]
    return sum(f"{unit * (GRID * k + 1):.2f}" == text for k, text in zip(whole, texts, strict=True))


@cache
def seconds(algorithm: str, n: int, seeds: int = 10, aggregations: int = 300) -> float:
    """Per aggregation on Fashion-MNIST, mean over draws of the clients' speeds."""
    schedule = next(s for of, a, m, s in runs.schedules() if (of, a, m) == (FASHION, algorithm, n))
    ends = [deque(schedule.stream(seed, aggregations), maxlen=1)[0].time for seed in range(seeds)]
    return sum(ends) / seeds / aggregations


def aggregations(distribution: str, algorithm: str) -> Mapping[int, float]:
    """n -> the printed time on Fashion-MNIST over the clock's seconds an aggregation."""
    rows = times("fashion_mnist", distribution, algorithm)
    return {n: time / seconds(algorithm, n) for n, time in zip(rows["n"], rows["paper"], strict=True)}


def progress(distribution: str, algorithm: str, rates: Mapping[int, Pair] | None = None) -> Mapping[int, float]:
    """n -> global rate x local rate x aggregations, with the printed rates unless there are others."""
    found = {}
    for n, count in aggregations(distribution, algorithm).items():
        server, local = (rates or {}).get(n, runs.table2()["fashion_mnist", distribution, algorithm, n])
        assert server is not None
        assert local is not None
        found[n] = server * local * count
    return found


def serial_contacts() -> str:
    """FAVANO's printed times as whole numbers of contacts."""
    unit = contact(FASHION)
    mine, other = (hundredths(times(s.dataset, algorithm="favano")) for s in settings.PAPER)
    every = times("fashion_mnist")
    rest = hundredths(every[every["algorithm"] != "favano"])
    return (
        f"Of FAVANO's {len(mine)} times on Fashion-MNIST {on_grid(mine, unit)} are one contact more than whole "
        f"multiples of {GRID}, to the last digit. A contact is a transfer down and one up, {unit:.3f} s. Of the other "
        f"{len(rest)} times there that have two digits {on_grid(rest, unit)} are so. On CIFAR-10, with "
        f"{contact(CIFAR):.4f} s, it is {on_grid(other, contact(CIFAR))} of FAVANO's {len(other)} with two digits."
    )


def no_speed_up() -> str:
    """The aggregations that Table I implies, and its growth with n beside the clock's."""
    printed = times("fashion_mnist", "noniid", "defedavg_niid")["paper"].tolist()
    clock = [seconds("defedavg_niid", n) for n in N]
    counts, iid = aggregations("noniid", "defedavg_niid"), aggregations("iid", "defedavg_iid")
    grown, alone = [t / printed[0] for t in printed], [c / clock[0] for c in clock]
    return (
        f"DeFedAvg-nIID's printed times on Fashion-MNIST are {_list(counts.values(), 0)} aggregations of the clock for "
        f"n = {_list(N, 0)}, at one pair of rates. From n = 10 on they grow {_list(grown[1:], 2)} "
        f"times, the clock's seconds an aggregation {_list(alone[1:], 2)} times. DeFedAvg-IID's "
        f"are {_list([iid[n] for n in N[:3]], 0)} up to n = 40, also at one pair. A linear speed-up would divide them "
        "by four."
    )


def rates_at_80() -> str:
    """Global rate x local rate x aggregations of DeFedAvg-IID as printed, and at n = 80 with a tenth of the local."""
    found, tenth = progress("iid", "defedavg_iid"), progress("iid", "defedavg_iid", {80: (1.0, 0.01)})
    return (
        "Global rate x local rate x aggregations is, for DeFedAvg-IID on Fashion-MNIST, "
        f"{_list([found[n] for n in N[:3]], 1)} for n = 10, 20, 40 and {found[80]:.0f} for n = 80, with the printed "
        f"(1.0, 0.10). With (1.0, 0.01) it is {tenth[80]:.1f}."
    )


def _list(numbers: Iterable[float], digits: int) -> str:
    return ", ".join(f"{number:.{digits}f}" for number in numbers)
