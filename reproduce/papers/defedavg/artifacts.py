"""The figures and tables of DeFedAvg: what they are made of. Their words and layouts are in artifacts.yaml."""

from functools import partial
from typing import TYPE_CHECKING

from reproduce.declare.artifact import Artifact, Filled, Function, Last, Later, Printed, Reach
from reproduce.papers.defedavg import choices, runs, settings

if TYPE_CHECKING:
    from reproduce.papers.defedavg import measures, pictures
else:
    measures, pictures = Later(f"{__package__}.measures"), Later(f"{__package__}.pictures")

AGGREGATIONS, BEGIN = 300, 1
REACHED = Reach(target="target_accuracy_pct", horizon="clock.aggregations")
"""Of the runs over aggregations: when they reach the target of Table I, to within the evaluation interval."""

artifact = partial(Artifact, "defedavg")


def _stacked(fill: Function, *printed: Printed, series: str = "algorithm") -> Filled:
    """Loss above accuracy, a column per data set and distribution."""
    return Filled(
        ("dataset", "distribution"), "{dataset}, {distribution}", series=series, printed=printed,
        sheet={"sharex": "col", "height": 1.75}, fill=fill, each=(2, 1),
    )  # fmt: skip


def _over_rounds(label: str) -> Filled:
    """Figs. 6 and 7: a line per value of the label."""
    return _stacked(partial(pictures.over_rounds, by=label), series=label)


TARGETS = Printed("Table I", "table1", "time_to_target_s", y="target_accuracy_pct")
OVER_TIME = _stacked(partial(pictures.over_time, begin=BEGIN), TARGETS)
"""Figs. 2-5, of the runs of Table I with some number of participants."""

ARTIFACTS = (
    artifact("fig1", cells=measures.idle, draw=pictures.timelines),
    *(
        artifact(
            f"fig{number}", panels=partial(runs.times_panels, n=n), cells=measures.at_target_times, draw=OVER_TIME
        )
        for number, n in zip((2, 3, 4, 5), settings.PARTICIPANTS, strict=True)
    ),
    artifact(
        "fig6", panels=runs.participants_panels, draw=_over_rounds("n"),
        cells=partial(measures.of_participants, at=300, first=200, last=1000),
    ),
    artifact(
        "fig7", panels=runs.steps_panels, draw=_over_rounds("K"), stamp=measures.same_rates,
        cells=(REACHED, Last("accuracy", 5, name="final_test_accuracy_pct")),
    ),
    artifact(
        "setup", cells=partial(measures.seconds, aggregations=AGGREGATIONS), draw=pictures.seconds_per_aggregation,
    ),
    artifact(
        "sensitivity", panels=choices.panels, cells=measures.of_choices, names=choices.SHOWN,
        draw=Filled(
            ("distribution",), "{distribution}", fill=pictures.choices, sheet={"height": 3.4, "least": 2.7}
        ),
    ),
    artifact("table1", panels=runs.times_panels, cells=measures.to_target),
    artifact("readings", panels=runs.readings_panels, cells=measures.to_target),
    artifact("table2", cells=measures.declared_rates),
)  # fmt: skip
