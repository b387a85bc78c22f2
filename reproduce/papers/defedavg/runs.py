"""The runs of DeFedAvg: Table I with Figs. 2-5 on a grid of virtual times, Figs. 6 and 7 over aggregations, variants.

A pair of rates is (global, local); AsySG has no local and FAVANO no global rate (None).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from reproduce.algorithms.asynchronous import Asynchronous, Favano
from reproduce.clocks.events import Events
from reproduce.clocks.record import Target
from reproduce.data.batches import WithReplacement
from reproduce.data.embedded import GaussianClasses
from reproduce.declare.experiment import PACKAGE, Experiment, Label, Panel
from reproduce.models.declared import MLP, ConvNet, Softmax
from reproduce.partitions.named import IID, TwoClasses
from reproduce.problem import Classification
from reproduce.systems import Steps, System
from reproduce.systems.policies_arrivals import AsySGPolicy, DeFedAvgIIDPolicy, FedBuffPolicy
from reproduce.systems.policies_drawn import DeFedAvgNIIDPolicy, FavanoPolicy, FedAvgPolicy
from reproduce.systems.schedule import Policy, Schedule, Timeline
from reproduce.systems.speeds import CIFAR10, FASHION_MNIST, Explicit, Pace

Pair = tuple[float | None, float | None]

SEEDS = (0, 1, 2)
DISTRIBUTIONS = ("iid", "noniid")
LOSS_VIEW = "train:10000"
PARTICIPANTS = (10, 20, 40, 80)
GROUPS: Mapping[str, tuple[str, ...]] = {
    "iid": ("fedavg", "favano", "asysg", "defedavg_iid"),
    "noniid": ("fedavg", "favano", "fedbuff", "defedavg_niid"),
}
PROPOSED: Mapping[str, str] = {"iid": "defedavg_iid", "noniid": "defedavg_niid"}
POLICIES: Mapping[str, type[Policy]] = {
    "defedavg_iid": DeFedAvgIIDPolicy, "defedavg_niid": DeFedAvgNIIDPolicy, "fedavg": FedAvgPolicy,
    "favano": FavanoPolicy, "asysg": AsySGPolicy, "fedbuff": FedBuffPolicy,
}  # fmt: skip


@dataclass(frozen=True)
class ClockSetting:
    """One data set at one scale: network, pace and what is asked of the runs; pairs are for (iid, noniid).

    steps: K; pace: seconds of a step of K and of the transfers, single: of AsySG's only step; grid: virtual seconds
    between evaluations; target: percent of test accuracy, of the mean of the last `smooth` evaluations; shown: virtual
    seconds that the figures show; searched: the local rates of the grid (reduced: without the two lowest, far from any
    target); rounds: aggregations of Figs. 6 and 7, `few` the n of Fig. 6, `ks` the K of Fig. 7; own: rates for all n,
    by distribution, in place of those of Table II. most: the seeds where n is `middle`, if not `seeds`.
    """

    dataset: str
    problem: Classification
    steps: int
    pace: Pace
    single: Pace
    grid: tuple[float, float]
    target: tuple[float, float]
    horizon: tuple[float, float]
    shown: tuple[float, float]
    searched: tuple[float, ...]
    smooth: tuple[int, int] = (1, 1)
    participants: tuple[int, ...] = PARTICIPANTS
    rounds: int = 1000
    every: int = 5
    few: tuple[int, ...] = (5, *PARTICIPANTS)
    ks: tuple[int, ...] = (20, 50, 100)
    seeds: tuple[int, ...] = SEEDS
    most: tuple[int, ...] = ()
    own: Mapping[str, Mapping[str, Pair]] = field(default_factory=dict)
    substitute: str = ""

    @property
    def slug(self) -> str:
        return self.dataset.replace("_", "-")

    @property
    def middle(self) -> int:
        """The n of Fig. 7 and of the variants: 10, or what stands in for it."""
        return 10 if 10 in self.few else self.few[1]

    def seeds_of(self, n: int) -> tuple[int, ...]:
        """Of the panels of Table I and Figs. 2 to 5 and 7 with n participants."""
        return (n == self.middle and self.most) or self.seeds


def _own(pair: Pair, iid_fedavg: Pair) -> Mapping[str, Mapping[str, Pair]]:
    """Rates of a small network by distribution: `pair`, as far as the algorithm has both; with IID data FedAvg's own.

    Non-IID FedAvg has those of DeFedAvg-nIID, as in Table II for n = 10; the variant `hold` stands beside that, and
    beside AsySG the one that keeps as many clients at work as DeFedAvg.
    """
    server, local = pair
    single = dict.fromkeys(("asysg", "asysg_all"), (server, None))
    iid = {"fedavg": iid_fedavg, "favano": (None, local), **single, "defedavg_iid": pair}
    rest = dict.fromkeys(("fedbuff", "defedavg_niid", "defedavg_niid_hold"), pair)
    return {"iid": iid, "noniid": {"fedavg": pair, "favano": (None, local), **rest}}


def _paper_problem(dataset: str, channels: int, size: int) -> Classification:
    half = (0.5,) * channels
    model = ConvNet(channels, size, (32, 64), (512,))
    return Classification(dataset, model, IID(), 100, WithReplacement(10), weights="uniform", mean=half, std=half)


GRID = (0.001, 0.005, 0.01, 0.05, 0.1)
PAPER = (
    ClockSetting(
        "fashion_mnist", _paper_problem("fashion_mnist", 1, 28), 50, FASHION_MNIST, FASHION_MNIST, (0.25, 0.25),
        (90.0, 80.0), (900.0, 900.0), (500.0, 500.0), GRID,
    ),
    ClockSetting(
        "cifar10", _paper_problem("cifar10", 3, 32), 50, CIFAR10, CIFAR10, (0.5, 0.5),
        (70.0, 60.0), (1400.0, 5000.0), (1000.0, 2000.0), GRID,
    ),
)  # fmt: skip
REDUCED = ClockSetting(
    "fashion_mnist",
    Classification("fashion_mnist", MLP(784, 64, 10), IID(), 100, WithReplacement(10), weights="uniform"),
    10, replace(FASHION_MNIST, step=5 * FASHION_MNIST.step), FASHION_MNIST, (0.25, 0.5),
    (80.0, 70.0), (120.0, 250.0), (60.0, 100.0), searched=(0.01, 0.05, 0.1, 0.3), smooth=(3, 5), rounds=1200,
    ks=(4, 10, 20), most=tuple(range(10)), own=_own((0.1, 0.1), iid_fedavg=(1.0, 0.1)),
    substitute="network 784-64-10 for the convolutional one, pixels from 0 to 1, K = 10 steps of five times the "
    "length, until 120 s (IID) and 250 s (non-IID) or for 1,200 aggregations, targets 80 % and 70 %, times to them of "
    "the mean over 3 and 5 times of the grid, own rates",
)  # fmt: skip
SMOKE = ClockSetting(
    "gaussian",
    Classification(
        GaussianClasses(10, 20, 200, 50, 1.0, 0, mean_scale=2.0), Softmax(20, 10), IID(), 10, WithReplacement(10),
        weights="uniform",
    ),
    5, replace(FASHION_MNIST, step=10 * FASHION_MNIST.step), FASHION_MNIST, (0.2, 0.2),
    (80.0, 70.0), (10.0, 10.0), (10.0, 10.0), searched=(0.05, 0.3), participants=(3,), rounds=40, few=(2, 3, 6),
    ks=(2, 5, 10), seeds=(0, 1), own=_own((0.5, 0.1), iid_fedavg=(0.5, 0.1)),
    substitute="10 clients with Gaussian classes and a softmax model, n = 3, K = 5",
)  # fmt: skip
SETTINGS: Mapping[str, tuple[ClockSetting, ...]] = {"smoke": (SMOKE,), "reduced": (REDUCED,), "paper": PAPER}


# --- rates ------------------------------------------------------------------------------------------------------------

OLD, LIKELY = (1.0, 0.10), (0.1, 0.05)
BESIDE: Mapping[tuple[str, str, str, int], Pair] = {
    **{("fashion_mnist", "iid", "fedavg_lr_n10", n): OLD for n in (20, 40, 80)},
    ("fashion_mnist", "iid", "defedavg_iid_twice", 10): (0.1, 0.1),
    ("cifar10", "iid", "defedavg_iid_corrected", 10): LIKELY,
    ("cifar10", "iid", "defedavg_iid_corrected", 20): LIKELY,
    ("cifar10", "noniid", "defedavg_niid_corrected", 20): LIKELY,
}
"""Runs beside the printed ones: FedAvg with the rates of n = 10, which Table II gives up for n >= 20 although they are
in its grid; (0.1, 0.05) where the printed rates do not fit the printed times; and twice the printed local rate where
ours do not fit them (docs/findings/defedavg.md)."""


@cache
def printed() -> Mapping[tuple[str, str, str, int], Pair]:
    """Table II: (dataset, distribution, algorithm, n) -> rates as printed; n = 5 is used in Fig. 6 only."""
    found: dict[tuple[str, str, str, int], dict[str, float]] = {}
    with (PACKAGE / "papers/defedavg/reported/table2.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["value"] != "NA":
                key = (row["dataset"], row["distribution"], row["algorithm"], int(row["n"]))
                found.setdefault(key, {})[row["metric"]] = float(row["value"])
    return {key: (rates.get("global_lr"), rates.get("local_lr")) for key, rates in found.items()}


def rates(setting: ClockSetting, distribution: str, n: int) -> dict[str, Pair]:
    """Algorithm -> rates of a column of Table I, with the runs that stand beside it."""
    if setting.own:
        return dict(setting.own[distribution])
    column = (setting.dataset, distribution, n)
    found = {a: printed()[setting.dataset, distribution, a, n] for a in GROUPS[distribution]}
    return found | {a: pair for (s, d, a, m), pair in BESIDE.items() if (s, d, m) == column}


# --- runs -------------------------------------------------------------------------------------------------------------


def policy(algorithm: str, n: int) -> Policy:
    """The policy of an algorithm; a suffix names a variant: another policy, or the same with other rates."""
    if algorithm == "defedavg_niid_hold":
        return DeFedAvgNIIDPolicy(n, variant="hold")
    if algorithm == "asysg_all":
        return AsySGPolicy(n, concurrency="N")
    base = next(a for a in POLICIES if algorithm.startswith(a))
    return POLICIES[base](n)  # type: ignore[call-arg]


def system(setting: ClockSetting, under: Policy) -> System:
    """The clients; AsySG makes one step per job."""
    single = isinstance(under, AsySGPolicy)
    return System(work=Steps(1 if single else setting.steps), pace=setting.single if single else setting.pace)


def rule(pair: Pair) -> Asynchronous:
    """The server's rule with these rates: FAVANO's without a global one, a gradient's as it is without a local one."""
    server, local = pair
    if server is None:
        assert local is not None
        return Favano(local)
    return Asynchronous(1.0 if local is None else local, server_lr=server)


