"""One training of a job at a time: a second process is refused, whatever becomes of the first one."""

import errno
import fcntl
import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from runs import experiment

from reproduce import files
from reproduce.declare.experiment import Panel
from reproduce.errors import UserError
from reproduce.play import match
from reproduce.runs import plan, training
from reproduce.runs.plan import Job
from reproduce.settings import settings

PANEL = Panel("p", (experiment(3),), (0, 1))
JOB = Job("smoke", "fedacs", "p", PANEL, PANEL.experiments, ())
OTHER = """
import sys
sys.path[:0] = [{root!r}, {root!r} + "/tests/helpers"]
from tests.runs.test_sole_training import JOB, training
from reproduce.engine.checkpoint import Checkpoint
tick = Checkpoint.tick
def wait(checkpoint):
    tick(checkpoint)
    if checkpoint.runs[0].state["round"] == 2:
        print("training", flush=True)
        sys.stdin.read()
Checkpoint.tick = wait
training.train(JOB)
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REPRODUCE_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("REPRODUCE_CHECKPOINT", "0")


def other() -> subprocess.Popen[bytes]:
    """Another process, which waits in the middle of training `JOB` until its standard input ends."""
    script = OTHER.format(root=str(Path(__file__).parents[2]))
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"training\n"
    return process


def test_a_second_training_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    training.train(JOB)
    whole = pd.read_parquet(JOB.output)
    Path(JOB.output).unlink()
    process = other()
    for output in (None, tmp_path / "mine.parquet"):
        with pytest.raises(UserError, match=rf"^smoke/fedacs/p is being trained by process {process.pid} on .+: wait"):
            training.train(JOB, output)
    process.communicate()
    assert process.returncode == 0
    pd.testing.assert_frame_equal(pd.read_parquet(JOB.output), whole, check_exact=True)
    assert list(tmp_path.glob("store/checkpoints/*")) == []


def test_kill_9_leaves_no_lock_and_the_next_ends_in_the_same_bits(tmp_path: Path) -> None:
    training.train(JOB)
    whole = pd.read_parquet(JOB.output)
    Path(JOB.output).unlink()
    process = other()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert len(list(tmp_path.glob("store/checkpoints/*.pt"))) == 1
    training.train(JOB)
    pd.testing.assert_frame_equal(pd.read_parquet(JOB.output), whole, check_exact=True)
    assert list(tmp_path.glob("store/checkpoints/*")) == []


def test_other_runs_of_the_same_file_are_trained_beside_it(tmp_path: Path) -> None:
    """Other seeds have a checkpoint of their own."""
    with files.sole(tmp_path / "store" / "checkpoints" / "smoke-fedacs-p-of-other-seeds", "p"):
        training.train(JOB)
    assert Path(JOB.output).exists()


def test_a_second_play_of_an_own_class_leaves_the_file_of_the_first() -> None:
    """Between its training and its second one, when nothing else of it is locked."""
    entry: Any = SimpleNamespace(spec=SimpleNamespace(text="mine:Slow"), benchmark=SimpleNamespace(name="toy"))
    aside = settings().store / "checkpoints" / f"p-{plan.digest(JOB, 'float32')}.parquet"
    files.write_text(aside, "of the first")
    with files.sole(aside, "it"), pytest.raises(UserError, match=r"^mine:Slow on toy is being trained by process"):
        match.guarded(entry, [JOB])
    assert aside.read_text() == "of the first"


def test_who_comes_as_the_other_ends_is_refused_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that was opened is gone by then: a third process may have a new one."""
    flock = fcntl.flock

    def late(file: object, how: int) -> None:
        (tmp_path / "a.lock").unlink()
        flock(file, how)  # type: ignore[arg-type]

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(UserError, match="another process"), files.sole(tmp_path / "a", "it"):
        pass


def test_a_file_system_without_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none(file: object, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", none)
    with files.sole(tmp_path / "a", "it"):
        pass
    assert re.fullmatch(rf"{tmp_path} has no locks \(.+\): train it once at a time\n", capsys.readouterr().err)


def test_each_training_takes_a_free_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)

    def taken(given: str | None) -> str:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given or "")
        held.enter_context(training.own_gpu())
        return os.environ["CUDA_VISIBLE_DEVICES"]

    with ExitStack() as held:
        assert [taken(None), taken(None)] == ["0", "1"]
        with pytest.raises(UserError, match=r"^another job on GPU 1 is being trained by process \d+ on "):
            taken(None)
        assert taken("1,GPU-5f") == "GPU-5f"
        assert [taken("0"), taken("0")] == ["0", "0"]  # given by somebody, who knows why
    assert capsys.readouterr().err.splitlines() == [f"trains on GPU {name}" for name in ("0", "1", "GPU-5f")]
    with training.own_gpu():
        assert list(tmp_path.iterdir()) == []
