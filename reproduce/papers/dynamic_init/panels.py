"""The experiments of Tables 1-7: two groups of clients that take turns, four algorithms, four session starts.

A panel is one combination of data set, overlap and Dirichlet parameter. Its runs share partition, initial model and
batches by (seed, round, client), so that the schemes coincide until they differ (through session P + 1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from reproduce.algorithms.base import FedAvg
from reproduce.algorithms.distillation import Distillation
from reproduce.algorithms.fedacg import FedACG
from reproduce.algorithms.fedprox import FedProx
from reproduce.algorithms.scaffold import ScaffoldAsReleased
from reproduce.algorithms.session_starts import Average, Previous, Proposed, Start
from reproduce.clocks.sessions import Sessions
from reproduce.experiment import Experiment, Label, Panel
from reproduce.problems import Classification
from reproduce.problems.batches import Walk
from reproduce.problems.models import Model, Softmax
from reproduce.problems.normalised import NormConvNet
from reproduce.problems.partitions import GroupedDirichlet, label_groups
from reproduce.systems import Steps, System
from reproduce.systems.membership import Alternating

ALGORITHMS = ("fedavg", "fedprox", "scaffold", "fedacg")
SCHEMES: Mapping[str, Start] = {
    "proposed": Proposed(R=10.0),
    "continuous": Previous(),
    "previous": Previous(),
    "average": Average(),
}
OVERLAPS, ALPHAS = (0.0, 0.2), (0.3, 0.7)
MOMENTUM = 0.9
Rate = tuple[float, float]


@dataclass(frozen=True)
class Setting:
    """What a data set brings along: model, rounds T per session, learning rates (lr at the start of a session, share
    of it that is left at the end) and scale.

    rate: of all algorithms but those in `rates`; clients: n, active in a session (2 n in all).
    """

    name: str
    model: Model
    rounds: int
    rate: Rate
    rates: Mapping[str, Rate] = field(default_factory=dict)
    clients: int = 20
    sessions: int = 6
    batch: int = 128
    classes: int = 10
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    seeds: tuple[int, ...] = (0, 1, 2)
    substitute: str = ""

    def rate_of(self, algorithm: str) -> Rate:
        return self.rates.get(algorithm, self.rate)


# Learning rates of the authors' lr_poly.json.
MNIST = Setting("mnist", Softmax(784, 10), 50, (0.001, 0.6), {"scaffold": (0.03, 0.9)}, mean=(0.1307,), std=(0.3081,))
FASHION = Setting(
    "fashion_mnist", Softmax(784, 10), 50, (0.003, 0.3), {"scaffold": (0.03, 0.9)}, mean=(0.2861,), std=(0.3530,)
)
SVHN = Setting(
    "svhn", NormConvNet(), 200, (0.005, 0.2), {"scaffold": (0.1, 0.9)},
    mean=(0.4377, 0.4438, 0.4728), std=(0.1980, 0.2010, 0.1970),
)  # fmt: skip
# With a random start, 8 rounds at a smaller rate would not yet tell the schemes apart.
GAUSSIAN = Setting(
    "gaussian", Softmax(20, 10), 8, (0.02, 0.6), {"scaffold": (0.3, 0.6)}, clients=4, batch=32, seeds=(0, 1),
    substitute="Gaussian classes in 20 dimensions for images, 4 clients and 8 rounds per session",
)  # fmt: skip


def reduced(setting: Setting) -> Setting:
    """The linear model at reduced scale: 10 clients and 20 rounds per session, larger steps."""
    return replace(
        setting,
        rounds=20,
        clients=10,
        rate=(0.0025, 0.6),
        rates={"scaffold": (0.05, 0.9)},
        substitute="10 clients and 20 rounds per session",
    )


def grid(settings: Sequence[Setting]) -> tuple[Panel, ...]:
    """Every data set with every overlap and Dirichlet parameter."""
    return tuple(panel(s, overlap, alpha) for s in settings for overlap in OVERLAPS for alpha in ALPHAS)


def algorithm(name: str, lr: float, clients: int) -> FedAvg:
    """The local algorithms as the authors' code runs them (SCAFFOLD without control variates)."""
    if name == "fedprox":
        return FedProx(lr, momentum=MOMENTUM, mu=1.0)
    if name == "scaffold":
        return ScaffoldAsReleased(lr, momentum=MOMENTUM)
    if name == "fedacg":
        lam, beta = (0.85, 0.01) if clients <= 20 else (0.5, 0.1)
        return FedACG(lr, momentum=MOMENTUM, lam=lam, beta=beta)
    return FedAvg(lr, momentum=MOMENTUM)


def panel(
    setting: Setting,
    overlap: float,
    alpha: float,
    algorithms: Sequence[str] = ALGORITHMS,
    schemes: Mapping[str, Start] = SCHEMES,
) -> Panel:
    """All algorithms x schemes. Continuous replaces the local algorithm and depends on it through the learning rate
    only: it is trained once per rate, under the first algorithm that has it (`cells.shared` copies the numbers)."""
    experiments = []
    seen: set[Rate] = set()
    for name in algorithms:
        rate = setting.rate_of(name)
        for scheme, start in schemes.items():
            local = algorithm(name, rate[0], setting.clients)
            if scheme == "continuous":
                if rate in seen:
                    continue
                seen.add(rate)
                local = Distillation(rate[0], momentum=MOMENTUM, kappa=1.0)
            experiments.append(experiment(setting, overlap, alpha, (name, local), (scheme, start)))
    label = f"{setting.name}-n{setting.clients}-o{overlap}-a{alpha}".replace("_", "-").replace(".", "")
    return Panel(label, tuple(experiments), setting.seeds, setting.substitute)


def experiment(
    setting: Setting, overlap: float, alpha: float, algorithm: tuple[str, FedAvg], scheme: tuple[str, Start]
) -> Experiment:
    """One scheme with one algorithm."""
    labels: dict[str, Label] = {
        "dataset": setting.name,
        "label_overlap": overlap,
        "dirichlet_alpha": alpha,
        "num_clients": setting.clients,
        "init_scheme": scheme[0],
        "algorithm": algorithm[0],
    }
    problem = Classification(
        data=setting.name,
        model=setting.model,
        partition=GroupedDirichlet(alpha, overlap),
        clients=2 * setting.clients,
        batches=Walk(setting.batch),
        mean=setting.mean,
        std=setting.std,
    )
    groups = label_groups(setting.classes, overlap)
    clock = Sessions(
        sessions=setting.sessions,
        rounds=setting.rounds,
        membership=Alternating(2, setting.clients),
        views=tuple("labels:" + ",".join(map(str, group)) for group in groups),
        start=scheme[1],
        floor=setting.rate_of(algorithm[0])[1],
    )
    return Experiment(labels, problem, System(work=Steps(5)), algorithm[1], clock)
