"""From results files to the files a reader opens: which rows an artifact reads, what is written, and that what is
committed is what this code makes of the committed results."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import written
from pyarrow import parquet
from table_cells import TABLE3, artifact, panel, render

from reproduce.algorithms.base import FedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.declare.experiment import COLUMNS, Experiment
from reproduce.errors import UserError
from reproduce.papers.fedagrac import settings
from reproduce.problem import Quadratic
from reproduce.report import histories, metrics
from reproduce.report import render as report
from reproduce.report.histories import Histories, Source, load
from reproduce.runs import outdated, plan
from reproduce.systems import System
from reproduce.systems.work import Steps
from tests.report.test_metrics import history


def write(frame: pd.DataFrame, path: Path, *experiments: Experiment, **training: Any) -> Path:
    return written.histories(path, frame, experiments, **training)


class TestHistories:
    def test_reads_panels_and_lists_what_is_missing(self, tmp_path: Path) -> None:
        a = write(history([1, 2], algorithm="fedavg"), tmp_path / "a.parquet")
        b = write(history([3], seed=4, algorithm="moon", dataset="svhn"), tmp_path / "b.parquet", git="abc")
        found = load(
            [Source("a", a), Source("b", b), Source("b", a), Source("c", Path("none"), "needs svhn")],
            "smoke",
            ["s", "", "s"],
        )
        assert list(found.frame["value"]) == [1, 2, 3]
        assert list(found.frame.columns) == ["algorithm", "dataset", *COLUMNS]
        assert found.missing == (("c", "needs svhn"),)
        assert found.substitutes == ("s",)
        assert found.seeds == (0, 4)
        assert found.seeds_each == (1, 1)
        assert [run.training["git"] for run in found.runs] == ["c0ffee", "abc"]

    @pytest.mark.parametrize(
        "tampered",
        [
            lambda f: f.assign(value=f["value"] * (1 + 2**-52)),
            lambda f: f.assign(value=np.nan),
            lambda f: f.iloc[:1],
            lambda f: f.iloc[::-1],
            lambda f: f.assign(algorithm="fedprox"),
        ],
        ids=["last bit", "no values", "half", "reversed", "another label"],
    )
    def test_other_numbers_than_those_written_are_refused(
        self, tmp_path: Path, tampered: Callable[[pd.DataFrame], pd.DataFrame]
    ) -> None:
        path = write(history([1.25, 2.5], algorithm="fedavg"), tmp_path / "a.parquet")
        table = parquet.read_table(path)
        changed = pa.Table.from_pandas(tampered(table.to_pandas()), preserve_index=False)
        parquet.write_table(changed.replace_schema_metadata(table.schema.metadata), path, store_schema=True)
        with pytest.raises(UserError, match="it holds other numbers than were written"):
            load([Source("a", path)], "smoke")


class TestRender:
    cells = pd.DataFrame(
        {"algorithm": ["b", "a", "a"], "seed": [0, 10, 9], "metric": "m", "value": [1 / 3, 2.0, np.nan]}
    )

    def test_writes_cells_and_tables(self, tmp_path: Path) -> None:
        files = render(artifact(self.cells), "smoke", tmp_path)
        assert [f.relative_to(tmp_path).as_posix() for f in files] == [
            "results/smoke/cells/fiarse_none.csv", "tables/smoke/fiarse_none.md", "tables/smoke/fiarse_none.csv",
            "tables/smoke/fiarse_none.tex",
        ]  # fmt: skip
        assert files[0].read_text() == f"algorithm,metric,seed,value\na,m,9,\na,m,10,2.0\nb,m,0,{1 / 3!r}\n"
        assert "Smoke scale; the same as at paper scale." in files[1].read_text()
        assert sorted(p.name for p in (tmp_path / "tables/smoke").iterdir()) == sorted(f.name for f in files[1:])

    def test_reads_the_panels(self, tmp_path: Path) -> None:
        mine = panel("a", dataset="mnist", algorithm="fedavg")
        rows = history([10, 20], algorithm="fedavg", dataset="mnist")
        path = write(rows, tmp_path / "a.parquet", *mine.experiments)
        made = artifact(
            lambda histories: metrics.last(histories.frame, "accuracy"),
            panels=lambda scale: (mine, panel("b", dataset="svhn")),
            rows=("algorithm", "dataset"),
        )
        jobs = [Source("a", path), Source("b", Path("none"), "needs svhn")]
        _, markdown, _, tex = render(made, "reduced", tmp_path, jobs)
        text = markdown.read_text()
        assert "Reduced scale: a stands in; b stands in; not comparable" in text
        assert "| FedAvg | MNIST | 20 |" in text
        assert text.endswith("\n\nResults: commit c0ffee.\n")
        assert tex.read_text().startswith("% Results: commit c0ffee.\n")

    def test_an_artifact_whose_panels_are_all_missing(self, tmp_path: Path) -> None:
        made = artifact(
            lambda histories: 1 / 0,  # type: ignore[arg-type,return-value]
            "dynamic_init", "table3", panels=lambda scale: (panel("a", dataset="tiny"),), **TABLE3,
        )  # fmt: skip
        files = render(made, "smoke", tmp_path, [Source("a", Path("none"), "needs tiny")])
        assert files[0].read_text() == "algorithm,metric,seed,value\n"
        text = files[1].read_text()
        assert "\N{EM DASH} not run: needs tiny." in text
        assert "Of the paper's 384 numbers 384 have none of ours" in text

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda c: c.drop(columns="seed"), "fiarse/none: the cells lack the column 'seed'"),
            (lambda c: c.assign(seed=1), "fiarse/none: two cells for algorithm=a, seed=1, metric=m"),
        ],
    )
    def test_bad_cells(self, tmp_path: Path, change: Callable[[pd.DataFrame], pd.DataFrame], message: str) -> None:
        with pytest.raises(ValueError, match=re.escape(message)):
            render(artifact(change(self.cells)), "smoke", tmp_path)
        assert not (tmp_path / "tables").exists()


ROOT = Path(__file__).parents[2]
COMMITTED = [
    (scale, a.id)
    for scale in ("paper", "reduced")
    for a in plan.artifacts()
    if Path(plan.outputs(scale, a.id)[-1]).exists()
]
SAMPLE = [("paper", "fedacs/table1"), ("reduced", "fedagrac/table4"), ("reduced", "fedacs/fig2")]


def unchanged(scale: str, name: str, folder: Path) -> None:
    artifact = plan.artifact(name)
    histories = report.read(artifact, scale, plan.sources(scale, name), plan.seeds_read(scale, name))
    for file in report.make(artifact, histories, folder):
        assert file.read_bytes() == file.relative_to(folder).read_bytes(), file.name


@pytest.mark.parametrize(("scale", "name"), SAMPLE)
def test_rendering_changes_no_file(scale: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it ask which data are here."""
    monkeypatch.setenv("REPRODUCE_DATA", str(tmp_path / "none"))
    unchanged(scale, name, tmp_path)


