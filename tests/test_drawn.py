"""What makes an artifact due: what draws it, and no other figure beside it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ASK = """
import json
from reproduce.runs import drawn, plan
print(json.dumps({a.id: drawn.digest(a, "smoke") for a in plan.select("fedacs")}))
"""


def digests(project: Path) -> dict[str, str]:
    run = subprocess.run([sys.executable, "-c", ASK], cwd=project, capture_output=True, text=True, check=True)
    return dict(json.loads(run.stdout))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(ROOT / "reproduce", tmp_path / "reproduce", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def add(project: Path, name: str, text: str) -> None:
    with (project / "reproduce" / name).open("a", encoding="utf-8") as file:
        file.write(text)


def test_a_new_figure_makes_one_artifact_due(project: Path) -> None:
    """With functions, and printed numbers, of its own."""
    before = digests(project)
    add(project, "papers/fedacs/measures.py", "\n\ndef novel(histories):\n    return histories.frame\n")
    add(project, "papers/fedacs/pictures.py", "\n\ndef new(histories, cells):\n    return None\n")
    declared = "Artifact('fedacs', 'fig99', 'New', no_panels, cells=Code('measures:novel'), draw=Code('pictures:new'))"
    add(project, "papers/fedacs/artifacts.py", f"\nARTIFACTS = [*ARTIFACTS, {declared}]\n")
    add(project, "papers/fedacs/reported/fig99.csv", "artifact,metric,value\n")
    after = digests(project)
    assert after.keys() - before.keys() == {"fedacs/fig99"}
    assert {name: digest for name, digest in after.items() if name in before} == before
    add(project, "papers/fedacs/reported/fig99.csv", "fig99,accuracy,1\n")
    assert {name for name, digest in digests(project).items() if digest != after[name]} == {"fedacs/fig99"}


def test_what_an_artifact_uses_makes_it_due(project: Path) -> None:
    before = digests(project)
    pictures = project / "reproduce/papers/fedacs/pictures.py"
    text = pictures.read_text(encoding="utf-8")
    pictures.write_text(text.replace("def schematic(", "def schematic(  # with a comment\n    "), encoding="utf-8")
    assert digests(project) == before, "a comment changes nothing"
    changed = text.replace("def schematic(", "def schematic(more=0, *, ", 1) if "def schematic(" in text else text
    pictures.write_text(changed, encoding="utf-8")
    after = digests(project)
    assert {name for name in before if after[name] != before[name]} == {"fedacs/fig2", "fedacs/fig3", "fedacs/fig5"}
    add(project, "report/figures.py", "\nMORE = 1\n")
    assert not set(digests(project).values()) & set(before.values()), "the report draws all of them"
