"""The figures and tables of FedACS."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from reproduce.declare.artifact import Artifact, Curves, Filled, Function, Last, Later, Printed, no_panels
from reproduce.papers.fedacs import choices, readings, runs, settings

if TYPE_CHECKING:
    from reproduce.papers.fedacs import measures, pictures, theory
else:
    measures, pictures = Later(f"{__package__}.measures"), Later(f"{__package__}.pictures")
    theory = Later(f"{__package__}.theory")

ROUNDS, TIME = "rounds_to_target", "computation_time_to_target_s"
FINAL = Last("accuracy", "tail", name="final_accuracy")
"""Mean over the last evaluations, five at paper scale (appendix I.3.4)."""
PLATEAU = Last("distance", "clock.dense_last", name="distance_plateau")
"""Mean over the last fifth of the rounds."""

FIG4_SERIES = {
    "fedacs_sgd": "FedACS, SGD", "fedavg_sgd": "FedAvg, SGD", "fedavg_prox_sgd": "FedAvg, proximal SGD",
    "fedavg_decay_sgd": "FedAvg, decaying SGD", "fedavg_momentum_sgd": "FedAvg, momentum SGD",
}  # fmt: skip
FIG4_AXES = {"left": "Equal clients", "middle": "Unequal clients", "right": "Unequal, changing clients"}
ALPHAS = {str(alpha): f"Dirichlet α = {alpha}" for alpha in (0.1, *settings.ALPHAS)}
NAMES = {
    ROUNDS: "Rounds", f"{ROUNDS}_ratio_printed": "Rounds ratio",
    TIME: "Time (s)", f"{TIME}_ratio_printed": "Time ratio",
    "image_blobs": "generated images",
    "fedacs_uncalibrated": "FedACS, not calibrated",
    "fedacs_calibrated_at_server": "FedACS, calibrated at the server",
    **{f"{k}_other_rate": f"{v}, rate 0.0001" for k, v in
       {"fedacs": "FedACS", "fedavg": "FedAvg", "fednova": "FedNova"}.items()},
}  # fmt: skip
TABLE3 = (
    "network", "architecture_code", "parameter_count", "loss", "learning_rate_eta1", "global_rounds", "batch_size",
    "conv_kernel", "conv_stride", "conv_padding", "maxpool_kernel", "maxpool_stride", "dropout_probability",
)  # fmt: skip
TABLE3_NAMES = {
    "metric": "Item", "all": "All", "architecture_code": "Architecture", "parameter_count": "Parameters",
    "global_rounds": "Rounds", "conv_kernel": "Convolution kernel", "conv_stride": "Convolution stride",
    "conv_padding": "Convolution padding", "maxpool_kernel": "Max-pooling kernel",
    "maxpool_stride": "Max-pooling stride", "cross_entropy": "cross-entropy", "network": "Network", "loss": "Loss",
    "batch_size": "Batch size", "dropout_probability": "Dropout probability",
}  # fmt: skip
TABLE2 = {
    "assumption_no": "Assumption", "condition_text": "Condition", "reference_numbers": "References",
    "38;6": "38, 6", "40;3": "40, 3", "9;15": "9, 15",
    "for every m: |grad F_m(x) - grad F(x)|^2 <= D_m^2":
        r"for every \(m\): \(\|\nabla F_m(x) - \nabla F(x)\|^2 \leq D_m^2\)",
    "sum_m w_m |grad F_m(x) - grad F(x)|^2 <= D^2": r"\(\sum_m w_m \|\nabla F_m(x) - \nabla F(x)\|^2 \leq D^2\)",
    "exists beta^2>=0 and kappa^2>=0: sum_m w_m |grad F_m(x) - grad F(x)|^2 <= beta^2 |grad F(x)|^2 + kappa^2":
        r"for some \(\beta^2, \kappa^2 \geq 0\): "
        r"\(\sum_m w_m \|\nabla F_m(x) - \nabla F(x)\|^2 \leq \beta^2 \|\nabla F(x)\|^2 + \kappa^2\)",
    "for every m: |grad F_m(x)|^2 <= G^2": r"for every \(m\): \(\|\nabla F_m(x)\|^2 \leq G^2\)",
    "for every m: |grad F_m(x; xi)|^2 <= G^2": r"for every \(m\): \(\|\nabla F_m(x; \xi)\|^2 \leq G^2\)",
}  # fmt: skip
NOTES = (
    "Ratios are the rounds and the time over the means in the row of FedACS. There is none if FedACS does not reach "
    "the target in a seed.",
    "Time is the number of samples that the sampled clients pass until the target, received or not, in seconds of the "
    "authors' GPU. These are 0.243 ms per sample for MNIST and its substitutes, 0.43 ms for CIFAR-10 and 0.54 ms for "
    "CINIC-10, fitted to the FedAvg row of Table 1. The paper's seconds are measured and cannot be reproduced.",
    "The paper's dashes are dashes here. FedAU's rows are empty in the paper, whose text says that it does not settle.",
    "Learning rates are calibrated to equal expected step length per round (appendix I.2). The paper does not say "
    "whether locally or at the server, nor for which rounds. Here the local learning rate is calibrated in every "
    "round.",
    "The local solver is plain SGD; T counts passes over the client's data. The paper's seconds per round contradict "
    "its own sampling rule. By (15) and with equal sizes FedACS does about 0.35 of FedAvg's work per round; the "
    "published times imply 0.79 to 1.06.",
)
SCATTER = (
    "Rounds on MNIST vary over seeds (±). FedACS's vary as much as the published algorithms differ (Table 1: 68 to "
    "115, Table 4: 64 to 103; the paper does not give the number of runs). One to three runs do not determine the "
    "published order of FedAvg, CA-FedAvg, OS and FedACS."
)
PLANE = (
    "The thin line has at most 400 rounds of the first seed, the only one drawn. The thick line is its expectation, "
    "the dot the end point in closed form. Arrows show how much each client counts there."
)
OWN = "The three clients are ours."


def figure(
    name: str, title: str, panels: Any, cells: Any, draw: Any, stamp: str | Function, **options: Any
) -> Artifact:
    return Artifact("fedacs", name, title, panels, cells, draw, stamp=stamp, **options)


def schematic(name: str, title: str, system: str, note: str, *paths: tuple[str, str], **look: Any) -> Artifact:
    """Paths (algorithm, label) of three clients' server model in the plane."""
    cells = partial(measures.tail_averages, algorithms=tuple(algorithm for algorithm, *_ in paths))
    draw = partial(pictures.schematic, paths=paths, **look)
    return figure(name, title, partial(runs.plane, system=system), (cells,), draw, PLANE, notes=(note, OWN))