@pytest.mark.parametrize(("scale", "name"), COMMITTED)
def test_rendering_everything_changes_no_file(scale: str, name: str, tmp_path: Path) -> None:
    unchanged(scale, name, tmp_path)


def test_no_artifact_is_stale() -> None:
    """By its record: nobody has to draw it to know."""
    stale = []
    for scale, name in COMMITTED:
        *_, cells, record = map(Path, plan.outputs(scale, name))
        if json.loads(record.read_text()) != outdated.store.sealed(plan.made_from(scale, name), cells):
            stale.append((scale, name))
    assert not stale


ASK = "import json; from reproduce.runs import plan; print(json.dumps({p: plan.draw_digest(p) for p in plan.papers()}))"


def test_what_draws_a_paper_is_its_modules_and_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A comment changes nothing, and neither does a name that it does not use."""
    package = shutil.copytree(ROOT / "reproduce", tmp_path / "reproduce", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def digests() -> dict[str, str]:
        run = subprocess.run([sys.executable, "-c", ASK], cwd=tmp_path, capture_output=True, text=True, check=True)
        return dict(json.loads(run.stdout))

    def changed(name: str, old: str, new: str) -> set[str]:
        file, before = package / name, dict(latest)
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new, 1), encoding="utf-8")
        latest.update(digests())
        return {paper for paper, digest in latest.items() if digest != before[paper]}

    latest = digests()
    assert changed("papers/names.yaml", "moon:", "brand_new: Brand-new\nmoon:") == set()
    assert changed("papers/names.yaml", "AlexNet", "Alex-Net") == {"fedagrac"}
    assert changed("papers/fedacs/pictures.py", "def ", "# a comment\ndef ") == set()
    assert changed("papers/fedacs/pictures.py", "\n\n\ndef ", "\n\n\nMORE = 1\n\n\ndef ") == {"fedacs"}
    assert changed("papers/fiarse/reported/table1.csv", "\n", "\n\n") == {"fiarse"}
    assert changed("report/figures.py", "FULL = 7.0", "FULL = 7.1") == set(plan.papers())


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
