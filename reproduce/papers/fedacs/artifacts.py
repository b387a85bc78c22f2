"""The figures and tables of FedACS: what they are made of. Their words and layouts are in artifacts.yaml."""

from functools import partial
from typing import TYPE_CHECKING, Any

from reproduce.declare.artifact import Artifact, Curves, Filled, Last, Later, Printed
from reproduce.papers.fedacs import choices, runs, settings

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
SYSTEM = settings.FIG7_SYSTEMS["static"]
DYNAMIC, STATIC = (partial(runs.comparison, system=system) for system in ("dynamic", "static"))

artifact = partial(Artifact, "fedacs")


def schematic(name: str, system: str, *paths: tuple[str, str], **style: Any) -> Artifact:
    """Paths (algorithm, label) of three clients' server model in the plane."""
    cells = partial(measures.tail_averages, algorithms=tuple(algorithm for algorithm, *_ in paths))
    draw = partial(pictures.schematic, paths=paths, **style)
    return artifact(name, panels=partial(runs.plane, system=system), cells=cells, draw=draw)


def accuracy_curves(name: str, panels: Any, number: int) -> Artifact:
    """Test accuracy, one axes per data set and partition; the printed rounds to the target are in table `number`."""
    picture = Curves(
        ("dataset", "dirichlet_alpha"), "{dataset}, {dirichlet_alpha}", order=runs.ALGORITHMS, spread="end",
        smooth=10, ylabel="test accuracy (%)", target="target_accuracy_pct",
        printed=(Printed(f"Table {number}", f"table{number}", ROUNDS, y="target_accuracy_pct"),),
        sheet={"height": 2.5, "least": 2.2},
    )  # fmt: skip
    return artifact(name, panels=panels, cells=(FINAL, measures.halves, measures.rounds_to_target), draw=picture)


ARTIFACTS = (
    artifact(
        "fig1", cells=partial(measures.extremes, system=SYSTEM, clients=20),
        draw=partial(pictures.clients, systems=settings.FIG7_SYSTEMS, clients=20),
    ),
    schematic("fig2", "toy2d_comm_only", ("fedavg", "FedAvg, unequal links")),
    schematic("fig3", "toy2d_comp_only", ("fedavg", "FedAvg, unequal work")),
    artifact(
        "fig4", panels=runs.fig4, cells=(PLATEAU, measures.mean_to_limit), stamp=pictures.settings_of_fig4,
        draw=Curves(
            ("panel",), "{panel}", metric="distance", every=10, spread="bars", sheet={"sharey": True},
            order=("fedacs_sgd", "fedavg_sgd", "fedavg_prox_sgd", "fedavg_decay_sgd", "fedavg_momentum_sgd"),
            ylabel="distance to the\noptimum $\\|X_r - X^*\\|$",
            also=partial(pictures.log_distance, low=0.02, high=0.6),
        ),
    ),
    schematic("fig5", "toy2d", ("fedacs", "FedACS"), ("fedavg", "FedAvg"), sampling=True),
    accuracy_curves("fig6", DYNAMIC, 1),
    artifact(
        "fig7", panels=runs.fig7, cells=measures.convergence_points,
        draw=Filled(
            ("system",), "{system}", each=(2, 1), fill=partial(pictures.convergence, order=runs.ALGORITHMS),
            sheet={"sharey": True, "sharex": True, "height": 2.1, "least": 2.7},
        ),
    ),
    artifact(
        "fig8", panels=partial(runs.plane, system="toy2d"), cells=partial(measures.tail_averages, closed=True),
        draw=partial(pictures.points_in_the_plane, algorithms=runs.ALGORITHMS),
    ),
    accuracy_curves("fig9", STATIC, 4),
    accuracy_curves("fig10", runs.imbalance, 5),
    artifact("table1", panels=DYNAMIC, cells=(measures.to_target,)),
    artifact("table2", cells=measures.assumptions),
    artifact("table3", cells=partial(measures.configuration, settings=settings.SETTINGS["paper"])),
    artifact("table4", panels=STATIC, cells=(measures.to_target,)),
    artifact("table5", panels=runs.imbalance, cells=(measures.to_target,)),
    artifact("sensitivity", panels=choices.panels, cells=(measures.choices,), draw=pictures.choices),
    artifact("readings", panels=choices.readings, cells=(measures.readings,)),
    artifact("classes", panels=choices.traded, cells=(measures.traded,), draw=pictures.traded),
    artifact("theory", cells=partial(theory.cells, system=SYSTEM), draw=partial(pictures.surrogates, system=SYSTEM)),
)  # fmt: skip
