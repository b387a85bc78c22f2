"""The GPU benchmark on the CPU with tiny models, in a process that has torch and numpy and little else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import gpu

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


def test_gpu_benchmark_runs_without_anything_but_torch_torchvision_and_numpy(tmp_path: Path) -> None:
    environment = {**os.environ, "REPRODUCE_STORE": str(tmp_path)}
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", BARE.format(absent=ABSENT)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=root, env=environment, timeout=300)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    for work in gpu.TINY:
        measured = {line.split(" | ")[2] for line in lines if line.startswith(f"| {work.name} | 3 |")}
        assert {way for way in gpu.WAYS if not way.startswith("JAX")} <= measured
        assert any(line.startswith(f"{work.name}, bfloat16: ") for line in lines)
    assert "failed" not in run.stdout
    assert lines[-1] == "0 of these ways are wrong."


def test_a_wrong_way_is_named_and_never_the_choice(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ways = {"graph": lambda *args: lambda: 2 * gpu.engine("stacked", *args)(), "sequential": gpu.WAYS["sequential"]}
    monkeypatch.setattr(gpu, "WAYS", ways)
    assert gpu.measure("cpu", gpu.TINY[:1], (2,), ("float32",), 60, 0.0) == 1
    out = capsys.readouterr().out
    assert out.count("WRONG") == 1
    assert "CNN, float32: graph," not in out


def test_a_failing_way_and_lack_of_time_do_not_stop_the_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("too large\nwith details")

    monkeypatch.setitem(gpu.WAYS, "stacked", full)
    assert gpu.measure("cpu", gpu.TINY[:1], (2,), ("float32",), 60, 0.0) == 0
    out = capsys.readouterr().out
    assert "stacked | float32 | | | | failed: too large |" in out
    assert "| CNN | 2 | streams | float32 | " in out
    assert gpu.measure("cpu", gpu.TINY[:1], (2,), ("float32",), -1, 0.0) == 0
    assert "no time for the rest" in capsys.readouterr().out
