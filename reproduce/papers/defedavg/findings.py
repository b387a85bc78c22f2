"""Findings from DeFedAvg's published Tables 1 and 2 under the paper's clock (Sec. 4.1.3), without a run of ours."""

from collections import deque
from collections.abc import Iterable, Mapping
from functools import cache
from math import prod

import pandas as pd

from reproduce.declare.experiment import changed
from reproduce.papers.defedavg import runs, settings
from reproduce.report.tables import reported
from reproduce.systems.policies import POLICIES
from reproduce.systems.schedule import UniformSlowdown

N = settings.PARTICIPANTS
CONTACT = {s.dataset: s.pace.download + s.pace.upload for s in settings.PAPER}
"""Seconds of a transfer to a client and of one back."""
GRID = 20
"""Contacts between two times at which FAVANO seems to have been evaluated."""
CLOCKS: Mapping[str, Mapping[str, object]] = {
    "": {}, "speeds as rates": {"pace.speeds": UniformSlowdown(model="rate")},
    "clients that hold": {"policy.variant": "hold"},
}  # fmt: skip
"""Alternatives of the clock -> changes of a schedule."""


def times(dataset: str, algorithm: str) -> pd.DataFrame:
    """Rows of Table 1 that are no bounds."""
    table = reported("defedavg", "table1")
    assert table is not None
    return table[(table["dataset"] == dataset) & (table["algorithm"] == algorithm) & ~table["paper_censored"]]


def on_grid(dataset: str, *algorithms: str) -> tuple[int, int]:
    """The number of times with two digits that are one contact more than whole multiples of `GRID` contacts, to the
    last digit; and the number of all such times."""
    texts = [t for a in algorithms for t in times(dataset, a)["paper_text"] if len(t.partition(".")[2]) == 2]
    unit = CONTACT[dataset]
    multiples = [round((float(text) / unit - 1) / GRID) for text in texts]
    return sum(f"{unit * (GRID * k + 1):.2f}" == text for k, text in zip(multiples, texts, strict=True)), len(texts)


@cache
def seconds(algorithm: str, n: int, clock: str = "", seeds: int = 10, aggregations: int = 300) -> float:
    """Seconds per aggregation on Fashion-MNIST, the mean over random speeds of the clients."""
    declared = next(s for of, a, m, s in runs.schedules() if (of, a, m) == (settings.PAPER[0], algorithm, n))
    schedule = changed(declared, CLOCKS[clock])
    ends = [deque(schedule.stream(seed, aggregations), maxlen=1)[0].time for seed in range(seeds)]
    return sum(ends) / seeds / aggregations


def aggregations(algorithm: str, clock: str = "") -> Mapping[int, float]:
    """n -> the published time of a DeFedAvg on Fashion-MNIST over the clock's seconds per aggregation."""
    rows = times("fashion_mnist", algorithm)
    return {int(n): time / seconds(algorithm, int(n), clock) for n, time in zip(rows["n"], rows["paper"], strict=True)}


def serial_contacts() -> str:
    """FAVANO's published times as whole numbers of contacts."""
    fashion, cifar = (on_grid(dataset, "favano") for dataset in CONTACT)
    rest = on_grid("fashion_mnist", *(a for a in POLICIES if a != "favano"))
    unit, units = CONTACT.values()
    return (
        f"{fashion[0]} of FAVANO's {fashion[1]} published times on Fashion-MNIST equal ({GRID}k + 1) x {unit:.3f} s "
        f"for a whole k, to the last digit. A contact, which is a transfer down and one up, takes {unit:.3f} s. Of the "
        f"other algorithms' {rest[1]} times with two decimals, {rest[0] or 'none'} have this form. On CIFAR-10, where "
        f"a contact takes {units:.4f} s, {cifar[0]} of FAVANO's {cifar[1]} such times has it."
    )


def no_speed_up() -> str:
    """The aggregations that Table 1 implies, under three clocks, and its growth with n beside the clock's."""
    printed, clock = times("fashion_mnist", "defedavg_niid")["paper"].tolist(), [seconds("defedavg_niid", n) for n in N]
    grown, pace = ([x / each[0] for x in each[1:]] for each in (printed, clock))
    over_n = {name: [*aggregations("defedavg_niid", name).values()] for name in CLOCKS}
    spread = {name: f"{100 * (max(counts) / min(counts) - 1):.0f} %" for name, counts in over_n.items()}
    listed = " and ".join(f"{text} with {name}" for name, text in spread.items() if name)
    return (
        f"By the paper's clock, DeFedAvg-nIID's published times on Fashion-MNIST are "
        f"{_list(aggregations('defedavg_niid').values())} aggregations for n = {_list(N)}. They differ by "
        f"{spread['']}, under other clocks by {listed}. So the published times, which grow {_list(grown, 2)} times "
        f"from n = 10 on, grow as the clock's seconds per aggregation do ({_list(pace, 2)} times). DeFedAvg-IID's "
        f"times are {_list([*aggregations('defedavg_iid').values()][:3])} aggregations up to n = 40. The learning "
        "rates are equal. A linear speed-up would divide the aggregations by four from n = 10 to 40."
    )


def rates_at_80() -> str:
    """Global x local learning rate x aggregations of DeFedAvg-IID as published, and at n = 80 with a tenth of it."""
    rates = {n: runs.table2()["fashion_mnist", "iid", "defedavg_iid", n] for n in N}
    products = [count * prod(rate or 0 for rate in rates[n]) for n, count in aggregations("defedavg_iid").items()]
    return (
        "We multiply DeFedAvg-IID's global and local learning rate and aggregations on Fashion-MNIST. The product is "
        f"{_list(products[:3], 1)} for n = 10, 20, 40. For n = 80 it is {products[3]:.0f} with the published rates "
        f"(1.0, 0.10), and {products[3] / 10:.1f} with (1.0, 0.01)."
    )


def _list(numbers: Iterable[float], digits: int = 0) -> str:
    return ", ".join(f"{number:.{digits}f}" for number in numbers)
