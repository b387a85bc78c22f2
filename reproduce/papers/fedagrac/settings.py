"""The numbers of FedaGrac's runs at every scale: problems, rates, numbers of local steps, lengths."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from reproduce.data.batches import Cyclic
from reproduce.data.embedded import GaussianClasses, ImageBlobs
from reproduce.models.declared import MLP, VGG19, AlexNet, ConvNet, Softmax
from reproduce.models.model import Model
from reproduce.partitions.dirichlet import CappedDirichlet
from reproduce.partitions.labels import Head, Sharding
from reproduce.problem import Classification
from reproduce.systems.work import DEVICE_RATIOS, Steps, Uniform, Work

LR, LR_A9A = Softmax(784, 10), Softmax(123, 2)
CNN2 = ConvNet(1, 28, (10, 20), (50,), dropout=0.5, dropout_at="last", channel_dropout=0.5)
ALEXNET, VGG = AlexNet(), VGG19()
NON_IID = CappedDirichlet(0.1)
"""Of the preliminary experiments: the default of the published code, which has one split for all seeds."""
DP1, DP2 = CappedDirichlet(0.3), Sharding(5)
DRAWN, DRAWN_DP1, DRAWN_DP2 = (replace(split, data_seed=None) for split in (NON_IID, DP1, DP2))
"""The same with a split, and with it an order of batches, per seed: an interval over seeds contains their error. Of
logistic regression everywhere, of the network in Fig. 3, Tables 1 and 2, and at reduced scale in Figs. 2, 4 and 5 and
Table 6: the rest is not trained so yet. `sensitivity` has both."""


def fashion(model: Model, partition: Any = NON_IID) -> Classification:
    """Fashion-MNIST as in the published code: normalised with the constants of MNIST, 10 clients, batches of 32."""
    return Classification("fashion_mnist", model, partition, 10, Cyclic(32), mean=(0.1307,), std=(0.3081,))


def cifar10(model: Model, partition: Any = DP2) -> Classification:
    """CIFAR-10 with random crops and flips, 20 clients, batches of 25."""
    mean, std = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
    return Classification("cifar10", model, partition, 20, Cyclic(25), mean=mean, std=std, augment="crop_flip")


A9A = Classification("a9a", LR_A9A, DRAWN_DP1, 20, Cyclic(20))
DIGITS = Classification("digits", MLP(64, 32, 10), DRAWN_DP2, 10, Cyclic(16), mean=(0.5,), std=(0.4,))
"""scikit-learn's 1,797 images."""
TINY_LR = Classification(GaussianClasses(4, 20, 100, 50, noise=1.5, seed=3), Softmax(20, 4), DRAWN_DP1, 4, Cyclic(8))
TINY_CNN = Classification(
    ImageBlobs(4, 12, 60, 30, noise=40.0, seed=3),
    ConvNet(1, 12, (4, 8), (), classes=4, kernel=3, dropout=0.1, channel_dropout=0.1),
    CappedDirichlet(1.0), 4, Cyclic(8), mean=(0.5,), std=(0.25,),
)  # fmt: skip


class Common(NamedTuple):
    """Common settings of a scale's artifacts: the network and its rate, the local steps of the preliminary experiments
    where they are equal and where not, the seeds. `one_job`: a table's panels are trained together, because starting a
    job takes longer than the job; `path`: rounds of Fig. 1."""

    even: Work = Steps(100)
    uneven: Work = Uniform(100, 400)
    cnn: Classification = fashion(CNN2)
    rate: float = 0.03
    seeds: tuple[int, ...] = (0, 1, 2)
    one_job: bool = False
    path: int = 300


COMMON = {
    "paper": Common(),
    "reduced": Common(Steps(25), Uniform(10, 40), fashion(CNN2, DRAWN)),
    "smoke": Common(Steps(4), Uniform(2, 6), TINY_CNN, 0.3, (0, 1), one_job=True, path=60),
}
TEN = tuple(range(10))
"""Of logistic regression in Table 1 and Figs. 3 and 5: the paper has one run, and ten of ours take minutes.
With three seeds few statements about many settings survive Holm's procedure (docs/claims.md)."""
SIX = tuple(range(6))
"""Of the network in Fig. 2, where runs diverge: six are the fewest with an interval of their median. Also in Table 1,
and at reduced scale of Table 2, where they cost minutes."""

# `seeds` of a setting: if not those of the scale.


class Sweep(NamedTuple):
    """Constant λ with uneven and with even steps; of each, the seeds."""

    uneven: tuple[float, ...]
    even: tuple[float, ...]
    rounds: int
    substitute: str = ""
    seeds_uneven: tuple[int, ...] = ()
    seeds_even: tuple[int, ...] = ()


