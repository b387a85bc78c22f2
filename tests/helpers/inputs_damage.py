"""Damaged, cut, doubled, foreign files: results, cells, tables, checkpoints, claims, data. One row an input."""

from __future__ import annotations

import io
import json
import lzma
import pickle
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import written
from inputs import JOB, NEVER, OTHER, RENDER, TRAIN, Bad, folder, link, pipe, socket
from pyarrow import parquet

from reproduce.data.load import sha256
from reproduce.data.sources import SOURCES
from reproduce.runs import plan
from reproduce.store import seal
from reproduce.verdicts import claims as claims_module
from reproduce.verdicts import scoreboard
from reproduce.verdicts.claims import load_claims

RESULT = f"results/smoke/fedagrac/{JOB}.parquet"
CELLS = "results/smoke/cells/fedagrac_table1.csv"

Prepare = Callable[[Path], object]


def put_claims(monkeypatch: pytest.MonkeyPatch, read: Callable[[], object]) -> None:
    """Other claims in place of the papers', for every reader of them."""
    for module in (claims_module, scoreboard):
        monkeypatch.setattr(module, "claims_files", read)


def content(name: str, change: Callable[[bytes], bytes]) -> Prepare:
    """Other bytes in a file."""

    def prepare(here: Path) -> None:
        path = here / name
        path.write_bytes(change(path.read_bytes() if path.exists() else b""))

    return prepare


def flipped(part: float) -> Callable[[bytes], bytes]:
    """With one bit changed, at a part of its length."""

    def change(data: bytes) -> bytes:
        at = int(part * len(data))
        return data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]

    return change


def table(change: Callable[[pa.Table], pa.Table], note: Callable[[Any], Any] = lambda note: note) -> Prepare:
    """Other rows in a results file, under the same provenance or another one."""

    def prepare(here: Path) -> None:
        found = parquet.read_table(here / RESULT)
        said = json.dumps(note(json.loads(found.schema.metadata[b"provenance"]))).encode()
        sealed = {b"provenance": said, b"seal": seal.of_note(said)}
        parquet.write_table(change(found).replace_schema_metadata(sealed), here / RESULT)

    return prepare


def _values(found: pa.Table, values: Any) -> pa.Table:
    return found.set_column(found.schema.get_field_index("value"), "value", pa.array(values))


