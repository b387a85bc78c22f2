"""The runs of FIARSE: methods on submodels of several sizes, at all scales."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reproduce.algorithms.base import DistinctClients, FedAvg
from reproduce.algorithms.fiarse import FIARSE
from reproduce.algorithms.fjord import FjORD
from reproduce.algorithms.heterofl import HeteroFL
from reproduce.algorithms.scalefl import ScaleFL
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Fixed
from reproduce.data.embedded import GaussianClasses
from reproduce.declare.experiment import Experiment, Label, Panel
from reproduce.models.declared import Perceptron
from reproduce.models.exits import with_exits
from reproduce.papers.fiarse.settings import SCALES, SubmodelSetting
from reproduce.partitions.named import IID
from reproduce.problem import Classification
from reproduce.systems import Epochs, System
from reproduce.systems.capacity import SplitCapacity

SIZES = {
    "four": (1.0, 1 / 4, 1 / 16, 1 / 64),
    "five": (1.0, 0.64, 0.36, 0.16, 0.04),
    "four_sub": (0.64, 0.36, 0.16, 0.04),
}
SWEEP = (
    1 / 256, 1 / 128, 1 / 64, 1 / 32, 0.04, 1 / 16, 1 / 8, 0.16, 1 / 4, 0.36, 1 / 2, 0.6, 0.64, 0.7, 0.75, 0.8, 0.9,
    0.99, 1.0,
)  # fmt: skip
SEEDS, MORE_SEEDS = (0, 1, 2), (3, 4)
"""The paper's number of seeds, and two more for eq. 3 against what the published code computes."""
SHARDS = (("conv1", "layer1", "layer2"), ("layer3",), ("layer4", "fc"))
"""Three thresholds, as many as the published code has for AG News; for networks of images it has none."""

# --- the methods ------------------------------------------------------------------------------------------------------


