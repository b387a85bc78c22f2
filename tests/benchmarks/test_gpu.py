"""The GPU benchmark on the CPU with tiny models, in a process that has torch and numpy and little else."""

import os
import subprocess
import sys
from pathlib import Path

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
