"""The kill harness in short, on the cheapest job of each paper and clock; it notices what it looks for."""

import subprocess
import sys
from pathlib import Path

from benchmarks.faults import COLUMNS, KINDS

ROOT = Path(__file__).parents[2]
RUN = "from benchmarks.faults import faults\nfaults({kills}, moments=False)"
BENT = """
from reproduce.engine.checkpoint import Checkpoint
real = Checkpoint.restore
def bent(checkpoint):
    found = real(checkpoint)
    for run in checkpoint.runs:
        if "x" in run.state:
            run.state["x"] *= 1.0001
    return found
Checkpoint.restore = bent
"""
IN_PLACE = """
from reproduce import files
def in_place(path, fill):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        fill(file)
files.write = in_place
"""


def counted(before: str, kills: int) -> dict[str, int]:
    """What the harness counts in a process that begins with the lines `before`."""
    run = subprocess.run(
        [sys.executable, "-c", before + RUN.format(kills=kills)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    names, _, *_, numbers = [line.strip("| ").split(" | ") for line in run.stdout.splitlines() if line.startswith("|")]
    return dict(zip(names[1:], map(int, numbers[1:]), strict=True))


def test_no_death_changes_a_bit() -> None:
    found = counted("", 40)
    assert tuple(found) == COLUMNS
    assert sum(found[kind] for kind in KINDS) == 40
    assert all(found[kind] for kind in KINDS[1:])
    assert found["jobs"] >= 7, "every paper, every clock"
    assert found["two at once"] > 0
    assert found["resumed"] > 20, "most lives find what an earlier one left"
    assert (found["changed jobs"], found["half files"]) == (0, 0)


def test_a_resumption_that_changes_a_bit_is_noticed() -> None:
    assert counted(BENT, 8)["changed jobs"] > 0


def test_a_file_that_is_written_in_place_is_noticed() -> None:
    assert counted(IN_PLACE, 8)["half files"] > 0
