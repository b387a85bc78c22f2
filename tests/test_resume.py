"""A job that is killed goes on and ends in the same bits."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from runs import run

from reproduce import files
from reproduce.algorithms.base import FedAvg, WeightedDraws
from reproduce.algorithms.fedagrac import FedaGrac
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Cyclic
from reproduce.declare.experiment import Experiment, Panel
from reproduce.engine.checkpoint import Checkpoint
from reproduce.engine.cohort import Cohort, prepare
from reproduce.engine.task import Tasks
from reproduce.engine.trainer import Trainer
from reproduce.errors import UserError
from reproduce.models.declared import ConvNet
from reproduce.partitions.named import IID
from reproduce.problem import Classification, Quadratic
from reproduce.runs import job as train
from reproduce.runs import results
from reproduce.settings import settings
from reproduce.systems import System
from reproduce.systems.work import Steps

NET = ConvNet(1, 8, (2, 3), (6,), kernel=3, padding=1, dropout=0.3)
DIGITS = Classification("digits", NET, IID(), clients=6, batches=Cyclic(8), train_samples=120, test_samples=60)


def experiment(rounds: int, lr: float = 0.1) -> Experiment:
    algorithm = FedAvg(lr=lr, participation=WeightedDraws(4), momentum=0.5)
    return Experiment({"algorithm": "fedavg", "eta": lr}, DIGITS, System(work=Steps(3)), algorithm, Rounds(rounds))


class Killed(Exception):
    pass


def test_resume_at_every_tick_gives_the_same_bits(tmp_path: Path) -> None:
    """Interrupt at the beginning of each round in turn, resume from the file, compare all states."""
    experiments = [experiment(3), experiment(3, lr=0.2)]
    runs = run(experiments, [0, 1])
    path = tmp_path / "job.pt"
    for stop in range(1, 5):
        first = prepare(experiments, [0, 1], Tasks(settings()))
        checkpoint = Checkpoint(path, first)
        ticks = iter(range(1, 100))

        def tick(stop: int = stop, ticks=ticks, checkpoint=checkpoint) -> None:  # type: ignore[no-untyped-def]
            checkpoint.save()
            if next(ticks) == stop:
                raise Killed

        with pytest.raises(Killed):
            Cohort(first, Trainer(), tick).run()
        again = prepare(experiments, [0, 1], Tasks(settings()))
        assert Checkpoint(path, again).restore()
        Cohort(again, Trainer()).run()
        for a, b in zip(runs, again, strict=True):
            assert a.state["x"].equal(b.state["x"])
            assert repr(a.state["history"]) == repr(b.state["history"])


SCRIPT = """
import sys
from pathlib import Path
from reproduce.engine.checkpoint import Checkpoint
from reproduce.runs import job as train
from reproduce.declare.experiment import Panel
sys.path.insert(0, {here!r})
from test_resume import experiment
e = experiment(300)
train.Checkpoint = lambda path, runs, note, interval: Checkpoint(path, runs, note, interval=0.05, share=1.0)
train.train_job(Panel("p", (e,), (0, 1)), (e,), "smoke", "fedacs", "p", "d", Path({out!r}))
"""


def run_job(out: Path, cwd: Path) -> subprocess.Popen[bytes]:
    script = SCRIPT.format(here=str(Path(__file__).parent), out=str(out))
    environment = {**os.environ, "REPRODUCE_STORE": str(cwd / "store"), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", script], cwd=cwd, env=environment, stderr=subprocess.DEVNULL)


def test_kill_9_and_start_again(tmp_path: Path) -> None:
    """The real thing: SIGKILL while training, a second process finishes, results equal an undisturbed run."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    whole, broken = tmp_path / "whole.parquet", tmp_path / "broken.parquet"
    assert run_job(whole, tmp_path / "a").wait(120) == 0
    process = run_job(broken, tmp_path / "b")
    deadline = time.monotonic() + 60
    while not list((tmp_path / "b").glob("store/checkpoints/*.pt")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    assert not broken.exists()
    assert run_job(broken, tmp_path / "b").wait(120) == 0
    pd.testing.assert_frame_equal(pd.read_parquet(whole), pd.read_parquet(broken), check_exact=True)
    assert not list((tmp_path / "b").glob("store/checkpoints/*"))


def test_a_resumed_job_knows_what_was_before_it_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The seconds that it had trained, and the version of torch."""

    class Late(Checkpoint):
        """The checkpoint of a job that had trained for long."""

        def restore(self) -> bool:
            found = super().restore()
            if found:
                assert min(self.said["seconds"], self.said["process"]) > 0
                by = {**self.said["by"], "torch": "0.1"}
                self.said = {**self.said, "seconds": 1e7, "process": 2e7, "by": by}
            return found

    monkeypatch.setenv("REPRODUCE_STORE", str(tmp_path / "store"))
    monkeypatch.setattr(train, "Checkpoint", Late)
    panel, out = Panel("p", (experiment(3),), (0,)), tmp_path / "out.parquet"
    with monkeypatch.context() as first:
        first.setattr(Checkpoint, "tick", save_and_die)
        with pytest.raises(Killed):
            train.train_job(panel, panel.experiments, "smoke", "fedacs", "p", "d", out)
    train.train_job(panel, panel.experiments, "smoke", "fedacs", "p", "d", out)
    note = results.stored(out)[0].training
    assert note["resumed"]
    version = re.escape(str(torch.__version__))
    assert re.fullmatch(rf"begun with torch 0.1, goes on with {version}: rounding .*", note["instructions_changed"])
    assert 1e7 < note["seconds"] < 2e7 < note["cpu_seconds"] < 3e7, "what this test itself takes is nothing beside it"


def save_and_die(checkpoint: Checkpoint) -> None:
    """After the first round."""
    if checkpoint.runs[0].state["round"]:
        checkpoint.save()
        raise Killed


def test_damaged_checkpoint_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "job.pt"
    runs = prepare([experiment(1)], [0], Tasks(settings()))
    Checkpoint(path, runs).save()
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(UserError, match="delete it to train from the start"):
        Checkpoint(path, runs).restore()


def test_full_disk_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    files.write(path, lambda f: f.write(b"old"))

    def full(file: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(UserError, match="no space left"):
        files.write(path, full)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_diverged_run_is_recorded_and_leaves_the_others_alone(tmp_path: Path) -> None:
    """lr 3 on a quadratic explodes; its neighbour ends where it ends alone."""

    def toy(lr: float) -> Experiment:
        return Experiment(
            {"algorithm": "fedavg", "eta": lr}, Quadratic(3, 2), System(work=Steps(40)), FedAvg(lr=lr), Rounds(30)
        )

    alone, both = run([toy(0.1)]), run([toy(0.1), toy(3.0)])
    assert [r.state["status"] for r in both] == ["ok", "diverged"]
    assert both[0].state["x"].equal(alone[0].state["x"])
    frame = train.frame(both)
    assert set(frame.loc[frame.eta == 3.0, "status"]) == {"diverged"}
    assert frame.loc[frame.eta == 0.1, "value"].notna().all()


def test_panel_needs_a_seed() -> None:
    with pytest.raises(ValueError, match="empty list of seeds"):
        Panel("p", (experiment(1),), ())


def test_panel_needs_labels_that_tell_its_experiments_apart() -> None:
    with pytest.raises(ValueError, match="their labels are the same"):
        Panel("p", (experiment(1), experiment(2)), (0,))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"labels": {"seed": 1}}, "'seed' is a column of all results and cannot be a label"),
        ({"algorithm": FedAvg(lr=float("inf"))}, "FedAvg: lr is inf, which is no finite number"),
        ({"algorithm": FedAvg(lr=float("nan"))}, "FedAvg: lr is nan, which is no finite number"),
        ({"algorithm": FedaGrac(0.1, own="frist")}, "FedaGrac: own is one of"),
        ({"problem": replace(DIGITS, weights="samples")}, "Classification: weights is one of"),
    ],
)
def test_what_no_experiment_can_be_is_refused_when_it_is_declared(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=re.escape(said)):
        replace(experiment(1), **change)
