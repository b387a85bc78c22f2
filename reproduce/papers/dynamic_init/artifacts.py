"""Tables 1-16 and Figures 1-4: layouts as data. What a setting means is runs.py; which settings there are, the paper's
own tables say (`reported/*.csv`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from reproduce.declare import Artifact, Code, Measure, Window
from reproduce.papers.dynamic_init.runs import panels

TRANSITIONS = {"first": 0, "second": 1, "third": 2, "fourth": 3}
SPANS = {"after_transition": (0, 4), "first5_rounds": (1, 5), "first10_rounds": (1, 10)}


def window(name: str, first: int, last: int, *transitions: str) -> Window:
    """Accuracy in rounds `first` to `last` of a session; the first transition is the first that brings clients back."""
    sessions = {t: TRANSITIONS[t] for t in transitions}
    return Window("accuracy", first, last, sessions, f"accuracy_{name}_pct", origin="clock.returns")


def main(*transitions: str) -> tuple[Measure, ...]:
    """The window that gives the printed numbers of Tables 1-7, and the session's own first 5 and 10 rounds."""
    return tuple(window(name, *span, *transitions) for name, span in SPANS.items())


def older(name: str, *transitions: str) -> tuple[Measure, ...]:
    """The session's first ten rounds under the name that the table's numbers have, and its first five."""
    return window(name, 1, 10, *transitions), window("first5_rounds", 1, 5, *transitions)


def table(number: int, title: str, cells: tuple[Measure, ...], layout: Mapping[str, Any], *notes: str) -> Artifact:
    name = f"table{number}"
    return Artifact("dynamic_init", name, title, partial(panels, (name,)), cells, notes=notes, **layout)


AFTER = "accuracy_after_transition_pct"
FIRST10 = "accuracy_first10_rounds_pct"
ROWS = ("dataset", "label_overlap", "dirichlet_alpha", "algorithm")
GROUPS = {"rows": ROWS, "columns": ("transition", "init_scheme"), "metrics": (AFTER,)}
KINDS = {"rows": ("label_distribution", "dataset", "algorithm"), "columns": ("transition", "init_scheme")}
THREE = ("first", "second", "third")

WINDOW = (
    "The window is the one that reproduces the printed numbers: the last accuracy of the session before the "
    "transition, on that session's labels, and the first four rounds after it. The paper says 'initial rounds'; the "
    "five entries start one too early because the curve begins with the random model. The CSV also has the first 5 "
    "and the first 10 rounds of the session itself."
)
SESSIONS = (
    "First and second transition are the starts of sessions 3 and 4 (counted from 0, one pilot session): at the start "
    "of session 2 there is one stored model and the schemes coincide."
)
SCAFFOLD = (
    "SCAFFOLD is what the authors' code runs: no control variate is applied, and the server's step is the local "
    "learning rate. Continuous replaces the local algorithm and depends on it through the learning rate only; it was "
    "trained once per learning rate, and FedProx and FedACG repeat the numbers of FedAvg, as they do in print."
)
LINEAR = (
    "The paper's MLP for MNIST and Fashion-MNIST is one linear layer of 7,850 parameters. With overlap 0.2 the groups "
    "hold the labels 0-4 and 4-8; label 9 is not used."
)
STATIC = (
    "SVHN is declared with static batch normalisation in place of running statistics, which matter to what averaging "
    "models does to the network."
)

ONCE = (
    "SCAFFOLD is what the authors' code runs: no control variate is applied, and the server's step is the local "
    "learning rate."
)
LATER = (
    "Second and fourth transition are the starts of sessions 4 and 6 (counted from 0, one pilot session), both of the "
    "first group."
)
YOUNG = (
    "Transitions are those to the first sessions whose clients have been there before: sessions 3, 4, 5 with two "
    "groups of clients in turns (partial overlap, half), 4, 5, 6 with three (two shards, distinct). The paper's "
    "schedule is not known; its columns are not the same sessions for all algorithms, so that the order within a row "
    "can be compared, not the numbers."
)
SEEDS = "The paper has one run of each setting, this table three seeds."
TEN = "The numbers are means of the session's first ten rounds."

ARTIFACTS = (
    Artifact(
        "dynamic_init",
        "fig1",
        "Sessions with changing clients, and the mixture of stored models that each starts from",
        partial(panels, ("fig1",)),
        (Code("measures:mixtures"),),
        Code("pictures:timeline"),
        stamp="Top: which group trains, and the weight of each stored model in the initial model of a later session "
        "(FedAvg, mean over seeds; weights below 0.01 are not drawn). Bottom: mean over seeds, band from least to "
        "greatest.",
    ),
    table(
        3,
        "Accuracy (%) after a session transition with 20 clients per session, MNIST, Fashion-MNIST and SVHN",
        main("first", "second"),
        GROUPS,
        WINDOW,
        SESSIONS,
        SCAFFOLD,
        LINEAR,
        STATIC,
    ),
    table(
        5,
        "Accuracy (%) after a session transition with 100 clients per session, five image sets",
        main("second", "fourth"),
        GROUPS,
        WINDOW,
        LATER,
        SCAFFOLD.replace(
            "FedProx and FedACG repeat the numbers of FedAvg", "algorithms of equal rates share its numbers"
        ),
        LINEAR,
    ),
    table(
        8,
        "Accuracy (%) over the first ten rounds after a transition, two shards and partial overlap",
        older("first10_rounds", *THREE),
        KINDS | {"metrics": (FIRST10,)},
        YOUNG,
        SEEDS,
        ONCE,
    ),
    table(
        9,
        "Accuracy (%) over the first ten rounds after a transition, half of the labels and distinct labels",
        older("first10_rounds", *THREE),
        KINDS | {"metrics": (FIRST10,)},
        YOUNG,
        SEEDS,
        ONCE,
    ),
    table(
        11,
        "Accuracy (%) after a transition with more clients, partial overlap",
        older("after_transition", *THREE),
        {
            "rows": ("num_clients", "dataset", "algorithm"),
            "columns": ("transition", "init_scheme"),
            "metrics": (AFTER,),
        },
        TEN,
        YOUNG,
        SEEDS,
    ),
    table(
        12,
        "Accuracy (%) over the first ten rounds of a last session whose clients hold labels that nobody had before",
        (Window("accuracy", 1, 10, {"last": 5}, FIRST10),),
        {"rows": ("dataset", "algorithm"), "columns": ("init_scheme",)},
        "The paper does not say which labels are unseen. Here the sessions are those of groups A B A B A C, A with the "
        "labels 0-3, B 4-7, C 8-9, 20 clients each, Dirichlet parameter 0.7 inside a group.",
        SEEDS,
    ),
)
