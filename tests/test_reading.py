"""Results files and cells with whole checksums and odd contents: each is used, or named and left out; nothing ends."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import inputs_damage
import pyarrow as pa
import pytest
import runs
from pyarrow import parquet

from reproduce.__main__ import main
from reproduce.errors import UserError, say_once
from reproduce.report.histories import Source, load
from reproduce.runs import due, plan, results
from reproduce.store import reading, seal

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
    for cached in (results._found, results._standing, say_once, reading._cells):
        cached.cache_clear()


def raw(path: Path, note: Any, table: pa.Table) -> None:
    """A results file of these rows and this provenance, with the checksums of both."""
    if isinstance(note, dict):
        note = {**note, "content": seal.of_table(table)}
    said = json.dumps(note).encode()
    parquet.write_table(table.replace_schema_metadata({b"provenance": said, b"seal": seal.of_note(said)}), path)


ROWS: dict[str, Callable[[pa.Table], pa.Table]] = {
    "no rows": lambda t: t.slice(0, 0),
    "half of them": lambda t: t.slice(0, t.num_rows // 2),
    "every row twice": lambda t: pa.concat_tables([t, t]),
    "no columns": lambda t: t.select([]),
    **{f"no {name}": lambda t, name=name: t.drop_columns([name])
       for name in ("seed", "value", "algorithm")},
}  # fmt: skip


@pytest.mark.parametrize("change", ROWS.values(), ids=ROWS)
def test_rows_that_are_not_those_of_the_runs_are_refused(change: Callable[[pa.Table], pa.Table], here: Path) -> None:
    """Under a provenance whose checksums are those of these rows."""
    table = parquet.read_table(ODD)
    raw(ODD, json.loads(table.schema.metadata[b"provenance"]), change(table))
    forget()
    standing = results.standing(plan.job("smoke", "fedagrac", JOBS[0]))
    assert standing.refused
    assert "\n" not in standing.refused
    assert results.stored(ODD) == ()
    with pytest.raises(UserError):
        load([Source("p", ODD)], "smoke")


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
    "a run twice": provenance(lambda n: n["runs"][1].update(n["runs"][0])),
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


# --- cells ------------------------------------------------------------------------------------------------------------


def cell(name: str, value: str) -> Callable[[str], str]:
    """Another text in the first row."""

    def change(text: str) -> str:
        head, first, *rest = [line.split(",") for line in text.splitlines()]
        first[head.index(name)] = value
        return "".join(",".join(line) + "\n" for line in (head, first, *rest))

    return change


CHANGES: dict[str, Callable[[str], str]] = {
    "empty": lambda text: "",
    "a row twice": lambda text: text + text.splitlines()[-1] + "\n",
    "censored in words": lambda text: text.replace("True", "maybe").replace("False", "maybe"),
    **{f"no {name}": lambda text, name=name: text.replace(name, "other", 1)
       for name in ("seed", "value")},
    "a column twice": lambda text: text.replace("algorithm", "seed", 1),
    **{f"a seed {v}": cell("seed", v) for v in ("1.5", "")},
    "a value in words": cell("value", "many"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_odd_cells_with_a_whole_record_are_left_out_and_named(
    change: Callable[[str], str], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    CELLS.write_text(change(CELLS.read_text()))
    runs.sealed(CELLS)
    named_by_all(capsys)


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
    lambda: (seal.record(CELLS).unlink(), seal.record(CELLS).mkdir()),
    lambda: seal.record(CELLS).write_text("[" * 100_000),
    lambda: seal.record(CELLS).write_text("{}"),
    lambda: seal.record(CELLS).write_bytes(b"\xff"),
], ids=["folder", "record folder", "deep", "no checksum", "bytes"])  # fmt: skip
def test_what_lies_in_the_place_of_cells_is_named(
    spoil: Callable[[], object], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil()
    named_by_all(capsys)
    due.render_marker("smoke", TABLE, due.Budget())


def test_a_checksum_changes_with_every_value_name_and_gap() -> None:
    def table(numbers: list[float | None], words: list[str]) -> pa.Table:
        return pa.table({"a": pa.array(numbers, pa.float64()), "b": words})

    plain = table([1.0, 0.0], ["x", "y"])
    others = [
        plain.rename_columns(["c", "b"]), plain.select(["b", "a"]), plain.slice(0, 1),
        table([1.0, -0.0], ["x", "y"]), table([1.0, None], ["x", "y"]), table([1.0, 0.0], ["y", "x"]),
        table([1.0, 0.0], ["x", "z"]), table([0.0, None], ["x", "y"]), table([None, 0.0], ["x", "y"]),
    ]  # fmt: skip
    assert len({seal.of_table(t) for t in (plain, *others)}) == 1 + len(others)
    assert seal.of_table(pa.concat_tables([plain.slice(0, 1), plain.slice(1, 1)])) == seal.of_table(plain), "in pieces"
