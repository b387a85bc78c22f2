"""Histories: which rows of the results files an artifact reads."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import written

from reproduce.algorithms.base import FedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.declare.experiment import Experiment
from reproduce.papers.fedagrac import settings
from reproduce.problem import Quadratic
from reproduce.report import histories
from reproduce.report.histories import Histories, Source, load
from reproduce.systems import System
from reproduce.systems.work import Steps


def experiment(algorithm: str, scheme: str, lr: float = 0.1) -> Experiment:
    labels = {"algorithm": algorithm, "scheme": scheme}
    return Experiment(labels, Quadratic(2, 1), System(work=Steps(1)), FedAvg(lr), Rounds(3))


A, B, OTHER = experiment("a", "x"), experiment("b", "x", 0.2), experiment("c", "x", 0.3)
TWIN = replace(A, labels={"algorithm": "b", "scheme": "y"})


def trained(path: Path, *experiments: Experiment) -> Path:
    """A results file in which an experiment's accuracy is a thousand times its learning rate, plus the round."""
    rows = [
        {**e.labels, "seed": s, "round": r, "time": 0.0, "metric": "accuracy", "key": "", "status": "ok"}
        | {"value": 1000 * e.algorithm.lr + r}
        for e in experiments
        for s in (0, 1)
        for r in range(3)
    ]
    return written.histories(path, pd.DataFrame(rows), experiments)


def values(histories: Histories) -> dict[tuple[str, str], list[float]]:
    groups = histories.frame.groupby(["algorithm", "scheme"])
    return {(str(a), str(s)): sorted(set(rows["value"])) for (a, s), rows in groups}


def test_equal_experiments_have_the_rows_of_the_one_that_was_trained(tmp_path: Path) -> None:
    jobs = [Source("p", trained(tmp_path / "a", A)), Source("p", trained(tmp_path / "b", B))]
    everything = load(jobs, "smoke", experiments=(A, B, TWIN))
    assert values(everything) == {
        ("a", "x"): [100.0, 101.0, 102.0],
        ("b", "x"): [200.0, 201.0, 202.0],
        ("b", "y"): [100.0, 101.0, 102.0],
    }
    assert set(everything.of("algorithm.lr")[everything.frame["scheme"] == "y"]) == {0.1}
    assert len(everything.frame) == 18


def test_only_the_rows_of_the_wanted_experiments_are_read(tmp_path: Path) -> None:
    """Also where the one that was trained is not wanted itself; what nobody trained has no rows."""
    jobs = [Source("p", trained(tmp_path / "a", A, B))]
    assert values(load(jobs, "smoke", experiments=(TWIN, OTHER))) == {("b", "y"): [100.0, 101.0, 102.0]}
    assert len(load(jobs, "smoke").frame) == 12


def test_results_of_one_split_say_so_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among the stand-ins, which all captions have: of all that was run, or of how many settings."""
    for partition, one in ((settings.NON_IID, True), (settings.DRAWN, False)):
        problem = settings.fashion(settings.CNN2, partition)
        assert histories.one_split(replace(A, problem=problem)) == one
        assert histories.one_split(replace(A, problem=replace(problem, partition_seed=1)))
    sources = [Source("p", trained(tmp_path / "p.parquet", A, B))]
    monkeypatch.setattr(histories, "one_split", lambda e: e == A)
    for wanted, said in (([A, OTHER], "one split of the data"), ([A, B], "one split of the data in 1 of 2 settings")):
        assert load(sources, "paper", (), wanted).substitutes == (said,)
    assert load(sources, "paper", (), [B, OTHER]).substitutes == ()