def problem(setting: ClockSetting, distribution: str) -> Classification:
    return replace(setting.problem, partition=IID() if distribution == "iid" else TwoClasses())


def until_target(setting: ClockSetting, distribution: str, under: Policy, further: bool = True) -> Events:
    """On a grid of virtual times until the target is reached, and (`further`) as far as the figures show."""
    where = DISTRIBUTIONS.index(distribution)
    return Events(
        under,
        horizon=setting.horizon[where],
        grid=setting.grid[where],
        until=Target("accuracy", setting.target[where], setting.smooth[where]),
        least=setting.shown[where] if further else 0.0,
        train_view=LOSS_VIEW if further else "",
        train_every=4 if further else 1,
    )


def labels(setting: ClockSetting, distribution: str, n: int) -> dict[str, Label]:
    """Of a column of Table I."""
    target = setting.target[DISTRIBUTIONS.index(distribution)]
    return {"distribution": distribution, "dataset": setting.dataset, "target_accuracy_pct": target, "n": n}


def times_panels(scale: str, n: int | None = None) -> tuple[Panel, ...]:
    """The runs of Table I and Figs. 2-5; with `n` those of one figure (all where nobody has that n)."""
    return tuple(
        times_panel(setting, distribution, m)
        for setting in SETTINGS[scale]
        for distribution in DISTRIBUTIONS
        for m in ((n,) if n in setting.participants else setting.participants)
    )


