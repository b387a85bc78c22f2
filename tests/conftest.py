"""Every test starts with a clean environment: no user's settings, a store of its own, one thread, no display."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import miniature
import pytest

import benchmarks  # noqa: F401  (the strategy `reference`)
from reproduce.settings import Settings

ROOT = Path(__file__).parent.parent

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["MPLBACKEND"] = "Agg"


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault("REPRODUCE_DATA", str(ROOT / "data"))
    for name in ("DEVICE", "PRECISION", "THREADS", "SEEDS", "TO_TARGET"):
        os.environ.pop(f"REPRODUCE_{name}", None)


@pytest.fixture(scope="session", autouse=True)
def _own_store(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Finished runs of earlier sessions must not answer for the code under test."""
    os.environ["REPRODUCE_STORE"] = str(tmp_path_factory.mktemp("store"))


@pytest.fixture
def place(tmp_path: Path) -> Settings:
    """An empty data folder and an empty store."""
    return Settings(tmp_path / "data", tmp_path / "store", "cpu", 1)


@pytest.fixture(scope="session")
def drawn_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in miniature with a figure, which tests leave as it is."""
    project = miniature.build(tmp_path_factory.mktemp("drawn"))
    run = miniature.snakemake(project, miniature.FIG2, "-c2")
    assert run.returncode == 0, miniature.text(run)
    return project


@pytest.fixture
def drawn(drawn_once: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(drawn_once, tmp_path / "project")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project in miniature, with the real Snakefile."""
    return miniature.build(tmp_path)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out the tests that need what this machine lacks, and say so."""
    if not Path(os.environ["REPRODUCE_DATA"]).is_dir():
        for item in items:
            if item.get_closest_marker("data"):  # `keywords` has the names of folders too
                item.add_marker(pytest.mark.skip(reason="no folder with data sets (REPRODUCE_DATA)"))
