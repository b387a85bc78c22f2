"""A checkpoint is taken over whole, by the runs that wrote it, or not at all; nothing in it is ever executed."""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from runs import run

from reproduce.algorithms.base import FedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.declare.experiment import Experiment
from reproduce.engine.checkpoint import Checkpoint, origin, put, unpack
from reproduce.engine.cohort import Run, prepare
from reproduce.engine.task import Tasks
from reproduce.errors import UserError
from reproduce.problem import Quadratic
from reproduce.runs import plan
from reproduce.settings import settings
from reproduce.systems import Steps, System


def experiment(lr: float, dim: int = 2) -> Experiment:
    return Experiment({"lr": lr}, Quadratic(3, dim), System(work=Steps(2)), FedAvg(lr), Rounds(3))


def fresh(experiments: list[Experiment], seeds: tuple[int, ...] = (0, 1)) -> list[Run]:
    return prepare(experiments, seeds, Tasks(settings()))


NOTE = {
    **{"isa": "none", "strategies": ["kernel"], "shared": {"asked": 4, "computed": 2}, "cpu": [0.5] * 4},
    **{"by": {"torch": "2", "compiler": "cc"}, "seconds": 1.0, "process": 1.0, "memory": 10},
}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "job.pt"
    Checkpoint(path, run([experiment(0.1), experiment(0.2)], (0, 1)), lambda: dict(NOTE)).save()
    return path


def pack(content: Any) -> bytes:
    file = io.BytesIO()
    put(content, file)
    return file.getvalue()


def unpacked(data: bytes) -> Any:
    return unpack(io.BytesIO(data))


def test_what_is_packed_comes_back() -> None:
    shared = torch.arange(3.0)
    content = {
        "x": shared, "same": shared, 3: [1.5, float("nan"), -0.0, True, None, "ü"], "n": np.int64(2),
        "deep": ({"a": np.array([[True], [False]])}, [], ()), "view": torch.zeros(1000)[:2],
    }  # fmt: skip
    found = unpacked(pack(content))
    assert found["x"].equal(shared)
    assert found["same"] is found["x"]
    assert repr(found[3]) == repr(content[3])
    assert found["n"] == 2
    assert found["deep"][0]["a"].tolist() == [[True], [False]]
    assert found["deep"][1:] == ([], ())
    assert len(pack({"view": torch.zeros(100_000)[:2]})) < 10_000
    with pytest.raises(TypeError, match="object cannot be part of a run's state"):
        pack({"x": object()})


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_an_error_of_the_file_and_not_of_torch() -> None:
    with open("/dev/full", "wb", buffering=0) as full, pytest.raises(OSError, match="No space left"):
        put({"x": torch.zeros(10_000)}, full)


def test_any_changed_byte_is_noticed(saved: Path) -> None:
    data = saved.read_bytes()
    for at in [*range(0, 120), *range(120, len(data), 37)]:
        changed = bytearray(data)
        changed[at] ^= 1 << at % 8
        saved.write_bytes(changed)
        runs = fresh([experiment(0.1), experiment(0.2)])
        with pytest.raises(UserError, match="delete it to train from the start"):
            Checkpoint(saved, runs).restore()
        assert all(not r.state for r in runs)


@pytest.mark.parametrize(
    "others",
    [
        lambda: fresh([experiment(0.2), experiment(0.1)]),
        lambda: fresh([experiment(0.1), experiment(0.2)], (1, 0)),
        lambda: fresh([experiment(0.1)]),
        lambda: fresh([experiment(0.1, dim=3), experiment(0.2)]),
    ],
    ids=["order", "seeds", "number", "problem"],
)
def test_other_runs_take_nothing_over(saved: Path, others: Callable[[], list[Run]]) -> None:
    runs = others()
    with pytest.raises(UserError, match="delete it to train from the start"):
        Checkpoint(saved, runs).restore()
    assert all(not r.state for r in runs)


@pytest.mark.parametrize("other", ["device", "data (another)"])
def test_what_was_begun_with_other_data_or_elsewhere_is_refused(saved: Path, other: str) -> None:
    content = unpacked(saved.read_bytes())
    saved.write_bytes(pack({**content, "note": {}, "origin": {**content["origin"], other: "another"}}))
    with pytest.raises(UserError, match=re.escape(f"begun with other {other}): delete it to train from the start")):
        Checkpoint(saved, fresh([experiment(0.1), experiment(0.2)])).restore()


def test_other_data_have_another_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = next(j for j in plan.jobs("smoke") if j.name == "fig4-cnn2-equal").panel
    runs = prepare(panel.experiments, (0,), Tasks(settings()))
    before = origin(runs)
    name = str(panel.experiments[0].problem.data)
    assert before == {"device": "cpu", f"data ({name})": runs[0].env.task.arena.checksums[name]}
    monkeypatch.setitem(runs[0].env.task.arena.checksums, name, "another")
    assert origin(runs) == {"device": "cpu", f"data ({name})": "another"}


class Planted:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path("planted"),)  # type: ignore[return-value]


def test_a_planted_pickle_is_not_executed(saved: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    runs = fresh([experiment(0.1), experiment(0.2)])
    by_hand = [{"tree": tree, "tensors": []} for tree in ('{"tensor": 9}', "[]", "{", '{"a": 1, "b": 2}', 3)]
    signed = [_signed(pickle.dumps(Planted())), _signed(_saved(Planted())), *(_signed(_saved(v)) for v in by_hand)]
    for data in (pickle.dumps(Planted()), *signed):
        saved.write_bytes(data)
        with pytest.raises(UserError, match="delete it to train from the start") as refused:
            Checkpoint(saved, runs).restore()
        assert "weights_only" not in str(refused.value), "torch's advice would execute it"
    assert not Path("planted").exists()


def test_what_was_saved_is_taken_over(saved: Path) -> None:
    runs = fresh([experiment(0.1), experiment(0.2)])
    checkpoint = Checkpoint(saved, runs)
    assert checkpoint.restore()
    assert checkpoint.said == NOTE
    assert all(r.done for r in runs)


@pytest.mark.parametrize("content", [None, [], 3, "text", {}, {"states": []}, {"note": {}, "states": {}, "origin": {}}])
def test_a_tree_of_another_form_is_refused(saved: Path, content: Any) -> None:
    saved.write_bytes(pack(content))
    runs = fresh([experiment(0.1), experiment(0.2)])
    with pytest.raises(UserError, match="delete it to train from the start"):
        Checkpoint(saved, runs).restore()
    assert all(not r.state for r in runs)


def _signed(body: bytes) -> bytes:
    """With the right checksum, as somebody who knows the format would write it."""
    import hashlib

    from reproduce.engine.checkpoint import MAGIC

    return MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def _saved(value: object) -> bytes:
    import io

    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()
