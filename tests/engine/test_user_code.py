"""A user's own algorithm gives the same bits whatever runs beside it, or an error that says why."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import own_habits
import pytest
import torch
from runs import run

from reproduce.declare import closure
from reproduce.declare.isolation import forked
from reproduce.engine import user_code
from reproduce.engine.client_split import ClientSplits
from reproduce.engine.requests import Evaluate, Train
from reproduce.errors import OwnCodeError, UserError
from reproduce.play import display, play
from reproduce.play.benchmarks import find
from reproduce.play.match import Match
from reproduce.play.specs import parse
from reproduce.problem import Quadratic
from reproduce.settings import settings
from reproduce.store import result

ON = "fedacs/fig7-static@4"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {"habits.py": own_habits.OWN, **own_habits.FILES}.items():
        (tmp_path / name).write_text(text)
        monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REPRODUCE_STORE", str(tmp_path / "store"))
    return tmp_path


def models(name: str, seeds: tuple[int, ...] = (0,)) -> dict[int, list[float]]:
    """Seed -> the model at the end of its run, by a module that is loaded anew."""
    experiment = find(ON, "smoke").experiment(parse(f"habits:{name}"))
    return {played.seed: played.state["x"].tolist() for played in run([experiment], seeds)}


def test_what_is_remembered_anywhere_is_remembered_in_a_run_alone() -> None:
    """As if it were in its state: no run meets what another one has left, whatever runs before it."""
    expected = models("InState", (1, 0))
    for name in own_habits.REMEMBER:
        assert models(name, (1, 0)) == expected, name
        assert models(name) == {0: expected[0]}, name


def test_a_run_apart_is_the_run_of_the_algorithm_that_it_copies() -> None:
    [plain] = run([find(ON, "smoke").experiment(parse("fedavg"))], (0,))
    assert models("Same") == {0: plain.state["x"].tolist()}


@pytest.mark.parametrize("name", own_habits.WORK)
def test_the_same_bits_alone_and_in_company(name: str) -> None:
    plain, beside = models("Same", (1, 0)), models(name, (1, 0))
    assert models(name) == {0: beside[0]}
    assert models("Same", (1, 0)) == plain, "what is trained next is as ever"
    if name in ("HoldsAnything", "AddsToHistory", "Strided"):
        assert beside == plain
    if name.startswith("Global"):
        moves = [[a - b for a, b in zip(beside[seed], plain[seed], strict=True)] for seed in (0, 1)]
        assert moves[0] != moves[1]


@pytest.mark.parametrize("name", own_habits.REFUSED)
def test_an_error_that_says_why(name: str) -> None:
    with pytest.raises(UserError) as error:
        models(name)
    assert own_habits.REFUSED[name] in str(error.value)
    assert "\n" not in str(error.value)


def test_whole_numbers_of_a_request_are_those_that_a_stream_can_have() -> None:
    split = ClientSplits(settings()).get(Quadratic(2, 1), 0)
    request = Train(np.arange(2), np.array([1, 1]), split.initial(), 0.1, 0)
    for name in ("steps", "offset", "round"):
        user_code.check(split, replace(request, **{name: np.array([0, 2**32 - 1])}))
        with pytest.raises(OwnCodeError, match=f"`{name}` of Train lie in 0 .. 4294967295, not in 0 .. 4294967296"):
            user_code.check(split, replace(request, **{name: np.array([0, 2**32])}))
    user_code.check(split, Evaluate(split.initial()[None], "test"))
    with pytest.raises(OwnCodeError, match="has shape"):
        user_code.check(split, Evaluate(split.initial()[:0][None], "test"))


def test_what_does_not_repeat_itself_is_refused_and_the_rest_is_kept() -> None:
    names = (*own_habits.UNREPEATED, "InModule", "Raises")
    frame = play(["fednova", *(f"habits:{name}" for name in names)], on=ON, scale="smoke", seeds=(0, 1))
    status = frame.drop_duplicates("algorithm").set_index("algorithm")["status"]
    for name in own_habits.UNREPEATED:
        assert status[f"habits:{name}"].startswith("failed: its first rounds give other numbers when they are trained")
    assert status["habits:Raises"].startswith("failed: ZeroDivisionError")
    assert status["habits:InModule"] == status["fednova"] == "ok"
    (file,) = Path("results/smoke/play").iterdir()
    assert {run.labels["algorithm"] for run in result(Path(file))[1]} == {"fedavg", "fednova", "habits:InModule"}


def test_an_algorithm_that_is_another_to_the_last_digit_is_named() -> None:
    match = Match([parse("habits:FedÄλ"), parse("habits:InState")], [find(ON, "smoke")], (0, 1))
    match.train()
    assert [(own.text, other.text) for own, other in match.twins()] == [("habits:FedÄλ", "fedavg")]
    assert any("habits:FedÄλ gives the numbers of fedavg" in note for note in display.notes(match))


def test_settings_that_a_module_changes_are_put_back(folder: Path) -> None:
    before = models("Same")
    code = "import torch\nfrom reproduce.algorithms.base import FedAvg\ntorch.set_default_dtype(torch.float64)\n"
    (folder / "setting.py").write_text(f"{code}class A(FedAvg): pass\n")
    parse("setting:A")
    assert models("Same") == before
    assert torch.get_default_dtype() == torch.float32


def test_processes_end_with_what_waits_for_them(capfd: pytest.CaptureFixture[str]) -> None:
    """When one fails or nobody waits any more the others end too; results are in the order of the functions. What it
    printed before is heard."""
    slow = [lambda tell, i=i: (tell(os.getpid()), time.sleep(0.3 - 0.1 * i), i)[2] for i in range(3)]  # type: ignore[misc]
    pids: list[int] = []
    assert forked(slow, 2, lambda i, pid: pids.append(pid)) == [0, 1, 2]
    with pytest.raises(OwnCodeError, match="ZeroDivisionError"):
        forked([lambda tell: time.sleep(600), lambda tell: (print("so far"), 1 / 0)], 2)
    assert capfd.readouterr().out == "so far\n"
    with pytest.raises(KeyError):
        forked([lambda tell: (tell(os.getpid()), time.sleep(600))], 1, lambda i, pid: pids.append(pid), lambda: {}[1])
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def beside_a_worker() -> tuple[Any, bool]:
    return forked([lambda tell: os.getppid()]) == [os.getpid()], multiprocessing.current_process().daemon


def test_a_worker_of_a_pool_may_run_own_code() -> None:
    """It is daemonic, and stays so; multiprocessing allows such a process no children."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(beside_a_worker).get(60) == (True, True)


