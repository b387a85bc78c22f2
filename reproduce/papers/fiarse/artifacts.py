"""The tables and figures of FIARSE."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from reproduce.declare.artifact import Artifact, Filled, Function, Later, Printed, no_panels
from reproduce.papers.fiarse import runs

if TYPE_CHECKING:
    from reproduce.papers.fiarse import measures, pictures
else:
    measures, pictures = Later(f"{__package__}.measures"), Later(f"{__package__}.pictures")

SHOWN = (*runs.COMPARED, "pruning_greedy")
COUNTED = (
    "In FIARSE, its variants and pruning-greedy each weight is averaged over the clients that updated it, as in the "
    "published code. In HeteroFL, FedRolex, ScaleFL and FjORD it is averaged over the clients whose network has it."
)
SCALEFL = (
    "The paper does not give the exits and widths of ScaleFL. Here they fit the sizes by number of parameters, with "
    "linear classifiers. Distillation (weight 0.05) begins after a quarter of the rounds."
)
TEXT = (
    "AG News has three thresholds (word embeddings, position embeddings, encoder), as in the published code. All "
    "clients have token types, normalisation and the head. HeteroFL, FedRolex, ScaleFL and FjORD are not published "
    "for an encoder. Here they keep the first share of the features, of the places in every head and of the inner "
    "units. So their sizes are exact on the encoder and exceeded on the embeddings; FIARSE's sizes are exact on both."
)
LINES = (
    "Evaluation uses batch statistics, as in training. FedRolex is evaluated in the window of its last round.",
    COUNTED,
)
HISTOGRAM_OF = "The figure has seed 0."
HISTOGRAMS = ("The per-seed values have the statistics of all seeds.", COUNTED)
SETS = (
    "The paper does not define the plotted quantity. Here one is the share of all prunable weights that a submodel of "
    "the size had in any round so far. The other is the share of the submodel that was not in that of the round "
    "before.",
    COUNTED,
)

ACCURACY, GLOBAL = "test_accuracy_percent", {"eval_scope": "global"}
AVERAGE = {**GLOBAL, "model_size": "avg"}
HISTOGRAM = Filled(
    ("algorithm",), "{algorithm}", only={"algorithm": runs.COMPARED}, fill=pictures.histogram,
    sheet={"sharex": True, "sharey": True, "height": 1.9},
)  # fmt: skip
EXPLORATION = Filled(("dataset",), "", fill=pictures.exploration, each=(1, 2), sheet={"height": 2.1})
TRAILING = "Replaced: means of ten rounds."


def figure(
    number: int, title: str, cells: Function, draw: Any, stamp: str, notes: tuple[str, ...], *columns: str, **more: Any
) -> Artifact:
    columns = columns or ("metric",)
    name = f"fig{number}"
    read = partial(runs.panels, name)
    return Artifact(
        "fiarse", name, title, read, (cells,), draw, columns=columns, stamp=stamp, notes=notes, **more
    )  # fmt: skip


def per_size(algorithms: tuple[str, ...], sizes: int, table: int) -> Filled:
    """Curves of every size, a line of axes per data set; the printed accuracies are those of a table."""
    printed = Printed(f"Table {table}", f"table{table}", ACCURACY, x="last", only=GLOBAL)
    options: dict[str, Any] = {"sharex": True, "sharey": "row", "height": 1.75}
    fill = partial(pictures.curves, algorithms=algorithms)
    return Filled(("dataset",), "", across=1, printed=(printed,), sheet=options, fill=fill, each=(1, sizes))


def accuracies(number: int, title: str, *notes: str, algorithms: tuple[str, ...] = ()) -> Artifact:
    """A table of local and global accuracies per size."""
    cells = partial(measures.accuracy, algorithms=algorithms) if algorithms else measures.accuracy
    name = f"table{number}"
    return Artifact(
        "fiarse", name, title, partial(runs.panels, name), (cells,), rows=("dataset", "algorithm"),
        columns=("eval_scope", "model_size"), notes=notes,
    )  # fmt: skip


SIZE = ("dataset", "model_size", "metric")
FIGURES = (
    figure(
        1, "Which weights a client holds in two rounds", measures.patterns,
        pictures.patterns,
        "Solid lines are weights of the client of size 1/4, as wide as the weight is large. Dashed lines are the "
        "others.",
        ("The network has 4, 4, 4 and 2 units.", COUNTED),
    ),
    figure(
        2, "Accuracies of the clients on their own test sets", measures.clients, HISTOGRAM,
        HISTOGRAM_OF, HISTOGRAMS,
    ),
    figure(
        3, "Global test accuracy of the submodels over the rounds",
        partial(measures.curves, algorithms=SHOWN), per_size(SHOWN, 4, 6), "", LINES, *SIZE,
        labels=("target_accuracy",),
    ),
    figure(
        4, "Submodels of trained and of unseen sizes",
        partial(measures.accuracy, scopes=("global",), algorithms=SHOWN, trained=False, average=False),
        Filled(
            ("dataset",), "{dataset}",
            printed=(Printed("Table 1, mean of the trained sizes", "table1", ACCURACY, x=(1 / 64, 1.0), only=AVERAGE),),
            sheet={"width": 4.9, "height": 2.7}, fill=partial(pictures.sweep, algorithms=SHOWN),
        ),
        "Markers show the four sizes that were trained.",
        (
            "The figure has 19 sizes. Slices keep ceil(sqrt(size) c) of c channels. ScaleFL has the exit of the next "
            "larger trained size.",
            COUNTED,
        ),
        "model_size",
    ),
    figure(
        5, "Accuracies of the clients on their own test sets, five sizes", measures.clients,
        HISTOGRAM, HISTOGRAM_OF, HISTOGRAMS,
    ),
    figure(
        6, "Global test accuracy of the submodels over the rounds, five sizes",
        partial(measures.accuracy, scopes=("global",), algorithms=runs.COMPARED, average=False),
        per_size(runs.COMPARED, 5, 7), "", LINES, *SIZE,
    ),
    figure(
        7, "Exploration of the submodels of FIARSE, four sizes", measures.exploration,
        EXPLORATION, TRAILING, SETS, "model_size", "metric",
    ),
    figure(
        8, "Exploration of the submodels of FIARSE if no client has the whole model",
        measures.untrained, EXPLORATION, TRAILING, SETS,
    ),
)  # fmt: skip

TABLES = (
    accuracies(
        1, "Accuracy of four submodel sizes, 10 % of the clients per round",
        "All methods have learning rate 0.1 without momentum (AG News: AdamW at 1e-4), as in the commands of the "
        "published code of FIARSE. The paper's grid (Table 3) is not searched.",
        "Local test sets have the clients' own label frequencies. The published code samples new ones. With these "
        "local and global accuracy could hardly differ, but in the paper local is higher in all rows.",
        "Normalisation uses the statistics of the test batch (one client's samples), as in the published code.",
        "The published code does not apply the second term of eq. 3 (its mask is boolean, which PyTorch does not "
        "differentiate); FIARSE here applies it. Table 6 has both.",
        "Steps of 0.04 points show that most published numbers are of one run and one round, not means of three seeds. "
        "FIARSE, CIFAR-10, local: 77.04 is published, the mean of the four sizes is 77.40. HeteroFL, CIFAR-10, 1/4: "
        "72.18 is published, 72.20 fits the average.",
        COUNTED, SCALEFL, TEXT,
    ),
    Artifact(
        "fiarse", "table2", "Clients by slice of the weights", partial(runs.panels, "table2"),
        (measures.slices,), rows=("model_size",), columns=("metric",),
        metrics=("slice_coordinates", "slice_clients", "slice_participants", "mask_nesting_violations"), decimals=0,
        notes=(
            "The paper has a scheme without numbers. Here a slice is the part of the submodel of a size that the next "
            "smaller submodel lacks. The table counts clients and participants of the first round that have it, in a "
            "run of FIARSE.",
            "Mask nesting violations are weights in a submodel that the next larger one lacks, in both rounds.",
            COUNTED,
        ),
    ),
    Artifact(
        "fiarse", "table3", "Hyper-parameters", no_panels, (measures.configuration,),
        rows=("metric",), columns=("dataset", "option"), decimals=0,
        names={
            "log10_learning_rate_grid": "log10 of the learning rate grid", "sgd_momentum_grid": "SGD momentum grid",
            "adamw_betas": "AdamW betas",
        },
        notes=(
            "The paper searches a grid and does not say how it selects. Here all methods have the values of the "
            "commands in the published code: learning rate 0.1 and momentum 0, for AG News AdamW at 1e-4. So the "
            "other options of the grid are not run; the command play searches it in one batch of runs (docs/play.md).",
            "The commands of the published code make 100 local steps, which are 4 epochs; Table 3 says 5.",
            COUNTED,
        ),
    ),
    accuracies(
        4, "Accuracy of four submodel sizes, 20 % of the clients per round",
        "The settings are those of Table 1 except the number of participants.",
        "HeteroFL, CIFAR-10, 1/16: 69.02 is published, 69.20 fits the average.",
        COUNTED, SCALEFL,
    ),
    accuracies(
        5, "Accuracy of five submodel sizes, 10 % of the clients per round",
        "The settings are those of Table 1 except the sizes.",
        "FjORD has self-distillation and one width per step and client; all widths share their normalisation.",
        COUNTED, SCALEFL, TEXT,
    ),
    accuracies(
        6, "Ablation of FIARSE with four submodel sizes",
        "FIARSE (released) is what the published code computes: the mask follows the weights, but the gradient lacks "
        "the second term of eq. 3. The paper has no such row; which of the two its FIARSE rows are is not known.",
        "Pruning-greedy has one threshold for the whole model, so that only its local steps differ from FIARSE's.",
        "FIARSE (layer-wise) has a threshold for each of six groups (stem, four stages, classifier; at the reduced "
        "scale the same six), as in the published code; the paper's text says per layer.",
        COUNTED,
        "FIARSE (counted by mask) averages over the participants that held a coordinate at the start of the round "
        "(eq. 12), moved or not.",
        "FIARSE and FIARSE (released) have five seeds, the others three; the differences below are over the seeds "
        "that both have.",
        "Below, not of the paper's table: HeteroFL and ScaleFL as in Table 1, ScaleFL without distillation; FIARSE and "
        "HeteroFL where clients are tested on labels that are independent of their training data, and with the "
        "published commands' 100 steps for 5 epochs (reduced: 13 for 16); FIARSE with a threshold per layer.",
        "At reduced scale also: FedRolex in its last window and in that of the first round; HeteroFL with a rate that "
        "falls to a tenth at 3/8 and at 5/8 of the rounds; FIARSE with masks on normalisation; ScaleFL with all exits "
        "and widths of the root of the size; training with crops and flips, and tests with them, too.",
        algorithms=(
            "fiarse", *runs.ABLATION, "fiarse_held", "heterofl", "scalefl", *runs.CHOSEN, "fedrolex",
            *(method for methods in runs.LATER.values() for method in methods),
        ),
    ),
    accuracies(
        7, "Ablation of FIARSE with five submodel sizes",
        "As Table 6 but for the sizes.",
        "FIARSE (sharding-wise) is announced in the paper (App. D.1) without a row: a threshold for each of three "
        "shards, here the stem with the first two stages, the third, and the fourth with the classifier.",
        COUNTED,
        "Below, not of the paper's table: HeteroFL as in Table 5, at reduced scale also with widths rounded down.",
        algorithms=("fiarse", *runs.ABLATION, "fiarse_sharding", "heterofl", "heterofl_floored"),
    ),
)  # fmt: skip

ARTIFACTS = (*FIGURES, *TABLES)