FIG2 = {
    "paper": Sweep(
        (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5), (0.0, 0.1, 0.5, 1.0), 200,
        seeds_uneven=SIX, seeds_even=TEN,
    ),
    "reduced": Sweep(
        (0.0, 0.05, 0.2, 0.5, 1.0, 1.5), (0.0, 0.1, 0.5, 1.0), 60,
        "fewer steps and rounds: K uniform in 10 to 40 and constant 25 for 100 to 400 and 100, 60 rounds",
        tuple(range(24)), TEN,
    ),
    "smoke": Sweep((0.0, 1.0), (0.0, 1.0), 5),
}  # fmt: skip


class Orientation(NamedTuple):
    """The four schemes with one model; `single`: also with the first gradient alone as estimate; `side`: further (name
    of the model in the results, rate, λ). The last two are in the cells, but not drawn."""

    model: str
    problem: Classification
    rate: float
    lam: float
    single: bool = True
    side: tuple[tuple[str, float, float], ...] = ()
    rounds: int = 200
    substitute: str = ""
    seeds: tuple[int, ...] = ()


FIG3 = {
    "paper": (
        Orientation("lr", fashion(LR, DRAWN), 0.001, 1.0, seeds=TEN),
        Orientation("cnn2", fashion(CNN2, DRAWN), 0.03, 0.1, single=False),
    ),
    "reduced": (
        Orientation(
            "lr", fashion(LR, Head(DRAWN, 0.1)), 0.003, 1.0, True, (("lr_eta0001", 0.001, 1.0),), 60,
            "LR on a tenth of Fashion-MNIST: rate 0.003, K 25 and 10 to 40, 60 rounds", TEN,
        ),
        Orientation(
            "cnn2", fashion(CNN2, DRAWN), 0.03, 0.3, False, (), 40,
            "fewer steps and rounds: CNN with K 25 and 10 to 40, λ 0.3, 40 rounds", tuple(range(7)),
        ),
    ),
    "smoke": (
        Orientation("lr", TINY_LR, 0.1, 1.0, rounds=5),
        Orientation("cnn2", TINY_CNN, 0.3, 0.3, rounds=5),
    ),
}  # fmt: skip


class Race(NamedTuple):
    """FedAvg with the rates of each model to the target, with `steps` or up to `most` of them."""

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
        Race(fashion(LR, DRAWN), LR_RATES, 100, 400, 80.0, 1000, seeds=TEN),
        Race(fashion(CNN2, DRAWN), {"cnn2": 0.03}, 100, 400, 80.0, 1000, seeds=SIX),
    ),
    "reduced": (
        Race(fashion(LR, DRAWN), LR_RATES, 100, 400, 80.0, 200, "LR followed for 200 rounds", TEN),
        Race(
            fashion(CNN2, DRAWN), {"cnn2": 0.03}, 10, 40, 70.0, 150,
            "CNN with K = 10 and 10 to 40, target 70, 150 rounds", TEN,
        ),
    ),
    "smoke": (
        Race(replace(TINY_LR, partition=DRAWN), dict.fromkeys(LR_RATES, 0.02), 3, 6, 50.0, 5),
        Race(replace(TINY_CNN, partition=DRAWN), {"cnn2": 0.3}, 3, 6, 50.0, 5),
    ),
}  # fmt: skip


class Search(NamedTuple):
    """The utilisations that are tried: `target` percent within `limit` rounds; `rounds` are run. `slow`: the steps of
    the slow devices; `ratios`: how many times faster the fast one is than each of them. more: the seeds beside a slow
    device, if not `seeds`. drawn: with a split per seed."""

    utilisations: tuple[int, ...]
    ratios: tuple[float, ...]
    target: float
    limit: int
    rounds: int
    lam: float
    slow: int = 10
    substitute: str = ""
    seeds: tuple[int, ...] = ()
    more: Mapping[str, tuple[int, ...]] = {}
    drawn: bool = False


QUARTERS = (100, 75, 50, 25)
"""The printed utilisations are among them."""
TABLE2 = {
    "paper": Search(QUARTERS, tuple(DEVICE_RATIOS["default"].values()), 60.0, 50, 100, 0.1, drawn=True),
    "reduced": Search(
        QUARTERS, (20.0, 10.0, 3.0, 2.5), 55.0, 40, 60, 0.3, 10,
        "K of slow devices 10, fast device 20, 10, 3, 2.5 times as fast, target 55 in 40 rounds, accuracy after 60",
        SIX, {"gtx1080ti": tuple(range(12))},
    ),
    "smoke": Search((100, 50), (4.0, 3.0, 2.0, 1.5), 50.0, 3, 5, 0.3, 2),
}  # fmt: skip


