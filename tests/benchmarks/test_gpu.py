"""The GPU benchmark on the CPU with tiny models, in a process that has torch and numpy and little else."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import gpu, hour

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


def test_the_hour_begins_with_what_tells_most_and_leaves_out_what_is_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[list[str]] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr(hour, "run", lambda module, end, output=None: asked.append([*module]))
    monkeypatch.setattr(os, "environ", {**os.environ})
    hour.main(60)
    assert os.environ["REPRODUCE_DEVICE"] == "cuda"
    assert asked[0][:4] == ["reproduce", "train", "--scale", "smoke"]
    assert asked[1] == ["benchmarks", "gpu"]
    papers = [command[4] for command in asked[2:]]
    assert papers == ["fedacs"] * papers.count("fedacs") + ["fiarse"] * 4
    for command in asked:
        Path(command[-1] if command[0] == "reproduce" else "out/gpu.md").touch()
    del asked[:]
    hour.main(60)
    assert not asked


SLOW = """
import pathlib, signal, sys, time
def stop(*_):
    pathlib.Path("stopped").touch()
    sys.exit(143)
signal.signal(signal.SIGTERM, {handler})
pathlib.Path("begun").touch()
time.sleep(60)
"""


@pytest.mark.parametrize(("handler", "code"), [("stop", 143), ("signal.SIG_IGN", -signal.SIGKILL)])
def test_what_takes_too_long_is_stopped_then_killed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, handler: str, code: int
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("slow.py").write_text(SLOW.format(handler=handler))
    monkeypatch.setattr(hour, "STOP", 3.0)
    assert hour.run(["slow"], time.monotonic() + 6) == code
    assert Path("begun").exists()
    assert Path("stopped").exists() == (code == 143)
    assert hour.run(["slow"], time.monotonic() + 2) is None
