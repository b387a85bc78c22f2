"""Which compiled code is built, for which instructions, and what happens where it cannot be."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from runs import run

from reproduce.algorithms.base import FedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Fixed
from reproduce.declare.experiment import Experiment
from reproduce.engine import host
from reproduce.engine.kernels import library
from reproduce.errors import UserError
from reproduce.models.declared import Softmax
from reproduce.partitions.labels import IID
from reproduce.problem import Classification
from reproduce.systems import Steps, System


def test_the_instructions_of_this_machine_are_those_that_it_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REPRODUCE_ISA", raising=False)
    assert host.machine()["instructions"]
    monkeypatch.setenv("REPRODUCE_ISA", "none")
    assert host.machine()["instructions"] == "none"


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No library built yet; the folder where they will be."""
    library._loaded.cache_clear()
    monkeypatch.setattr(library, "_folders", lambda: [tmp_path])
    monkeypatch.setattr(library, "SOURCES", (library.HERE / "softmax.c",))  # the smallest: it is built often here
    return tmp_path


@pytest.fixture(autouse=True)
def _forget() -> object:
    yield
    library._loaded.cache_clear()


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def built(folder: Path) -> list[Path]:
    return sorted(folder.glob("kernels-*.so"))


needs_compiler = pytest.mark.skipif(library.compiler() is None or not library.levels(), reason="no C compiler")


def test_an_unknown_or_foreign_level_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPRODUCE_ISA", "avx1024")
    with pytest.raises(UserError, match="REPRODUCE_ISA=avx1024: this machine can execute"):
        library.level()
    monkeypatch.setattr(library, "levels", lambda: ("sse2",))
    monkeypatch.setenv("REPRODUCE_ISA", "avx2")
    with pytest.raises(UserError, match="can execute sse2"):
        library.level()


def test_a_machine_never_loads_a_higher_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """A home folder that unlike nodes share holds libraries of all of them."""
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    library.levels.cache_clear()
    try:
        assert library.levels() == ("sse2", "avx2")
        here = library.level()
        assert here is not None
        assert here.name == "avx2"
        assert not any("512" in flag for flag in here.flags)
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "new")
        library.levels.cache_clear()
        assert library.levels() == ("sse2",), "the lowest, where torch has another word"
    finally:
        library.levels.cache_clear()


@needs_compiler
def test_the_compiler_may_be_a_command_with_options(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`gcc -O2`, or a wrapper in front of the compiler."""
    compiler = library.compiler()
    assert compiler is not None
    wrapper = script(fresh / "wrapper", 'echo "$@" >> "$(dirname "$0")/calls"; exec "$@"')
    monkeypatch.setenv("CC", f"'{wrapper}' {compiler[0]} -DNOTHING=1")
    assert library.library(torch.float32) is not None
    assert "-DNOTHING=1" in (fresh / "calls").read_text()
    assert library.how()["isa"] == library.level().name  # type: ignore[union-attr]


def test_a_compiler_that_fails_ends_in_one_line(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pages of notes are not repeated."""
    broken = script(fresh / "broken", "echo 'x.c: note: nothing' >&2; echo 'x.c:1: error: no' >&2; exit 1")
    monkeypatch.setenv("CC", str(broken))
    with pytest.raises(UserError, match=r"broken made no kernels-float\S+: x\.c:1: error: no; .* \(CC=none, slower\)"):
        library.library(torch.float32)
    assert not built(fresh)


def test_a_compiler_that_hangs_is_left(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "PATIENCE", 0.3)
    monkeypatch.setenv("CC", str(script(fresh / "slow", '[ "$1" = --version ] || exec sleep 60')))
    with pytest.raises(UserError, match="no answer within"):
        library.library(torch.float32)
    monkeypatch.setenv("CC", str(script(fresh / "mute", "exec sleep 60")))
    with pytest.raises(UserError, match="no answer within"):
        library.library(torch.float32)


def test_a_compiler_that_is_not_there_is_said(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -O2")
    library._compiler.cache_clear()
    assert library.compiler() is None
    assert "no such program" in capsys.readouterr().err


def test_a_machine_without_compiler_is_said(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(fresh))
    library._compiler.cache_clear()
    assert not library.available(torch.float32)
    assert "there is no C compiler (cc, gcc, clang); other strategies take over (slower" in capsys.readouterr().err
    assert library.how() == {"isa": "none", "compiler": "none"}
    library._compiler.cache_clear()


@needs_compiler
def test_builders_at_once_leave_one_whole_library(fresh: Path) -> None:
    code = (
        "import sys, torch; from pathlib import Path; from reproduce.engine.kernels import library;"
        "library._folders = lambda: [Path(sys.argv[1])]; library.SOURCES = (library.HERE / 'softmax.c',);"
        "assert library.library(torch.float32) is not None"
    )
    runs = [subprocess.Popen([sys.executable, "-c", code, str(fresh)], stderr=subprocess.DEVNULL) for _ in range(3)]
    assert [run.wait() for run in runs] == [0, 0, 0]
    (file,) = built(fresh)
    assert ctypes.CDLL(str(file)).softmax_runs


@needs_compiler
def test_where_no_folder_takes_a_library_it_is_loaded_from_a_private_one(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "_folders", lambda: [Path("/proc/nothing")])
    assert library.library(torch.float32).softmax_runs
    assert not built(fresh)


def test_a_folder_that_others_may_write_to_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever lies there is executed. No home is asked for."""
    monkeypatch.setattr(library, "HERE", tmp_path)
    monkeypatch.setenv("REPRODUCE_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("HOME", "/proc/nothing")
    beside, kept = tmp_path / "__pycache__", tmp_path / "store/kernels"
    assert [*library._folders()] == [beside, kept]
    beside.chmod(0o777)
    assert [*library._folders()] == [kept]
    kept.rmdir()
    kept.touch()
    assert [*library._folders()] == []
    beside.chmod(0o755)
    kept.unlink()
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    assert [*library._folders()] == [beside], "which is whose the package is"


DAMAGE = {
    "a bit": lambda c: c[:-9] + bytes([c[-9] ^ 1]) + c[-8:],
    "cut": lambda c: c[: len(c) // 2],
    "empty": lambda c: b"",
}


@needs_compiler
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_library_is_built_anew(fresh: Path, damage: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It would give other numbers, or end the process."""
    library.library(torch.float32)
    (file,) = built(fresh)
    whole = file.read_bytes()
    file.unlink()  # a loaded one is not written into
    file.write_bytes(DAMAGE[damage](whole))
    library._loaded.cache_clear()
    capsys.readouterr()
    library.library(torch.float32)
    assert f"{file} is damaged: it is built anew" in capsys.readouterr().err
    assert [f.read_bytes() for f in built(fresh)] == [whole]


@needs_compiler
def test_batches_may_be_larger_than_the_stack() -> None:
    """A batch of half a million, whose places alone are more than a thread's stack of 8 MiB holds, is all data."""
    sizes = 400, 600_000
    problems = [Classification("digits", Softmax(64, 10), IID(), 2, Fixed(size), train_samples=200) for size in sizes]
    whole, padded = run(
        [Experiment({"n": i}, p, System(work=Steps(3)), FedAvg(0.1), Rounds(2)) for i, p in enumerate(problems)]
    )
    torch.testing.assert_close(padded.state["x"], whole.state["x"])
