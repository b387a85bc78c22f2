"""Tables 1-16, Figures 1-4 and what they depend on: layouts as data. What a setting means is runs.py; which settings
there are, the paper's own tables say (`reported/*.csv`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from reproduce.declare.artifact import Artifact, Doubt, Filled, Function, Later, Measure, Printed, Window
from reproduce.papers.dynamic_init.choices import sensitivity
from reproduce.papers.dynamic_init.readings import readings
from reproduce.papers.dynamic_init.runs import panels

if TYPE_CHECKING:
    from reproduce.papers.dynamic_init import measures, pictures, transitions
else:
    measures, pictures = Later(f"{__package__}.measures"), Later(f"{__package__}.pictures")
    transitions = Later(f"{__package__}.transitions")

WINDOW = (
    "The window is the one that reproduces the published numbers. It has the last accuracy of the session before the "
    "transition, on that session's labels, and the first four rounds after it. The paper says 'initial rounds'; the "
    "five entries start one too early because the curve begins with the random model. The CSV also has the first 5 "
    "and the first 10 rounds of the session itself."
)
SESSIONS = (
    "First and second transition are the starts of sessions 3 and 4 (counted from 0, one pilot session). At the start "
    "of session 2 there is one stored model, so that Proposed, Previous and Average coincide (with MOON nearly)."
)
FOURTH = "Second and fourth transition are the starts of sessions 4 and 6 (from 0, one pilot session), of one group."
MISLABELLED = (
    "The paper heads its columns first and second transition, but its numbers behave like those of sessions 4 and 6, "
    "the second and fourth, as in Table 5. So they are compared with those. The CSV also has sessions 3 and 4 as "
    "accuracy_at_session_3_and_4_pct."
)
YOUNG = (
    "Transitions are those to the first sessions whose clients have been there before: sessions 3, 4, 5 with two "
    "groups (partial overlap, half), 4, 5, 6 with three (two shards, distinct). The paper's schedule is not known, "
    "and its columns are different sessions for different algorithms. So the order within a row can be compared, not "
    "the numbers."
)
TEN = "The numbers are means of the session's first ten rounds; the paper does not say of how many."
SEEDS = "The paper has one run of each setting, this table a mean over seeds."
ONCE = (
    "SCAFFOLD is what the authors' code runs: no control variate is applied, and the server's step is the local "
    "learning rate."
)
CONTINUOUS = f"{ONCE} Continuous replaces the local algorithm and depends on it through the learning rate only"
SCAFFOLD = (
    f"{CONTINUOUS}; it was trained once per learning rate, and FedProx and FedACG repeat the numbers of FedAvg, as in "
    "print on MNIST and Fashion-MNIST (on the other data the published rows of Continuous differ)."
)
SHARED = f"{CONTINUOUS}: it was trained once per learning rate, and algorithms with equal rates repeat its numbers."
MLP = "The paper's MLP for MNIST and Fashion-MNIST is one linear layer of 7,850 parameters."
LINEAR = f"{MLP} With overlap 0.2 the groups hold the labels 0-4 and 4-8; label 9 is not used."
NORM = "Running statistics of normalisation layers are averaged like weights, by the server and by the schemes."
IMAGENET = (
    "At paper scale the ResNets start from ImageNet's weights, as in the authors' code, except the classifier and the "
    "projection before it. The paper does not say so."
)
TEXTS = (
    "Texts are 64 token ids of 30,522: BERT's word pieces at paper scale, as in the paper, at smaller ones a hash of "
    "lower-case words. At the reduced scale FedProx and SCAFFOLD have a fifth of FedAvg's and FedACG's learning rate "
    "(FedProx diverges from 2 on). Algorithms are not compared at equal learning rates."
)
EIGHTY = (
    "Overlap 0.6 is run as 0.8, with the classes 0-2 and 1-3 in the two groups. At 0.6 the first group would be that "
    "of overlap 0, and Tables 7, 15 and 16 of the paper say 0.8."
)
BASELINE = "The header names the previous model as the baseline, the text the average: both were run."
UNSEEN = (
    "The paper does not say which labels are unseen. Here the sessions are those of groups A B A B A C, A with the "
    "labels 0-3, B 4-7, C 8-9, all of the same size, Dirichlet parameter 0.7 inside a group."
)
KINDS_OF_13 = (
    "The paper does not say how the labels are distributed: FedAvg's SVHN row at R = 100 equals Table 9's with half "
    "of the labels, FedProx's Table 8's with partial overlap. So these are run, also for CIFAR-100."
)
PILOT = (
    "The random pilot is what the model factory returns: stored weights where the model starts from some, and a "
    "random classifier. The paper calls partial overlap slight overlap here."
)
MACHINE = (
    "The table has user and system CPU seconds for training and evaluation, of all schemes of a setting and one seed. "
    "Computations that runs share are divided among them. The paper's seconds are of another machine and include "
    "loading. Ours are all of the CPU of most results here, which the provenance names. Results of another CPU, or of "
    "one that was not recorded, have no number. Memory is the maximum of a process. At paper scale a process trains "
    "one algorithm, at smaller scales all algorithms of a setting."
)
READINGS = (
    "This is not a table of the paper. It has the setting of Table 3 with disjoint labels and Dirichlet parameter "
    "0.3, with one change at a time. All rows of a data set (MOON, with another network, by itself) have the same "
    "partition, initial model and batches. With control variates SCAFFOLD has FedAvg's learning rate. Rows that name "
    "Table 9, 12 or 13 have that table's setting."
)
SUGGESTED = (
    "This is not a table of the paper. It has the accuracy over a session's first ten rounds, for every published "
    "number of Tables 8, 9 and 11 whose setting was trained. The published numbers of the other schemes select each "
    "row's sessions (the CSV has them as `session`). The first alternative of a data set is the one that the "
    "published numbers suggest; the others vary it. SCAFFOLD has no momentum here."
)
BEGINS = "Dotted lines: a session begins."
CURVES = (
    "The test set has the labels of the session's clients.",
    "The paper does not name the settings of its panels; these are from its tables.",
)
MIXTURES = "Numbers: weights of stored models."

COPIED8 = (
    Doubt(
        {"label_distribution": ("partial_overlap",), "dataset": ("mnist",), "algorithm": ("fedprox",)},
        "FedProx, partial overlap, MNIST: the nine numbers are Table 9's of FedProx, half, CIFAR-100; the other "
        "algorithms have 91 to 94 here.",
    ),
    Doubt(
        {
            "label_distribution": ("two_shard",),
            "dataset": ("mnist", "fashion_mnist"),
            "algorithm": ("fedavg", "fedprox"),
        },
        "FedAvg and FedProx, two shards: the rows of MNIST and Fashion-MNIST are equal in all 18 numbers.",
    ),
)
COPIED10 = (
    Doubt(
        {"label_distribution": ("partial_overlap",)},
        "Partial overlap: the six numbers are Table 8's of FedAvg on SVHN; 92 % of 120 classes are not plausible.",
    ),
)
COPIED11 = (
    Doubt(
        {"algorithm": ("fedavg",), "transition": ("second", "third")},
        "FedAvg, second and third: FedProx's first and second. One sequence of sessions, read with another offset for "
        "each algorithm.",
    ),
    Doubt(
        {"algorithm": ("fedprox",), "transition": ("second", "third")},
        "FedProx, second and third: MOON's first and second (Fashion-MNIST within 0.01).",
    ),
)

TRANSITIONS = {"first": 0, "second": 1, "third": 2, "fourth": 3}
SPANS = {"after_transition": (0, 4), "first5_rounds": (1, 5), "first10_rounds": (1, 10)}


def window(name: str, first: int, last: int, *transitions: str) -> Window:
    """Accuracy in rounds `first` to `last` of a session; the first transition is the first that brings clients back."""
    sessions = {t: TRANSITIONS[t] for t in transitions}
    return Window("accuracy", first, last, sessions, f"accuracy_{name}_pct", origin="clock.returns")


def main(*transitions: str) -> tuple[Window, ...]:
    """The window that gives the printed numbers of Tables 1-7, and the session's own first 5 and 10 rounds."""
    return tuple(window(name, *span, *transitions) for name, span in SPANS.items())