def accuracy_curves(name: str, title: str, panels: Any, number: int) -> Artifact:
    """Test accuracy, one axes per data set and partition; the printed rounds to the target are in table `number`."""
    picture = Curves(
        ("dataset", "dirichlet_alpha"), "{dataset}, {dirichlet_alpha}", order=runs.ALGORITHMS, spread="end",
        smooth=10, ylabel="test accuracy (%)", target="target_accuracy_pct",
        printed=(Printed(f"Table {number}", f"table{number}", ROUNDS, y="target_accuracy_pct"),),
        sheet={"height": 2.5, "least": 2.2},
    )  # fmt: skip
    cells = (FINAL, measures.halves, measures.rounds_to_target)
    drop = ("tail", "seconds_per_sample", "target_accuracy_pct")
    return figure(
        name, title, panels, cells, picture, "Trailing means over 10 rounds.", drop=drop, names=ALPHAS,
        notes=(
            "The paper's bars are the variance of raw data.",
            "Our rounds to the target are those of raw curves, which reach it earlier than their trailing means. The "
            "paper does not say which of the two it uses.",
        ),
    )  # fmt: skip


def to_target(number: int, title: str, panels: Any, column: str, *notes: str) -> Artifact:
    """Rounds and computation to a target accuracy; `column`: what the columns of the table are."""
    return Artifact(
        "fedacs", f"table{number}", f"Rounds and computation time to a target accuracy{title}", panels,
        (measures.to_target,), columns=(column, "metric"),
        metrics=(ROUNDS, f"{ROUNDS}_ratio_printed", TIME, f"{TIME}_ratio_printed"),
        labels=("target_accuracy_pct",), drop=("tail", "seconds_per_sample"), decimals={ROUNDS: 0, TIME: 1},
        names=NAMES, notes=(*notes, *NOTES),
    )  # fmt: skip


