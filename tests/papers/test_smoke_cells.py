"""The cells of every artifact, trained in miniature: what the claims ask for is what the code produces."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from reproduce.declare.artifact import Artifact
from reproduce.declare.paper import artifacts
from reproduce.errors import UserError
from reproduce.report import metrics
from reproduce.report.histories import Histories, Source, load
from reproduce.report.render import cells_csv, check, lacking, make
from reproduce.runs import plan, results
from reproduce.runs.job import train_job
from reproduce.verdicts import scope
from reproduce.verdicts.claims import claims_files, listed, named_values, parts
from reproduce.verdicts.observations import read_cells

FILES = {file.paper: file for file in claims_files()}
CLAIMED = [a for a in artifacts() if a.id in {c.artifact for c in FILES[a.paper].claims}]

PAPER_ONLY: dict[str, set[str]] = {
    "fedagrac/fig5": {"last10_tuned"},  # the grid of rates is trained at paper scale only
    "defedavg/table2": {"tuned_global_lr", "tuned_local_lr"},  # from a search that nobody has run
}
NOT_SHOWN = {
    "defedavg/fig7": "n",  # reads Fig. 6's runs of the usual K and shows those of one n
    "dynamic_init/table15": "num_clients",  # the paper's number is the label of the small group at every scale,
    "dynamic_init/table16": "num_clients",  # and of the large one
}


@pytest.fixture(scope="session")
def histories(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Artifact], Histories]:
    """Histories of an artifact at smoke scale: those of `make smoke` if today's code made them, else a job is trained
    when it is first asked for."""
    folder = tmp_path_factory.mktemp("smoke")

    def trained(artifact: Artifact) -> Histories:
        sources = []
        for job in plan.artifact_jobs("smoke", artifact.id):
            path = folder / f"{job.paper}_{job.name}.parquet"
            if results.standing(job).state == "current":
                path = Path(job.output).absolute()
            elif not path.exists():
                train_job(job, path.with_suffix(".pt"), path)
            sources.append(Source(job.panel.name, path))
        panels = artifact.panels("smoke")
        return load(sources, "smoke", (p.substitute for p in panels), [e for p in panels for e in p.experiments])

    return trained


DRAWN_TOGETHER = {"fedacs/classes", "fedacs/fig5", "fedagrac/readings", "fiarse/fig1"}
"""Pictures that draw several algorithms into one, or one against another."""
NOT_DRAWN = {"fiarse/fig3": "fiarse_released"}
"""Algorithms that are in the cells of a figure, but not in its curves."""


@pytest.mark.parametrize("artifact", [a for a in artifacts() if a.panels("smoke")], ids=lambda a: a.id)
def test_what_one_algorithm_gave_is_shown_or_the_rest_is_named(
    artifact: Artifact, histories: Callable[[Artifact], Histories], tmp_path: Path
) -> None:
    """At paper scale each algorithm is a job, and an artifact may be asked for when one of them is done."""
    whole = histories(artifact)
    name = whole.frame["algorithm"].iloc[-1]
    alone = whole.frame[whole.frame["algorithm"] == name].reset_index(drop=True)
    some = replace(whole, frame=alone, missing=(("rest", "not trained"),))
    apart = artifact.id in DRAWN_TOGETHER or NOT_DRAWN.get(artifact.id) == name
    refused = pytest.raises(UserError, match=rf"{artifact.id} cannot be made of .*; missing: rest \(not trained\)")
    with refused if apart else nullcontext(), lacking(artifact, some):
        assert make(artifact, some, tmp_path)
    assert apart != any(file.is_file() for file in tmp_path.rglob("*"))


@pytest.mark.parametrize("artifact", CLAIMED, ids=lambda a: a.id)
def test_the_code_produces_what_the_claims_ask_for(
    artifact: Artifact, histories: Callable[[Artifact], Histories], tmp_path: Path
) -> None:
    cells = check(artifact, metrics.cells(artifact, histories(artifact)))
    known, asked = FILES[artifact.paper].metrics, set[str]()
    checks = [
        c.checks["paper"] for c in FILES[artifact.paper].claims if c.artifact == artifact.id and "paper" in c.checks
    ]
    for part in (part for c in checks for part in parts(c) if "with" not in c and c.get("is") != "absent"):
        asked |= {*listed(part["metric"])}
        assert {*named_values(part), *part.get("for", {})} <= set(cells.columns)
    assert asked - set(cells["metric"]) <= PAPER_ONLY.get(artifact.id, set())
    points = {name for name, metric in known.items() if metric.point}
    assert set(cells.loc[cells["metric"].isin(points), "seed"]) <= {-1}
    path = tmp_path / "cells.csv"
    path.write_text(cells_csv(artifact, cells))
    frame = read_cells(path, artifact.labels, known)
    declared = scope.declared(artifact.panels("smoke"))
    declared = declared.drop(columns=NOT_SHOWN.get(artifact.id, []), errors="ignore")
    if "algorithm" in declared:
        declared = declared[declared["algorithm"].isin(cells["algorithm"])]
    everything = {"metric": list(asked), "is": "> 0"}
    assert scope.lacking(everything, frame, declared) == [], "an experiment without cells"


@pytest.mark.parametrize("artifact", [a for a in CLAIMED if a.panels("smoke")], ids=lambda a: a.id)
def test_a_point_does_not_depend_on_the_seeds(artifact: Artifact, histories: Callable[[Artifact], Histories]) -> None:
    """Otherwise it is random and needs an interval: rows per seed, or the jackknife's."""
    found = histories(artifact)
    one = replace(found, frame=found.frame[found.frame["seed"] == found.seeds[0]])
    both = [metrics.cells(artifact, histories) for histories in (found, one)]
    ours, alone = (cells[cells["seed"] == -1] for cells in both)
    pd.testing.assert_frame_equal(ours, alone)
