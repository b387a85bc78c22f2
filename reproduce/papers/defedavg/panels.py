"""The runs of DeFedAvg: Table I with Figs. 2-5 on a grid of virtual times, Figs. 6 and 7 over aggregations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from reproduce.algorithms.asynchronous import Asynchronous, Favano
from reproduce.clocks.events import Events
from reproduce.clocks.record import Target
from reproduce.experiment import Experiment, Label, Panel
from reproduce.papers.defedavg import rates
from reproduce.papers.defedavg.rates import PARTICIPANTS, PROPOSED, Pair
from reproduce.problems import Classification
from reproduce.problems.batches import WithReplacement
from reproduce.problems.embedded import GaussianClasses
from reproduce.problems.models import MLP, ConvNet, Softmax
from reproduce.problems.partitions import IID, TwoClasses
from reproduce.systems import policies
from reproduce.systems.schedule import EventClock, Policy
from reproduce.systems.speeds import CIFAR10, FASHION_MNIST, Costs

SEEDS = (0, 1, 2)
DISTRIBUTIONS = ("iid", "noniid")
LOSS_VIEW = "train:10000"


@dataclass(frozen=True)
class Setting:
    """One data set at one scale: network, clock and what is asked of the runs; pairs are for (iid, noniid).

    steps: K; costs: seconds of a step of K and of the transfers, asysg_costs: of AsySG's single step; grid: virtual
    seconds between evaluations; target: percent of test accuracy, of the mean of the last `smooth` evaluations; shown:
    virtual seconds that the figures show; rounds: aggregations of Figs. 6 and 7, `few` the n of Fig. 6, `ks` the K of
    Fig. 7.
    """

    dataset: str
    problem: Classification
    steps: int
    costs: Costs
    asysg_costs: Costs
    grid: tuple[float, float]
    target: tuple[float, float]
    horizon: tuple[float, float]
    shown: tuple[float, float]
    smooth: tuple[int, int] = (1, 1)
    participants: tuple[int, ...] = PARTICIPANTS
    rounds: int = 1000
    every: int = 5
    few: tuple[int, ...] = (5, *PARTICIPANTS)
    ks: tuple[int, ...] = (20, 50, 100)
    seeds: tuple[int, ...] = SEEDS
    substitute: str = ""

    @property
    def slug(self) -> str:
        return self.dataset.replace("_", "-")


def _paper_problem(dataset: str, channels: int, size: int) -> Classification:
    half = (0.5,) * channels
    model = ConvNet(channels, size, (32, 64), (512,))
    return Classification(dataset, model, IID(), 100, WithReplacement(10), weights="uniform", mean=half, std=half)


PAPER = (
    Setting(
        "fashion_mnist", _paper_problem("fashion_mnist", 1, 28), 50, FASHION_MNIST, FASHION_MNIST, (0.25, 0.25),
        (90.0, 80.0), (900.0, 900.0), (500.0, 500.0),
    ),
    Setting(
        "cifar10", _paper_problem("cifar10", 3, 32), 50, CIFAR10, CIFAR10, (0.5, 0.5),
        (70.0, 60.0), (1400.0, 5000.0), (1000.0, 2000.0),
    ),
)  # fmt: skip
REDUCED = Setting(
    "fashion_mnist",
    Classification(
        "fashion_mnist", MLP(784, 64, 10), IID(), 100, WithReplacement(10), weights="uniform"
    ),
    10, replace(FASHION_MNIST, step=5 * FASHION_MNIST.step), FASHION_MNIST, (0.25, 0.5),
    (80.0, 70.0), (120.0, 250.0), (60.0, 100.0), smooth=(3, 5), rounds=400, ks=(4, 10, 20),
    substitute="network 784-64-10 for the convolutional one, K = 10 steps of five times the length, targets 80 % (IID) "
    "and 70 % (non-IID) smoothed over 3 and 5 evaluations, own rates",
)  # fmt: skip
SMOKE = Setting(
    "gaussian",
    Classification(
        GaussianClasses(10, 20, 200, 50, 1.0, 0, mean_scale=2.0), Softmax(20, 10), IID(), 10, WithReplacement(10),
        weights="uniform",
    ),
    5, replace(FASHION_MNIST, step=10 * FASHION_MNIST.step), FASHION_MNIST, (0.2, 0.2),
    (80.0, 70.0), (10.0, 10.0), (10.0, 10.0), participants=(3,), rounds=40, few=(2, 3, 6), ks=(2, 5, 10), seeds=(0, 1),
    substitute="10 clients with Gaussian classes and a softmax model, n = 3, K = 5",
)  # fmt: skip


def settings(scale: str) -> tuple[Setting, ...]:
    return {"smoke": (SMOKE,), "reduced": (REDUCED,), "paper": PAPER}[scale]


def times_panels(scale: str, n: int | None = None) -> tuple[Panel, ...]:
    """The runs of Table I and Figs. 2-5; with `n` those of one figure (at smoke scale all)."""
    return tuple(
        times_panel(scale, setting, distribution, m)
        for setting in settings(scale)
        for distribution in DISTRIBUTIONS
        for m in setting.participants
        if n is None or m == n or scale == "smoke"
    )


def times_panel(scale: str, setting: Setting, distribution: str, n: int) -> Panel:
    """One column of Table I for one distribution: evaluated on a grid of virtual times until the target is reached, and
    as far as the figures show."""
    where = DISTRIBUTIONS.index(distribution)
    pairs = rates.small(scale, distribution)
    if scale == "paper":
        pairs = rates.printed(setting.dataset, distribution, n) | rates.beside(setting.dataset, distribution, n)
    labels: dict[str, Label] = {
        "distribution": distribution,
        "dataset": setting.dataset,
        "target_accuracy_pct": setting.target[where],
        "n": n,
    }

    def run(name: str, pair: Pair) -> Experiment:
        clock = Events(
            schedule(setting, name, n),
            horizon=setting.horizon[where],
            grid=setting.grid[where],
            until=Target("accuracy", setting.target[where], setting.smooth[where]),
            least=setting.shown[where],
            train_view=LOSS_VIEW,
            train_every=4,
        )
        return experiment(setting, {**labels, "algorithm": name}, pair, clock)

    experiments = tuple(run(name, pair) for name, pair in pairs.items())
    return Panel(f"{setting.slug}-{distribution}-n{n}", experiments, setting.seeds, setting.substitute)


def rounds_panel(scale: str, setting: Setting, distribution: str) -> Panel:
    """Fig. 6: DeFedAvg over aggregations with different n."""
    runs = [run for n in setting.few for run in rounds_runs(scale, setting, distribution, n, setting.steps)]
    return Panel(f"rounds-{setting.slug}-{distribution}", tuple(runs), setting.seeds, setting.substitute)


def steps_panel(scale: str, setting: Setting, distribution: str) -> Panel:
    """Fig. 7: with different K, those that are not in Fig. 6."""
    others = [k for k in setting.ks if k != setting.steps]
    runs = [run for k in others for run in rounds_runs(scale, setting, distribution, middle(setting), k)]
    return Panel(f"steps-{setting.slug}-{distribution}", tuple(runs), setting.seeds, setting.substitute)


def middle(setting: Setting) -> int:
    """The n of Fig. 7: 10, or what stands in for it."""
    return 10 if 10 in setting.few else setting.few[1]


def rounds_runs(scale: str, setting: Setting, distribution: str, n: int, k: int) -> list[Experiment]:
    """One line of Figs. 6 and 7. Where the rates of Table II differ from (0.1, 0.05), a second run has these."""
    name = PROPOSED[distribution]
    pairs = {} if scale == "paper" else {name: rates.small(scale, distribution)[name]}
    if scale == "paper":
        pairs = {name: rates.PRINTED[setting.dataset, distribution, name, n]}
        common = rates.PRINTED["fashion_mnist", distribution, name, 10]
        if pairs[name] != common:
            pairs[f"{name}_fixed"] = common
    clock = Events(
        replace(schedule(setting, name, n), steps=k),
        aggregations=setting.rounds,
        every=setting.every,
        train_view=LOSS_VIEW,
        train_every=2,
    )
    labels: dict[str, Label] = {"distribution": distribution, "dataset": setting.dataset, "n": n, "K": k}
    return [experiment(setting, {**labels, "algorithm": a}, pair, clock) for a, pair in pairs.items()]


def experiment(setting: Setting, labels: Mapping[str, Label], pair: Pair, clock: Events) -> Experiment:
    """The clients' speeds and links are part of the schedule, so there is no further system."""
    server, local = pair
    problem = replace(setting.problem, partition=IID() if labels["distribution"] == "iid" else TwoClasses())
    if server is None:
        assert local is not None
        return Experiment(labels, problem, None, Favano(local), clock)
    return Experiment(labels, problem, None, Asynchronous(1.0 if local is None else local, server_lr=server), clock)


def schedule(setting: Setting, algorithm: str, n: int) -> EventClock:
    """The event clock of an algorithm; AsySG makes one step per job."""
    single = algorithm == "asysg"
    steps, costs = (1, setting.asysg_costs) if single else (setting.steps, setting.costs)
    return EventClock(policy(algorithm, n), setting.problem.clients, steps, costs)


def policy(algorithm: str, n: int) -> Policy:
    """The policy of an algorithm; a suffix names a variant with other rates."""
    if algorithm == "defedavg_niid_hold":
        return policies.DeFedAvgNIID(n, variant="hold")
    base = next(a for a in (*PROPOSED.values(), "fedavg", "favano", "asysg", "fedbuff") if algorithm.startswith(a))
    kinds: Mapping[str, type[Policy]] = {
        "defedavg_iid": policies.DeFedAvgIID, "defedavg_niid": policies.DeFedAvgNIID, "fedavg": policies.FedAvg,
        "favano": policies.Favano, "asysg": policies.AsySG, "fedbuff": policies.FedBuff,
    }  # fmt: skip
    return kinds[base](n)  # type: ignore[call-arg]