SYSTEM = settings.FIG7_SYSTEMS["static"]
DYNAMIC, STATIC = (partial(runs.comparison, system=system) for system in ("dynamic", "static"))
ARTIFACTS = (
    figure(
        "fig1", "Clients with unequal computation and links", no_panels,
        (partial(measures.extremes, system=SYSTEM, clients=20),),
        partial(pictures.clients, systems=settings.FIG7_SYSTEMS, clients=20),
        "In the dynamic system, ranges are over 1,000 rounds, and dots are the first round of seed 0.",
        notes=(
            "The paper's figure is a drawing; this one shows the systems of appendix I.3.1.",
            "The paper does not say which client has which uplink.",
        ),
    ),
    schematic(
        "fig2", "Unequal uplinks move FedAvg away from the optimum", "toy2d_comm_only",
        "All clients do 5 steps, and their updates arrive with different probabilities. The end point moves towards "
        "client 1, which has a good uplink.",
        ("fedavg", "FedAvg, unequal links"),
    ),
    schematic(
        "fig3", "Unequal local steps move FedAvg away from the optimum", "toy2d_comp_only",
        "All updates arrive, but clients do different numbers of steps. The end point moves towards client 3, which "
        "does most.",
        ("fedavg", "FedAvg, unequal work"),
    ),
    figure(
        "fig4", "FedAvg with different local solvers, and FedACS, on quadratics", runs.fig4,
        (PLATEAU, measures.mean_to_limit),
        Curves(
            ("panel",), "{panel}", metric="distance", order=tuple(FIG4_SERIES), every=10, spread="bars",
            ylabel="distance to the\noptimum $\\|X_r - X^*\\|$",
            also=partial(pictures.log_distance, low=0.02, high=0.6), sheet={"sharey": True},
        ),
        pictures.settings_of_fig4, columns=("panel",), names=FIG4_SERIES | FIG4_AXES,
    ),
    schematic(
        "fig5", "FedACS cancels both biases", "toy2d", "Uplinks and local steps are both unequal.",
        ("fedacs", "FedACS"), ("fedavg", "FedAvg"), sampling=True,
    ),
    accuracy_curves("fig6", "Test accuracy of the benchmarks in the dynamic system", DYNAMIC, 1),
    figure(
        "fig7", "Convergence points of the benchmarks on quadratics", runs.fig7,
        (measures.convergence_points,),
        Filled(
            ("system",), "{system}", each=(2, 1), fill=partial(pictures.convergence, order=runs.ALGORITHMS),
            sheet={"sharey": True, "sharex": True, "height": 2.1, "least": 2.7},
        ),
        "Dashed lines: closed-form limit of each algorithm. The paper's figure is at the common learning rate; that at "
        "calibrated learning rates (appendix I.2) is an addition.",
        columns=("system", "calibrate"),
        notes=(
            "The lines are means of the distances of single runs. Sampling noise keeps them above the distance of "
            "their mean.",
            "The caption of the paper's figure gives one learning rate for all.",
        ),
    ),
    figure(
        "fig8", "Convergence points of the benchmarks in the plane", partial(runs.plane, system="toy2d"),
        (partial(measures.tail_averages, closed=True),),
        partial(pictures.points_in_the_plane, algorithms=runs.ALGORITHMS),
        "The first panel has clients, start and optimum; its frame is the second panel. Circles are closed-form "
        "limits as the learning rate goes to zero; small marks are simulated runs, one per seed.",
        columns=("system",),
        notes=(
            OWN,
            "FedAvg and OS are biased by both, CA-FedAvg, FedAU and FedVARP by local steps, FedNova by uplinks, "
            "FedACS by neither.",
            "Small marks are averages over the second half of runs at learning rate 0.02.",
            "Arrows show the effects of unequal uplinks and unequal local steps on the end point.",
        ),
    ),
    accuracy_curves("fig9", "Test accuracy of the benchmarks in the static system", STATIC, 4),
    accuracy_curves("fig10", "Test accuracy at three levels of class imbalance", runs.imbalance, 5),
    to_target(
        1, ", dynamic system", DYNAMIC, "dataset",
        "The time ratios of FedAvg and CA-FedAvg on MNIST look exchanged in the paper, and one of them is wrong: "
        "5470.4 / 3548.6 = 1.54 (printed 1.38), 4884.4 / 3548.6 = 1.38 (printed 1.51).",
        "The text calls the baselines' overheads of 22 to 89 % (rounds) and 14 to 105 % (time) reductions; as "
        "reductions they are 18 to 47 % and 12 to 51 %.",
        "In the paper OS needs fewer rounds than FedACS on CIFAR-10 (80 against 100).", SCATTER,
    ),
    Artifact(
        "fedacs", "table2", "Assumptions on the dissimilarity of clients", no_panels, (measures.assumptions,),
        rows=("assumption_no",), metrics=("condition_text", "reference_numbers"), names=TABLE2,
        notes=(
            "This is text of the paper, not a result. Assumption 7 has no reference in the paper. Reference numbers "
            "are those of the paper's bibliography.",
        ),
    ),
    Artifact(
        "fedacs", "table3", "Networks and hyper-parameters", no_panels,
        (partial(measures.configuration, settings=settings.SETTINGS["paper"]),),
        rows=("metric",), columns=("dataset",), metrics=TABLE3,
        decimals={"learning_rate_eta1": 2, "dropout_probability": 1}, names=TABLE3_NAMES,
        notes=(
            "The letters: C(i,o) convolution, R ReLU, M max-pooling, D dropout, L(n) linear. The paper prints neither "
            "activations nor pooling for MNIST; taken literally that network is linear and has 786,480 parameters. "
            "Here it has those of the well-known example with the same widths.",
            "The paper prints two cells for the three data sets in the rows of loss, learning rate and batch size; "
            "here MNIST has the first, CIFAR-10 and CINIC-10 the second.",
            "Loss: the negative log-likelihood of the log-softmax and the cross-entropy of the outputs are one number.",
            "The paper calls the number of rounds T, which elsewhere counts local steps.",
        ),
    ),
    to_target(
        4, ", static system", STATIC, "dataset",
        "The row of OS has four numbers for six cells; their ratios place them at CIFAR-10 and CINIC-10, so that MNIST "
        "has the dashes. 72 rounds with ratio 1.06 stand for OS both here and in Table 1, for another data set.",
        "Appendix I.5.1 says that the others need 64 to 118 % more rounds on CIFAR-10; CA-FedAvg needs 49 %.",
        "The paper does not pair step counts with links; here client m has T = 2 m + 1 and success 0.60 + 0.02 m.",
        SCATTER,
    ),
    to_target(
        5, " at three levels of class imbalance", runs.imbalance, "dirichlet_alpha",
        "The rows of FedVARP and FedNova have four numbers for six cells; their ratios place them at α = 0.2 and 0.35.",
        "Appendix I.5.2 prints a time overhead of 45 to 44 % for α = 0.05; the table gives 45 to 55 %.",
        "At α = 0.35 OS needs fewer rounds than FedACS in the paper too (32 against 36).",
    ),
    figure(
        "sensitivity", "Effect of unstated choices on the results", choices.panels,
        (measures.choices,),
        pictures.choices, "Vertical: the default.",
        drop=("tail",),
        notes=(
            "This is not a figure of the paper. The per-seed values also have the decaying learning rate of Fig. 4.",
            "The default has the dynamic system, contiguous classes, T in passes over the data, and learning rates "
            "calibrated locally in every round. Settings without a dot were not run or cannot differ. The network "
            "of MNIST on Fashion-MNIST, with and without crops and flips, has 60 rounds.",
        ),
    ),
    Artifact(
        "fedacs", "readings", "Rounds of MNIST to the target with alternatives of unstated choices",
        readings.readings, (measures.readings,), rows=("table", "reading", "algorithm"), metrics=(ROUNDS,),
        labels=("target_accuracy_pct",), drop=("tail", "seconds_per_sample"), decimals={ROUNDS: 0}, names=NAMES,
        notes=("This is not a table of the paper. The system of Table 1 is dynamic, that of Table 4 static.",),
    ),
    figure(
        "classes", "What FedACS gains and loses, class by class", choices.traded, (measures.traded,),
        pictures.traded,
        "FedACS minus FedAvg, paired by seed.",
        drop=("tail",),
        notes=(
            "This is not a figure of the paper.",
            "Middle and right show the classes of the slow clients with bad uplinks, and the others. If both groups "
            "own half of every class, there is no such difference.",
        ),
    ),
    figure(
        "theory", "One surrogate objective for all schemes of participation", no_panels,
        (partial(theory.cells, system=SYSTEM),), partial(pictures.surrogates, system=SYSTEM),
        "The first panel has limit weights in the static system; the true ones are FedACS's. The second has the mean "
        "aggregate of 200,000 simulated rounds over its expectation with all clients, one dot per seed. This is not a "
        "figure of the paper.",
    ),
)  # fmt: skip
