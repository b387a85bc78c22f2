"""The runs of DeFedAvg: Table I with Figs. 2-5 on a grid of virtual times, Figs. 6 and 7 over aggregations."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache

from reproduce.algorithms.asynchronous import Asynchronous, Favano
from reproduce.clocks.events import Events
from reproduce.clocks.step import Target
from reproduce.declare.experiment import PACKAGE, Experiment, Label, Panel, changed
from reproduce.papers.defedavg import settings
from reproduce.papers.defedavg.settings import ClockSetting, Pair
from reproduce.partitions.labels import IID, TwoClasses
from reproduce.systems import Steps, System
from reproduce.systems.policies import POLICIES, AsySGPolicy, DeFedAvgNIIDPolicy
from reproduce.systems.schedule import Explicit, Pace, Policy, Schedule, Timeline

GROUPS: Mapping[str, tuple[str, ...]] = {
    "iid": ("fedavg", "favano", "asysg", "defedavg_iid"),
    "noniid": ("fedavg", "favano", "fedbuff", "defedavg_niid"),
}
PROPOSED: Mapping[str, str] = {"iid": "defedavg_iid", "noniid": "defedavg_niid"}


@cache
def table2() -> Mapping[tuple[str, str, str, int], Pair]:
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
    found = {a: table2()[setting.dataset, distribution, a, n] for a in GROUPS[distribution]}
    return found | {a: pair for (s, d, a, m), pair in settings.BESIDE.items() if (s, d, m) == column}


def policy(algorithm: str, n: int) -> Policy:
    """The policy of an algorithm; a suffix names a variant: another policy, or the same with other rates."""
    if algorithm == "defedavg_niid_hold":
        return DeFedAvgNIIDPolicy(n, variant="hold")
    if algorithm == "asysg_all":
        return AsySGPolicy(n, concurrency="N")
    base = next(a for a in POLICIES if algorithm.removeprefix("tuned_").startswith(a))
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


def run(
    setting: ClockSetting, distribution: str, n: int, algorithm: str, pair: Pair, further: bool = True, **told: Label
) -> Experiment:
    """A run on a grid of virtual times until the target is reached, and (`further`) as far as the figures show.

    told: labels beside those of a column of Table I."""
    where, under = settings.DISTRIBUTIONS.index(distribution), policy(algorithm, n)
    target, partition = setting.target[where], TwoClasses() if where else IID()
    labels = {"distribution": distribution, "dataset": setting.dataset, "target_accuracy_pct": target, "n": n, **told}
    clock = Events(
        under, horizon=setting.horizon[where], grid=setting.grid[where],
        until=Target("accuracy", target, setting.smooth[where]), least=setting.shown[where] if further else 0.0,
        train_view=settings.LOSS_VIEW if further else "", train_every=4 if further else 1,
    )  # fmt: skip
    problem = replace(setting.problem, partition=partition)
    return Experiment({**labels, "algorithm": algorithm}, problem, system(setting, under), rule(pair), clock)


def panel(name: str, setting: ClockSetting, experiments: Iterable[Experiment], seeds: tuple[int, ...] = ()) -> Panel:
    """A panel; its `name` has braces in the place of the data set."""
    name = name.format(setting.dataset.replace("_", "-"))
    return Panel(name, tuple(experiments), seeds or setting.seeds, setting.substitute)


def times_panels(scale: str, n: int | None = None) -> tuple[Panel, ...]:
    """The runs of Table I and Figs. 2-5; with `n` those of one figure (all where nobody has that n)."""
    return tuple(
        times_panel(setting, distribution, m)
        for setting in settings.SETTINGS[scale]
        for distribution in settings.DISTRIBUTIONS
        for m in ((n,) if n in setting.participants else setting.participants)
    )


def times_panel(setting: ClockSetting, distribution: str, n: int) -> Panel:
    """The panel of one column of Table I (n participants) for one distribution."""
    pairs = rates(setting, distribution, n).items()
    experiments = (run(setting, distribution, n, name, pair) for name, pair in pairs)
    return panel(f"{{}}-{distribution}-n{n}", setting, experiments, setting.seeds_of(distribution, n))


def participants_panels(scale: str) -> tuple[Panel, ...]:
    """Fig. 6: DeFedAvg over aggregations with different n at the usual K, all of a distribution on the same seeds."""
    return tuple(
        replace(_over_rounds(setting, kind, n, setting.steps), seeds=setting.over_n.get(kind, setting.seeds))
        for setting in settings.SETTINGS[scale]
        for kind in settings.DISTRIBUTIONS
        for n in setting.few
    )


def steps_panels(scale: str) -> tuple[Panel, ...]:
    """Fig. 7: with different K; the usual K is one of Fig. 6."""
    return tuple(
        _over_rounds(setting, distribution, setting.middle, k)
        for setting in settings.SETTINGS[scale]
        for distribution in settings.DISTRIBUTIONS
        for k in setting.ks
    )


def _over_rounds(setting: ClockSetting, distribution: str, n: int, k: int) -> Panel:
    """Returns the experiments of one line of Figs. 6 and 7: the proposed algorithm with n participants and k local
    steps. Without own rates of the setting, Table II gives them. If these are not (0.1, 0.05), a second experiment has
    the suffix `_fixed` and those rates."""
    name = PROPOSED[distribution]
    own = setting.own.get(distribution, {}).get(name)
    pairs = {name: own or table2()[setting.dataset, distribution, name, n]}
    pairs |= {f"{name}_fixed": settings.LIKELY} if not own and pairs[name] != settings.LIKELY else {}
    clock = Events(policy(name, n), setting.rounds, every=setting.every, train_view=settings.LOSS_VIEW, train_every=2)
    lines = (run(setting, distribution, n, algorithm, pair, K=k) for algorithm, pair in pairs.items())
    experiments = (changed(e, {"system.work": Steps(k), "clock": clock}) for e in lines)
    return panel(f"rounds-{{}}-{distribution}-n{n}-k{k}", setting, experiments, setting.seeds_of(distribution, n))


def readings_panels(scale: str) -> tuple[Panel, ...]:
    """Cells of Table I under other readings, at paper scale, to their target: FedAvg, on which a reading was chosen,
    and DeFedAvg-nIID, on which it is tested."""
    setting, n, names = settings.PAPER[0], 10, ("fedavg", PROPOSED["noniid"])
    given = rates(setting, "noniid", n)
    experiments = (
        run(setting, "noniid", n, name, (given[name][0], local), further=False, table="table1", reading=reading)
        for reading, local in settings.READINGS.items()
        for name in names
    )
    return (panel(f"readings-{{}}-noniid-n{n}", setting, experiments),) if scale == "paper" else ()


def echo() -> list[Experiment]:
    """The runs whose rates Table II gives, as declared at paper scale."""
    found = [*times_panels("paper"), *participants_panels("paper")]
    return [e for p in found for e in p.experiments if p.name.split("-")[0] != "rounds" or e.labels["n"] == 5]


def schedules() -> Iterator[tuple[ClockSetting, str, int, Schedule]]:
    """(setting, algorithm, n, schedule) of the six algorithms at paper scale."""
    for setting in settings.PAPER:
        for name in dict.fromkeys(a for group in GROUPS.values() for a in group):
            for n in settings.PARTICIPANTS:
                under = policy(name, n)
                where = system(setting, under)
                assert isinstance(where.work, Steps)
                assert where.pace is not None
                yield setting, name, n, Schedule(under, setting.problem.clients, where.work.k, where.pace)


def example(name: str) -> Timeline:
    """The timeline of Fig. 1 under this policy."""
    pace = Pace(1.0, 0.0, 0.0, Explicit(settings.LENGTHS))
    return Schedule(settings.EXAMPLES[name], 3, 1, pace).timeline(0, horizon=settings.HORIZON)
