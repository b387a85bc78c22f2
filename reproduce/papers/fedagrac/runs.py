"""What is run: the problems and algorithms of FedaGrac, and its preliminary experiments (Sections 1 and 4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from reproduce.algorithms.base import FedAvg
from reproduce.algorithms.fedagrac import Constant, FedaGrac, Increase, Rate
from reproduce.algorithms.fedlin import FedLin
from reproduce.algorithms.fednova import FedNova
from reproduce.algorithms.fedprox import FedProx
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Cyclic
from reproduce.data.embedded import GaussianClasses, ImageBlobs
from reproduce.declare.experiment import Experiment, Panel
from reproduce.models.declared import VGG19, AlexNet, ConvNet, Softmax
from reproduce.models.model import Model
from reproduce.papers.fedagrac import regression
from reproduce.partitions.named import CappedDirichlet, Head, Sharding, ShuffledBlocks
from reproduce.problem import Classification
from reproduce.systems import System
from reproduce.systems.work import DEVICE_RATIOS, DEVICES, DeviceClasses, PerClient, Steps, Uniform, Work

LR, LR_A9A = Softmax(784, 10), Softmax(123, 2)
CNN2 = ConvNet(1, 28, (10, 20), (50,), dropout=0.5, dropout_at="last", channel_dropout=0.5)
ALEXNET, VGG = AlexNet(), VGG19()

NON_IID = CappedDirichlet(0.1)
"""Of the preliminary experiments: the default of the published code."""
DP1, DP2 = CappedDirichlet(0.3), Sharding(5)


def fashion(model: Model, partition: Any = NON_IID) -> Classification:
    """Fashion-MNIST as in the published code: normalised with the constants of MNIST, 10 clients, batches of 32."""
    return Classification("fashion_mnist", model, partition, 10, Cyclic(32), mean=(0.1307,), std=(0.3081,))


TINY_LR = Classification(GaussianClasses(4, 20, 100, 50, noise=1.5, seed=3), Softmax(20, 4), DP1, 4, Cyclic(8))
TINY_CNN = Classification(
    ImageBlobs(4, 12, 60, 30, noise=40.0, seed=3),
    ConvNet(1, 12, (4, 8), (), classes=4, kernel=3, dropout=0.1, channel_dropout=0.1),
    CappedDirichlet(1.0), 4, Cyclic(8), mean=(0.5,), std=(0.25,),
)  # fmt: skip


class Common(NamedTuple):
    """What the artifacts of a scale share: logistic regression, the network and its rate, the seeds; `one_job`: a
    table's panels are trained together, because starting a job takes longer than the job."""

    lr: Classification = fashion(LR)
    cnn: Classification = fashion(CNN2)
    rate: float = 0.03
    seeds: tuple[int, ...] = (0, 1, 2)
    one_job: bool = False


COMMON = {"paper": Common(), "reduced": Common(), "smoke": Common(TINY_LR, TINY_CNN, 0.3, (0, 1), one_job=True)}


def experiment(
    labels: Mapping[str, Any], problem: Classification, work: Work, algorithm: FedAvg, clock: Rounds
) -> Experiment:
    """An experiment whose clients differ in their work only; the labels begin with its data set."""
    data = problem.data if isinstance(problem.data, str) else "generated"
    return Experiment({"dataset": data, **labels}, problem, System(work=work), algorithm, clock)


TEN = tuple(range(10))
"""Of logistic regression in Table 1 and Figs. 3 to 5: the paper has one run, and ten of ours take minutes.
With three seeds few statements about many settings survive Holm's procedure (docs/claims.md)."""
SIX = tuple(range(6))
"""Of the network in Figs. 2 and 3, where runs diverge: six are the fewest with an interval of their median. At reduced
scale of Tables 1 and 2, too, where they cost minutes, and ten of Fig. 2."""


def panel(
    name: str, experiments: Iterable[Experiment], scale: str, substitute: str = "", seeds: tuple[int, ...] = ()
) -> Panel:
    """The experiments of a scale under the name of a file; seeds: if not the scale's."""
    return Panel(name.replace("_", "-"), tuple(experiments), seeds or COMMON[scale].seeds, substitute)


def jobs(scale: str, name: str, panels: list[Panel]) -> tuple[Panel, ...]:
    """The panels as they are trained: one by one, or all in one job."""
    together = replace(panels[0], name=name, experiments=tuple(e for p in panels for e in p.experiments))
    return (together,) if COMMON[scale].one_job else tuple(panels)


