"""The figures and tables of FedaGrac: what they are made of. Their words and layouts are in artifacts.yaml.

Readings of Tables 1 and 2 that their printed numbers suggest have the split of the published code, one for all seeds;
on it, clients drawn with replacement. How curves are read (the first hit, or that of a mean over ten rounds) needs no
run.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from reproduce.algorithms.base import WeightedDraws
from reproduce.declare.artifact import Artifact, Filled, Last, Later, Reach
from reproduce.declare.experiment import Experiment, Panel, changed
from reproduce.papers.fedagrac import runs, settings

if TYPE_CHECKING:
    from reproduce.papers.fedagrac import measures, pictures
else:
    measures, pictures = Later(f"{__package__}.measures"), Later(f"{__package__}.pictures")

LAST10 = Last("accuracy", 10, name="last10")
SMOOTH = 10
"""Rounds of the trailing means of Fig. 3."""
QUESTIONS = ("uniform", "uniform_part", "uniform_drawn")
"""The axes of the sensitivity; its other questions are in the cells."""
READINGS = {
    "fedagrac": "FedaGrac, published code",
    "fedagrac_single": "first gradient: one mini-batch",
    "fedagrac_full": "first gradient: all data of the client",
    "fedagrac_eq4": "fast clients keep it too (eq. 4)",
    "fedagrac_avg": "mean gradients from all (λ = 1: SCAFFOLD)",
}
STEPS = "({letter}) {model}, {step_async} numbers of local steps"
layers = partial(measures.architecture, pooling="kernel size=2, stride=2")
artifact = partial(Artifact, "fedagrac")

OWN, CODES = "a split per seed", "the code's split"
DRAWN = f"{CODES}, clients drawn with replacement"
RATES = {"lr": "0.001", "lr_eta003": "0.03"}
"""Of logistic regression in Table 1, by the name of the model in the results."""
FIRST, TEN, BEST = "first hit", "mean of ten rounds", "best of all rounds"
PRINTED = {("rpi4", "fednova"): 25, ("jetson_nano", "fednova"): 50}
"""Utilisations that Table 2 prints, if not 100 %; with clients drawn these alone are run."""


def suggested(scale: str) -> tuple[Panel, ...]:
    """The declared panels of both tables, and the readings beside them. None at reduced scale, of which the paper
    prints no numbers."""
    if scale == "reduced":
        return ()
    declared = (*runs.table1(scale), *runs.table2(scale))
    code = (beside(p, "code", CODES, p.experiments) for p in declared)
    more = (replace(p, seeds=tuple(range(8))) if "gtx" in p.name else p for p in code)
    subsets = ((p, tuple(filter(samples_clients, p.experiments))) for p in declared)
    return (
        *declared,
        *more,
        *(beside(replace(p, seeds=p.seeds[:3]), "drawn", DRAWN, some) for p, some in subsets if some),
    )


def beside(panel: Panel, name: str, split: str, experiments: Iterable[Experiment]) -> Panel:
    """Experiments of a panel on the code's split."""
    changes: dict[str, Any] = {"problem.partition.data_seed": settings.NON_IID.data_seed}
    changes |= {"algorithm.participation": WeightedDraws(10)} if split == DRAWN else {}
    varied = tuple(changed(replace(e, labels={**e.labels, "split": split}), changes) for e in experiments)
    return replace(panel, name=f"{name}-{panel.name}", experiments=varied)


def samples_clients(e: Experiment) -> bool:
    """Tells whether the experiment also runs with clients drawn: the network on non-i.i.d. data, at printed
    utilisations."""
    if "utilization" in e.labels:
        return e.labels["utilization"] == PRINTED.get((str(e.labels["slow_device"]), str(e.labels["algorithm"])), 100)
    return bool(e.labels["non_iid"]) and e.labels["model"] == "cnn2"


ARTIFACTS = (
    artifact(
        "fig1", panels=runs.fig1, cells=measures.paths,
        draw=Filled(
            ("algorithm",), "{algorithm}",
            only={"algorithm": ("fedavg", "fednova", "fedprox", "fedlin", "scaffold", "fedagrac")}, across=3,
            ylabel="parameter b", sheet={"sharex": True, "sharey": True, "height": 2.1}, fill=pictures.path,
        ),
    ),
    artifact(
        "fig2", panels=runs.fig2, cells=(Last("accuracy", name="accuracy_at_last_round"), LAST10),
        draw=Filled(
            ("step_async",), "({letter}) {step_async} numbers of local steps", sheet={"height": 2.2, "sharey": True},
            fill=pictures.over_lambda,
        ),
    ),
    artifact(
        "fig3", panels=runs.fig3, cells=(LAST10,),
        draw=Filled(
            ("model", "step_async"), STEPS, only={"model": ("lr", "cnn2")}, across=2, ylabel="accuracy (%)",
            sheet={"height": 1.8}, fill=partial(pictures.schemes, smooth=SMOOTH),
        ),
    ),
    artifact(
        "fig4", panels=runs.fig4, cells=(LAST10,),
        draw=Filled(
            ("model", "step_async"), STEPS, across=2, sheet={"height": 1.9, "least": 2.7}, fill=pictures.rates,
            alike=("model",),
        ),
    ),
    artifact(
        "fig5", panels=runs.fig5, cells=measures.comparison,
        draw=Filled(
            ("model", "dataset", "partition", "k_mean"),
            "({letter}) {model}, {dataset}, {partition}, mean K {k_mean}", only={"point": (None,)}, across=2,
            ylabel="accuracy (%)", sheet={"height": 1.75}, each=(1, 2), fill=pictures.over_time,
        ),
    ),
    artifact("table1", panels=runs.table1, cells=(Reach(horizon="clock.rounds"),)),
    artifact("table2", panels=runs.table2, cells=measures.utilisation),
    artifact(
        "table3",
        cells=partial(layers, problem=settings.fashion(settings.CNN2), model="cnn2", pooling="kernel size=2"),
    ),
    artifact("table4", cells=partial(layers, problem=settings.cifar10(settings.ALEXNET), model="alexnet")),
    artifact("table5", cells=partial(layers, problem=settings.cifar10(settings.VGG), model="vgg19", merge_equal=True)),
    artifact("table6", panels=runs.table6, cells=measures.rounds),
    artifact("readings", panels=suggested, cells=measures.readings),
    artifact(
        "sensitivity", panels=runs.sensitivity, cells=(LAST10,),
        draw=Filled(
            ("local_steps",), "{local_steps}", only={"local_steps": QUESTIONS}, sheet={"height": 2.3, "least": 2.7},
            fill=partial(pictures.readings, names=READINGS, levels=("fedavg", "fednova")),
        ),
    ),
)  # fmt: skip
