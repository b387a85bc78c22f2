"""The figures and tables of FedaGrac."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from reproduce.declare.artifact import Artifact, Filled, Last, Later, Reach, no_panels
from reproduce.papers.fedagrac import readings, runs, settings
from reproduce.problem import Classification

if TYPE_CHECKING:
    from reproduce.papers.fedagrac import measures, pictures
else:
    measures, pictures = Later(f"{__package__}.measures"), Later(f"{__package__}.pictures")

LAST10 = Last("accuracy", 10, name="last10")
STEPS = {"0": "equal", "1": "unequal"}
SMOOTH = 10
"""Rounds of the trailing means of Fig. 3."""
QUESTIONS = {
    "uniform": "all data",
    "uniform_part": f"{100 * settings.SHARE:.0f} % of the data: passes per round as in the paper",
    "uniform_drawn": "all data, one partition per seed",
}
"""The axes of the sensitivity; its other questions are in the cells."""
READINGS = {
    "fedagrac": "FedaGrac, published code",
    "fedagrac_single": "first gradient: one mini-batch",
    "fedagrac_full": "first gradient: all data of the client",
    "fedagrac_eq4": "fast clients keep it too (eq. 4)",
    "fedagrac_avg": "mean gradients from all (λ = 1: SCAFFOLD)",
}


def architecture(number: int, title: str, problem: Classification, **options: Any) -> Artifact:
    """Table 3, 4 or 5: the lines of the problem's model."""
    columns = ("layer", "output_shape", "activation", "hyperparameters")
    parameters = f"{problem.model.parameters:,} trainable parameters."
    return Artifact(
        "fedagrac", f"table{number}", title, no_panels,
        (partial(measures.architecture, problem=problem, **options),),
        rows=("layer_index", *columns), labels=columns, decimals=0,
        names={"layer_index": "#", "hyperparameters": "Hyper-parameters"},
        notes=(f"{parameters} Generated from the model definition that the experiments train.",),
    )  # fmt: skip


