"""The runs of FIARSE: methods on submodels of several sizes, at all scales."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from reproduce.algorithms.base import DistinctClients, FedAvg
from reproduce.algorithms.fiarse import FIARSE
from reproduce.algorithms.narrower import FjORD, HeteroFL, ScaleFL
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Fixed
from reproduce.data.embedded import GaussianClasses
from reproduce.declare.experiment import Experiment, Panel
from reproduce.models.declared import FlooredResNet, Perceptron
from reproduce.papers.fiarse.settings import SCALES, SubmodelSetting
from reproduce.papers.fiarse.variants import CroppedTests, FirstWindow, FreshTests, MaskedResNet, SteppedHeteroFL
from reproduce.partitions.labels import IID
from reproduce.problem import Classification
from reproduce.systems import Epochs, Steps, System
from reproduce.systems.clients import SplitCapacity

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
"""The paper's number of seeds, and two more where three decide little: five sizes on texts, eq. 3 against what the
published code computes."""
SHARDS = (("conv1", "layer1", "layer2"), ("layer3",), ("layer4", "fc"))
"""Three thresholds, as many as the published code has for AG News; for networks of images it has none."""
FALLS = (3 / 8, 5 / 8)
"""When the rate falls, as a part of the rounds: HeteroFL's code has 300 and 500 of 800 for CIFAR-10."""


def algorithms(
    setting: SubmodelSetting, size_set: str, participants: int, sweep: tuple[float, ...] = ()
) -> dict[str, FedAvg]:
    """All methods with the values of the published commands: rate 0.1 without momentum, for texts AdamW at 1e-4. The
    grid of Table 3 is not run.

    ScaleFL distils in the rounds t = 0, 1, ... with t > T / 4, as its published code does.

    The averages of the FIARSE family count who moved a coordinate, as the published code does; those of the others,
    and `fiarse_held`, who held it. What is not here (`fiarse_steps`) is the method of its first word.
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
        "scalefl_alone": ScaleFL(levels=levels, distill=0.0, **common),
        "fiarse_by_layer": FIARSE(scope="layer", **common),
        "fedrolex_first": FirstWindow(rolling=True, **common),
        "heterofl_stepped": SteppedHeteroFL(falls=tuple(round(at * setting.clock.rounds) for at in FALLS), **common),
        "scalefl_whole": ScaleFL(
            levels=tuple((size, len(setting.exits), math.sqrt(size)) for size in SIZES[size_set]),
            from_round=setting.clock.rounds // 4 + 1, **common,
        ),
    }  # fmt: skip


def network(setting: SubmodelSetting, algorithm: str) -> Classification:
    """The problem of a method: the network of ScaleFL has exits; what is "fresh" are the clients' test sets, what is
    "cropped" the test images, too, where training crops and mirrors its own."""
    if algorithm.endswith("_fresh"):
        return replace(setting.problem, partition=FreshTests(setting.problem.partition))
    if algorithm.endswith(("_augmented", "_cropped")):
        data = CroppedTests(setting.problem.data) if algorithm.endswith("_cropped") else setting.problem.data
        return replace(setting.problem, augment="crop_flip", data=data)
    if kind := {"floored": FlooredResNet, "masked": MaskedResNet}.get(algorithm.rpartition("_")[2]):
        return replace(setting.problem, model=kind(**vars(setting.problem.model)))
    if not algorithm.startswith("scalefl"):
        return setting.problem
    return replace(setting.problem, model=setting.problem.model.with_exits(setting.exits))


class Lineup(NamedTuple):
    """Some of the methods on a data set, trained together. participation: the paper's label; below its scale more of
    fewer clients. explored: the rounds of a run that records which weights its submodels reach, and is evaluated at the
    start and at the end (0: as many as others have; None: an ordinary run). steps: those of the published commands for
    the epochs of Table 3."""

    name: str
    methods: tuple[str, ...]
    size_set: str = "four"
    participation: float = 0.1
    sweep: tuple[float, ...] = ()
    seeds: tuple[int, ...] = SEEDS
    explored: int | None = None
    steps: bool = False


COMPARED = ("heterofl", "fedrolex", "scalefl", "fiarse")
ABLATION = ("pruning_greedy", "fiarse_layerwise", "fiarse_released")
FOUR = Lineup("four", ("heterofl", "fedrolex", "fiarse")), Lineup("scalefl", ("scalefl",))
SWEPT = tuple(lineup._replace(sweep=SWEEP) for lineup in FOUR)
FIFTH = (Lineup("fifth", COMPARED, participation=0.2),)
FIVE = (Lineup("five", (*COMPARED[:3], "fjord", "fiarse"), "five"),)
FIVE_OF_TEXTS = tuple(lineup._replace(seeds=SEEDS + MORE_SEEDS) for lineup in FIVE)
ABLATED = (Lineup("ablation", ABLATION, sweep=SWEEP),)
COUNTED = Lineup("counting", ("fiarse_held",)), Lineup("factor", ("fiarse", "fiarse_released"), seeds=MORE_SEEDS)
CHOSEN = ("scalefl_alone", "heterofl_fresh", "fiarse_fresh", "heterofl_steps", "fiarse_steps", "fiarse_by_layer")
OTHERWISE = (
    Lineup("distillation", CHOSEN[:1]), Lineup("fresh", CHOSEN[1:3]), Lineup("steps", CHOSEN[3:5], steps=True),
    Lineup("layers", CHOSEN[5:]),
)  # fmt: skip
"""What the paper leaves open of its baselines, the test sets, the local work and its layers."""
LATER = {
    "window": ("fedrolex_first",), "falls": ("heterofl_stepped",),
    "masked": ("fiarse_masked",), "widths": ("scalefl_whole",),
    "augmented": ("heterofl_augmented", "fiarse_augmented"), "cropped": ("heterofl_cropped", "fiarse_cropped"),
}  # fmt: skip
"""The same, asked below paper scale (the first two) and at reduced scale alone."""
LATER_LINEUPS = tuple(Lineup(name, methods) for name, methods in LATER.items())
ROUNDED = (Lineup("rounding", ("heterofl_floored",), "five"),)
"""With five sizes; of four all widths are whole numbers."""
PANELS: Mapping[str, tuple[tuple[str, tuple[Lineup, ...]], ...]] = {
    "fig2": (("first", SWEPT),),
    "fig3": (("images", SWEPT), ("alone", ABLATED)),
    "fig4": (("first", SWEPT), ("alone", ABLATED)),
    "fig5": (("first", FIVE),),
    "fig6": (("images", FIVE),),
    "fig7": (("last", (Lineup("exploration", ("fiarse",), explored=0),)),),
    "fig8": (("last", (Lineup("exploration-sub", ("fiarse",), "four_sub", explored=0),)),),
    "table1": (("images", SWEPT), ("beside", FOUR), ("texts", FOUR)),
    "table2": (("first", (Lineup("holders", ("fiarse",), explored=2),)),),
    "table4": (("images", FIFTH),),
    "table5": (("images", FIVE), ("texts", FIVE_OF_TEXTS)),
    "table6": (
        ("last", (*SWEPT, *ABLATED, *COUNTED, *OTHERWISE)),
        ("below", LATER_LINEUPS[:2]), ("reduced", LATER_LINEUPS[2:]),
    ),
    "table7": (
        ("last", (*FIVE, Lineup("five-ablation", (*ABLATION, "fiarse_sharding"), "five"))), ("reduced", ROUNDED),
    ),
}  # fmt: skip
"""Artifact -> on which data sets (`data_sets`), which lineups."""


def data_sets(scale: str, which: str) -> list[str]:
    """The data sets of a kind. Images: the first stands for CIFAR-10, the last for CIFAR-100 ("alone": where one stands
    for both; "reduced": at that scale alone, "below": also at smoke scale). "beside": Table 1's others. "texts"."""
    here = SCALES[scale]
    images = list(here.settings)
    alone = images if len(images) == 1 else []
    known = {"images": images, "first": images[:1], "last": images[-1:], "alone": alone}
    known["reduced"] = images[-1:] if scale == "reduced" else []
    known["below"] = images[-1:] if scale != "paper" else []
    return {**known, "beside": list(here.beside), "texts": list(here.texts)}[which]