def older(name: str, *transitions: str) -> tuple[Measure, ...]:
    """The session's first ten rounds under the name that the table's numbers have, and its first five."""
    return window(name, 1, 10, *transitions), window("first5_rounds", 1, 5, *transitions)


def table(
    number: int,
    title: str,
    cells: tuple[Measure, ...],
    layout: Mapping[str, Any],
    *notes: str,
    doubts: tuple[Doubt, ...] = (),
    reads: tuple[str, ...] = (),
) -> Artifact:
    """Table `number` of the paper; it reads its own runs, or those of the tables `reads`."""
    name = f"table{number}"
    read = partial(panels, reads or (name,))
    compared = {"series": "init_scheme", "names": NAMES, **layout}
    return Artifact("dynamic_init", name, title, read, cells, notes=notes, doubts=doubts, **compared)


def windows(m: Measure, *numbers: int) -> tuple[Printed, ...]:
    """The means that Tables `numbers` print, over the rounds of the window `m`, in the colours of their schemes."""
    assert isinstance(m, Window)
    return tuple(Printed(f"Table {n}", f"table{n}", m.name, x=m, series="init_scheme") for n in numbers)


def figure(
    number: int, title: str, cells: tuple[Measure, ...], draw: Function | Filled, stamp: str, *notes: str
) -> Artifact:
    name = f"fig{number}"
    return Artifact("dynamic_init", name, title, partial(panels, (name,)), cells, draw, stamp=stamp, notes=notes)


