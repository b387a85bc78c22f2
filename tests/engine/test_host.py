"""Processor time and memory of a job: who pays for what, and that results say it. Clocks are counted, not measured."""

import itertools
import platform
import re
import resource
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from reproduce import store
from reproduce.algorithms.base import FedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Cyclic
from reproduce.declare.experiment import Experiment, Panel
from reproduce.engine import host, machine, scheduler, trainer
from reproduce.engine.client_split import ClientSplits
from reproduce.engine.host import Progress
from reproduce.engine.machine import peak_memory
from reproduce.engine.scheduler import Scheduler, prepare
from reproduce.models.declared import Softmax
from reproduce.partitions.labels import IID
from reproduce.problem import Classification
from reproduce.runs import job as train
from reproduce.runs.plan import Job
from reproduce.settings import settings
from reproduce.systems import System
from reproduce.systems.work import Steps

DIGITS = Classification("digits", Softmax(64, 10), IID(), 1, Cyclic(8), train_samples=120, test_samples=60)


def experiment(name: str, lr: float = 0.1, steps: int = 2) -> Experiment:
    return Experiment({"algorithm": name}, DIGITS, System(work=Steps(steps)), FedAvg(lr=lr), Rounds(3))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every chunk takes one second; evaluations take none."""
    ticks = itertools.count()
    monkeypatch.setattr(trainer.time, "thread_time", lambda: float(next(ticks)))
    monkeypatch.setattr(scheduler, "process_time", lambda: 0.0)


def spent(*experiments: Experiment) -> tuple[list[float], int]:
    """Seconds of every run, and chunks in all."""
    chunks = 0

    class Counting(trainer.Trainer):
        def _call(self, *args):  # type: ignore[no-untyped-def]
            nonlocal chunks
            chunks += 1
            return super()._call(*args)

    worker = Counting(strategy="stacked")
    played = Scheduler(prepare(experiments, [0], ClientSplits(settings())), worker)
    played.run()
    return played.cpu, chunks


def test_what_several_runs_ask_for_is_divided_among_them(clock: None) -> None:
    alone, chunks = spent(experiment("a"))
    assert sum(alone) == pytest.approx(chunks) == 3
    both, chunks = spent(experiment("a"), experiment("b"))
    assert both == pytest.approx([1.5, 1.5])
    assert chunks == 3


def test_a_chunk_is_paid_by_the_steps_of_its_runs(clock: None) -> None:
    """The one that does three times the steps pays three quarters of what both do together."""
    cpu, chunks = spent(experiment("a", steps=2), experiment("b", lr=0.2, steps=6))
    assert sum(cpu) == pytest.approx(chunks)
    assert cpu[1] == pytest.approx(3 * cpu[0])


@pytest.mark.parametrize(("told", "name", "instructions"), [
    ("model name\t: Quick\nflags\t: fma avx2\n\nmodel name: B\nflags: avx512f", "Quick", "avx2"),
    ("model name: Q\ncpu family: 6\nmodel: 207\nflags: avx2 fma avx512f", "Q (family 6, model 207)", "avx512"),
    ("flags: avx2", platform.machine(), platform.machine()),
    (None, platform.processor() or platform.machine(), platform.machine()),
])  # fmt: skip
def test_the_processor_has_the_name_and_the_instructions_of_its_first_core(
    told: str | None, name: str, instructions: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.delenv("REPRODUCE_ISA", raising=False)
    if told:
        host.CPUINFO.write_text(told)
    host._processor.cache_clear()
    told_of = host.machine()
    host._processor.cache_clear()
    assert (told_of["processor"], told_of["instructions"]) == (name, instructions)


def test_results_say_what_they_took(tmp_path: Path) -> None:
    panel = Panel("p", (experiment("a", steps=4000), experiment("b", lr=0.2)), (0, 1, 2))
    before = peak_memory()
    job = Job("smoke", "fedacs", "p", panel, panel.experiments, ())
    train.train_job(job, tmp_path / "p.pt", tmp_path / "p.parquet")
    runs = store.usable(tmp_path / "p.parquet")[1]
    assert len(runs) == 6
    assert runs[0].training["cpu_seconds"] >= sum(run.seconds or 0 for run in runs) - 0.01 * 6
    assert 0 < sum(runs[0].training["seconds_by_part"].values()) <= runs[0].training["seconds"] + 0.02
    assert before <= runs[0].training["peak_memory"] <= peak_memory()
    unit = 1 if sys.platform == "darwin" else 1024
    assert peak_memory() >= unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert all((run.samples or 0) > 0 for run in runs)


def test_an_interrupted_job_counts_on_and_knows_what_began_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds, processor time and memory; and that an older torch began it."""
    panel, out = Panel("p", (experiment("a"),), (0,)), tmp_path / "p.parquet"
    earlier = {"seconds": 1e7, "process": 2e7, "memory": 10**15}

    class Late(train.Checkpoint):
        """That of a job which had trained for long."""

        def save(self) -> None:
            note = self.note()
            self.note = lambda: {**note, **earlier, "cpu": [1e6], "by": {**note["by"], "torch": "0.1"}}
            super().save()
            raise ZeroDivisionError

    monkeypatch.setenv("REPRODUCE_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("REPRODUCE_CHECKPOINT", "0")
    arguments = (Job("smoke", "fedacs", "p", panel, panel.experiments, ()), tmp_path / "p.pt", out)
    with monkeypatch.context() as first:
        first.setattr(train, "Checkpoint", Late)
        with pytest.raises(ZeroDivisionError):
            train.train_job(*arguments)
    train.train_job(*arguments)
    (only,) = store.usable(out)[1]
    note = only.training
    assert note["resumed"]
    version = re.escape(str(torch.__version__))
    assert re.fullmatch(rf"begun with torch 0.1, goes on with {version}: rounding .*", note["instructions_changed"])
    assert 1e7 < note["seconds"] < 1.1e7
    assert 2e7 < note["cpu_seconds"] < 2.1e7
    assert note["peak_memory"] == 10**15
    assert 1e6 < (only.seconds or 0) < 1.1e6


def run(length: int, done: bool = False, **state: Any) -> Any:
    clock = SimpleNamespace(length=lambda experiment: length)
    return SimpleNamespace(experiment=SimpleNamespace(clock=clock), state=state, done=done)


def test_the_bar_counts_the_rounds_of_all_runs_and_those_that_a_finished_one_did_not_need(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs = [run(10, round=3), run(10, round=4, done=True), run(5)]
    with Progress("job", runs) as progress:
        progress.update()
        assert (progress.bar.n, progress.bar.total) == (13, 25)
        runs[2].state["round"] = 2
    assert progress.bar.n == 15
    assert re.fullmatch(r"job: 15 of 25 rounds in \d s\n", capsys.readouterr().err), "a log gets one line"


def test_products_stay_float32() -> None:
    machine.fast_products()
    a, b = torch.randn(64, 300), torch.randn(300, 80)
    exact = a.double() @ b.double()
    assert ((a @ b).double() - exact).abs().max() / exact.abs().max() < machine.TOLERANCE


def test_switch_is_taken_back_when_the_products_are_not_float32(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    before = torch.backends.mkldnn.matmul.fp32_precision
    monkeypatch.setattr(machine, "TOLERANCE", 0.0)
    torch.backends.mkldnn.matmul.fp32_precision = "none"
    machine._exact_products.cache_clear()
    assert machine.fast_products() is False
    machine._exact_products.cache_clear()
    assert torch.backends.mkldnn.matmul.fp32_precision == "none"
    torch.backends.mkldnn.matmul.fp32_precision = before


def test_the_memory_is_that_of_the_machine_or_what_a_container_may_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "memory.max"
    monkeypatch.setattr(host, "ALLOWED", file)
    whole = host.memory()
    for text, said in (("max\n", whole), ("123456\n", 123456.0), (f"{10 * int(whole)}\n", whole)):
        file.write_text(text)
        assert host.memory() == said
    file.unlink()
    assert host.memory() == whole


def test_a_signal_is_a_wish_in_the_main_thread_and_nothing_is_asked_in_another() -> None:
    def asked() -> bool:
        with host.Stopping() as stopping:
            return signal.getsignal(signal.SIGTERM) == stopping._asked

    before = signal.getsignal(signal.SIGTERM)
    with ThreadPoolExecutor(1) as other:
        assert (asked(), other.submit(asked).result()) == (True, False)
    assert signal.getsignal(signal.SIGTERM) == before