def fedagrac(rate: float, lam: float, **options: Any) -> FedaGrac:
    """FedaGrac with a constant calibration rate."""
    return FedaGrac(rate, calibration=Constant(lam), **options)


SCHEMES = {"fedagrac": {}, **{f"fedagrac_{name}": {"scheme": name} for name in ("avg", "first", "reverse")}}
"""Reference orientation (Section 4.2): the scheme of the paper and the other three."""


FIG1 = {
    "fedavg": FedAvg(regression.RATE),
    "fednova": FedNova(regression.RATE),
    "fedprox": FedProx(regression.RATE, mu=0.1),
    "fedlin": FedLin(regression.RATE),
    "scaffold": FedaGrac(regression.RATE, scheme="avg", start="full_gradient"),
    "fedagrac": FedaGrac(regression.RATE, start="full_gradient"),
    "fedagrac_first": FedaGrac(regression.RATE, scheme="first", start="full_gradient"),
    "fedagrac_reverse": FedaGrac(regression.RATE, scheme="reverse", start="full_gradient"),
}
"""SCAFFOLD is the average scheme with lambda = 1 (Sec. 4.2), and so starts from full gradients like the others."""


def fig1(scale: str) -> tuple[Panel, ...]:
    """All algorithms from the same start; the same at every scale."""
    system, clock = System(work=PerClient(regression.STEPS)), Rounds(300, every=10, trace=1)
    experiments = (
        Experiment({"instance": "reference", "algorithm": name}, regression.problem(), system, algorithm, clock)
        for name, algorithm in FIG1.items()
    )
    return (Panel("fig1", tuple(experiments), (0,)),)


class Sweep(NamedTuple):
    """Constant λ with least to most steps and with equal steps; of each, the seeds, if not the scale's."""

    unequal: tuple[float, ...]
    equal: tuple[float, ...]
    least: int
    most: int
    steps: int
    rounds: int
    substitute: str = ""
    seeds_unequal: tuple[int, ...] = ()
    seeds_equal: tuple[int, ...] = ()


FIG2 = {
    "paper": Sweep(
        (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5), (0.0, 0.1, 0.5, 1.0), 100, 400, 100, 200,
        seeds_unequal=SIX, seeds_equal=TEN,
    ),
    "reduced": Sweep(
        (0.0, 0.05, 0.2, 0.5, 1.0, 1.5), (0.0, 0.1, 0.5, 1.0), 10, 40, 25, 60,
        "K uniform in 10 to 40 and constant 25 for 100 to 400 and 100, 60 rounds", TEN, TEN,
    ),
    "smoke": Sweep((0.0, 1.0), (0.0, 1.0), 2, 6, 4, 5),
}  # fmt: skip


