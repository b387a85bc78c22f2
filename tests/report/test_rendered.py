"""What is committed is what this code makes of the committed results, whatever data and settings a machine has."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reproduce.report import render
from reproduce.runs import due, plan

ROOT = Path(__file__).parents[2]
COMMITTED = [
    (scale, a.id)
    for scale in ("paper", "reduced")
    for a in plan.artifacts()
    if Path(plan.outputs(scale, a.id)[-1]).exists()
]
SAMPLE = [("paper", "fedacs/table1"), ("reduced", "fedagrac/table4"), ("reduced", "fedacs/fig2")]


def unchanged(scale: str, name: str, folder: Path) -> None:
    artifact = plan.artifact(name)
    histories = render.read(artifact, scale, plan.sources(scale, name), plan.seeds_read(scale, name))
    for file in render.make(artifact, histories, folder):
        assert file.read_bytes() == file.relative_to(folder).read_bytes(), file.name


@pytest.mark.parametrize(("scale", "name"), SAMPLE)
def test_rendering_changes_no_file(scale: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it ask which data are here."""
    monkeypatch.setenv("REPRODUCE_DATA", str(tmp_path / "none"))
    unchanged(scale, name, tmp_path)


@pytest.mark.parametrize(("scale", "name"), COMMITTED)
def test_rendering_everything_changes_no_file(scale: str, name: str, tmp_path: Path) -> None:
    unchanged(scale, name, tmp_path)


def test_no_artifact_is_stale() -> None:
    """By its record: nobody has to draw it to know."""
    stale = []
    for scale, name in COMMITTED:
        *_, cells, record = map(Path, plan.outputs(scale, name))
        if json.loads(record.read_text()) != due.store.sealed(plan.made_from(scale, name), cells):
            stale.append((scale, name))
    assert not stale


ASK = "import json; from reproduce.runs import plan; print(json.dumps({p: plan.drawn(p) for p in plan.PAPERS}))"


def test_what_draws_a_paper_is_its_modules_and_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A comment changes nothing, and neither does a name that it does not use."""
    package = shutil.copytree(ROOT / "reproduce", tmp_path / "reproduce", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def digests() -> dict[str, str]:
        run = subprocess.run([sys.executable, "-c", ASK], cwd=tmp_path, capture_output=True, text=True, check=True)
        return dict(json.loads(run.stdout))

    def changed(name: str, old: str, new: str) -> set[str]:
        file, before = package / name, dict(latest)
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new, 1), encoding="utf-8")
        latest.update(digests())
        return {paper for paper, digest in latest.items() if digest != before[paper]}

    latest = digests()
    assert changed("report/spellings.py", "NAMES = {", 'NAMES = {"brand_new": "Brand-new", ') == set()
    assert changed("report/spellings.py", '"FedACS"', '"Fed-ACS"') == {"fedacs"}
    assert changed("papers/fedacs/pictures.py", "def ", "# a comment\ndef ") == set()
    assert changed("papers/fedacs/pictures.py", "\n\n\ndef ", "\n\n\nMORE = 1\n\n\ndef ") == {"fedacs"}
    assert changed("papers/fiarse/reported/table1.csv", "\n", "\n\n") == {"fiarse"}
    assert changed("report/figures.py", "FULL = 7.0", "FULL = 7.1") == set(plan.PAPERS)
