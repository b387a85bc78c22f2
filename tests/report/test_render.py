"""From results files to the files a reader opens."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import written
from pyarrow import parquet
from table_cells import TABLE3, artifact, panel, render

from reproduce.declare.experiment import COLUMNS, Experiment
from reproduce.errors import UserError
from reproduce.report import metrics
from reproduce.report.histories import Source, load
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
            "results/smoke/cells/p_table1.csv", "tables/smoke/p_table1.md", "tables/smoke/p_table1.csv",
            "tables/smoke/p_table1.tex", "tables/smoke/p_table1.ours.tex",
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
        _, markdown, _, tex, _ = render(made, "reduced", tmp_path, jobs)
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
            (lambda c: c.drop(columns="seed"), "p/table1: the cells lack the column 'seed'"),
            (lambda c: c.assign(seed=1), "p/table1: two cells for algorithm=a, seed=1, metric=m"),
        ],
    )
    def test_bad_cells(self, tmp_path: Path, change: Callable[[pd.DataFrame], pd.DataFrame], message: str) -> None:
        with pytest.raises(ValueError, match=re.escape(message)):
            render(artifact(change(self.cells)), "smoke", tmp_path)
        assert not (tmp_path / "tables").exists()
