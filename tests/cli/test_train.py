"""A training that is asked to stop writes its checkpoint, says so in a line, and goes on from it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from reproduce import store

TRAIN = ("train", "--scale", "smoke", "fedagrac", "fig2-async", "-o")
SLOW = """
import sys, time
from reproduce.engine import host
from reproduce.__main__ import main
update = host.Progress.update
def slow(self):
    print("tick", flush=True)
    time.sleep(0.3)
    update(self)
host.Progress.update = slow
sys.exit(main(sys.argv[1:]))
"""
"""The command with a pause in every round, so that a signal meets it in the middle."""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_training_that_is_to_stop_ends_at_a_checkpoint_and_goes_on(name: str, tmp_path: Path) -> None:
    number = getattr(signal, name)
    output, kept_in = tmp_path / "a.parquet", tmp_path / "store"
    environment = {**os.environ, "REPRODUCE_STORE": str(kept_in)}
    command = [sys.executable, "-c", SLOW, *TRAIN, str(output)]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["tick\n"] * 2
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert f"stopped by {name}; the checkpoint is written" in errors.splitlines()[-1]
    assert "Traceback" not in errors
    assert not output.exists()
    (kept,) = (kept_in / "checkpoints").glob("*.pt")
    if name != "SIGTERM":
        return
    elsewhere, whole = tmp_path / "elsewhere", tmp_path / "b.parquet"
    (elsewhere / "checkpoints").mkdir(parents=True)  # nothing but the checkpoint travels, in pieces
    cut_and_join = f"split -b 5k -d {kept} {kept}. && cat {kept}.?? > {elsewhere}/checkpoints/{kept.name}"
    subprocess.run(cut_and_join, shell=True, check=True)
    for path, place in ((output, elsewhere), (whole, tmp_path / "another")):
        command = [sys.executable, "-m", "reproduce", *TRAIN, str(path)]
        subprocess.run(command, env={**environment, "REPRODUCE_STORE": str(place)}, check=True)
    pd.testing.assert_frame_equal(pd.read_parquet(output), pd.read_parquet(whole), check_exact=True)
    assert [store.result(path)[1][0].training["resumed"] for path in (output, whole)] == [True, False]
