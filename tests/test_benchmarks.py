"""The GPU benchmark on the CPU with tiny models, in a process that has torch and numpy and little else."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks import gpu
from reproduce.engine.trainer import Trainer

BARE = """
import runpy, sys
sys.modules.update(dict.fromkeys({absent}))
sys.argv = ["benchmarks", "gpu-dry"]
runpy.run_module("benchmarks", run_name="__main__")
"""
ABSENT = (
    "snakemake", "pandas", "pyarrow", "matplotlib", "seaborn", "numba", "pydantic", "scipy", "sklearn", "tqdm", "yaml",
    "jsonschema", "pytest",
)  # fmt: skip


@pytest.mark.slow
def test_gpu_benchmark_runs_without_anything_but_torch_torchvision_and_numpy(tmp_path: Path) -> None:
    environment = {**os.environ, "REPRODUCE_STORE": str(tmp_path)}
    root = Path(__file__).parent.parent
    command = [sys.executable, "-c", BARE.format(absent=ABSENT)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=root, env=environment, timeout=300)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    for work in gpu.TINY:
        measured = [line for line in lines if line.startswith(f"| {work.name} | 3 |")]
        assert any("+graph" in line for line in measured)
        assert any("bfloat16" in line for line in measured)
    assert "failed" not in run.stdout
    assert lines[-1].endswith(" ways measured, 0 of them wrong.")


def test_a_wrong_way_is_named_and_does_not_win(capsys: pytest.CaptureFixture[str]) -> None:
    way = gpu.Way("stacked", "float32", True, 1)
    good = gpu.Row(gpu.TINY[0], 3, way, "stacked+graph", 100.0, 0.0, 1e-6)
    bad = replace(good, how="stacked", rate=1e9, deviation=float("nan"))
    gpu.report([good, bad])
    out = capsys.readouterr().out
    assert "2 ways measured, 1 of them wrong." in out
    assert "1,000,000,000" not in out
    assert "WRONG" in str(bad)
    assert "WRONG" not in str(good)


def test_a_failing_way_and_lack_of_time_do_not_stop_the_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Trainer.train

    def train(self: Trainer, jobs: object) -> object:
        if self.forced == "stacked":
            raise torch.OutOfMemoryError("too large\nwith details")
        return real(self, jobs)  # type: ignore[arg-type]

    monkeypatch.setattr(Trainer, "train", train)
    rows = gpu.measure("cpu", gpu.TINY[2:3], (2,), float("inf"), 0.0)
    out = capsys.readouterr().out
    assert "failed: too large |" in out
    assert {row.way.strategy for row in rows} == {"dense", "sequential"}
    assert gpu.measure("cpu", gpu.TINY[2:3], (2,), 0.0, 0.0) == []
    assert "no time for" in capsys.readouterr().out
