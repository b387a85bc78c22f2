"""`reproduce.train`: the example of the docs from an empty folder, what it returns, what importing it costs."""

import contextlib
import inspect
import json
import os
import re
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
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


def test_the_notebook_runs_and_keeps_no_outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = json.loads((ROOT / "docs/notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    seen: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), seen)
    drawn, runs = seen["curves"](seen["runs"]), seen["runs"]
    assert drawn.groupby(["algorithm", "seed"])["round"].agg(list).map(lambda rounds: rounds == [*range(11)]).all()
    last = drawn[drawn["round"] == 10].groupby(["algorithm", "seed"])["value"].first()  # a tenth of 11 evaluations is 2
    late = drawn[drawn["round"] >= 9].groupby(["algorithm", "seed"])["value"].mean()
    np.testing.assert_allclose(late, runs.groupby(["algorithm", "seed"])["value"].first(), rtol=1e-12)
    assert last.min() > 60, "it learns"
    one = seen["curves"](runs[runs["seed"] == 1], "loss")
    assert ({*one["seed"]}, {*one["metric"]}) == ({1}, {"loss"})
    with pytest.raises(UserError, match="returned in this process"):
        seen["curves"](runs.assign(run="another"))


def test_names_of_the_package_are_those_of_its_modules() -> None:
    for name, module in reproduce.LAZY.items():
        assert getattr(reproduce, name) is getattr(import_module(module), name) or name == "play"
    from reproduce import play

    assert inspect.signature(play) == inspect.signature(play.play)


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
    code = "import sys, reproduce; reproduce.train; dir(reproduce); print(*{'torch', 'pandas'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        reproduce.trian  # noqa: B018


UNLISTED = ("fp32_precision", "allow_tf32", *(f"allow_{kind}_reduced_precision_reduction" for kind in ("bf16", "fp16")))
"""Settings that torch looks up by name alone."""


def torch_settings() -> dict[str, Any]:
    """All that torch says of itself: plain values below `torch.backends`, and what functions without arguments give."""
    import torch

    found: dict[str, Any] = {}

    def look(place: Any, name: str, depth: int) -> None:
        for key in {*dir(place), *dir(type(place)), *UNLISTED}:
            with contextlib.suppress(Exception):  # of devices that are not there
                value = None if key.startswith("_") else getattr(place, key)
                if isinstance(value, bool | int | float | str):
                    found[f"{name}.{key}"] = value
                elif depth and "torch.backends" in f"{type(value).__module__} {getattr(value, '__name__', '')}":
                    look(value, f"{name}.{key}", depth - 1)

    look(torch.backends, "backends", 3)
    for place in (torch, torch._C):
        for key in dir(place):
            if re.match("_?(get|is|are)_", key) and "_map" not in key:
                with contextlib.suppress(Exception):
                    found[f"{place.__name__}.{key}()"] = repr(getattr(place, key)())
    cublas = os.environ.get("CUBLAS_WORKSPACE_CONFIG")
    return found | {"rng": torch.get_rng_state().tolist(), "numpy": np.geterr(), "cublas": cublas}


def trained_and_played() -> None:
    """What a process of a user's own does: its settings are afterwards as they were, and the second time is as the
    first."""
    import torch

    from reproduce.play import play

    warnings.simplefilter("ignore")
    torch.set_num_threads(2)
    job, before = plan.job("smoke", "fedagrac", "fig3-lr-equal"), torch_settings()
    assert {"backends.mkldnn.matmul.fp32_precision", "backends.cudnn.deterministic", "torch.get_num_threads()"} <= {
        *before
    }
    first = reproduce.train(job.experiments[0])
    assert torch_settings() == before
    pd.testing.assert_frame_equal(first, reproduce.train(job.experiments[0]), check_exact=True)
    play("fedprox(mu=0.5)", on="fedagrac-steps", scale="smoke", seeds=(0,))
    assert torch_settings() == before


def test_train_and_play_leave_the_settings_of_the_caller(tmp_path: Path) -> None:
    code = "from tests.test_api import trained_and_played\ntrained_and_played()"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests/helpers"))),
    }
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
