"""Playing with wrong input: one clear line, status 2, nothing trained; what `play` shows untrained; how it ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reproduce import files
from reproduce.__main__ import main
from reproduce.declare import closure
from reproduce.play.benchmarks import ALIASES, find
from reproduce.play.specs import parse, seeds
from reproduce.runs import plan


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [
        ("fedporx", "unknown algorithm 'fedporx'; did you mean fedprox"),
        ("fedprox(nu=1)", "unknown option of fedprox(nu=1) 'nu'; did you mean mu"),
        ("fedprox(mu='high')", "mu is a number at least 0, not 'high'"),
        ("fedprox(mu=-1)", "mu is a number at least 0, not -1"),
        ("fedprox(mu=__import__('os'))", "options are name=value"),
        ("fedprox(mu=1", "names no algorithm: write NAME"),
        ("fedagrac(scheme='last')", "scheme is one of 'fedagrac', 'avg', 'first', 'reverse', not 'last'"),
        ("fedbuff", "fedbuff cannot run on fedagrac-steps: Asynchronous is a rule of the event clock"),
        ("mine:Slwo", "unknown algorithm of mine.py 'Slwo'; did you mean Slow"),
        ("mine:Plain", "mine:Plain is no algorithm: it must inherit from"),
        ("mine:Forgotten", "needs @dataclass(frozen=True) above it"),
        ("mine:Picky", "mine:Picky cannot run on fedagrac-steps: I like no problem"),
        ("mime:Slow", "unknown module 'mime'; did you mean mine"),
        ("broken:A", "broken.py cannot be imported: SyntaxError"),
        ("leaves:A", "leaves.py cannot be imported: SystemExit: 3 (leaves.py, line 1)"),
        ("json:A", "json.py has the name of a module that is in use"),
        ("fedavg(lr=0.1, lr=0.2)", "lr is given twice"),
        ("own:Pulled(mu=-1)", "mu is a number at least 0, not -1"),
    ],
)
def test_a_wrong_algorithm_is_one_line(
    folder: Path, algorithm: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "broken.py").write_text("class A(:\n")
    (folder / "leaves.py").write_text("raise SystemExit(3)\n")
    (folder / "json.py").write_text("class A: pass\n")
    (folder / "own.py").write_text(OWN)
    assert main(["play", "fednova", algorithm, "--on", "fedagrac-steps", "--scale", "smoke"]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    assert not said.out
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("fednova --on fedacs-statik --scale smoke", "unknown benchmark 'fedacs-statik'; did you mean fedacs-static"),
        ("fednova --on fedacs/nothing --scale smoke", "unknown benchmark 'fedacs/nothing'"),
        ("fednova --on fedacs/image-blobs-static@0 --scale smoke", "after @ comes a number of rounds, here 1 to"),
        ("fednova --on fiarse/five-image-blobs@2/x --scale smoke", "after @ comes a number of rounds, here 1 to"),
        ("fednova --on fedacs/image-blobs-static@2/0 --scale smoke", "the seed of one split, which its partition"),
        ("fedavg --on defedavg/gaussian-noniid-n3@5 --scale smoke", "its clock is not that of rounds"),
        ("fednova --on sessions --scale paper", "sessions is at smoke and reduced scale"),
        ("fednova --on fedagrac/fig1:model=x --scale smoke", "the panel has instance, algorithm"),
        ("fednova --on sessions --scale smoke --seeds 1,1", "seeds '1,1': use different numbers"),
        ("fednova --on sessions --scale smoke --seeds one", "seeds 'one': use whole numbers and ranges"),
        ("fednova --on sessions --scale smoke --tune --seeds 1000", "must not be reported"),
        ("fednova --on sessions --scale smoke --tune --grid 1,x", "grid '1,x': use numbers and commas"),
        ("fednova --on sessions --scale smoke --tune --grid 0,1", "a grid has different positive numbers"),
        ("--on sessions --scale smoke", "name an algorithm and a benchmark"),
        ("fednova --on sessions", "mnist: "),
        ("fednova --on sessions --scale smoke -o /proc/x", "cannot write"),
    ],
)
def test_wrong_words_are_one_line(
    folder: Path, arguments: str, words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPRODUCE_DATA", str(folder / "nowhere"))
    plan._available.cache_clear()
    assert main(["play", *arguments.split()]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.err.count("\n") == 1
    assert not said.out
    plan._available.cache_clear()


def test_what_has_no_numbers_is_a_table_without_a_picture(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["play", "fednova", "--on", "fedagrac-steps", "--scale", "smoke", "--seeds", "0"]
    asked += ["--tune", "--grid", "1e20,1e25"]
    assert main([*asked, "-o", "tuned"]) == 0
    said = capsys.readouterr()
    assert said.err.endswith("not drawn: no run has numbers\n")
    assert said.out.endswith("written: tuned.md, .csv\n")
    assert said.out.count("diverged at every rate of its grid") == 2
    assert [f.suffix for f in sorted(folder.glob("tuned.*"))] == [".csv", ".md"]


def test_lists(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["play", "--list", "--scale", "smoke"]) == 0
    header, *lines = (line.split() for line in capsys.readouterr().out.splitlines())
    assert (header[0], [line[0] for line in lines[: len(ALIASES)]]) == ("BENCHMARK", list(ALIASES))


def test_seeds() -> None:
    assert seeds("0-2,7") == (0, 1, 2, 7)
    assert seeds("5") == (5,)


OWN = """
from dataclasses import dataclass
from reproduce.algorithms.fedprox import FedProx

@dataclass(frozen=True)
class Pulled(FedProx):
    def __post_init__(self):
        pass

@dataclass(frozen=True)
class Mine(FedProx):
    momentum: int = 3
"""


def test_a_field_of_ones_own_has_ones_own_range(folder: Path) -> None:
    """Only what is inherited has the range of the package."""
    (folder / "own.py").write_text(OWN)
    assert parse("own:Mine(momentum=5)").options == (("momentum", 5),)
    assert find("fedagrac-steps", "smoke").experiment(parse("own:Mine(momentum=5)")).algorithm.momentum == 5


def test_what_cannot_be_drawn_is_not_said_of_the_folder(tmp_path: Path) -> None:
    def draw(file: object) -> None:
        raise ValueError("no such colour")

    with pytest.raises(ValueError, match="no such colour"):
        files.write(tmp_path / "a.png", draw)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("where", ["aggregate", "__post_init__"])
def test_an_algorithm_that_ends_the_program_has_failed(folder: Path, where: str) -> None:
    (folder / "gone.py").write_text(
        "import sys\nfrom dataclasses import dataclass\nfrom reproduce.algorithms.base import FedAvg\n"
        f"@dataclass(frozen=True)\nclass Gone(FedAvg):\n    def {where}(self, *others):\n        sys.exit()\n"
    )
    words = ["play", "gone:Gone", "--on", "fedagrac-steps", "--scale", "smoke", "--seeds", "0"]
    run = subprocess.run(
        [sys.executable, "-m", "reproduce", *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(closure.PACKAGE.parent)},
    )
    assert run.returncode == 2
    assert run.stderr.splitlines()[-1].startswith("error: gone:Gone")
    assert "SystemExit" in run.stderr.splitlines()[-1]