def fig2(scale: str) -> tuple[Panel, ...]:
    """(a) step asynchronism, constant λ; (b) equal steps, constant and increasing λ."""
    s, common = FIG2[scale], COMMON[scale]
    increase = Increase(ends=(s.rounds // 4, s.rounds * 3 // 4))
    found = []
    for kind, work, lambdas, more, seeds in (
        ("async", Uniform(s.least, s.most), s.unequal, {}, s.seeds_unequal),
        ("equal", Steps(s.steps), s.equal, {"increase": increase}, s.seeds_equal),
    ):
        rates: dict[str, Rate] = {**{f"{lam:g}": Constant(lam) for lam in lambdas}, **more}
        labels = {"model": "cnn2", "step_async": int(kind == "async")}
        experiments = (
            experiment(
                {**labels, "lambda": name, "algorithm": "fedagrac"},
                common.cnn, work, FedaGrac(common.rate, calibration=rate), Rounds(s.rounds),
            )
            for name, rate in rates.items()
        )  # fmt: skip
        found.append(panel(f"fig2-{kind}", experiments, scale, s.substitute, seeds))
    return tuple(found)


@dataclass(frozen=True)
class Orientation:
    """The four schemes with one model; `single`: also with the first gradient alone as estimate; `side`: further (name
    of the model in the results, rate, λ). The last two are in the cells, but not drawn. seeds: if not the scale's."""

    model: str
    problem: Classification
    rate: float
    lam: float
    single: bool = True
    side: tuple[tuple[str, float, float], ...] = ()
    equal: int = 100
    least: int = 100
    most: int = 400
    rounds: int = 200
    substitute: str = ""
    seeds: tuple[int, ...] = ()

    def panel(self, step_async: int, scale: str) -> Panel:
        """The schemes, and the runs that are not drawn, with equal or with unequal steps."""
        drawn, plain = (self.model, self.rate, self.lam), ("", dict[str, Any]())
        alone = ("_single", {"first_gradient": "single"})
        points = [(drawn, plain), *([(drawn, alone)] if self.single else []), *((side, plain) for side in self.side)]
        experiments = (
            experiment(
                {"model": model, "step_async": step_async, "algorithm": name + ending},
                self.problem,
                Uniform(self.least, self.most) if step_async else Steps(self.equal),
                fedagrac(rate, lam, **options, **more),
                Rounds(self.rounds),
            )
            for (model, rate, lam), (ending, more) in points
            for name, options in SCHEMES.items()
            if not (more and name == "fedagrac_avg")  # which sends no first gradient
        )
        kind = "async" if step_async else "equal"
        return panel(f"fig3-{self.model}-{kind}", experiments, scale, self.substitute, self.seeds)


FIG3 = {
    "paper": (
        Orientation("lr", fashion(LR), 0.001, 1.0, seeds=TEN),
        Orientation("cnn2", fashion(CNN2), 0.03, 0.1, side=(("cnn2_lambda1", 0.03, 1.0),), seeds=SIX),
    ),
    "reduced": (
        Orientation(
            "lr", fashion(LR, Head(NON_IID, 0.1)), 0.003, 1.0, True, (("lr_eta0001", 0.001, 1.0),), 25, 10, 40, 60,
            "LR on a tenth of Fashion-MNIST, rate 0.003, K 25 and 10 to 40, 60 rounds", TEN,
        ),
        Orientation(
            "cnn2", fashion(CNN2), 0.03, 0.3, False, (), 25, 10, 40, 40,
            "CNN with K 25 and 10 to 40, λ 0.3, 40 rounds", SIX,
        ),
    ),
    "smoke": (
        Orientation("lr", TINY_LR, 0.1, 1.0, True, (), 4, 2, 6, 5),
        Orientation("cnn2", TINY_CNN, 0.3, 0.3, True, (), 4, 2, 6, 5),
    ),
}  # fmt: skip


def fig3(scale: str) -> tuple[Panel, ...]:
    """(a) LR and (b) CNN with equal steps, (c) LR and (d) CNN with unequal steps."""
    return tuple(o.panel(step_async, scale) for step_async in (0, 1) for o in FIG3[scale])


class Race(NamedTuple):
    """FedAvg with the rates of each model to the target, with `steps` or up to `most` of them. seeds: if not the
    scale's."""

    problem: Classification
    rates: Mapping[str, float]
    steps: int
    most: int
    target: float
    rounds: int
    substitute: str = ""
    seeds: tuple[int, ...] = ()


LR_RATES = {"lr": 0.001, "lr_eta003": 0.03}
TABLE1 = {
    "paper": (
        Race(fashion(LR), LR_RATES, 100, 400, 80.0, 1000, seeds=TEN),
        Race(fashion(CNN2), {"cnn2": 0.03}, 100, 400, 80.0, 1000),
    ),
    "reduced": (
        Race(fashion(LR), LR_RATES, 100, 400, 80.0, 200, "LR followed for 200 rounds", TEN),
        Race(
            fashion(CNN2), {"cnn2": 0.03}, 10, 40, 70.0, 150,
            "CNN with K = 10 and 10 to 40, target 70, 150 rounds", SIX,
        ),
    ),
    "smoke": (
        Race(TINY_LR, dict.fromkeys(LR_RATES, 0.02), 3, 6, 50.0, 5),
        Race(TINY_CNN, {"cnn2": 0.3}, 3, 6, 50.0, 5),
    ),
}  # fmt: skip


def table1(scale: str) -> tuple[Panel, ...]:
    """Logistic regression at both rates, and the network."""
    found = []
    for race in TABLE1[scale]:
        experiments = (
            experiment(
                {"model": model, "step_async": step_async, "non_iid": non_iid, "target_accuracy": race.target,
                 "algorithm": "fedavg"},
                replace(race.problem, partition=partition),
                work,
                FedAvg(rate),
                Rounds(race.rounds, until=("accuracy", race.target)),
            )
            for model, rate in race.rates.items()
            for non_iid, partition in enumerate((ShuffledBlocks(), NON_IID))
            for step_async, work in enumerate((Steps(race.steps), Uniform(race.steps, race.most)))
        )  # fmt: skip
        found.append(panel(f"table1-{next(iter(race.rates))}", experiments, scale, race.substitute, race.seeds))
    return tuple(found)


class Search(NamedTuple):
    """The utilisations that are tried: `target` percent within `limit` rounds; `rounds` are run. `slow`: the steps of
    the slow devices; `ratios`: how many times faster the fast one is than each of them; seeds: if not the scale's."""

    utilisations: tuple[int, ...]
    ratios: tuple[float, ...]
    target: float
    limit: int
    rounds: int
    lam: float
    slow: int = 10
    substitute: str = ""
    seeds: tuple[int, ...] = ()


TABLE2 = {
    "paper": Search(tuple(range(100, 0, -5)), tuple(DEVICE_RATIOS["default"].values()), 60.0, 50, 100, 0.1),
    "reduced": Search(
        (100, 75, 50, 25), (20.0, 10.0, 3.0, 2.5), 55.0, 40, 60, 0.3, 10,
        "K of slow devices 10, fast device 20, 10, 3, 2.5 times as fast, target 55 in 40 rounds, accuracy after 60",
        SIX,
    ),
    "smoke": Search((100, 50), (4.0, 3.0, 2.0, 1.5), 50.0, 3, 5, 0.3, 2),
}  # fmt: skip


def table2(scale: str) -> tuple[Panel, ...]:
    """One panel per slow device: all utilisations of both algorithms."""
    s, common = TABLE2[scale], COMMON[scale]
    algorithms = {"fednova": FedNova(common.rate), "fedagrac": fedagrac(common.rate, s.lam)}
    found = []
    for device, ratio in zip(DEVICES, s.ratios, strict=True):
        labels = {"model": "cnn2", "slow_device": device, "fast_device": "rtx3080ti"}
        aim = {"target_accuracy": s.target, "max_rounds": s.limit}
        experiments = (
            experiment(
                {**labels, **aim, "utilization": u, "algorithm": name},
                common.cnn, DeviceClasses(s.slow, ratio, u / 100), algorithm, Rounds(s.rounds),
            )
            for name, algorithm in algorithms.items()
            for u in s.utilisations
        )  # fmt: skip
        found.append(panel(f"table2-{device}", experiments, scale, s.substitute, s.seeds))
    return jobs(scale, "table2", found)


READINGS: Mapping[str, Mapping[str, Any]] = {
    "fedagrac": {},
    "fedagrac_single": {"first_gradient": "single"},
    "fedagrac_full": {"first_gradient": "full_local"},
    "fedagrac_eq4": {"own": "first"},
    "fedagrac_avg": {"scheme": "avg"},
}
SHARE = 0.1
"""Of the data, where the steps are a tenth of the paper's: the published code takes the mean over the rest of a pass
for a first gradient, if the pass ends in the round, so that the passes in a round matter."""
EVERYTHING = (1.0, ("fedagrac", "fedagrac_single", "fedagrac_eq4", "fedagrac_avg"), (0.05, 0.3, 1.0))
PART = (SHARE, ("fedagrac", "fedagrac_single", "fedagrac_full", "fedagrac_avg"), (0.3,))


class Questions(NamedTuple):
    """`asked`: name -> share of the data, readings and λ that are compared; least and most steps."""

    asked: Mapping[str, tuple[float, tuple[str, ...], tuple[float, ...]]]
    least: int
    most: int
    rounds: int
    substitute: str = ""


BOTH = {"uniform": EVERYTHING, "uniform_part": PART}
SENSITIVITY = {
    "paper": Questions({"uniform": EVERYTHING}, 100, 400, 200),
    "reduced": Questions(BOTH, 10, 40, 60, "K uniform in 10 to 40 for 100 to 400, 60 rounds"),
    "smoke": Questions(BOTH, 2, 6, 4),
}


def sensitivity(scale: str) -> tuple[Panel, ...]:
    """One panel per share of the data; FedAvg and FedNova, which have no λ, at λ = 0."""
    s, common = SENSITIVITY[scale], COMMON[scale]
    found = []
    for question, (share, readings, lambdas) in s.asked.items():
        algorithms = {("fedavg", 0.0): FedAvg(common.rate), ("fednova", 0.0): FedNova(common.rate)}
        algorithms |= {(a, lam): fedagrac(common.rate, lam, **READINGS[a]) for lam in lambdas for a in readings}
        partition = Head(common.cnn.partition, share) if share < 1 else common.cnn.partition
        experiments = (
            experiment(
                {"model": "cnn2", "local_steps": question, "lambda": lam, "algorithm": name},
                replace(common.cnn, partition=partition), Uniform(s.least, s.most), algorithm, Rounds(s.rounds),
            )
            for (name, lam), algorithm in algorithms.items()
        )  # fmt: skip
        found.append(panel(f"sensitivity-{question}", experiments, scale, s.substitute))
    return tuple(found)
