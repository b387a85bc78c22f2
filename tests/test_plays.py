"""What a workflow asks of `play`: refused before any job if it makes no sense, asked again when something changed."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import forks
import own_algorithms
import pytest

from reproduce.cli import plays
from reproduce.declare import closure
from reproduce.errors import UserError

ROOT = Path(__file__).parent.parent
CONFIG: dict[str, Any] = {
    "algorithms": ["fedavg", "mine:Slow"],
    "benchmarks": ["sessions"],
    "scale": "smoke",
    "seeds": "0-1",
    "tune": False,
    "grid": [0.1, 1, 10],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return own_algorithms.folder(tmp_path, monkeypatch)


def config(**changes: Any) -> dict[str, Any]:
    return {"play": {**CONFIG, **changes}}


def asked(**changes: Any) -> str:
    return Path(plays.marker("smoke", "sessions", config(**changes))).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"algorithms": ["fedprx"]}, "unknown algorithm 'fedprx'; did you mean fedprox"),
        ({"algorithms": ["mine:Nobody"]}, "unknown algorithm of mine.py 'Nobody'"),
        ({"benchmarks": ["sessions", "sesions"]}, "unknown benchmark 'sesions'; did you mean sessions"),
        ({"seeds": "abc"}, "seeds 'abc': use whole numbers"),
        ({"grid": [3, 1]}, "a grid has different positive numbers, in ascending order"),
        ({"tune": True, "seeds": "1000"}, "must not be reported"),
    ],
)
def test_what_cannot_be_played_is_refused_before_any_job(folder: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        plays.tables(config(**changes))


def test_a_benchmark_that_is_asked_for_by_file_must_exist(folder: Path) -> None:
    with pytest.raises(UserError, match="did you mean sessions"):
        plays.marker("smoke", "sesions", config())


def test_a_play_is_asked_again_when_anything_changes_that_its_numbers_depend_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = asked()
    assert asked() == first
    others = [asked(seeds="0-2"), asked(algorithms=["fedavg", "mine:Slow(share=0.25)"]), asked(tune=True)]
    monkeypatch.setenv("REPRODUCE_PRECISION", "bfloat16")
    others.append(asked())
    monkeypatch.delenv("REPRODUCE_PRECISION")
    helper = Path("helper.py")
    helper.write_text(helper.read_text() + "\nMORE = 1\n")
    others.append(asked())
    assert len({first, *others}) == 6
    mine = Path("mine.py")
    mine.write_text("# a comment changes nothing\n" + mine.read_text())
    assert asked() == others[-1]


def test_an_own_file_in_the_folder_of_a_clone_finds_the_package_that_runs(folder: Path) -> None:
    """README says to run from there: the package that lies beside the file is not a part of it."""
    Path("reproduce").symlink_to(closure.PACKAGE)
    assert closure.own(frozenset({folder / "mine.py"})) == {folder / "mine.py", folder / "helper.py"}
    assert plays.tables(config()) == ["play/smoke/sessions.md"]


def test_a_workflow_hands_over_what_was_written(folder: Path) -> None:
    """Snakemake fills in nothing that stands in braces, and the shell nothing either: of one benchmark, and of all."""
    words = (
        "{scale}", "{nothing}", "{{wildcards.scale}}", "{0}", "a b", "$HOME `id` $(id)", '"', "\\'", "%s", "a\nb",
        "*",
    )  # fmt: skip
    own = [f"mine:Slow(word={word!r})" for word in words]
    (folder / "config").mkdir()
    (folder / "config/config.yaml").write_text(json.dumps(config(algorithms=own)))
    words = ("play/smoke/across.md", "-n", "-p", "-s", str(ROOT / "Snakefile"), "-d", ".")
    run = forks.run(folder, "snakemake", words, {**os.environ, "PYTHONPATH": str(ROOT)})
    assert run.returncode == 0, run.stderr
    calls = run.stdout.split(f"{shlex.quote(sys.executable)} -m reproduce play ")[1:]
    assert ["play/smoke/sessions" in calls[0], "play/smoke/across" in calls[1]] == [True, True]
    assert [shlex.split(call)[: len(own)] for call in calls] == [own, own]
