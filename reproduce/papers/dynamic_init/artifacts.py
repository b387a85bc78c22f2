"""Tables 1-16, Figures 1-4 and what they depend on. Their words and layouts are in artifacts.yaml; what a setting means
is runs.py; which settings there are, the paper's own tables say (`reported/*.csv`)."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from reproduce.declare.artifact import Artifact, Filled, Later, Measure, Printed, Window
from reproduce.papers.dynamic_init.choices import sensitivity
from reproduce.papers.dynamic_init.readings import readings
from reproduce.papers.dynamic_init.runs import panels

if TYPE_CHECKING:
    from reproduce.papers.dynamic_init import findings, measures, pictures
else:
    measures, pictures = Later(f"{__package__}.measures"), Later(f"{__package__}.pictures")
    findings = Later(f"{__package__}.findings")

SPANS = {"after_transition": (0, 4), "first5_rounds": (1, 5), "first10_rounds": (1, 10)}
TWO, THREE = {"first": 0, "second": 1}, {"first": 0, "second": 1, "third": 2}
"""Transition -> session, counted from the first that brings clients back."""


def window(name: str, first: int, last: int, sessions: Mapping[str, int], origin: str = "clock.returns") -> Window:
    """Accuracy in rounds `first` to `last` of sessions."""
    return Window("accuracy", first, last, sessions, f"accuracy_{name}_pct", origin=origin)


def main(sessions: Mapping[str, int]) -> tuple[Window, ...]:
    """The window that gives the printed numbers of Tables 1-7, and the session's own first 5 and 10 rounds."""
    return tuple(window(name, *span, sessions) for name, span in SPANS.items())


def older(name: str) -> tuple[Measure, ...]:
    """The session's first ten rounds under the name that the table's numbers have, and its first five."""
    return window(name, 1, 10, THREE), window("first5_rounds", 1, 5, THREE)


YOUNG10, AFTER10 = older("first10_rounds"), older("after_transition")
LATE = *main({"first": 1, "second": 3}), window("at_session_3_and_4", 0, 4, TWO)
LAST = tuple(window(f"first{n}_rounds", 1, n, {"last": 5}, origin="") for n in (10, 5))
TABLES: Mapping[int, tuple[Measure, ...]] = {
    **dict.fromkeys((1, 2, 3, 4), main(TWO)),
    5: main({"second": 1, "fourth": 3}),
    **dict.fromkeys((6, 7), LATE),
    **dict.fromkeys((8, 9), YOUNG10),
    **dict.fromkeys((10, 11, 13, 14), AFTER10),
    12: LAST,
}
COSTS = {15: (20, ("table1", "table2", "table3", "table4")), 16: (100, ("table5", "table6", "table7"))}
"""Number of a table -> clients, and the tables of whose runs it has the costs."""
ROWS, KIND = (
    ("dataset", "label_overlap", "dirichlet_alpha", "algorithm"),
    ("label_distribution", "dataset", "algorithm"),
)
RECOVERY = Filled(
    KIND, "{label_distribution}, {dataset}, {algorithm}", across=2, ylabel="accuracy on the\nsession's labels (%)",
    sheet={"height": 1.9}, fill=pictures.recovery,
)  # fmt: skip
MEANS = tuple(
    Printed(f"Table {n}", f"table{n}", m.name, x=m, series="init_scheme") for m in main(TWO)[:1] for n in (1, 2)
)
"""The means that Tables 1 and 2 print, over the rounds of their window, in the colours of their schemes."""


def artifact(name: str, *cells: Measure, draw: Any = None, reads: tuple[str, ...] = ()) -> Artifact:
    """A table or figure; it reads its own runs, or those of the tables `reads`."""
    return Artifact("dynamic_init", name, panels=partial(panels, reads or (name,)), cells=cells, draw=draw)


ARTIFACTS = (
    artifact("fig1", measures.mixtures, draw=pictures.timeline),
    artifact(
        "fig2", measures.ends,
        draw=replace(
            RECOVERY, axes=ROWS, title="{dataset}, {algorithm}, overlap {label_overlap}, α = {dirichlet_alpha}",
            printed=MEANS,
        ),
    ),
    artifact("fig3", *YOUNG10, draw=RECOVERY),
    artifact("fig4", *YOUNG10, draw=RECOVERY),
    *(artifact(f"table{number}", *cells) for number, cells in TABLES.items()),
    *(
        artifact(f"table{number}", partial(measures.costs, clients=clients, overlap=0.8), reads=tables)
        for number, (clients, tables) in COSTS.items()
    ),
    Artifact("dynamic_init", "sensitivity", panels=sensitivity, cells=main(TWO)),
    Artifact("dynamic_init", "readings", panels=readings, cells=(findings.readings,)),
)  # fmt: skip