def times_panel(setting: ClockSetting, distribution: str, n: int) -> Panel:
    """One column of Table I for one distribution."""
    experiments = tuple(
        Experiment(
            {**labels(setting, distribution, n), "algorithm": name},
            problem(setting, distribution),
            system(setting, policy(name, n)),
            rule(pair),
            until_target(setting, distribution, policy(name, n)),
        )
        for name, pair in rates(setting, distribution, n).items()
    )
    return Panel(f"{setting.slug}-{distribution}-n{n}", experiments, setting.seeds_of(n), setting.substitute)


def participants_panels(scale: str) -> tuple[Panel, ...]:
    """Fig. 6: DeFedAvg over aggregations with different n at the usual K, all on the same seeds."""
    return tuple(
        replace(_over_rounds(setting, distribution, n, setting.steps), seeds=setting.seeds)
        for setting in SETTINGS[scale]
        for distribution in DISTRIBUTIONS
        for n in setting.few
    )


def steps_panels(scale: str) -> tuple[Panel, ...]:
    """Fig. 7: with different K; the usual K is one of Fig. 6."""
    return tuple(
        _over_rounds(setting, distribution, setting.middle, k)
        for setting in SETTINGS[scale]
        for distribution in DISTRIBUTIONS
        for k in setting.ks
    )