NAMES = {"accuracy_first10_rounds_pct": "Accuracy (%), first 10 rounds"}
AFTER, FIRST10 = "accuracy_after_transition_pct", "accuracy_first10_rounds_pct"
ROWS = ("dataset", "label_overlap", "dirichlet_alpha", "algorithm")
GROUPS = {"rows": ROWS, "columns": ("transition", "init_scheme"), "metrics": (AFTER,)}
KIND = ("label_distribution", "dataset", "algorithm")
KINDS = {"rows": KIND, "columns": ("transition", "init_scheme")}
COSTS = {
    "rows": ("dataset", "label_overlap", "dirichlet_alpha"),
    "columns": ("algorithm", "metric"),
    "series": "algorithm",
}
TWO, THREE = ("first", "second"), ("first", "second", "third")
YOUNG10, AFTER10 = older("first10_rounds", *THREE), older("after_transition", *THREE)
LATE = (
    *(replace(w, sessions={"first": 1, "second": 3}) for w in main(*TWO)),
    window("at_session_3_and_4", 0, 4, *TWO),
)
LAST = (
    Window("accuracy", 1, 10, {"last": 5}, FIRST10),
    Window("accuracy", 1, 5, {"last": 5}, "accuracy_first5_rounds_pct"),
)
TENS = (
    *CURVES,
    "The paper's numbers (Tables 8 and 9) are not drawn: its schedule is not known, and the columns of its tables are "
    "different sessions for different algorithms. The order of the schemes can be compared, not the numbers.",
)
TITLE = "Accuracy (%) after a session transition with {} clients per session, {}"
TENTH = "Accuracy (%) over the first ten rounds"
RECOVERY = Filled(
    KIND, "{label_distribution}, {dataset}, {algorithm}", across=2, ylabel="accuracy on the\nsession's labels (%)",
    sheet={"height": 1.9}, fill=pictures.recovery,
)  # fmt: skip