ARTIFACTS = (
    Artifact(
        "fedagrac", "fig1",
        "Paths in the parameter plane of a linear regression, two clients with 2 and 40 local steps", runs.fig1,
        (measures.paths,),
        Filled(
            ("algorithm",), "{algorithm}",
            only={"algorithm": ("fedavg", "fednova", "fedprox", "fedlin", "scaffold", "fedagrac")}, across=3,
            ylabel="parameter b", sheet={"sharex": True, "sharey": True, "height": 2.1}, fill=pictures.path,
        ),
        stamp="Server models of 15 rounds, local paths of the first 3.",
        notes=(
            "Data, steps and learning rates are ours: the paper's schematic gives none.",
            "Without noise SCAFFOLD reaches the minimiser too, by another path.",
        ),
    ),
    Artifact(
        "fedagrac", "fig2", "Accuracy against the calibration rate, small CNN on Fashion-MNIST", runs.fig2,
        (Last("accuracy", name="accuracy_at_last_round"), LAST10),
        Filled(
            ("step_async",), "({letter}) {step_async} numbers of local steps", sheet={"height": 2.2, "sharey": True},
            fill=pictures.over_lambda,
        ),
        names=STEPS,
        stamp="'increase': λ 0.1 in the first quarter of the rounds, 1 in the last, 0.5 between.",
        notes=("The paper's values of λ are in an image.",),
    ),
    Artifact(
        "fedagrac", "fig3", "Reference orientation from first and from mean gradients, Fashion-MNIST", runs.fig3,
        (LAST10,),
        Filled(
            ("model", "step_async"), "({letter}) {model}, {step_async} numbers of local steps",
            only={"model": ("lr", "cnn2")}, across=2, ylabel="accuracy (%)", sheet={"height": 1.8},
            fill=partial(pictures.schemes, smooth=SMOOTH),
        ),
        names=STEPS,
        stamp=f"Trailing means of {SMOOTH} rounds. With equal steps two schemes coincide with the others.",
        notes=(
            "λ = 1 for LR (0.1 for the CNN; reduced: 0.3).",
            "With equal steps there are no fast clients: FedaGrac is FedaGrac-avg and FedaGrac-reverse is "
            "FedaGrac-first.",
            "The first-gradient estimate is that of the published code; the per-seed values also have the single "
            "mini-batch gradient of Algorithm 1.",
        ),
    ),
    Artifact(
        "fedagrac", "fig4", "Accuracy of FedaGrac over learning rate and calibration rate", runs.fig4, (LAST10,),
        Filled(
            ("model", "step_async"), "({letter}) {model}, {step_async} numbers of local steps", across=2,
            sheet={"height": 1.9, "least": 2.7}, fill=pictures.rates, alike=("model",),
        ),
        names=STEPS,
        stamp="Mean accuracy of the last ten rounds and over seeds; one scale of colours per model.",
        notes=(
            "The axes of the paper are in an image. The grid is ours; at paper scale it contains the values that the "
            "text names.",
        ),
    ),
    Artifact(
        "fedagrac", "fig5", "Test accuracy over training time, step counts from a Gaussian with large variance",
        runs.fig5, (measures.comparison,),
        Filled(
            ("model", "dataset", "partition", "k_mean"),
            "({letter}) {model}, {dataset}, {partition}, mean K {k_mean}", only={"point": (None,)}, across=2,
            ylabel="accuracy (%)", sheet={"height": 1.75}, each=(1, 2), fill=pictures.over_time,
        ),
        stamp="Time is simulated; one rate for all, where the paper tunes each.",
        notes=(
            "Time is that of the slowest client's steps plus transfer, since the paper's cluster is not available. In "
            "this model FedProx takes longer than FedAvg by construction.",
            "Mean step counts and λ are ours. At paper scale the per-seed values have the best learning rates "
            "of LR's grid (last10_tuned).",
        ),
    ),
    Artifact(
        "fedagrac", "table1",
        "Rounds of FedAvg to the target accuracy, with and without step asynchronism and non-i.i.d. data", runs.table1,
        (Reach(horizon="clock.rounds"),),
        rows=("step_async", "non_iid"), columns=("model",), labels=("target_accuracy",), decimals=1,
        names={"lr_eta003": "LR, rate 0.03", "0": "no", "1": "yes"},
        notes=(
            "The paper states the learning rate 0.001 for LR (column LR). The published 2 rounds and 1 round on "
            "i.i.d. data are impossible with it and possible with 0.03 (column LR, rate 0.03).",
            "We chose Dirichlet 0.1 for non-i.i.d. data (the published code's default), batches of 32, and step counts "
            "uniform in 100 to 400 for step asynchronism ('at least 100').",
        ),
    ),
    Artifact(
        "fedagrac", "table2", "Usable share of one fast device beside nine slow ones",
        runs.table2,
        (measures.utilisation,),
        rows=("slow_device", "algorithm"),
        decimals={"utilization_percent": 0, "rounds_to_60": 1, "accuracy_after_100_rounds": 2},
        names={
            "utilization_percent": "Utilisation (%)", "rounds_to_60": "Rounds to target",
            "accuracy_after_100_rounds": "Final accuracy (%)",
        },
        notes=(
            "Utilisations are tried from 100 % downwards. The first that reaches the target of 60 % "
            "(reduced: 55 %) in time counts.",
            "The paper does not give the devices' numbers of steps. Ours are 10 on a slow one, and on the fast one "
            "100, 30, 3 and 2.5 times as many at full use (reduced: 20, 10, 3, 2.5), with λ = 0.1 (reduced: 0.3). "
            "Only the pattern can be compared, not the numbers.",
            "In the paper's last row FedNova reaches the target first (29 against 36 rounds).",
        ),
    ),
    architecture(
        3, "Convolutional network for Fashion-MNIST", settings.fashion(settings.CNN2),
        model="cnn2", pooling="kernel size=2", group=False,
    ),
    architecture(
        4, "AlexNet for CIFAR-10", settings.cifar10(settings.ALEXNET),
        model="alexnet", pooling="kernel size=2, stride=2", group=False,
    ),
    architecture(
        5, "VGG-19 for CIFAR-10, without normalisation", settings.cifar10(settings.VGG),
        model="vgg19", pooling="kernel size=2, stride=2", group=True,
    ),
    Artifact(
        "fedagrac", "table6", "Rounds to the target accuracy, five distributions of the numbers of local steps",
        runs.table6, (measures.rounds,),
        rows=("model", "partition", "k_variance", "k_mode"), columns=("algorithm",), metrics=("rounds_to_target",),
        labels=("target_accuracy", "max_rounds"), decimals=1,
        notes=(
            "All rows have learning rate 0.01, λ 0.03, μ 0.01 (reduced: 0.03, 0.3, 0.01; learning rate 0.02 on the "
            "digits). The paper reports the best of a grid of learning rates, λ and μ per cell, chosen on the test "
            "set. That grid is declared at paper scale and (times 2, λ times 10) on the digits. If it is trained, the "
            "per-seed values have rounds_to_target_tuned, tuned_learning_rate, tuned_lambda and tuned_mu.",
            "At V = 0 FedAvg and FedNova are the same algorithm: their published differences (123/127, 183/186, "
            "83/79), and jumps such as FedNova's 186, 119, 195 between V = 0 and V = 100, are noise of tens of rounds.",
            "SCAFFOLD, FedNova and FedProx are the algorithms of their papers; the released code of this paper has "
            "others.",
        ),
    ),
    Artifact(
        "fedagrac", "readings", "Tables 1 and 2 with alternatives of unstated choices", readings.readings,
        (measures.readings,),
        rows=("table", "reading", "model", "step_async", "non_iid", "slow_device", "algorithm"),
        metrics=("rounds_to_target", "utilization_percent", "rounds_to_60", "accuracy_after_100_rounds"),
        labels=("target_accuracy",), decimals=1,
        notes=(
            "This is not a table of the paper.",
            "The mean of ten rounds counts rounds until the mean over the last ten reaches the target, and averages "
            "the accuracy of the last ten.",
        ),
    ),
    Artifact(
        "fedagrac", "sensitivity", "Dependence of the small network on the first gradient and the calibration rate",
        runs.sensitivity, (LAST10,),
        Filled(
            ("local_steps",), "{local_steps}", only={"local_steps": tuple(QUESTIONS)},
            sheet={"height": 2.3, "least": 2.7},
            fill=partial(pictures.readings, names=READINGS, levels=("fedavg", "fednova")),
        ),
        names=QUESTIONS,
        stamp="Not a figure of the paper.",
        notes=(
            "In the published code the first gradient is the mean until the client's pass over its data ends within "
            "the round, and fast clients keep their mean gradient.",
        ),
    ),
)  # fmt: skip