def algorithms(
    setting: SubmodelSetting, size_set: str, participants: int, sweep: tuple[float, ...] = ()
) -> dict[str, FedAvg]:
    """All methods with the values of the published commands: rate 0.1 without momentum, for texts AdamW at 1e-4. The
    grid of Table 3 is not run.

    ScaleFL distils in the rounds t = 0, 1, ... with t > T / 4, as its published code does.

    The averages of the FIARSE family count who moved a coordinate, as the published code does; those of the others,
    and `fiarse_held`, who held it.
    """
    draw = DistinctClients(participants, average=True)
    common: dict[str, Any] = {"lr": setting.rate, "participation": draw, "sweep": sweep, "betas": setting.betas}
    levels = tuple(level for level in setting.levels if level[0] in SIZES[size_set])
    return {
        "heterofl": HeteroFL(**common),
        "fedrolex": HeteroFL(rolling=True, **common),
        "scalefl": ScaleFL(levels=levels, from_round=setting.clock.rounds // 4 + 1, **common),
        "fjord": FjORD(**common),
        "fiarse": FIARSE(scope=setting.scope, **common),
        "pruning_greedy": FIARSE(mask="frozen", amplify=False, **common),
        "fiarse_layerwise": FIARSE(scope="stage", **common),
        "fiarse_sharding": FIARSE(scope=SHARDS, **common),
        "fiarse_released": FIARSE(amplify=False, **common),
        "fiarse_held": FIARSE(count="mask", **common),
    }


MAIN = ("heterofl", "fedrolex", "fiarse")
COMPARED = ("heterofl", "fedrolex", "scalefl", "fiarse")
ABLATION = ("pruning_greedy", "fiarse_layerwise", "fiarse_released")


def network(setting: SubmodelSetting, algorithm: str) -> Classification:
    """The problem of a method: the network of ScaleFL has exits."""
    if algorithm != "scalefl":
        return setting.problem
    return replace(setting.problem, model=with_exits(setting.problem.model, setting.exits))


# --- the panels -------------------------------------------------------------------------------------------------------


def panel(
    scale: str, dataset: str, name: str, chosen: tuple[str, ...], size_set: str = "four", participation: float = 0.1,
    sweep: tuple[float, ...] = (), seeds: tuple[int, ...] = SEEDS,
) -> Panel:  # fmt: skip
    """Some of the methods on a data set. participation: the paper's label; below its scale more of fewer clients."""
    here = SCALES[scale]
    setting = here.all()[dataset]
    drawn = round(setting.participants * participation / 0.1)
    known = algorithms(setting, size_set, drawn, sweep)
    labels: dict[str, Label] = {
        "dataset": dataset, "size_set": size_set, "participation": participation, "target_accuracy": here.target,
    }  # fmt: skip
    system = System(setting.work, capacity=SplitCapacity(SIZES[size_set]))
    experiments = tuple(
        Experiment({"algorithm": a, **labels}, network(setting, a), system, known[a], setting.clock) for a in chosen
    )
    words = setting.substitute or here.substitute
    if words and drawn != round(participation * setting.problem.clients):
        words += f"; {drawn} of {setting.problem.clients} clients per round for the paper's {100 * participation:g} %"
    return Panel(f"{name}-{dataset.replace('_', '-')}", experiments, seeds, words)


def first(scale: str) -> str:
    """The data set that stands for CIFAR-10."""
    return next(iter(SCALES[scale].settings))


def last(scale: str) -> str:
    """The data set that stands for CIFAR-100."""
    return list(SCALES[scale].settings)[-1]


def _four(scale: str, dataset: str, sweep: tuple[float, ...] = SWEEP) -> tuple[Panel, ...]:
    chosen = (("four", MAIN), ("scalefl", ("scalefl",)))
    return tuple(panel(scale, dataset, name, methods, sweep=sweep) for name, methods in chosen)


def four(scale: str) -> tuple[Panel, ...]:
    """The comparison of methods on all data sets of images."""
    return tuple(p for dataset in SCALES[scale].settings for p in _four(scale, dataset))


def four_and_texts(scale: str) -> tuple[Panel, ...]:
    """The comparison of methods on all data sets (Table 1)."""
    more = {**SCALES[scale].beside, **SCALES[scale].texts}
    return (*four(scale), *(p for dataset in more for p in _four(scale, dataset, ())))


def four_first(scale: str) -> tuple[Panel, ...]:
    """The same on the first data set, CIFAR-10 in the paper (Fig. 2)."""
    return _four(scale, first(scale))


def ablation(scale: str) -> tuple[Panel, ...]:
    """FIARSE and its variants on the last data set, CIFAR-100 in the paper (Table 6)."""
    return (
        _four(scale, last(scale))[0],
        panel(scale, last(scale), "ablation", ABLATION, sweep=SWEEP),
        panel(scale, last(scale), "counting", ("fiarse_held",)),
        panel(scale, last(scale), "factor", ("fiarse", "fiarse_released"), seeds=MORE_SEEDS),
    )


def compared(scale: str) -> tuple[Panel, ...]:
    """The comparison of methods, with pruning-greedy where one data set stands for all (Fig. 3)."""
    return (*four(scale), *_beside(scale))


def swept(scale: str) -> tuple[Panel, ...]:
    """The same on the first data set (Fig. 4)."""
    return (*four_first(scale), *_beside(scale))


def _beside(scale: str) -> tuple[Panel, ...]:
    return ablation(scale)[1:2] if first(scale) == last(scale) else ()


def fifth(scale: str) -> tuple[Panel, ...]:
    """A fifth of the clients in a round, all data sets (Table 4)."""
    return tuple(panel(scale, d, "fifth", COMPARED, participation=0.2) for d in SCALES[scale].settings)


FIVE = ("heterofl", "fedrolex", "scalefl", "fjord", "fiarse")


def five(scale: str) -> tuple[Panel, ...]:
    """Five sizes, with FjORD, all data sets of images (Fig. 6)."""
    return tuple(panel(scale, d, "five", FIVE, "five") for d in SCALES[scale].settings)


def five_and_texts(scale: str) -> tuple[Panel, ...]:
    """The same on all data sets (Table 5)."""
    return (*five(scale), *(panel(scale, d, "five", FIVE, "five") for d in SCALES[scale].texts))


def five_first(scale: str) -> tuple[Panel, ...]:
    """The same on the first data set (Fig. 5)."""
    return five(scale)[:1]


def five_ablation(scale: str) -> tuple[Panel, ...]:
    """FIARSE and its variants with five sizes on the last data set (Table 7)."""
    return (five(scale)[-1], panel(scale, last(scale), "five-ablation", (*ABLATION, "fiarse_sharding"), "five"))


def explored(scale: str, name: str, size_set: str, dataset: str, rounds: int = 0) -> tuple[Panel, ...]:
    """FIARSE, with the sets of weights that its submodels reach; evaluated at the start and at the end."""
    plain = panel(scale, dataset, name, ("fiarse",), size_set)
    (e,) = plain.experiments
    rounds = rounds or e.clock.rounds
    watched = replace(e, algorithm=replace(e.algorithm, explore="shares"), clock=Rounds(rounds, rounds))
    return (replace(plain, experiments=(watched,)),)


def exploration(scale: str) -> tuple[Panel, ...]:
    """Four sizes, the last data set (Fig. 7)."""
    return explored(scale, "exploration", "four", last(scale))


def exploration_without_the_whole(scale: str) -> tuple[Panel, ...]:
    """Sizes of which none is the whole model, the last data set (Fig. 8)."""
    return explored(scale, "exploration-sub", "four_sub", last(scale))


PATTERNS = Classification(
    GaussianClasses(2, 4, 40, 20, 1.0, 0), Perceptron(4, (4, 4), 2), IID(), 2, Fixed(10), weights="uniform"
)


def patterns(scale: str) -> tuple[Panel, ...]:
    """Two rounds of a network small enough to be drawn, with one client of size 1 and one of 1/4 (Fig. 1)."""
    system = System(Epochs(1), capacity=SplitCapacity((1.0, 1 / 4)))
    common: dict[str, Any] = {"lr": 0.5, "participation": DistinctClients(2, average=True), "explore": "masks"}
    methods = {"heterofl": HeteroFL(**common), "fedrolex": HeteroFL(rolling=True, **common), "fiarse": FIARSE(**common)}
    experiments = tuple(Experiment({"algorithm": a}, PATTERNS, system, m, Rounds(2, 2)) for a, m in methods.items())
    return (Panel("patterns", experiments, (0,)),)


def holders(scale: str) -> tuple[Panel, ...]:
    """Two rounds with four sizes, the first data set (Table 2)."""
    return explored(scale, "holders", "four", first(scale), rounds=2)
