"""A training that is asked to stop writes its checkpoint, says so in a line, and goes on from it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

TRAIN = ("train", "smoke", "fedagrac", "fig2-async", "-o")
SLOW = """
import sys, time
from reproduce.engine import progress
from reproduce.__main__ import main
update = progress.Progress.update
def slow(self):
    print("tick", flush=True)
    time.sleep(0.3)
    update(self)
progress.Progress.update = slow
sys.exit(main(sys.argv[1:]))
"""
"""The command with a pause in every round, so that a signal meets it in the middle."""


def environment(store: Path) -> dict[str, str]:
    return {**os.environ, "REPRODUCE_STORE": str(store)}


def trained(output: Path, store: Path) -> pd.DataFrame:
    command = [sys.executable, "-m", "reproduce", *TRAIN, str(output)]
    done = subprocess.run(command, env=environment(store), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return pd.read_parquet(output)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_a_training_at_a_checkpoint(name: str, tmp_path: Path) -> None:
    number = getattr(signal, name)
    output = tmp_path / "a.parquet"
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, *TRAIN, str(output)],
        env=environment(tmp_path / "store"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert f"stopped by {name}; the checkpoint is written" in errors.splitlines()[-1]
    assert "Traceback" not in errors
    assert not output.exists()
    assert list((tmp_path / "store/checkpoints").glob("*.pt"))
    resumed, whole = trained(output, tmp_path / "store"), trained(tmp_path / "b.parquet", tmp_path / "another")
    pd.testing.assert_frame_equal(resumed, whole, check_exact=True)


def test_a_training_ends_with_the_workflow_that_began_it(tmp_path: Path) -> None:
    output = tmp_path / "a.parquet"
    with subprocess.Popen(["sleep", "600"]) as workflow:
        process = subprocess.Popen(
            [sys.executable, "-c", SLOW, *TRAIN, str(output)],
            env=environment(tmp_path / "store") | {"REPRODUCE_WORKFLOW": str(workflow.pid)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["tick\n"] * 2
        workflow.kill()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "the checkpoint is written: run `snakemake --unlock`, then the same" in errors.splitlines()[-1]
    assert list((tmp_path / "store/checkpoints").glob("*.pt"))
    assert not output.exists()
