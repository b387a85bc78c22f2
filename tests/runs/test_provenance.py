"""Where a result comes from: the commit and its mark, the machine; and that a run says so when it starts."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from reproduce import store
from reproduce.__main__ import main
from reproduce.errors import UserError
from reproduce.runs import job as train
from reproduce.runs import provenance

ROOT = Path(__file__).parents[2]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a package and a results file, committed."""
    folder = tmp_path / "repository"
    for name in ("package/__init__.py", "package/module.py", "results/a.parquet"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("1")
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
        git(folder, *command)
    monkeypatch.setattr(provenance, "PACKAGE", folder / "package")
    provenance.commit.cache_clear()
    yield folder
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


def test_outside_a_repository_the_commit_is_the_one_that_is_named(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPRODUCE_COMMIT", "5" * 40)
    assert provenance.commit() != "5" * 12
    shutil.rmtree(repository / ".git")
    for named, said in ((None, "unknown"), ("5" * 40, "5" * 12)):
        provenance.commit.cache_clear()
        monkeypatch.setenv("REPRODUCE_COMMIT", named) if named else monkeypatch.delenv("REPRODUCE_COMMIT")
        assert provenance.commit() == said
    provenance.commit.cache_clear()
    monkeypatch.setenv("REPRODUCE_COMMIT", "main")
    with pytest.raises(UserError, match=r"^REPRODUCE_COMMIT=main: use what `git rev-parse HEAD` says"):
        provenance.commit()


def test_a_run_of_uncommitted_code_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for commit, said in (("c0ffee", 0), ("c0ffee+", 1)):
        monkeypatch.setattr(train, "commit", lambda commit=commit: commit)
        assert main(["train", "--scale", "smoke", "fedacs", "toy2d-comm-only"]) == 0
        assert capsys.readouterr().err.count("the result will be marked as of uncommitted code") == said


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def commit_of(package: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (package / "__init__.py").touch()
    monkeypatch.setattr(provenance, "PACKAGE", package)
    provenance.commit.cache_clear()
    return provenance.commit()


def unpacked(repository: Path) -> Path:
    """A source archive inside another repository."""
    package = repository / "vendor/source/package"
    package.mkdir(parents=True)
    return package


def vendored(repository: Path) -> Path:
    """A source archive that another repository tracks."""
    package = unpacked(repository)
    (package / "__init__.py").touch()
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "vendored")
    return package


def linked(repository: Path) -> Path:
    """A worktree of the repository."""
    git(repository, "worktree", "add", "-q", str(repository / "tree"))
    return repository / "tree/package"


@pytest.mark.parametrize("place", [unpacked, vendored, linked])
def test_another_repository_around_the_package_does_not_count_and_a_worktree_of_its_own_does(
    place: Callable[[Path], Path], repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert commit_of(place(repository), monkeypatch) == (own(repository) if place is linked else "unknown")


def own(repository: Path) -> str:
    said = subprocess.run(["git", "rev-parse", "HEAD"], cwd=repository, check=True, capture_output=True, text=True)
    return said.stdout[:12]


def test_a_clone_of_another_user_has_its_commit(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = own(repository)
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # git's own switch; else it is "dubious ownership"
    assert commit_of(repository / "package", monkeypatch) == commit


def test_without_git_or_where_git_refuses_the_commit_is_unknown(
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An old git refuses a folder of another owner whatever it is told, and every git a damaged repository."""
    programs = tmp_path_factory.mktemp("programs")
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(programs))
        assert commit_of(repository / "package", monkeypatch) == "unknown"
        assert "name it in REPRODUCE_COMMIT" in capsys.readouterr().err
        (programs / "git").write_text("#!/bin/sh\necho 'fatal: detected dubious ownership' >&2; exit 128\n")
        (programs / "git").chmod(0o755)
        assert commit_of(repository / "package", monkeypatch) == "unknown"
        (programs / "git").write_text("#!/bin/sh\nexit 0\n")
        assert commit_of(repository / "package", monkeypatch) == "unknown"
    (repository / ".git/HEAD").write_text("nonsense")
    assert commit_of(repository / "package", monkeypatch) == "unknown"


def test_every_commit_that_a_committed_result_names_is_in_the_history() -> None:
    def history(*asked: str) -> str:
        return subprocess.run(["git", "-C", ROOT, *asked], capture_output=True, text=True, check=True).stdout

    try:
        if history("rev-parse", "--is-shallow-repository").strip() == "true":
            pytest.skip("the history is not here: git fetch --unshallow")
        known = {commit[:12] for commit in history("rev-list", "HEAD").split()}
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no repository of git")
    files = [file for scale in ("paper", "reduced") for file in (ROOT / "results" / scale).rglob("*.parquet")]
    named = {str(run.training["git"]) for file in files for run in store.result(file)[1]}
    assert not named - known
