"""Every test starts with a clean environment: no user's settings, a store of its own, one thread, no display."""

import contextlib
import json
import os
import random
import shutil
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import inputs_damage
import miniature
import pytest
from own_algorithms import folder  # noqa: F401

import benchmarks  # noqa: F401  (the strategy `reference`)
from reproduce.__main__ import main
from reproduce.settings import Settings
from reproduce.verdicts.claims import ClaimsFile, load_claims
from reproduce.verdicts.scoreboard import Verdict, scoreboard

ROOT = Path(__file__).parent.parent
TIMES = Path(__file__).parent / "times.json"
"""Test functions whose parameters together take longer than `FAST`: seconds of the slowest. `make times` writes it."""
FAST, DRAWN = 2.0, 3
PAGES = {"boards", "conf", "browser"}
"""Fixtures of whole pages: the verdicts on all committed cells, the site. What needs them is left to all tests."""
SEED = "REPRODUCE_TEST_SEED"

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["MPLBACKEND"] = "Agg"
os.environ["COLUMNS"] = "200"  # tables are read row by row


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fast", action="store_true", help="no slow test, some parameters of those that take long together"
    )
    parser.addoption("--seed", help="of the parameters that --fast draws; default: today's date")
    parser.addoption("--times", action="store_true", help=f"record slow test functions in {TIMES.name}")


def pytest_configure(config: pytest.Config) -> None:
    os.environ[SEED] = config.getoption("seed") or os.environ.get(SEED) or f"{datetime.now(UTC):%Y%m%d}"
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


@pytest.fixture(scope="session")
def finished_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a table of two jobs was trained and rendered, which tests leave as it is."""
    finished = tmp_path_factory.mktemp("finished")
    with contextlib.chdir(finished):
        for name in ("table1-lr", "table1-cnn2"):
            assert main(("train", "--scale", "smoke", "fedagrac", name)) == 0
        assert main(("render", "--scale", "smoke", "fedagrac/table1")) == 0
    return finished


@pytest.fixture(scope="session")
def one_claim(tmp_path_factory: pytest.TempPathFactory) -> list[ClaimsFile]:
    """All claims of the papers take seconds."""
    file = tmp_path_factory.mktemp("claims") / "claims.yaml"
    file.write_bytes(inputs_damage.claim())
    file.with_name("metrics.yaml").write_bytes(inputs_damage.METRICS)
    return [load_claims(file)]


@pytest.fixture(scope="session")
def boards() -> dict[str, list[Verdict]]:
    """The verdicts on the committed cells."""
    with contextlib.chdir(ROOT):
        return {scale: scoreboard(scale) for scale in ("paper", "reduced")}


def pytest_report_header(config: pytest.Config) -> list[str]:
    again = f"pytest --fast --seed {os.environ[SEED]} draws the same"
    said = f"fast: no whole page, nothing over {FAST:g} s, of many parameters {DRAWN} or as many as that takes; {again}"
    return [said] * config.getoption("fast")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Draw the parameters of the fast tier. Leave out the tests that need what this machine lacks, and say so.

    Pages are made of all else, and come last."""
    items.sort(key=lambda item: "/pages/" in item.nodeid)
    if config.getoption("fast"):
        slow = json.loads(TIMES.read_text())
        functions = defaultdict(list)
        for item in items:
            functions[_function(item.nodeid)] += [item] * (not PAGES & {*getattr(item, "fixturenames", ())})
        for name, found in functions.items():
            count = max(DRAWN, int(FAST / max(slow.get(name, 0), 0.01)))
            few = random.Random(os.environ[SEED] + name).sample(found, min(len(found), count))
            functions[name] = [] if slow.get(name, 0) > FAST else few if name in slow else found
        items[:] = [item for item in items if item in functions[_function(item.nodeid)]]
    if not Path(os.environ["REPRODUCE_DATA"]).is_dir():
        for item in items:
            if item.get_closest_marker("data"):  # `keywords` has the names of folders too
                item.add_marker(pytest.mark.skip(reason="no folder with data sets (REPRODUCE_DATA)"))


def _function(nodeid: str) -> str:
    return nodeid.partition("[")[0].removeprefix("tests/")


@pytest.hookimpl(wrapper=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> Iterator[None]:
    """Write the times of a run of everything."""
    yield
    if config.getoption("times"):
        seconds: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
        for report in (r for found in terminalreporter.stats.values() for r in found if hasattr(r, "when")):
            seconds[_function(report.nodeid)][report.nodeid] += report.duration
        slow = {name: max(found.values()) for name, found in seconds.items() if sum(found.values()) > FAST}
        TIMES.write_text(json.dumps({name: round(slow[name], 2) for name in sorted(slow)}, indent=0) + "\n")