class Question(NamedTuple):
    """Readings and λ that are compared, on a share of the data; drawn: with a split per seed. `seeds`: if not those of
    the scale. plain: the algorithms without λ; changes: what else is exchanged (`changed`)."""

    readings: tuple[str, ...]
    lambdas: tuple[float, ...]
    share: float = 1.0
    drawn: bool = False
    seeds: tuple[int, ...] = ()
    plain: tuple[str, ...] = ("fedavg", "fednova")
    changes: Mapping[str, Any] = {}


class Questions(NamedTuple):
    """The questions of the sensitivity panels, by name, all with uneven steps; means: further ones of the steps of Fig.
    5's regression; factors: of the rate of the second network of Table 6."""

    asked: Mapping[str, Question]
    rounds: int
    substitute: str = ""
    means: tuple[int, ...] = ()
    factors: tuple[int, ...] = ()


SHARE = 0.1
"""Of the data, where the steps are a tenth of the paper's: the published code takes the mean over the rest of a pass
for a first gradient, if the pass ends in the round, so that the passes in a round matter."""
EVERYTHING = Question(("fedagrac", "fedagrac_single", "fedagrac_eq4", "fedagrac_avg"), (0.05, 0.3, 1.0))
TENTH = Question(("fedagrac", "fedagrac_single", "fedagrac_full", "fedagrac_avg"), (0.3,), SHARE)
SPLITS = Question(("fedagrac",), (0.05, 0.1, 0.3, 1.0, 1.5), drawn=True)
"""Fig. 2's sweep, thinned out, with the error of the split in its intervals."""
EXCHANGED: Mapping[str, Mapping[str, Any]] = {
    "uniform_dp1": {"problem.partition": DP1},
    "uniform_anew": {"system.work.mode": "random"},
    "uniform_wider": {"system.work.low": lambda k: max(1, k // 5), "system.work.high": lambda k: k * 6 // 5},
    "uniform_batch25": {"problem.batches.size": 25},
    "uniform_batch64": {"problem.batches.size": 64},
    "uniform_momentum": {"algorithm.momentum": 0.9, "algorithm.lr": lambda rate: rate / 10},
}
OTHERWISE = {
    name: Question(("fedagrac",), (0.3,), plain=("fedavg",), changes=changes) for name, changes in EXCHANGED.items()
}
"""One thing exchanged each: the split, steps that are drawn anew in every round or from a wider range with about the
same mean (20 to 480 for 100 to 400), the batch, momentum."""
SENSITIVITY = {
    "paper": Questions({"uniform": EVERYTHING, "uniform_drawn": SPLITS}, 200),
    "reduced": Questions(
        {"uniform": EVERYTHING, "uniform_part": TENTH, "uniform_drawn": SPLITS._replace(seeds=TEN), **OTHERWISE}, 60,
        "fewer steps and rounds: K uniform in 10 to 40 for 100 to 400, 60 rounds", (25, 100), (1, 5),
    ),
    "smoke": Questions({"uniform": EVERYTHING, "uniform_part": TENTH, "uniform_drawn": SPLITS, **OTHERWISE}, 4),
}  # fmt: skip

RATES, MUS, LAMBDAS = (0.01, 0.008, 0.005), (1.0, 0.1, 0.01), (0.01, 0.02, 0.03, 0.04, 0.05)
"""The grids of Section 6.1; Table 6 takes the first rate, the last mu and the middle lambda."""
PUBLISHED, NETWORK = (RATES[0], LAMBDAS[2], MUS[2]), (0.03, 0.3, 0.01)
"""Learning rate, λ and μ."""


class Comparison(NamedTuple):
    """The five algorithms with one model and partition; rates: learning rate, λ and μ; `target` that of Table 6."""

    model: str
    partition: str
    problem: Classification
    rates: tuple[float, float, float]
    rounds: int = 200
    target: float = 0.0
    substitute: str = ""
    seeds: tuple[int, ...] = ()


class StepRows(NamedTuple):
    """Table 6 at a scale: its models, mean and variances of the steps; `tuned`: those whose rows also have a grid."""

    models: tuple[Comparison, ...]
    mean: int
    variances: tuple[int, int]
    tuned: tuple[str, ...] = ()


PHRASE = "small CNN on Fashion-MNIST for AlexNet on CIFAR-10: 10 clients, mean K 25, V 0, 1, 25, 65 % within 80 rounds"
TABLE6 = {
    "paper": StepRows(
        (
            Comparison("alexnet", "dp1", cifar10(ALEXNET, DP1), PUBLISHED, 200, 68.0),
            Comparison("alexnet", "dp2", cifar10(ALEXNET, DP2), PUBLISHED, 200, 70.0),
            Comparison("vgg19", "dp2", cifar10(VGG, DP2), PUBLISHED, 200, 80.0),
        ),
        500, (100, 10000), tuned=("alexnet", "vgg19"),
    ),
    "reduced": StepRows(
        (
            Comparison("cnn2", "dp1", fashion(CNN2, DRAWN_DP1), NETWORK, 80, 65.0, PHRASE, tuple(range(14))),
            Comparison("cnn2", "dp2", fashion(CNN2, DRAWN_DP2), NETWORK, 80, 65.0, PHRASE, tuple(range(14))),
            Comparison(
                "small_mlp", "dp2", DIGITS, (0.02, 0.3, 0.01), 80, 85.0,
                "a network with one hidden layer on scikit-learn's digits for VGG-19 on CIFAR-10, 85 % within 80 "
                "rounds",
            ),
        ),
        25, (1, 25), tuned=("small_mlp",),
    ),
    "smoke": StepRows((Comparison("tiny_cnn", "dp1", TINY_CNN, (0.3, 0.3, 0.01), 5, 50.0, "tiny data"),), 4, (1, 2)),
}  # fmt: skip


class TimeCurves(NamedTuple):
    """The network and logistic regression, the means and the variance of the steps; `tuned`: the rates of the grid of
    logistic regression, of which the figure has the first (Section 6.1)."""

    network: Comparison
    regression: Comparison
    means: tuple[int, int]
    variance: int
    tuned: tuple[float, ...] = ()


FIG5 = {
    "paper": TimeCurves(
        Comparison("alexnet", "dp2", cifar10(ALEXNET, DP2), PUBLISHED),
        Comparison("lr", "dp1", A9A, (0.005, 1.0, 0.1), seeds=TEN),
        (100, 500), 10000, tuned=(0.005, 0.001, 0.0005),
    ),
    "reduced": TimeCurves(
        Comparison(
            "cnn2", "dp2", fashion(CNN2, DRAWN_DP2), NETWORK, 40,
            substitute="small CNN on Fashion-MNIST instead of AlexNet on CIFAR-10: 10 clients, mean K 10 and 50 "
            "for 100 and 500, V 100 for 10,000, rate 0.03, λ 0.3, 40 rounds", seeds=tuple(range(8)),
        ),
        Comparison(
            "lr", "dp1", A9A, (0.05, 1.0, 0.1), 100,
            substitute="fewer steps and rounds: logistic regression with mean K 10 and 50 for 100 and 500, ten times "
            "the learning rate, 100 rounds", seeds=TEN,
        ),
        (10, 50), 100,
    ),
    "smoke": TimeCurves(
        Comparison("tiny_cnn", "dp1", TINY_CNN, (0.3, 0.3, 0.01), 5),
        Comparison("lr", "dp1", TINY_LR, (0.1, 1.0, 0.1), 5),
        (3, 4), 2,
    ),
}  # fmt: skip


class Map(NamedTuple):
    """One model's learning rates and λ; mean and variance of the steps, the latter where they are unequal. seeds_even:
    with even steps, if not `seeds`."""

    model: str
    problem: Classification
    rates: tuple[float, ...]
    lambdas: tuple[float, ...]
    mean: int = 500
    variance: int = 10000
    rounds: int = 100
    substitute: str = ""
    seeds: tuple[int, ...] = ()
    seeds_even: tuple[int, ...] = ()


FIG4 = {
    "paper": (
        Map(
            "alexnet", cifar10(ALEXNET, DP1),
            (0.1, 0.05, 0.01, 0.005, 0.001, 0.0005), (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0),
        ),
        Map(
            "lr", A9A, (0.05, 0.01, 0.005, 0.001, 0.0005, 0.0001), (0.01, 0.05, 0.1, 0.5, 1.0, 1.5, 2.0),
            seeds=tuple(range(80)),
        ),
    ),
    "reduced": (
        Map(
            "cnn2", fashion(CNN2, DRAWN_DP1), (0.1, 0.03, 0.005), (0.05, 0.3, 1.0, 1.5), 25, 25, 30,
            "small CNN on Fashion-MNIST for AlexNet on CIFAR-10: 10 clients, mean K 25, V 25, 30 rounds", TEN,
            tuple(range(30)),
        ),
        Map(
            "lr", A9A, (0.05, 0.01, 0.005, 0.001), (0.01, 0.1, 0.5, 1.0, 2.0), 50, 100, 100,
            "fewer steps: LR with mean K 50 for 500, V 100 for 10,000, ten times the learning rate", tuple(range(35)),
        ),
    ),
    "smoke": (
        Map("cnn2", TINY_CNN, (0.3, 0.03), (0.3, 1.0), 4, 2, 4, "", (0, 1)),
        Map("lr", TINY_LR, (0.1, 0.01), (0.3, 1.0), 4, 2, 4, "", (0, 1)),
    ),
}  # fmt: skip
