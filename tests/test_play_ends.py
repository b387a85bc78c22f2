"""How a play ends: with a picture whatever users call things, and not as if all were well where it was not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import own_algorithms
import pandas as pd
import pytest

from reproduce import files
from reproduce.__main__ import main
from reproduce.declare import closure
from reproduce.play import shown


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return own_algorithms.folder(tmp_path, monkeypatch)


@pytest.mark.parametrize("benchmarks", [["fedagrac-steps"], ["fedagrac-steps", "fedacs-static"]], ids=["one", "two"])
def test_a_users_words_are_drawn_as_they_are(folder: Path, benchmarks: list[str]) -> None:
    """Two dollars are no mathematics, a sign that the font lacks is a box, a long name is cut; warnings are errors."""
    own = [f"mine:Slow(word={word!r})" for word in ("$a_$", r"$\\frac{$ | %", "\U0001f980", "x" * 400, "a\nb")]
    asked = ["play", *own, "--on", *benchmarks, "--scale", "smoke", "--seeds", "0", "-o", "out/all"]
    assert main(asked) == 0
    assert {f.name for f in Path("out").iterdir()} == {"all.md", "all.csv", "all.png", "all.pdf"}
    assert main([*asked, "--finished"]) == 0, "what an earlier call wrote is replaced"


def test_names_in_pictures() -> None:
    long = ["x" * 400, "x" * 399 + "y", "$a$"]
    assert shown.labels(pd.DataFrame({"algorithm": long}))["$a$"] == r"\$a\$"
    assert len(shown.labels(pd.DataFrame({"algorithm": long}))[long[0]]) == 61
    alike = [f"{'x' * 100}{i}{'x' * 100}" for i in range(2)]
    assert len(set(shown.labels(pd.DataFrame({"algorithm": alike})).values())) == 2


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