def results() -> Iterator[Bad]:
    """A results file that is not what was written: it is named, and everything else goes on."""
    rows: dict[str, Prepare] = {
        "empty": content(RESULT, lambda data: b""),
        "cut in half": content(RESULT, lambda data: data[: len(data) // 2]),
        "without its last byte": content(RESULT, lambda data: data[:-1]),
        "longer": content(RESULT, lambda data: data + b"more"),
        "text": content(RESULT, lambda data: b"seed,value\n0,1\n"),
        "zeros": content(RESULT, lambda data: bytes(len(data))),
        "half of its rows": table(lambda t: t.slice(0, t.num_rows // 2)),
        "no rows": table(lambda t: t.slice(0, 0)),
        "every row twice": table(lambda t: pa.concat_tables([t, t])),
        "rows in reverse": table(lambda t: t.take(list(range(t.num_rows))[::-1])),
        "all NaN": table(lambda t: _values(t, np.full(t.num_rows, np.nan))),
        "one value changed": table(lambda t: _values(t, t["value"].to_numpy() + np.eye(1, t.num_rows)[0])),
        "a column less": table(lambda t: t.drop_columns(["round"])),
        "a column more": table(lambda t: t.append_column("more", t["value"])),
        "a column renamed": table(lambda t: t.rename_columns([c.replace("metric", "metrics") for c in t.column_names])),
        "other types": table(lambda t: _values(t, t["value"].cast(pa.float32()))),
        "a provenance of nothing": table(lambda t: t, lambda note: {}),
        "a provenance that is a list": table(lambda t: t, lambda note: [note]),
        "a provenance without a checksum": table(lambda t: t, lambda note: {**note, "content": ""}),
        "another checksum": table(lambda t: t, lambda note: {**note, "content": "0" * 32}),
    }
    other = content(RESULT, lambda data: data.replace(b'"peak_memory"', b'"peek_memory"'))
    rows["a word of the provenance changed"] = other
    rows |= {f"a bit changed at {part:.2f}": content(RESULT, flipped(part)) for part in (0.5, 0.99999)}
    rows |= {
        "a pipe": pipe(RESULT),
        "a device": link(RESULT, "/dev/zero"),
        "a socket": socket(RESULT),
        "a folder": folder(RESULT),
        "a loop": link(RESULT, f"{JOB}.parquet"),
        "a link that leads nowhere": link(RESULT, "nowhere"),
        "a link to what cannot be read": link(RESULT, "/proc/self/mem"),
        "a cut body under a whole end": content(RESULT, lambda data: data[:4] + data[400:]),
        "a body of zeros under a whole end": content(RESULT, lambda data: data[:4] + bytes(2000) + data[2004:]),
    }
    for command in (
        RENDER,
        ("verify", "--scale", "smoke"),
        ("report", "--scale", "smoke"),
        ("plan", "--scale", "smoke"),
    ):
        for name, prepare in rows.items():
            yield Bad(f"a result, {name}", command, f"not used: {RESULT}: ", prepare)
    tables = {"empty": b"", "bytes": b"\xff", "half": b"## T\n\n| a | b |\n| :--- |\n"}
    for name, data in tables.items():
        page = content("tables/smoke/fedagrac_table1.md", lambda _, data=data: data)
        said = "not used: tables/smoke/fedagrac_table1.md: not as it was rendered"
        yield Bad(f"a table, {name}", ("report", "--scale", "smoke"), said, page)


def replayed() -> Iterator[Bad]:
    """Places that are written to and are no files; a record of replays that is none, in which lines would be lost."""
    for name in (CELLS, CELLS.replace("csv", "json"), "tables/smoke/fedagrac_table1.md"):
        for what, make in {"pipe": pipe(name), "device": link(name, "/dev/zero"), "socket": socket(name)}.items():
            yield Bad(f"{name} is a {what}", RENDER, name, make)
    for name, text in {"text": "hello", "other columns": "job,result\na,b\n", "bytes": "\0\1\2"}.items():
        prepare = content("results/smoke/replay.csv", lambda data, text=text: text.encode())
        yield Bad(
            f"a record of replays, {name}",
            ("replay", "--scale", "smoke"),
            "not a record of replays",
            _and(_older, prepare),
        )
    yield Bad(
        "a record of replays, a folder",
        ("replay", "--scale", "smoke"),
        "it is a folder",
        folder("results/smoke/replay.csv"),
    )


def _older(here: Path) -> None:
    """The result becomes one of older code, which is looked up in the record of replays."""
    written.edit(here / RESULT, code="0" * 16)


def _and(*steps: Prepare) -> Prepare:
    return lambda here: [step(here) for step in steps]


def checkpoints() -> Iterator[Bad]:
    """A checkpoint that is not whole, or of something else: nothing is taken over."""

    def put(write: Callable[[Path], object]) -> Prepare:
        def prepare(here: Path) -> None:
            digest = plan.digest("smoke", "fedagrac", JOB)
            path = here.parent / f"store/checkpoints/smoke-fedagrac-{JOB}-{digest}.pt"
            path.parent.mkdir(parents=True)
            write(path)

        return prepare

    def of_another(path: Path) -> None:
        from reproduce.engine.checkpoint import put as whole

        with path.open("wb") as file:
            whole({"states": [("another run", {})], "note": {}}, file)

    for name, write in {
        "empty": lambda path: path.write_bytes(b""),
        "text": lambda path: path.write_text("hello\n" * 100),
        "a pickle": lambda path: path.write_bytes(pickle.dumps({"states": []})),
        "of another run": of_another,
        "a folder": lambda path: path.mkdir(),
        "a loop": lambda path: path.symlink_to(path.name),
    }.items():
        yield Bad(f"a checkpoint, {name}", TRAIN, "delete it to train from the start", put(write))


# --- claims -----------------------------------------------------------------------------------------------------------

METRICS = b"metrics: {acc: {unit: points, better: higher, text: accuracy}}"
HEAD = f"""paper: fedagrac
{METRICS.decode()}
claims:
"""
CLAIM = {
    "id": "one", "artifact": "table1", "statement": "a is better", "where": "section 1",
    "scales": "[smoke, reduced, paper]", "check": "{metric: acc, better: a, than: [b]}",
}  # fmt: skip


def claim(**change: str) -> bytes:
    items = {**CLAIM, **change}
    return (HEAD + "- {" + ", ".join(f"{k}: {v}" for k, v in items.items()) + "}\n").encode()


def claims() -> Iterator[Bad]:
    """Claims that cannot be judged, or not read."""

    def put(data: bytes) -> Callable[[Path, pytest.MonkeyPatch], object]:
        def patch(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
            path = here.parent / "claims.yaml"
            path.write_bytes(data)
            put_claims(monkeypatch, lambda: [load_claims(path)])

        return patch

    for key, value in {"check": "null", "statement": "3", "scales": "[]", "at": "[1]", "unasked": "[1]"}.items():
        data = claim(**{key: value})
        yield Bad(f"a claim, {key}: {value}", ("verify", "--scale", "smoke"), "claims.yaml", patch=put(data))
    for name, data in {
        "empty": b"", "a list": b"- 1\n", "open": b"claims: [",
        "Latin-1": claim(statement="'\xfc'").decode().encode("latin-1"), "UTF-16": claim().decode().encode("utf-16"),
        "a key twice": claim() + b"paper: again\n", "a key of a claim twice": claim(where="Table 1, id: two"),
        "an object": b"paper: !!python/object/apply:os.system ['true']\n", "a control character": b"paper: \x01\n",
        "deep": b"claims: " + b"[" * 5000 + b"\n", "an unknown key": claim() + b"more: 1\n",
    }.items():  # fmt: skip
        yield Bad(f"claims, {name}", ("verify", "--scale", "smoke"), "claims.yaml", patch=put(data))


# --- data sets of one's own -------------------------------------------------------------------------------------------


def _bring(name: str, files: dict[str, bytes], train: int = 2, test: int = 2) -> Callable[..., object]:
    """Files with side files in the data folder, for a small set of that name."""

    def patch(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(SOURCES, name, replace(SOURCES[name], train=train, test=test))
        for path, data in files.items():
            target = here.parent / "data" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            side = target.with_name(f"{target.name}.sha256")
            if side.name not in {Path(p).name for p in files} and target.suffix != ".sha256":
                side.write_text(sha256(target) + "  x\n")

    return patch


def _npz(**change: Any) -> bytes:
    images = np.arange(2 * 28 * 28, dtype=np.uint8).reshape(2, 28, 28)
    arrays = {"train_x": images, "train_y": [0, 1], "test_x": images, "test_y": [1, 0], **change}
    stream = io.BytesIO()
    np.savez(stream, **{k: np.asarray(v) for k, v in arrays.items() if v is not None})
    return stream.getvalue()


def data() -> Iterator[Bad]:
    """Data of one's own, vouched for by side files: what is not a data set is refused before it is used."""
    good = b"-1 3:1\n+1 1:0.5\n"
    lines = {
        "NaN": b"-1 3:nan\n+1 1:1\n", "feature 124": b"-1 124:1\n+1 1:1\n", "a label 2": b"2 1:1\n+1 1:1\n",
        "a word": b"-1 word\n+1 1:1\n", "a row more": good + b"+1 1:1\n", "no rows": b"",
    }  # fmt: skip
    for name, text in lines.items():
        files = {"a9a/a9a": text, "a9a/a9a.t": good}
        yield Bad(f"a9a, {name}", ("data", "get", "a9a"), "cannot be decoded", patch=_bring("a9a", files))
    files = {"a9a/a9a.xz": lzma.compress(good)[:-9], "a9a/a9a.t.xz": lzma.compress(good)}
    yield Bad("a9a.xz, cut", ("data", "get", "a9a"), "cannot be decoded", patch=_bring("a9a", files))
    for name, archive in {
        "empty": b"", "cut": _npz()[:-100], "pickles": _npz(train_y=np.array([{}, {}], object)),
        "floats": _npz(train_x=np.zeros((2, 28, 28))), "a label 10": _npz(train_y=[0, 10]),
        "no labels": _npz(train_y=None), "other images": _npz(train_x=np.zeros((2, 32, 32), np.uint8)),
        "a row more": _npz(train_x=np.zeros((3, 28, 28), np.uint8)),
    }.items():  # fmt: skip
        files = {"mnist/mnist.npz": archive}
        yield Bad(f"mnist.npz, {name}", ("data", "get", "mnist"), "mnist/mnist.npz", patch=_bring("mnist", files))
    for name, side in {"bytes": b"\xff" * 99, "of another file": b"0" * 64}.items():
        files = {"mnist/mnist.npz": _npz(), "mnist/mnist.npz.sha256": side}
        yield Bad(f"side file, {name}", ("data", "get", "mnist"), "has SHA-256", patch=_bring("mnist", files))
    news = b'"1","T","x"\n"2","T","y"\n'
    for name, text in {"no text": b'"1"\n"2"\n', "class 0": b'"0","T"\n"1","T"\n', "a word": b'"one","T"\n"1","T"\n',
                       "Latin-1": b'"1","\xfc"\n"2","T"\n'}.items():  # fmt: skip
        files = {"ag_news/train.csv": text, "ag_news/test.csv": news}
        yield Bad(f"ag_news, {name}", ("data", "get", "ag_news"), "cannot be decoded", patch=_bring("ag_news", files))

    def unkeepable(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        _bring("mnist", {"mnist/mnist.npz": _npz()})(here, monkeypatch)
        monkeypatch.setenv("REPRODUCE_STORE", NEVER)

    yield Bad("a store that is not writable", ("data", "get", "mnist"), "cannot write", patch=unkeepable)


# --- left out, and said so --------------------------------------------------------------------------------------------


def seen() -> Iterator[Bad]:
    """Files that are refused while the rest is made; `says` stands in the output, or on the page."""
    foreign = _and(lambda here: shutil.copy(here / OTHER, here / RESULT))

    def seeds(here: Path) -> None:
        written.edit(
            here / RESULT,
            lambda run: replace(run, seed=run.seed + 7),
            lambda rows: rows.assign(seed=rows["seed"] + 7),
        )

    def declared(here: Path) -> None:
        clock = {"clock": {"type": "Other"}}
        written.edit(here / RESULT, lambda run: replace(run, experiment={**run.experiment, **clock}))

    for name, prepare, says in (
        ("another job's result", foreign, "all 8 runs missing"),
        ("other seeds", seeds, "all 8 runs missing"),
        ("another declaration", declared, "all 8 runs of another declaration"),
    ):
        for command in (RENDER, ("verify", "--scale", "smoke"), ("report", "--scale", "smoke")):
            yield Bad(name, command, says, prepare)
    damaged = content(RESULT, lambda data: data[:-9])
    changed = "is not what its record says"
    for command in (("verify", "--scale", "smoke"), ("report", "--scale", "smoke")):
        yield Bad("a damaged result", command, "not a complete results file", damaged)
        for name, prepare, says in (
            ("a cell changed", content(CELLS, flipped(0.9)), changed),
            ("cells doubled", content(CELLS, lambda data: data + data), changed),
            ("cells cut", content(CELLS, lambda data: data[: len(data) // 2]), changed),
            ("cells empty", content(CELLS, lambda data: b""), changed),
            ("cells in bytes", content(CELLS, lambda data: b"\xff\xfe\0" * 9), changed),
            ("cells all NaN", content(CELLS, lambda data: data.replace(b"0", b"nan")), changed),
            ("no record", lambda here: (here / CELLS).with_suffix(".json").unlink(), "has no record"),
            ("a record of nothing", content(CELLS.replace("csv", "json"), lambda data: b"{"), "cannot be read"),
            ("a record that is a list", content(CELLS.replace("csv", "json"), lambda data: b"[]"), changed),
            ("a record in bytes", content(CELLS.replace("csv", "json"), lambda data: b"\xff"), "cannot be read"),
            ("a deep record", content(CELLS.replace("csv", "json"), lambda data: b"[" * 10**5), "cannot be read"),
        ):
            yield Bad(name, command, says, prepare)


ROWS = tuple(row for rows in (replayed, checkpoints, claims, data) for row in rows())
SEEN = (*results(), *seen())
