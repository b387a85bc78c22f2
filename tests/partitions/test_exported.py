"""A partition as a file: what the engine trains on, in the order of the data set."""

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from reproduce.__main__ import main
from reproduce.data.batches import Shuffled
from reproduce.data.embedded import ImageBlobs
from reproduce.data.load import load
from reproduce.declare.paper import artifacts
from reproduce.engine.client_split import ClientSplits
from reproduce.errors import UserError
from reproduce.models.declared import ResNet, Softmax
from reproduce.partitions import exported
from reproduce.partitions.dirichlet import BalancedDirichlet, CappedDirichlet
from reproduce.partitions.heldout import validated
from reproduce.partitions.labels import IID
from reproduce.partitions.split import Split, chosen, loaded, split
from reproduce.problem import Classification
from reproduce.settings import settings

ROOT = Path(__file__).parents[2]


@cache
def declared() -> list[Any]:
    """A problem for every split of the smoke scale."""
    problems: list[Any] = [e.problem for a in artifacts() for p in a.panels("smoke") for e in p.experiments]
    fields = ("data", "partition", "clients", "partition_seed", "train_samples", "test_samples", "test_partition")
    of = {tuple(str(getattr(p, f)) for f in fields): p for p in problems if p.model is not None}
    return list(of.values())


def digits(partition: Any, clients: int = 4, **more: Any) -> Classification:
    return Classification("digits", Softmax(64, 10), partition, clients, Shuffled(8), **more)


def write(problem: Classification, file: Path, seed: int = 0) -> Split:
    """The split of a problem, which is in the file then."""
    found = split(problem, seed, settings())
    rows = exported.rows(found)
    exported.write(file, rows, exported.provenance(found, rows))
    return found


def same(ours: list[np.ndarray], theirs: list[np.ndarray]) -> bool:
    return len(ours) == len(theirs) and all(map(np.array_equal, ours, theirs))


@pytest.mark.parametrize("problem", declared(), ids=lambda p: f"{type(p.partition).__name__}-{p.clients}")
def test_the_file_has_what_the_engine_trains_on(problem: Any, tmp_path: Path) -> None:
    """Of every declared partition: the clients' samples in their order, of the test set too."""
    file = tmp_path / "who.parquet"
    found = write(problem, file, 5)
    task, rows = ClientSplits(settings()).get(problem, 5), pd.read_parquet(file)
    for part, parts, used in zip(("train", "test"), (task.indices, task.test_indices), found.used, strict=True):
        mine = rows[rows["part"] == part] if "part" in rows else rows[[part == "train"] * len(rows)]
        places = mine["index"].to_numpy()
        parts = [used[p] for p in parts] if parts else parts
        assert same([places[mine["client"] == c] for c in range(problem.clients)] if parts else [], parts or [])


def test_the_file_has_the_order_of_the_data_set_where_a_problem_uses_a_subset(tmp_path: Path) -> None:
    problem = digits(CappedDirichlet(1.0, None), train_samples=300, test_samples=90, test_partition=True)
    file, data = tmp_path / "who.parquet", load("digits", settings())
    write(problem, file)
    table, task = pd.read_parquet(file), ClientSplits(settings()).get(problem, 0)
    assert list(table.columns) == ["part", "client", "index", "label"]
    for part, x, y, parts, features in (
        ("train", data.train_x, data.train_y, task.indices, task.device_data.train_x),
        ("test", data.test_x, data.test_y, task.test_indices, task.device_data.test_x),
    ):
        rows = table[table["part"] == part]
        assert rows["label"].tolist() == y[rows["index"]].tolist()
        for client, positions in enumerate(parts):
            mine = rows[rows["client"] == client]
            images = x[mine["index"]].transpose(0, 3, 1, 2) / np.float32(255)
            assert np.array_equal(images, features[positions].numpy())


