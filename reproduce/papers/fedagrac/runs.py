"""The runs of FedaGrac's preliminary experiments (Sections 1 and 4) and of its comparisons (Section 6)."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from reproduce.algorithms.base import FedAvg
from reproduce.algorithms.fedagrac import Constant, FedaGrac, FedLin, Increase, Rate
from reproduce.algorithms.fednova import FedNova
from reproduce.algorithms.fedprox import FedProx
from reproduce.algorithms.scaffold import Scaffold
from reproduce.clocks.rounds import Rounds
from reproduce.declare.experiment import Experiment, Panel, changed
from reproduce.papers.fedagrac import settings, theory
from reproduce.papers.fedagrac.settings import COMMON, Comparison, Orientation
from reproduce.partitions.labels import Head, ShuffledBlocks
from reproduce.problem import Classification
from reproduce.systems import System
from reproduce.systems.work import DEVICES, DeviceClasses, Gaussian, Mode, PerClient, Steps, Uniform, Work

Run = tuple[Mapping[str, Any], Classification, Work, FedAvg, Rounds]
"""Labels, problem, the clients' work, algorithm, clock."""


class LocalSteps(NamedTuple):
    """K_i of Section 6: a Gaussian; without variance (mode "none") no step asynchronism."""

    mean: int
    variance: int
    mode: Mode | Literal["none"] = "fixed"

    @property
    def work(self) -> Work:
        """The clients' numbers of local steps, drawn as in the published code."""
        return Steps(self.mean) if self.mode == "none" else Gaussian(self.mean, self.variance, self.mode)


SHARED = ("alexnet", "dp2", LocalSteps(500, 10000))
"""The row whose runs Fig. 5 follows to the end; all others end with their target."""


def panel(name: str, scale: str, runs: Iterable[Run], substitute: str = "", seeds: tuple[int, ...] = ()) -> Panel:
    """Runs of a scale under the name of a file; clients differ in their work only, and the labels begin with the data
    set. seeds: if not the scale's."""
    found = []
    for labels, problem, work, algorithm, clock in runs:
        data = problem.data if isinstance(problem.data, str) else "generated"
        found.append(Experiment({"dataset": data, **labels}, problem, System(work=work), algorithm, clock))
    return Panel(name.replace("_", "-"), tuple(found), seeds or COMMON[scale].seeds, substitute)


def jobs(scale: str, name: str, panels: list[Panel]) -> tuple[Panel, ...]:
    """The panels as they are trained: one by one, or all in one job."""
    together = replace(panels[0], name=name, experiments=tuple(e for p in panels for e in p.experiments))
    return (together,) if COMMON[scale].one_job else tuple(panels)


def fedagrac(rate: float, lam: float, **options: Any) -> FedaGrac:
    """FedaGrac with a constant calibration rate."""
    return FedaGrac(rate, calibration=Constant(lam), **options)


FULL: dict[str, Any] = {"start": "full_gradient"}
FIG1 = {
    "fedavg": FedAvg(theory.RATE),
    "fednova": FedNova(theory.RATE),
    "fedprox": FedProx(theory.RATE, mu=0.1),
    "fedlin": FedLin(theory.RATE),
    "scaffold": FedaGrac(theory.RATE, scheme="avg", **FULL),
    "fedagrac": FedaGrac(theory.RATE, **FULL),
    "fedagrac_first": FedaGrac(theory.RATE, scheme="first", **FULL),
    "fedagrac_reverse": FedaGrac(theory.RATE, scheme="reverse", **FULL),
}
"""SCAFFOLD is the average scheme with lambda = 1 (Sec. 4.2), and so starts from full gradients like the others."""


def fig1(scale: str) -> tuple[Panel, ...]:
    """All algorithms of Fig. 1 on the two clients' linear regression (`theory.problem`), from the same start."""
    rounds = COMMON[scale].path
    system, clock = System(work=PerClient(theory.STEPS)), Rounds(rounds, every=10, trace=1)
    experiments = (
        Experiment({"instance": "reference", "algorithm": name}, theory.problem(), system, algorithm, clock)
        for name, algorithm in FIG1.items()
    )
    return (Panel("fig1", tuple(experiments), (0,), f"{rounds} rounds" if rounds < COMMON["paper"].path else ""),)


