"""A checkpoint is taken over whole, by the runs that wrote it, or not at all; nothing in it is ever executed."""

import errno
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from runs import difference, run

from reproduce.algorithms.base import FedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.declare.experiment import Experiment
from reproduce.engine.checkpoint import Checkpoint, load, origin, put
from reproduce.engine.client_split import ClientSplits
from reproduce.engine.scheduler import Run, prepare
from reproduce.errors import UserError
from reproduce.problem import Quadratic
from reproduce.runs import plan
from reproduce.settings import settings
from reproduce.systems import Steps, System

NOTE = {"strategies": ["kernel"], "cpu": [0.5] * 4, "seconds": 1.0}


def experiment(lr: float, dim: int = 2) -> Experiment:
    return Experiment({"lr": lr}, Quadratic(3, dim), System(work=Steps(2)), FedAvg(lr), Rounds(3))


def fresh(experiments: tuple[Experiment, ...] = (), seeds: tuple[int, ...] = (0, 1)) -> list[Run]:
    return prepare(experiments or [experiment(0.1), experiment(0.2)], seeds, ClientSplits(settings()))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "job.pt"
    Checkpoint(path, run([experiment(0.1), experiment(0.2)], (0, 1)), lambda: dict(NOTE)).save()
    return path


def test_it_is_saved_when_its_time_has_come(tmp_path: Path) -> None:
    for interval, there in ((3600.0, False), (0.0, True)):
        Checkpoint(tmp_path / "job.pt", run([experiment(0.1)], (0,)), interval=interval).tick()
        assert (tmp_path / "job.pt").exists() == there


def write(path: Path, content: Any) -> int:
    with path.open("wb") as file:
        put(content, file)
    return path.stat().st_size


def refused(path: Path, runs: list[Run], match: str = "") -> None:
    with pytest.raises(UserError, match=f"{match}.*delete it to train from the start") as error:
        Checkpoint(path, runs).restore()
    assert "weights_only" not in str(error.value), "torch's advice would execute what is in the file"
    assert all(not r.state for r in runs)


def test_what_is_put_comes_back(tmp_path: Path) -> None:
    shared = torch.arange(3.0)
    content = {
        **{"x": shared, "same": shared, 3: [1.5, float("nan"), -0.0, True, None, "ü"], "n": np.int64(2)},
        **{"deep": ({"a": np.array([[True], [False]]), "b": np.arange(3.0)}, [], ()), "view": torch.zeros(100_000)[:2]},
    }
    assert write(tmp_path / "a", content) < 10_000
    found = load(tmp_path / "a")
    assert difference(content, found, "content") == ""
    assert found["same"] is found["x"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("buffering", [0, -1])
def test_a_full_disk_is_an_error_of_the_file_and_not_of_torch(buffering: int) -> None:
    with pytest.raises(OSError, match="No space left"), open("/dev/full", "wb", buffering=buffering) as full:
        put({"x": torch.zeros(10_000)}, full)


def test_a_full_disk_keeps_the_old_checkpoint(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = saved.read_bytes()
    monkeypatch.setattr("reproduce.engine.checkpoint.put", full)
    with pytest.raises(UserError, match="no space left"):
        Checkpoint(saved, fresh()).save()
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_what_was_saved_is_taken_over_and_a_changed_byte_is_noticed_or_says_nothing(saved: Path) -> None:
    checkpoint = Checkpoint(saved, whole := fresh())
    assert checkpoint.restore()
    assert checkpoint.noted == NOTE
    assert all(r.done for r in whole)
    data, noticed = saved.read_bytes(), 0
    for at in range(0, len(data), 41):
        saved.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
        runs = fresh()
        try:
            Checkpoint(saved, runs).restore()
        except UserError as error:
            noticed += "delete it to train from the start" in str(error)
            assert all(not r.state for r in runs)
        else:
            assert difference([r.state for r in whole], [r.state for r in runs], f"byte {at}") == ""
    assert noticed
    saved.write_bytes(data[:-40])
    refused(saved, fresh())


@pytest.mark.parametrize("other", ["device", "data (another)"])
def test_what_was_begun_with_other_data_or_elsewhere_is_refused(saved: Path, other: str) -> None:
    content = load(saved)
    write(saved, {**content, "origin": {**content["origin"], other: "another"}})
    refused(saved, fresh(), "begun with other (device|data)")


def test_other_data_have_another_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = next(j for j in plan.jobs("smoke") if j.name == "fig4-cnn2-equal").panel
    runs = prepare(panel.experiments, (0,), ClientSplits(settings()))
    name = str(panel.experiments[0].problem.data)
    assert origin(runs) == {"device": "cpu", f"data ({name})": runs[0].env.split.device_data.checksums[name]}
    monkeypatch.setitem(runs[0].env.split.device_data.checksums, name, "another")
    assert origin(runs) == {"device": "cpu", f"data ({name})": "another"}


class Planted:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path("planted"),)  # type: ignore[return-value]


def test_a_planted_pickle_is_not_executed(saved: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save(Planted(), archive := io.BytesIO())
    for data in (pickle.dumps(Planted()), archive.getvalue()):
        saved.write_bytes(data)
        refused(saved, fresh())
    assert not Path("planted").exists()
