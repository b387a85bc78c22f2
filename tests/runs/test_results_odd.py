"""Results files and cells with whole checksums and odd contents: each is used, or named and left out; nothing ends."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import inputs_damage
import pyarrow as pa
import pytest
from pyarrow import parquet

from reproduce import store
from reproduce.__main__ import main
from reproduce.errors import say_once
from reproduce.runs import outdated, plan, results

TABLE = "fedagrac/table1"
JOBS = ("table1-lr", "table1-cnn2")
ODD, OTHER = (Path(f"results/smoke/fedagrac/{name}.parquet") for name in JOBS)
CELLS = Path("results/smoke/cells/fedagrac_table1.csv")


@pytest.fixture
def here(finished_table: Path, one_claim: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    inputs_damage.put_claims(monkeypatch, lambda: one_claim)
    monkeypatch.chdir(shutil.copytree(finished_table, tmp_path / "here"))
    forget()
    return Path.cwd()


def forget() -> None:
    for cached in (results._stored_runs, results._standing, say_once, store._cells):
        cached.cache_clear()


def raw(path: Path, note: Any, table: pa.Table) -> None:
    """A results file of these rows and this provenance, with the checksums of both."""
    if isinstance(note, dict):
        note = {**note, "content": store.of_table(table)}
    said = json.dumps(note).encode()
    parquet.write_table(table.replace_schema_metadata({b"provenance": said, b"seal": store.of_note(said)}), path)


COMMANDS = (
    ("plan", "fedagrac", "--scale", "smoke"),
    ("plan", "fedagrac", "--scale", "smoke", "--jobs"),
    ("list", "fedagrac", "--scale", "smoke"),
    ("render", "--scale", "smoke", TABLE),
    ("verify", "--scale", "smoke", TABLE),
    ("verify", "--scale", "smoke"),
    ("report", "--scale", "smoke"),
)


def provenance(change: Callable[[Any], object]) -> Callable[[], object]:
    def prepare() -> None:
        table = parquet.read_table(ODD)
        note = json.loads(table.schema.metadata[b"provenance"])
        change(note)
        raw(ODD, note, table)

    return prepare


WHOLE: dict[str, Callable[[], object]] = {
    "a run of no training": provenance(lambda n: n["runs"][0].update(training=99)),
    "of an older form": provenance(lambda n: n.pop("parts")),
    "a folder": lambda: (ODD.unlink(), ODD.mkdir()),
    "a link to nowhere": lambda: (ODD.unlink(), ODD.symlink_to("nowhere")),
    "cut": lambda: ODD.write_bytes(ODD.read_bytes()[:-9]),
    "a word of the provenance": lambda: ODD.write_bytes(ODD.read_bytes().replace(b'"peak_memory"', b'"peek_memory"')),
    "nothing": lambda: ODD.write_bytes(b""),
}


@pytest.mark.parametrize("spoil", WHOLE.values(), ids=WHOLE)
def test_every_command_goes_on_without_an_odd_file_and_names_it(
    spoil: Callable[[], object], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = OTHER.read_bytes()
    spoil()
    for command in COMMANDS:
        forget()
        capsys.readouterr()
        assert main(command) == 0, command
        err = capsys.readouterr().err
        assert err.count(f"not used: {ODD}: ") == 1, command
        assert not [line for line in err.splitlines() if not line.startswith("not used: ")]
    assert OTHER.read_bytes() == other
    assert results.standing(plan.job("smoke", "fedagrac", JOBS[1])).holds
    assert "CNN" in Path("tables/smoke/fedagrac_table1.md").read_text()
    for made in Path("tables").rglob("*.tex"):
        assert r"\input" not in made.read_text()


def named_by_all(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (("verify", "--scale", "smoke"), ("report", "--scale", "smoke"), ("plan", "--scale", "smoke")):
        forget()
        assert main(command) == 0, command
        out, err = capsys.readouterr()
        assert not [line for line in err.splitlines() if not line.startswith("not used: ")]
        assert command[0] != "verify" or f"refused: {CELLS}: " in " ".join(out.split())
        assert command[0] != "report" or f"{CELLS}: " in Path("report/smoke/index.html").read_text()


@pytest.mark.parametrize("spoil", [
    lambda: (CELLS.unlink(), CELLS.mkdir()),
    lambda: (store.record(CELLS).unlink(), store.record(CELLS).mkdir()),
    lambda: store.record(CELLS).write_text("[" * 100_000),
    lambda: store.record(CELLS).write_text("{}"),
    lambda: store.record(CELLS).write_bytes(b"\xff"),
], ids=["folder", "record folder", "deep", "no checksum", "bytes"])  # fmt: skip
def test_what_lies_in_the_place_of_cells_is_named(
    spoil: Callable[[], object], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil()
    named_by_all(capsys)
    outdated.render_marker("smoke", TABLE, outdated.Budget())


def test_a_table_is_of_today_while_nothing_is_to_train_for_it(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for found, fresh in ((([], []), True), ((["a job"], []), False), (([], ["a job that is left out"]), True)):
        monkeypatch.setattr(outdated, "training", lambda *_, found=found: found)
        assert outdated.fresh("smoke", TABLE, outdated.Budget()) == fresh


def test_a_checksum_changes_with_every_value_name_and_gap() -> None:
    def table(numbers: list[float | None], words: list[str]) -> pa.Table:
        return pa.table({"a": pa.array(numbers, pa.float64()), "b": words})

    plain = table([1.0, 0.0], ["x", "y"])
    others = [
        plain.rename_columns(["c", "b"]), plain.select(["b", "a"]), plain.slice(0, 1),
        table([1.0, -0.0], ["x", "y"]), table([1.0, None], ["x", "y"]), table([1.0, 0.0], ["y", "x"]),
        table([1.0, 0.0], ["x", "z"]), table([0.0, None], ["x", "y"]), table([None, 0.0], ["x", "y"]),
    ]  # fmt: skip
    assert len({store.of_table(t) for t in (plain, *others)}) == 1 + len(others)
    assert store.of_table(pa.concat_tables([plain.slice(0, 1), plain.slice(1, 1)])) == store.of_table(plain), (
        "in pieces"
    )