def panels(name: str, scale: str) -> tuple[Panel, ...]:
    """The panels of an artifact."""
    if name == "fig1":
        return patterns()
    return tuple(
        panel(scale, dataset, lineup)
        for which, lineups in PANELS[name]
        for dataset in data_sets(scale, which)
        for lineup in lineups
    )


def panel(scale: str, dataset: str, lineup: Lineup) -> Panel:
    """A lineup on a data set."""
    here = SCALES[scale]
    setting = here.all()[dataset]
    drawn = round(setting.participants * lineup.participation / 0.1)
    known = algorithms(setting, lineup.size_set, drawn, lineup.sweep)
    methods: dict[str, Any] = {a: known.get(a) or known[a.partition("_")[0]] for a in lineup.methods}
    clock = setting.clock
    if lineup.explored is not None:
        rounds = lineup.explored or clock.rounds
        methods, clock = {a: replace(m, explore="shares") for a, m in methods.items()}, Rounds(rounds, rounds)
    labels: dict[str, Any] = {"dataset": dataset, "size_set": lineup.size_set, "participation": lineup.participation}
    labels["target_accuracy"] = here.target
    work = Steps(setting.steps) if lineup.steps else setting.work
    system = System(work, capacity=SplitCapacity(SIZES[lineup.size_set]))
    experiments = tuple(
        Experiment({"algorithm": a, **labels}, network(setting, a), system, m, clock) for a, m in methods.items()
    )
    words, asked = setting.substitute or here.substitute, lineup.participation
    if words and drawn != round(asked * setting.problem.clients):
        words += f"; more clients per round: {drawn} of {setting.problem.clients} for the paper's {100 * asked:g} %"
    return Panel(f"{lineup.name}-{dataset.replace('_', '-')}", experiments, lineup.seeds[: here.seeds], words)


PATTERNS = Classification(
    GaussianClasses(2, 4, 40, 20, 1.0, 0), Perceptron(4, (4, 4), 2), IID(), 2, Fixed(10), weights="uniform"
)


def patterns() -> tuple[Panel, ...]:
    """Two rounds of a network small enough to be drawn, with one client of size 1 and one of 1/4 (Fig. 1)."""
    system = System(Epochs(1), capacity=SplitCapacity((1.0, 1 / 4)))
    common: dict[str, Any] = {"lr": 0.5, "participation": DistinctClients(2, average=True), "explore": "masks"}
    methods = {"heterofl": HeteroFL(**common), "fedrolex": HeteroFL(rolling=True, **common), "fiarse": FIARSE(**common)}
    experiments = tuple(Experiment({"algorithm": a}, PATTERNS, system, m, Rounds(2, 2)) for a, m in methods.items())
    return (Panel("patterns", experiments, (0,)),)