def test_anybody_can_compute_the_checksum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without this package: SHA-256 of the rows as CSV."""
    file = tmp_path / "who.parquet"
    assert main(["partition", "capacities", "--scale", "smoke", "-o", str(file), "--json"]) == 0
    about = json.loads(capsys.readouterr().out)
    table = pq.read_table(file)
    lines = [",".join(table.column_names), *(",".join(map(str, row.values())) for row in table.to_pylist())]
    assert about["checksum"] == hashlib.sha256(("\n".join(lines) + "\n").encode()).hexdigest()
    note = json.loads(table.schema.metadata[b"provenance"])
    assert {key: about[key] for key in note} == note
    assert note["panel"] == "fiarse/five-image-blobs"
    assert note["partition"] == "BalancedDirichlet(alpha=0.3, data_seed=0)"
    assert (note["seed"], note["depends_on_seed"], note["clients"]) == (None, False, 8)
    assert note["samples"]["train"] == dict.fromkeys(("there", "used"), table["part"].to_pylist().count("train"))


def test_what_the_page_says_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The blocks of docs/data.md, on a file of the embedded data."""
    section = (ROOT / "docs/data.md").read_text(encoding="utf-8").split("## The data partition")[1].split("\n## ")[0]
    (command,) = re.findall(r"^    reproduce (.*)", section, flags=re.M)
    own, anybody = sorted(re.findall(r"```python\n(.*?)```", section, flags=re.S), key=len, reverse=True)
    monkeypatch.chdir(tmp_path)
    assert main(command.replace("four-cifar100 --scale paper", "four-image-blobs --scale smoke").split()) == 0
    said = capsys.readouterr().out.split()
    names: dict[str, Any] = {}
    exec(anybody, names)
    assert capsys.readouterr().out.strip() in said
    exec(own, names)
    assert pd.read_parquet("mine.parquet")["client"].nunique() == 10


def test_the_seed_of_a_split_may_be_fixed_by_the_problem() -> None:
    for seed in (0, 1):
        found = split(digits(IID(), partition_seed=7), seed, settings())
        assert (found.seed, found.by_seed) == (7, False)
        assert same(found.parts[0], split(digits(IID()), 7, settings()).parts[0])


BLOBS = ImageBlobs(3, 8, 20, 8, 9.0, 0)


@dataclass(frozen=True)
class Own:
    """Images as a user declares them."""

    sample: ClassVar[Any] = BLOBS.sample
    sizes: ClassVar[tuple[int, int]] = BLOBS.sizes
    classes: ClassVar[int] = 3

    def load(self) -> Any:
        return BLOBS.load()


@pytest.mark.parametrize("samples", [0, 20])
def test_of_own_images_test_indices_are_those_that_are_evaluated(samples: int, tmp_path: Path) -> None:
    """Their test set is put into an order that its contents decide (`checks.by_contents`)."""
    model = ResNet(1, 3, (2, 4), (1, 1))
    assert model.batch_statistics
    problem = Classification(
        Own(), model, BalancedDirichlet(0.5), 2, Shuffled(8), test_samples=samples, test_partition=True
    )
    file, task = tmp_path / "who.parquet", ClientSplits(settings()).get(problem, 0)
    found = write(problem, file)
    used = found.used[1]
    assert used.tolist() != sorted(used.tolist())
    assert np.array_equal(
        found.data.test_x[used].transpose(0, 3, 1, 2) / np.float32(255), task.device_data.test_x.numpy()
    )
    assert same(found.parts[1], task.test_indices)


@pytest.mark.parametrize("problem", declared(), ids=lambda p: f"{type(p.partition).__name__}-{p.clients}")
def test_a_file_gives_its_clients_back(problem: Any, tmp_path: Path) -> None:
    """In subsets and of test sets, too. Where rates are chosen each has what is left, in its order."""
    file = tmp_path / "who.parquet"
    written = write(problem, file, seed=3)
    read = exported.FromFile.of(str(file)).put(problem)
    assert read.clients == problem.clients
    again = split(read, 0, settings())
    assert all(same(ours, theirs) for ours, theirs in zip(written.parts, again.parts, strict=True))
    judged = validated(read)
    used = chosen(judged, loaded(judged, settings()))
    for places, in_use, parts in zip(judged.data.places, used, split(judged, 0, settings()).parts, strict=False):
        left = places[in_use]
        for mine, was in zip(parts, written.parts[0], strict=True):
            assert left[mine].tolist() == [i for i in written.used[0][was].tolist() if i in set(left.tolist())]


def test_a_file_of_other_data_is_refused(tmp_path: Path) -> None:
    for name, rows, words in (
        ("a.csv", {"client": [0, 1], "index": [3, 2000]}, "sample 2000 is not in use in digits"),
        ("b.csv", {"client": [0, 1], "index": [3, 5], "label": [0, 99]}, "other labels than digits"),
        ("c.csv", {"client": [0, 2], "index": [3, 5]}, "number them so"),
        ("d.csv", {"client": [0, 2]}, "no rows with client and index"),
        ("e.csv", {"client": [0, 1], "index": [3, -1]}, "sample -1 is not in use"),
    ):
        file = tmp_path / name
        pd.DataFrame(rows).to_csv(file, index=False)
        with pytest.raises(UserError, match=words):
            split(exported.FromFile.of(str(file)).put(digits(IID())), 0, settings())
