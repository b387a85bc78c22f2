"""Tables 1-16, Figures 1-4 and what they depend on: layouts as data. What a setting means is runs.py; which settings
there are, the paper's own tables say (`reported/*.csv`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from reproduce.declare.artifact import Artifact, Code, Doubt, Filled, Measure, Printed, Window
from reproduce.papers.dynamic_init import notes as n
from reproduce.papers.dynamic_init.choices import sensitivity
from reproduce.papers.dynamic_init.runs import panels

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
    return Artifact("dynamic_init", name, title, read, cells, notes=notes, doubts=doubts, **layout)


def windows(m: Measure, *numbers: int) -> tuple[Printed, ...]:
    """The means that Tables `numbers` print, over the rounds of the window `m`, in the colours of their schemes."""
    assert isinstance(m, Window)
    return tuple(Printed(f"Table {n}", f"table{n}", m.name, x=m, series="init_scheme") for n in numbers)


def figure(number: int, title: str, cells: tuple[Measure, ...], draw: Code | Filled, stamp: str) -> Artifact:
    name = f"fig{number}"
    return Artifact("dynamic_init", name, title, partial(panels, (name,)), cells, draw, stamp=stamp)


AFTER, FIRST10 = "accuracy_after_transition_pct", "accuracy_first10_rounds_pct"
ROWS = ("dataset", "label_overlap", "dirichlet_alpha", "algorithm")
GROUPS = {"rows": ROWS, "columns": ("transition", "init_scheme"), "metrics": (AFTER,)}
KIND = ("label_distribution", "dataset", "algorithm")
KINDS = {"rows": KIND, "columns": ("transition", "init_scheme")}
COSTS = {"rows": ("dataset", "label_overlap", "dirichlet_alpha"), "columns": ("algorithm", "metric")}
TWO, THREE = ("first", "second"), ("first", "second", "third")
LATE = (
    *(replace(w, sessions={"first": 1, "second": 3}) for w in main(*TWO)),
    window("at_session_3_and_4", 0, 4, *TWO),
)
LAST = (
    Window("accuracy", 1, 10, {"last": 5}, FIRST10),
    Window("accuracy", 1, 5, {"last": 5}, "accuracy_first5_rounds_pct"),
)
TENS = (
    f"{n.CURVES} The paper's numbers are means of a session's first ten rounds. Its schedule is not known, and the "
    "columns of its tables are different sessions for different algorithms: the order of the schemes can be compared, "
    "not the numbers."
)
TITLE = "Accuracy (%) after a session transition with {} clients per session, {}"
TENTH = "Accuracy (%) over the first ten rounds"
RECOVERY = Filled(
    KIND,
    "{label_distribution}, {dataset}, {algorithm}",
    across=2,
    ylabel="accuracy on the\nsession's labels (%)",
    sheet={"height": 1.9},
    fill=Code("pictures:recovery"),
)

ARTIFACTS = (
    figure(
        1,
        "Sessions with changing clients, and the mixture of stored models that each starts from",
        (Code("measures:mixtures"),),
        Code("pictures:timeline"),
        n.MIXTURES,
    ),
    figure(
        2,
        "Accuracy through the sessions, Dirichlet distribution",
        (Code("measures:ends"),),
        replace(
            RECOVERY,
            axes=ROWS,
            title="{dataset}, {algorithm}, overlap {label_overlap}, α = {dirichlet_alpha}",
            printed=windows(main(*TWO)[0], 1, 2),
        ),
        n.CURVES,
    ),
    figure(
        3,
        "Accuracy through the sessions, two shards and partial overlap",
        older("first10_rounds", *THREE),
        replace(RECOVERY, printed=windows(older("first10_rounds", *THREE)[0], 8)),
        TENS,
    ),
    figure(
        4,
        "Accuracy through the sessions, four label distributions",
        older("first10_rounds", *THREE),
        replace(RECOVERY, printed=windows(older("first10_rounds", *THREE)[0], 8, 9)),
        TENS,
    ),
    table(
        1, TITLE.format(20, "CIFAR-10 and CIFAR-100"), main(*TWO), GROUPS,
        n.WINDOW, n.SESSIONS, n.SHARED, n.NORM, n.IMAGENET,
    ),
    table(2, TITLE.format(20, "AG News"), main(*TWO), GROUPS, n.WINDOW, n.SESSIONS, n.ONCE, n.EIGHTY, n.TEXTS),
    table(
        3, TITLE.format(20, "MNIST, Fashion-MNIST and SVHN"), main(*TWO), GROUPS,
        n.WINDOW, n.SESSIONS, n.SCAFFOLD, n.LINEAR, n.NORM,
    ),
    table(
        4, TITLE.format(20, "TinyImageNet"), main(*TWO), GROUPS,
        n.WINDOW, n.SESSIONS, n.SHARED, n.NORM, n.IMAGENET,
    ),
    table(
        5, TITLE.format(100, "five image sets"), main("second", "fourth"), GROUPS,
        n.WINDOW, n.FOURTH, n.SHARED, n.LINEAR, n.NORM, n.IMAGENET,
    ),
    table(
        6, TITLE.format(100, "TinyImageNet"), LATE, GROUPS,
        n.WINDOW, n.MISLABELLED, n.SHARED, n.NORM, n.IMAGENET,
    ),
    table(7, TITLE.format(100, "AG News"), LATE, GROUPS, n.WINDOW, n.MISLABELLED, n.ONCE, n.TEXTS),
    table(
        8, f"{TENTH} after a transition, two shards and partial overlap",
        older("first10_rounds", *THREE), KINDS | {"metrics": (FIRST10,)},
        n.YOUNG, n.SEEDS, n.ONCE, n.MLP, n.NORM, n.IMAGENET, doubts=n.COPIED8,
    ),
    table(
        9, f"{TENTH} after a transition, half of the labels and distinct labels",
        older("first10_rounds", *THREE), KINDS | {"metrics": (FIRST10,)},
        n.YOUNG, n.SEEDS, n.ONCE, n.MLP, n.NORM, n.IMAGENET,
    ),
    table(
        10, "Accuracy (%) after a transition, TinyImageNet with ResNet-34",
        older("after_transition", *THREE), KINDS | {"metrics": (AFTER,)},
        n.TEN, n.YOUNG, n.SEEDS, n.BASELINE, n.NORM, n.IMAGENET, doubts=n.COPIED10,
    ),
    table(
        11, "Accuracy (%) after a transition with more clients, partial overlap",
        older("after_transition", *THREE),
        {**KINDS, "rows": ("num_clients", "dataset", "algorithm"), "metrics": (AFTER,)},
        n.TEN, n.YOUNG, n.SEEDS, n.ONCE, n.MLP, doubts=n.COPIED11,
    ),
    table(
        12, f"{TENTH} of a last session whose clients hold labels that nobody had before",
        LAST, {"rows": ("dataset", "algorithm"), "columns": ("init_scheme",), "metrics": (FIRST10,)},
        n.UNSEEN, n.SEEDS, n.MLP, n.NORM,
    ),
    table(
        13, "Accuracy (%) after a transition by similarity scale R",
        older("after_transition", *THREE),
        {"rows": ("algorithm", "dataset", "similarity_scale"), "columns": ("transition",), "metrics": (AFTER,)},
        n.TEN, n.YOUNG, n.SEEDS, n.SCALES, n.NORM, n.IMAGENET,
    ),
    table(
        14, "Accuracy (%) after a transition with the trained pilot model and with a random one",
        older("after_transition", *THREE), KINDS | {"metrics": (AFTER,)},
        n.TEN, n.YOUNG, n.SEEDS, n.PILOT, n.ONCE, n.NORM, n.IMAGENET,
    ),
    table(
        15, "Processor time (s) and memory (GB) with 20 clients per session",
        (Code("measures:costs", {"clients": 20, "overlap": 0.8}),), COSTS, n.MACHINE,
        reads=("table1", "table2", "table3", "table4"),
    ),
    table(
        16, "Processor time (s) and memory (GB) with 100 clients per session",
        (Code("measures:costs", {"clients": 100, "overlap": 0.8}),), COSTS, n.MACHINE,
        reads=("table5", "table6", "table7"),
    ),
    Artifact(
        "dynamic_init", "sensitivity", "Accuracy (%) after a session transition under other readings of the paper",
        sensitivity, main(*TWO),
        rows=("dataset", "algorithm", "init_scheme", "choice"), columns=("metric", "transition"),
        metrics=(AFTER, FIRST10), notes=(n.READINGS, n.WINDOW, n.SESSIONS),
    ),
)  # fmt: skip
