"""How a play ends: with a picture whatever users call things, and not as if all were well where it was not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reproduce import files
from reproduce.declare import closure


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