def _over_rounds(setting: ClockSetting, distribution: str, n: int, k: int) -> Panel:
    lines = tuple(_lines(setting, distribution, n, k))
    return Panel(f"rounds-{setting.slug}-{distribution}-n{n}-k{k}", lines, setting.seeds_of(n), setting.substitute)


def _lines(setting: ClockSetting, distribution: str, n: int, k: int) -> Iterator[Experiment]:
    """A line of Figs. 6 and 7. Where the rates of Table II differ from (0.1, 0.05), a second run has these."""
    name = PROPOSED[distribution]
    own = setting.own.get(distribution, {}).get(name)
    pairs = {name: own or printed()[setting.dataset, distribution, name, n]}
    pairs |= {f"{name}_fixed": LIKELY} if not own and pairs[name] != LIKELY else {}
    under = policy(name, n)
    clock = Events(under, setting.rounds, every=setting.every, train_view=LOSS_VIEW, train_every=2)
    where = replace(system(setting, under), work=Steps(k))
    for algorithm, pair in pairs.items():
        told = {**labels(setting, distribution, n), "K": k, "algorithm": algorithm}
        yield Experiment(told, problem(setting, distribution), where, rule(pair), clock)


def echo() -> list[Experiment]:
    """The runs whose rates Table II gives, as declared at paper scale."""
    found = [*times_panels("paper"), *participants_panels("paper")]
    return [e for p in found for e in p.experiments if p.name.split("-")[0] != "rounds" or e.labels["n"] == 5]


def schedules() -> Iterator[tuple[ClockSetting, str, int, Schedule]]:
    """(setting, algorithm, n, schedule) of the six algorithms at paper scale."""
    for setting in PAPER:
        for name in dict.fromkeys(a for group in GROUPS.values() for a in group):
            for n in PARTICIPANTS:
                under = policy(name, n)
                where = system(setting, under)
                assert isinstance(where.work, Steps)
                assert where.pace is not None
                yield setting, name, n, Schedule(under, setting.problem.clients, where.work.k, where.pace)


# --- Fig. 1 -----------------------------------------------------------------------------------------------------------

LENGTHS, HORIZON = (2.0, 3.3, 5.1), 20.0
DRAWN = ((0, 2), (0, 1), (1, 2))
EXAMPLES: Mapping[str, Policy] = {
    "fedavg": FedAvgPolicy(2, DRAWN),
    "defedavg_niid": DeFedAvgNIIDPolicy(2, DRAWN),
    "defedavg_niid_hold": DeFedAvgNIIDPolicy(2, DRAWN, variant="hold"),
    "defedavg_iid": DeFedAvgIIDPolicy(2),
}


def example(name: str) -> Timeline:
    """The first 20 units of time of three clients; transfers take none."""
    return Schedule(EXAMPLES[name], 3, 1, Pace(1.0, 0.0, 0.0, Explicit(LENGTHS))).timeline(0, horizon=HORIZON)