def fig2(scale: str) -> tuple[Panel, ...]:
    """(a) step asynchronism, constant λ; (b) equal steps, constant and increasing λ."""
    s, common = settings.FIG2[scale], COMMON[scale]
    increase = Increase(ends=(s.rounds // 4, s.rounds * 3 // 4))
    found = []
    for kind, work, lambdas, more, seeds in (
        ("async", common.uneven, s.uneven, {}, s.seeds_uneven),
        ("equal", common.even, s.even, {"increase": increase}, s.seeds_even),
    ):
        rates: dict[str, Rate] = {**{f"{lam:g}": Constant(lam) for lam in lambdas}, **more}
        labels = {"model": "cnn2", "step_async": int(kind == "async")}
        runs = (
            ({**labels, "lambda": name, "algorithm": "fedagrac"},
             common.cnn, work, FedaGrac(common.rate, calibration=rate), Rounds(s.rounds))
            for name, rate in rates.items()
        )  # fmt: skip
        found.append(panel(f"fig2-{kind}", scale, runs, s.substitute, seeds))
    return tuple(found)


SCHEMES = {"fedagrac": {}, **{f"fedagrac_{name}": {"scheme": name} for name in ("avg", "first", "reverse")}}
"""Reference orientation (Section 4.2): the scheme of the paper and the other three."""


def fig3(scale: str) -> tuple[Panel, ...]:
    """(a) LR and (b) CNN with equal steps, (c) LR and (d) CNN with unequal steps."""
    return tuple(oriented(o, step_async, scale) for step_async in (0, 1) for o in settings.FIG3[scale])


def oriented(o: Orientation, step_async: int, scale: str) -> Panel:
    """The schemes, and the runs that are not drawn, with equal or with unequal steps."""
    drawn, plain = (o.model, o.rate, o.lam), ("", dict[str, Any]())
    alone = ("_single", {"first_gradient": "single"})
    points = [(drawn, plain), *([(drawn, alone)] if o.single else []), *((side, plain) for side in o.side)]
    kind, work = ("async", COMMON[scale].uneven) if step_async else ("equal", COMMON[scale].even)
    runs = (
        ({"model": model, "step_async": step_async, "algorithm": name + ending},
         o.problem, work, fedagrac(rate, lam, **options, **more), Rounds(o.rounds))
        for (model, rate, lam), (ending, more) in points
        for name, options in SCHEMES.items()
        if not (more and name == "fedagrac_avg")  # which sends no first gradient
    )  # fmt: skip
    return panel(f"fig3-{o.model}-{kind}", scale, runs, o.substitute, o.seeds)


def table1(scale: str) -> tuple[Panel, ...]:
    """Logistic regression at both rates, and the network."""
    found = []
    for race in settings.TABLE1[scale]:
        clock = Rounds(race.rounds, until=("accuracy", race.target))
        splits = ShuffledBlocks(race.problem.partition.data_seed), race.problem.partition  # type: ignore[attr-defined]
        runs = (
            ({"model": model, "step_async": step_async, "non_iid": non_iid, "target_accuracy": race.target,
              "algorithm": "fedavg"},
             replace(race.problem, partition=partition), work, FedAvg(rate), clock)
            for model, rate in race.rates.items()
            for non_iid, partition in enumerate(splits)
            for step_async, work in enumerate((Steps(race.steps), Uniform(race.steps, race.most)))
        )  # fmt: skip
        found.append(panel(f"table1-{next(iter(race.rates))}", scale, runs, race.substitute, race.seeds))
    return tuple(found)


def table2(scale: str) -> tuple[Panel, ...]:
    """A panel per slow device, with all utilisations of both algorithms."""
    s, common = settings.TABLE2[scale], COMMON[scale]
    partition = common.cnn.partition
    problem = replace(common.cnn, partition=replace(partition, data_seed=None) if s.drawn else partition)
    algorithms = {"fednova": FedNova(common.rate), "fedagrac": fedagrac(common.rate, s.lam)}
    found = []
    for device, ratio in zip(DEVICES, s.ratios, strict=True):
        labels: dict[str, Any] = {"model": "cnn2", "slow_device": device, "fast_device": "rtx3080ti"}
        labels |= {"target_accuracy": s.target, "max_rounds": s.limit}
        runs = (
            ({**labels, "utilization": u, "algorithm": name},
             problem, DeviceClasses(s.slow, ratio, u / 100), algorithm, Rounds(s.rounds))
            for name, algorithm in algorithms.items()
            for u in s.utilisations
        )  # fmt: skip
        found.append(panel(f"table2-{device}", scale, runs, s.substitute, s.more.get(device, s.seeds)))
    return jobs(scale, "table2", found)


READINGS: Mapping[str, Mapping[str, Any]] = {
    "fedagrac": {},
    "fedagrac_single": {"first_gradient": "single"},
    "fedagrac_full": {"first_gradient": "full_local"},
    "fedagrac_eq4": {"own": "first"},
    "fedagrac_avg": {"scheme": "avg"},
}


def sensitivity(scale: str) -> tuple[Panel, ...]:
    """A panel per question, FedAvg and FedNova, which have no λ, at λ = 0; then panels with other means of Fig. 5's
    steps."""
    s, common = settings.SENSITIVITY[scale], COMMON[scale]
    found = []
    for name, asked in s.asked.items():
        known = {"fedavg": FedAvg(common.rate), "fednova": FedNova(common.rate)}
        algorithms = {(name, 0.0): known[name] for name in asked.plain}
        algorithms |= {
            (a, lam): fedagrac(common.rate, lam, **READINGS[a]) for lam in asked.lambdas for a in asked.readings
        }
        partition = replace(common.cnn.partition, data_seed=None if asked.drawn else settings.NON_IID.data_seed)
        partition = Head(partition, asked.share) if asked.share < 1 else partition
        runs = (
            ({"model": "cnn2", "local_steps": name, "lambda": lam, "algorithm": algorithm},
             replace(common.cnn, partition=partition), common.uneven, rule, Rounds(s.rounds))
            for (algorithm, lam), rule in algorithms.items()
        )  # fmt: skip
        made = panel(f"sensitivity-{name}", scale, runs, s.substitute, asked.seeds)
        found.append(replace(made, experiments=tuple(changed(e, asked.changes) for e in made.experiments)))
    other = settings.FIG5[scale]
    for mean in s.means:
        words = f"LR of Fig. 5: mean K {mean}, V {other.variance:,}, its rate and rounds"
        c, k = other.regression._replace(substitute=words), LocalSteps(mean, other.variance)
        found.append(compared(c, f"sensitivity-lr-{mean}", scale, k))
    return (*found, *(steeper(scale, factor) for factor in s.factors))


def steeper(scale: str, factor: int) -> Panel:
    """Three of the algorithms on the second network of Table 6, with unequal steps, at `factor` times its rate."""
    (_, c, *_), mean, variances, _ = settings.TABLE6[scale]
    rate, lam, mu = c.rates
    points = algorithms(factor * rate, lam, mu)
    chosen = {name: points[name] for name in ("fedagrac", "fedavg", "fednova")}
    words = f"CNN of Table 6: mean K {mean}, V {variances[1]}, {c.rounds} rounds"
    c = c._replace(model=f"{c.model}_rate{factor}", target=0.0, substitute=words, seeds=())
    return compared(c, f"sensitivity-rate-{factor}", scale, LocalSteps(mean, variances[1]), chosen)


def algorithms(lr: float, lam: float, mu: float) -> dict[str, FedAvg]:
    """The five algorithms at one learning rate."""
    return {
        "fedagrac": fedagrac(lr, lam),
        "fedavg": FedAvg(lr),
        "fednova": FedNova(lr),
        "scaffold": Scaffold(lr),
        "fedprox": FedProx(lr, mu=mu),
    }


def grid(rates: tuple[float, ...] = settings.RATES, lambdas: tuple[float, ...] = settings.LAMBDAS) -> dict[str, FedAvg]:
    """The tuned grid of Section 6.1 as "algorithm/point": all have a rate, FedaGrac also λ, FedProx also μ."""
    found: dict[str, FedAvg] = {}
    for lr in rates:
        found |= {f"fedagrac/{lr:g}/{lam:g}": fedagrac(lr, lam) for lam in lambdas}
        found |= {f"fedprox/{lr:g}/{mu:g}": FedProx(lr, mu=mu) for mu in settings.MUS}
        found |= {f"fedavg/{lr:g}": FedAvg(lr), f"fednova/{lr:g}": FedNova(lr), f"scaffold/{lr:g}": Scaffold(lr)}
    return found


def compared(
    c: Comparison, name: str, scale: str, k: LocalSteps, points: Mapping[str, FedAvg] | None = None, stop: bool = False
) -> Panel:
    """A panel of a comparison with one distribution of the numbers of steps. With `points` it is a grid of
    hyper-parameters, of which "fedprox/0.01/0.1" is FedProx at the point 0.01/0.1. stop: runs end at their target."""
    labels: dict[str, Any] = {"model": c.model, "partition": c.partition}
    labels |= {"k_mean": k.mean, "k_variance": k.variance, "k_mode": k.mode}
    labels |= {"target_accuracy": c.target, "max_rounds": c.rounds} if c.target else {}
    clock = Rounds(c.rounds, until=("accuracy", c.target) if stop else None)
    runs = []
    for key, algorithm in (points or algorithms(*c.rates)).items():
        base, _, point = key.partition("/")
        named = {**labels, "algorithm": base, **({"point": point} if point else {})}
        runs.append((named, c.problem, k.work, algorithm, clock))
    return panel(name, scale, runs, c.substitute, c.seeds)


def rows(scale: str, tuned: bool = False) -> dict[tuple[str, str, LocalSteps], Panel]:
    """(model, partition, numbers of steps) -> the panel of the row of Table 6, or its tuned grid, whose rates and λ are
    to the row's as the paper's to its own."""
    models, mean, variances, searched = settings.TABLE6[scale]
    modes: tuple[Mode, ...] = ("fixed", "random")
    kinds = [LocalSteps(mean, 0, "none"), *(LocalSteps(mean, v, mode) for v in variances for mode in modes)]
    found = {}
    for c in models:
        if tuned and c.model not in searched:
            continue
        of_rate, of_lam, _ = (own / paper for own, paper in zip(c.rates, settings.PUBLISHED, strict=True))
        points = grid(tuple(of_rate * r for r in settings.RATES), tuple(of_lam * lam for lam in settings.LAMBDAS))
        for k in kinds:
            row = (c.model, c.partition, k)
            name = f"{'tuned' if tuned else 'table6'}-{c.model}-{c.partition}-v{k.variance}-{k.mode}"
            found[row] = compared(c, name, scale, k, points if tuned else None, tuned or row != SHARED)
    return found


def table6(scale: str) -> tuple[Panel, ...]:
    """A panel per row of Table 6, then the tuned grids."""
    return jobs(scale, "table6", [*rows(scale).values(), *rows(scale, tuned=True).values()])


def fig5(scale: str) -> tuple[Panel, ...]:
    """Networks first, logistic regression behind, the smaller mean first; at paper scale also the tuned grid."""
    s = settings.FIG5[scale]
    found = []
    for c in (s.network, s.regression):
        for k in (LocalSteps(mean, s.variance) for mean in s.means):
            shared = (c.model, c.partition, k) == SHARED
            name = f"fig5-{c.model}-{k.mean}"
            found.append(rows(scale)[SHARED] if shared else compared(c, name, scale, k))
    points = grid(s.tuned, s.regression.rates[1:2])
    for mean in s.means if s.tuned else ():
        found.append(compared(s.regression, f"tuned-lr-{mean}", scale, LocalSteps(mean, s.variance), points))
    return tuple(found)


def fig4(scale: str) -> tuple[Panel, ...]:
    """(a) network and (b) LR with equal steps, (c) and (d) the same with unequal steps."""
    found = []
    for kind in ("equal", "async"):
        for m in settings.FIG4[scale]:
            work = LocalSteps(m.mean, m.variance, "fixed" if kind == "async" else "none").work
            clock = Rounds(m.rounds, every=m.rounds, dense_last=10)
            runs = (
                ({"model": m.model, "step_async": int(kind == "async"), "learning_rate": rate, "lambda": lam,
                  "algorithm": "fedagrac"},
                 m.problem, work, fedagrac(rate, lam), clock)
                for rate in m.rates
                for lam in m.lambdas
            )  # fmt: skip
            seeds = m.seeds if kind == "async" else m.seeds_even or m.seeds
            found.append(panel(f"fig4-{m.model}-{kind}", scale, runs, m.substitute, seeds))
    return tuple(found)