def test_a_child_is_not_held_up_by_threads_that_its_parent_has_used() -> None:
    """OpenMP's threads do not survive a fork."""
    script = (
        "import torch\nfrom reproduce.declare.isolation import forked\nfrom reproduce.engine.trainer import Trainer\n"
        "torch.set_num_threads(2)\na = torch.randn(900, 900)\n(a @ a, a.exp(), torch.nn.functional.softmax(a, 1))\n"
        "def play(tell):\n    Trainer(1)\n    return (a @ a).exp().sum().isnan().dtype\n"
        "assert forked([play] * 2, 2) == [torch.bool] * 2\n"
    )
    path = {"PYTHONPATH": str(closure.PACKAGE.parent)}
    assert subprocess.run([sys.executable, "-c", script], env={**os.environ, **path}, timeout=60).returncode == 0


SLOW = """
import time
from reproduce.algorithms.base import FedAvg
class Slow(FedAvg):
    def aggregate(self, env, state, now, cohort, trained):
        print("round", flush=True)
        time.sleep(0.3)
        super().aggregate(env, state, now, cohort, trained)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_own_code_that_is_stopped_begins_anew(folder: Path, number: signal.Signals) -> None:
    (folder / "slow.py").write_text(SLOW)
    words = ["play", "slow:Slow", "--on", ON, "--scale", "smoke", "--seeds", "0"]
    path = {"PYTHONPATH": str(closure.PACKAGE.parent)}
    process = subprocess.Popen(
        [sys.executable, "-m", "reproduce", *words],
        env={**os.environ, **path}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "round\n"
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "own code has no checkpoints, the same command trains it from its beginning" in errors.splitlines()[-1]
    assert not list((folder / "store/checkpoints").glob("*.pt"))