ARTIFACTS = (
    figure(
        1, "Sessions with changing clients, and the mixture of stored models that each starts from",
        (measures.mixtures,), pictures.timeline, MIXTURES, 
        "The top shows the group that trains, and the mixture of a later session's initial model (FedAvg, means over "
        "seeds; weights below 0.01 are not drawn).",
    ),
    figure(
        2, "Accuracy through the sessions, Dirichlet distribution", (measures.ends,),
        replace(
            RECOVERY, axes=ROWS, title="{dataset}, {algorithm}, overlap {label_overlap}, α = {dirichlet_alpha}",
            printed=windows(main(*TWO)[0], 1, 2),
        ),
        BEGINS, *CURVES,
    ),
    figure(3, "Accuracy through the sessions, two shards and partial overlap", YOUNG10, RECOVERY, BEGINS, *TENS),
    figure(4, "Accuracy through the sessions, four label distributions", YOUNG10, RECOVERY, BEGINS, *TENS),
    table(
        1, TITLE.format(20, "CIFAR-10 and CIFAR-100"), main(*TWO), GROUPS,
        WINDOW, SESSIONS, SHARED, NORM, IMAGENET,
    ),
    table(2, TITLE.format(20, "AG News"), main(*TWO), GROUPS, WINDOW, SESSIONS, ONCE, EIGHTY, TEXTS),
    table(
        3, TITLE.format(20, "MNIST, Fashion-MNIST and SVHN"), main(*TWO), GROUPS,
        WINDOW, SESSIONS, SCAFFOLD, LINEAR, NORM,
    ),
    table(
        4, TITLE.format(20, "TinyImageNet"), main(*TWO), GROUPS,
        WINDOW, SESSIONS, SHARED, NORM, IMAGENET,
    ),
    table(
        5, TITLE.format(100, "five image sets"), main("second", "fourth"), GROUPS,
        WINDOW, FOURTH, SHARED, LINEAR, NORM, IMAGENET,
    ),
    table(
        6, TITLE.format(100, "TinyImageNet"), LATE, GROUPS,
        WINDOW, MISLABELLED, SHARED, NORM, IMAGENET,
    ),
    table(7, TITLE.format(100, "AG News"), LATE, GROUPS, WINDOW, MISLABELLED, ONCE, TEXTS),
    table(
        8, f"{TENTH} after a transition, two shards and partial overlap",
        YOUNG10, KINDS | {"metrics": (FIRST10,)},
        YOUNG, SEEDS, ONCE, MLP, NORM, IMAGENET, doubts=COPIED8,
    ),
    table(
        9, f"{TENTH} after a transition, half of the labels and distinct labels",
        YOUNG10, KINDS | {"metrics": (FIRST10,)},
        YOUNG, SEEDS, ONCE, MLP, NORM, IMAGENET,
    ),
    table(
        10, "Accuracy (%) after a transition, TinyImageNet with ResNet-34",
        AFTER10, KINDS | {"metrics": (AFTER,)},
        TEN, YOUNG, SEEDS, BASELINE, NORM, IMAGENET, doubts=COPIED10,
    ),
    table(
        11, "Accuracy (%) after a transition with more clients, partial overlap",
        AFTER10,
        {**KINDS, "rows": ("num_clients", "dataset", "algorithm"), "metrics": (AFTER,)},
        TEN, YOUNG, SEEDS, ONCE, MLP, doubts=COPIED11,
    ),
    table(
        12, f"{TENTH} of a last session whose clients hold labels that nobody had before",
        LAST, {"rows": ("dataset", "algorithm"), "columns": ("init_scheme",), "metrics": (FIRST10,)},
        UNSEEN, SEEDS, MLP, NORM,
    ),
    table(
        13, "Accuracy (%) after a transition by similarity scale R",
        AFTER10,
        {"rows": ("algorithm", "dataset", "similarity_scale"), "columns": ("transition",), "metrics": (AFTER,)},
        TEN, YOUNG, SEEDS, KINDS_OF_13, NORM, IMAGENET,
    ),
    table(
        14, "Accuracy (%) after a transition with the trained pilot model and with a random one",
        AFTER10, KINDS | {"metrics": (AFTER,)},
        TEN, YOUNG, SEEDS, PILOT, ONCE, NORM, IMAGENET,
    ),
    table(
        15, "Processor time (s) and memory (GB) with 20 clients per session",
        (partial(measures.costs, clients=20, overlap=0.8),), COSTS, MACHINE,
        reads=("table1", "table2", "table3", "table4"),
    ),
    table(
        16, "Processor time (s) and memory (GB) with 100 clients per session",
        (partial(measures.costs, clients=100, overlap=0.8),), COSTS, MACHINE,
        reads=("table5", "table6", "table7"),
    ),
    Artifact(
        "dynamic_init", "sensitivity", "Accuracy (%) after a session transition with alternatives of unstated choices",
        sensitivity, main(*TWO),
        rows=("dataset", "algorithm", "init_scheme", "choice"), columns=("metric", "transition"),
        series="init_scheme", names=NAMES, metrics=(AFTER, FIRST10), notes=(READINGS, WINDOW, SESSIONS),
    ),
    Artifact(
        "dynamic_init", "readings", "Tables 8, 9 and 11 with alternatives fitted to published numbers",
        readings, (transitions.readings,),
        rows=("table", "label_distribution", "dataset", "num_clients", "algorithm", "reading"),
        columns=("transition", "init_scheme"), series="init_scheme", metrics=(FIRST10, AFTER), notes=(SUGGESTED,),
    ),
)  # fmt: skip
