"""Where a result comes from: the commit and its mark, the machine; and that a run says so when it starts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from reproduce.__main__ import main
from reproduce.engine import provenance, train


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a package and a results file, committed."""
    for name in ("package/module.py", "results/a.parquet"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("1")
    identity = ["-c", "user.name=x", "-c", "user.email=x"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path / "package")
    provenance.commit.cache_clear()
    yield tmp_path
    provenance.commit.cache_clear()


def test_a_changed_or_new_file_of_the_package_is_marked_and_a_result_is_not(repository: Path) -> None:
    clean = provenance.commit()
    assert len(clean) == 12
    for name, mark in (("results/a.parquet", ""), ("package/new.py", "+"), ("package/module.py", "+")):
        (repository / name).write_text("2")
        provenance.commit.cache_clear()
        assert provenance.commit() == clean + mark
        subprocess.run(["git", "checkout", "-q", "."], cwd=repository, check=True)
        (repository / "package/new.py").unlink(missing_ok=True)


def test_outside_a_repository_the_commit_is_unknown(repository: Path) -> None:
    shutil.rmtree(repository / ".git")
    assert provenance.commit() == "unknown"


def test_a_run_of_uncommitted_code_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for commit, said in (("c0ffee", 0), ("c0ffee+", 1)):
        monkeypatch.setattr(train, "commit", lambda commit=commit: commit)
        assert main(["train", "smoke", "fedacs", "toy2d-comm-only"]) == 0
        assert capsys.readouterr().err.count("the result will be marked as of uncommitted code") == said


def test_the_machine_is_named() -> None:
    found = provenance.environment()
    assert found["machine"]["processor"]
    assert set(found["compiled"]) == {"isa", "compiler"}
