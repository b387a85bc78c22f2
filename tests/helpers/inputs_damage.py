"""Files that are damaged or no such files: records of replays, checkpoints, claims, data. One row an input."""

import io
import lzma
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import written
from inputs import JOB, NEVER, TRAIN, Bad

from reproduce.data.load import sha256
from reproduce.data.sources import SOURCES
from reproduce.runs import plan
from reproduce.verdicts import claims as claims_module
from reproduce.verdicts import scoreboard
from reproduce.verdicts.claims import load_claims

RESULT = f"results/smoke/fedagrac/{JOB}.parquet"


def put_claims(monkeypatch: pytest.MonkeyPatch, read: Callable[[], object]) -> None:
    """Other claims in place of the papers', for every reader of them."""
    for module in (claims_module, scoreboard):
        monkeypatch.setattr(module, "claims_files", read)


def replayed() -> Iterator[Bad]:
    """A record of replays that is none, in which lines would be lost, for a stale result."""

    def put(text: str) -> Callable[[Path], object]:
        def prepare(here: Path) -> None:
            written.edit(here / RESULT, code="0" * 16)
            (here / "results/smoke/replay.csv").write_text(text)

        return prepare

    for text in ("hello", "job,result\na,b\n"):
        yield Bad(f"a record of replays, {text}", ("replay", "--scale", "smoke"), "not a record of replays", put(text))


def checkpoints() -> Iterator[Bad]:
    """A checkpoint that is not whole, or of something else: nothing is taken over."""

    def put(write: Callable[[Path], object]) -> Callable[[Path], object]:
        def prepare(here: Path) -> None:
            digest = plan.digest(plan.job("smoke", "fedagrac", JOB), "float32")
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
    }.items():
        yield Bad(f"a checkpoint, {name}", TRAIN, "delete it to train from the start", put(write))


# --- claims -----------------------------------------------------------------------------------------------------------

METRICS = b"acc: {unit: points, better: higher, text: accuracy}"
HEAD = "paper: fedagrac\nclaims:\n"
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
            path.with_name("metrics.yaml").write_bytes(METRICS)
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
        "an object": b"paper: !!python/object/apply:os.system ['true']\n", "an unknown key": claim() + b"more: 1\n",
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


def _npz(labels: Any = (0, 1)) -> bytes:
    images = np.zeros((2, 28, 28), np.uint8)
    stream = io.BytesIO()
    np.savez(stream, train_x=images, train_y=labels, test_x=images, test_y=[1, 0])
    return stream.getvalue()


def data() -> Iterator[Bad]:
    """Data of one's own, vouched for by side files: what is not a data set is refused before it is used."""
    good = b"-1 3:1\n+1 1:0.5\n"
    files = {"a9a/a9a": good + b"+1 1:1\n", "a9a/a9a.t": good}
    yield Bad("a9a, a row more", ("data", "get", "a9a"), "cannot be decoded", patch=_bring("a9a", files))
    files = {"a9a/a9a.xz": lzma.compress(good)[:-9], "a9a/a9a.t.xz": lzma.compress(good)}
    yield Bad("a9a.xz, cut", ("data", "get", "a9a"), "cannot be decoded", patch=_bring("a9a", files))
    for name, archive in {"cut": _npz()[:-100], "pickles": _npz(np.array([{}, {}], object))}.items():
        files = {"mnist/mnist.npz": archive}
        yield Bad(f"mnist.npz, {name}", ("data", "get", "mnist"), "mnist/mnist.npz", patch=_bring("mnist", files))
    files = {"ag_news/train.csv": b'"1","\xfc"\n"2","T"\n', "ag_news/test.csv": b'"1","T","x"\n"2","T","y"\n'}
    yield Bad("ag_news, Latin-1", ("data", "get", "ag_news"), "cannot be decoded", patch=_bring("ag_news", files))

    def unkeepable(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        _bring("mnist", {"mnist/mnist.npz": _npz()})(here, monkeypatch)
        monkeypatch.setenv("REPRODUCE_STORE", NEVER)

    yield Bad("a store that is not writable", ("data", "get", "mnist"), "cannot write", patch=unkeepable)


ROWS = tuple(row for rows in (replayed, checkpoints, claims, data) for row in rows())
