"""The tables and figures of FIARSE: what they are made of. Their words and layouts are in artifacts.yaml."""

from functools import partial
from typing import TYPE_CHECKING, Any

from reproduce.declare.artifact import Artifact, Filled, Function, Later, Printed
from reproduce.papers.fiarse import runs

if TYPE_CHECKING:
    from reproduce.papers.fiarse import measures, pictures
else:
    measures, pictures = Later(f"{__package__}.measures"), Later(f"{__package__}.pictures")

SHOWN = (*runs.COMPARED, "pruning_greedy")
ACCURACY, GLOBAL = "test_accuracy_percent", {"eval_scope": "global"}
AVERAGE = {**GLOBAL, "model_size": "avg"}
HISTOGRAM = Filled(
    ("algorithm",), "{algorithm}", only={"algorithm": runs.COMPARED}, fill=pictures.histogram,
    sheet={"sharex": True, "sharey": True, "height": 1.9},
)  # fmt: skip
EXPLORATION = Filled(("dataset",), "", fill=pictures.exploration, each=(1, 2), sheet={"height": 2.1})


def artifact(name: str, cells: Function, draw: Any = None) -> Artifact:
    return Artifact("fiarse", name, panels=partial(runs.panels, name), cells=cells, draw=draw)


def per_size(algorithms: tuple[str, ...], sizes: int, table: int) -> Filled:
    """Curves of every size, a line of axes per data set; the printed accuracies are those of a table."""
    printed = Printed(f"Table {table}", f"table{table}", ACCURACY, x="last", only=GLOBAL)
    options: dict[str, Any] = {"sharex": True, "sharey": "row", "height": 1.75}
    fill = partial(pictures.curves, algorithms=algorithms)
    return Filled(("dataset",), "", across=1, printed=(printed,), sheet=options, fill=fill, each=(1, sizes))


ARTIFACTS = (
    artifact("fig1", measures.patterns, pictures.patterns),
    artifact("fig2", measures.clients, HISTOGRAM),
    artifact("fig3", partial(measures.curves, algorithms=SHOWN), per_size(SHOWN, 4, 6)),
    artifact(
        "fig4", partial(measures.accuracy, scopes=("global",), algorithms=SHOWN, trained=False, average=False),
        Filled(
            ("dataset",), "{dataset}",
            printed=(Printed("Table 1, mean of the trained sizes", "table1", ACCURACY, x=(1 / 64, 1.0), only=AVERAGE),),
            sheet={"width": 4.9, "height": 2.7}, fill=partial(pictures.sweep, algorithms=SHOWN),
        ),
    ),
    artifact("fig5", measures.clients, HISTOGRAM),
    artifact(
        "fig6", partial(measures.accuracy, scopes=("global",), algorithms=runs.COMPARED, average=False),
        per_size(runs.COMPARED, 5, 7),
    ),
    artifact("fig7", measures.exploration, EXPLORATION),
    artifact("fig8", measures.untrained, EXPLORATION),
    artifact("table1", measures.accuracy),
    artifact("table2", measures.slices),
    Artifact("fiarse", "table3", cells=measures.configuration),
    artifact("table4", measures.accuracy),
    artifact("table5", measures.accuracy),
    artifact(
        "table6",
        partial(
            measures.accuracy,
            algorithms=(
                "fiarse", *runs.ABLATION, "fiarse_held", "heterofl", "scalefl", *runs.CHOSEN, "fedrolex",
                *(method for methods in runs.LATER.values() for method in methods),
            ),
        ),
    ),
    artifact(
        "table7",
        partial(
            measures.accuracy,
            algorithms=("fiarse", *runs.ABLATION, "fiarse_sharding", "heterofl", "heterofl_floored"),
        ),
    ),
)  # fmt: skip
