"""`reproduce.train`: the example of the docs from an empty folder, what it returns, what importing it costs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import reproduce
from reproduce import store
from reproduce.errors import UserError
from reproduce.runs import plan, training

ROOT = Path(__file__).parent.parent


def test_the_example_of_the_docs_runs_from_an_empty_folder(tmp_path: Path) -> None:
    page = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(import reproduce\n.*?)^```$", page, re.M | re.S)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "scaffold" in run.stdout
    assert not list(tmp_path.iterdir()), "nothing is written"


def test_it_returns_the_rows_of_the_results_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    job = plan.job("smoke", "fedagrac", "fig1")
    training.train(job)
    frame = reproduce.train(job.experiments, job.panel.seeds, threads=2)
    pd.testing.assert_frame_equal(frame, store.read(Path(job.output))[0], check_dtype=False, check_exact=True)
    one = reproduce.train(job.experiments[0])
    assert set(one["seed"]) == {0}


def test_data_that_are_not_there_are_an_error_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPRODUCE_DATA", str(tmp_path))
    needs = next(e for j in plan.jobs("paper") for e in j.experiments if e.problem.requires)
    with pytest.raises(UserError):
        reproduce.train([needs])


def test_importing_it_is_light_and_other_names_are_unknown() -> None:
    code = "import sys, reproduce; reproduce.train; print(*{'torch', 'pandas'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        reproduce.trian  # noqa: B018
