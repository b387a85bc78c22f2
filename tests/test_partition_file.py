"""A partition as a file: it is the partition again, and what is none is refused."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reproduce.__main__ import main
from reproduce.data.batches import Shuffled
from reproduce.data.embedded import ImageBlobs
from reproduce.data.load import load
from reproduce.engine.task import Tasks
from reproduce.errors import UserError
from reproduce.models.declared import ConvNet, ResNet, Softmax
from reproduce.papers import artifacts
from reproduce.partitions import exported
from reproduce.partitions.named import IID, BalancedDirichlet, CappedDirichlet, Exported, Head, TwoClasses
from reproduce.partitions.split import Split, split
from reproduce.problem import Classification
from reproduce.settings import settings

ROOT = Path(__file__).parent.parent


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


def use(problem: Classification, file: Path, **more: Any) -> Any:
    """What is trained on with the exported partition in the place of the problem's own."""
    return Tasks(settings()).get(replace(problem, partition=Exported(str(file), **more)), 3)


@pytest.mark.parametrize("problem", declared(), ids=lambda p: f"{type(p.partition).__name__}-{p.clients}")
@pytest.mark.parametrize("seed", [0, 5])
def test_every_declared_partition_comes_back_as_the_engine_has_it(problem: Any, seed: int, tmp_path: Path) -> None:
    """Whatever the seed of the run that uses the file: the same clients, samples and order, of the test set too."""
    file = tmp_path / "who.parquet"
    write(problem, file, seed)
    trained, again = Tasks(settings()).get(problem, seed), use(problem, file)
    assert same(trained.indices, again.indices)
    assert (trained.test_indices is None) == (again.test_indices is None)
    assert trained.test_indices is None or same(trained.test_indices, again.test_indices)


def test_the_file_has_the_order_of_the_data_set_where_a_problem_uses_a_subset(tmp_path: Path) -> None:
    problem = digits(CappedDirichlet(1.0, None), train_samples=300, test_samples=90, test_partition=True)
    file, data = tmp_path / "who.parquet", load("digits", settings())
    write(problem, file)
    table, task = pd.read_parquet(file), Tasks(settings()).get(problem, 0)
    assert list(table.columns) == ["part", "client", "index", "position", "label"]
    for part, x, y, parts, features in (
        ("train", data.train_x, data.train_y, task.indices, task.arena.train_x),
        ("test", data.test_x, data.test_y, task.test_indices, task.arena.test_x),
    ):
        rows = table[table["part"] == part]
        assert rows["label"].tolist() == y[rows["index"]].tolist()
        for client, positions in enumerate(parts):
            mine = rows[rows["client"] == client]
            assert mine["position"].tolist() == positions.tolist()
            images = x[mine["index"]].transpose(0, 3, 1, 2) / np.float32(255)
            assert np.array_equal(images, features[positions].numpy())


def test_a_partition_of_a_subset_is_one_of_the_whole_data_set_too(tmp_path: Path) -> None:
    file = tmp_path / "who.parquet"
    write(digits(TwoClasses(), train_samples=300), file)
    task, rows = use(digits(IID()), file), pd.read_parquet(file)
    assert len(task.arena.labels) == 1437
    assert np.concatenate(task.indices).tolist() == rows["index"].tolist() != rows["position"].tolist()
    head = Tasks(settings()).get(digits(Head(Exported(str(file)), 0.5), train_samples=300), 0)
    assert [len(part) for part in head.indices] == [-(-len(part) // 2) for part in task.indices]


def test_clients_may_be_empty_and_share_samples_in_the_file(tmp_path: Path) -> None:
    """As the partition that was exported says: here another file, whose clients are of both kinds."""
    file, found = tmp_path / "who.parquet", split(digits(IID(), 3), 0, settings())
    part = found.parts[0][0]
    other = replace(found, parts=([part, part[:0], part[:5]],))
    rows = exported.rows(other)
    exported.write(file, rows, exported.provenance(other, rows))
    assert same(use(digits(IID(), 3), file).indices, other.parts[0])


def test_anybody_can_compute_the_checksum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without this package: SHA-256 of the rows as CSV."""
    file = tmp_path / "who.parquet"
    assert main(["partition", "capacities", "--scale", "smoke", "-o", str(file), "--json"]) == 0
    about = json.loads(capsys.readouterr().out)
    table = pq.read_table(file)
    lines = [",".join(table.column_names), *(",".join(map(str, row.values())) for row in table.to_pylist())]
    assert about["checksum"] == hashlib.sha256(("\n".join(lines) + "\n").encode()).hexdigest()
    assert Exported(str(file)).checksum == about["checksum"]
    note = json.loads(table.schema.metadata[b"provenance"])
    assert {key: about[key] for key in note} == note
    assert note["panel"] == "fiarse/five-image-blobs"
    assert note["partition"] == "BalancedDirichlet(alpha=0.3, data_seed=0)"
    assert (note["seed"], note["depends_on_seed"], note["clients"]) == (None, False, 8)
    assert note["samples"]["train"] == dict.fromkeys(
        ("there", "used"), len(split(problem_of("capacities"), 0, settings()).labels[0])
    )


def test_what_the_page_says_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The blocks of docs/data.md, on a file of the embedded data."""
    section = (ROOT / "docs/data.md").read_text(encoding="utf-8").split("## Who holds what")[1].split("\n## ")[0]
    (command,) = re.findall(r"python -m reproduce (.*)", section)
    own, anybody = sorted(re.findall(r"```python\n(.*?)```", section, flags=re.S), key=len, reverse=True)
    monkeypatch.chdir(tmp_path)
    assert main(command.replace("four-cifar100 --scale paper", "four-image-blobs --scale smoke").split()) == 0
    said = capsys.readouterr().out.split()
    names: dict[str, Any] = {}
    exec(anybody, names)
    assert capsys.readouterr().out.strip() in said
    exec(own, names)
    assert same(Tasks(settings()).get(names["again"], 5).indices, Tasks(settings()).get(names["problem"], 0).indices)


def problem_of(name: str) -> Any:
    from reproduce.play.benchmarks import find

    return find(name, "smoke").template.problem


def test_equal_partitions_are_equal_files(tmp_path: Path) -> None:
    """A seed that does not enter is not said; one that does gives another file."""
    files = [tmp_path / f"{k}.parquet" for k in range(2)]
    for panel, equal in (("capacities", True), ("virtual-time", False)):
        for seed, file in enumerate(files):
            assert main(["partition", panel, "--scale", "smoke", "--seed", str(seed), "-o", str(file)]) == 0
        assert (files[0].read_bytes() == files[1].read_bytes()) is equal


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
    file, task = tmp_path / "who.parquet", Tasks(settings()).get(problem, 0)
    found = write(problem, file)
    used = found.used[1]
    assert used.tolist() != sorted(used.tolist())
    assert np.array_equal(found.data.test_x[used].transpose(0, 3, 1, 2) / np.float32(255), task.arena.test_x.numpy())
    assert same(found.parts[1], task.test_indices)
    assert same(use(problem, file).test_indices, task.test_indices)


# --- files that are none ----------------------------------------------------------------------------------------------


def changed(change: Callable[[pa.Table], pa.Table]) -> Callable[[Path], None]:
    def damage(file: Path) -> None:
        pq.write_table(change(pq.read_table(file)), file)

    return damage


def _column(name: str, function: Callable[[np.ndarray], Any]) -> Callable[[Path], None]:
    def change(table: pa.Table) -> pa.Table:
        values = table[name].to_numpy().copy()
        function(values)
        return table.set_column(table.column_names.index(name), name, pa.array(values))

    return changed(change)


def _said(old: bytes, new: bytes) -> Callable[[Path], None]:
    def change(table: pa.Table) -> pa.Table:
        note = table.schema.metadata
        return table.replace_schema_metadata({**note, b"provenance": note[b"provenance"].replace(old, new)})

    return changed(change)


def _flip(values: np.ndarray) -> None:
    values[7] += 1


DAMAGED: dict[str, tuple[Callable[[Path], object], str]] = {
    "an index": (_column("index", _flip), "is damaged: its rows have the checksum"),
    "a label": (_column("label", _flip), "is damaged: its rows have the checksum"),
    "a client": (_column("client", _flip), "is damaged: its rows have the checksum"),
    "order": (_column("index", lambda v: v[:2].sort() or v[:9].sort()), "is damaged: its rows have the checksum"),
    "a row less": (changed(lambda t: t.slice(1)), "is damaged: its rows have the checksum"),
    "a column less": (changed(lambda t: t.drop_columns("client")), "is no partition that"),
    "no metadata": (changed(lambda t: t.replace_schema_metadata()), "is no partition that"),
    "clients said": (_said(b'"clients": 4', b'"clients": 5'), "its provenance is not what was written"),
    "data said": (_said(b'"digits"', b'"mnist"'), "its provenance is not what was written"),
    "half of it": (lambda f: f.write_bytes(f.read_bytes()[:900]), "cannot be read as Parquet"),
    "empty": (lambda f: f.write_bytes(b""), "cannot be read as Parquet"),
    "text": (lambda f: f.write_text("client,index\n0,1\n"), "cannot be read as Parquet"),
    "gone": (Path.unlink, "no such file"),
    "a table of others": (lambda f: pd.DataFrame({"client": [0]}).to_parquet(f), "is no partition that"),
}


@pytest.mark.parametrize(("damage", "says"), DAMAGED.values(), ids=DAMAGED)
def test_what_is_not_as_it_was_written_is_a_line(damage: Callable[[Path], object], says: str, tmp_path: Path) -> None:
    """When it is declared; and where it was declared with its checksum before, when it is used."""
    file, problem = tmp_path / "who.parquet", digits(TwoClasses())
    write(problem, file)
    before = Exported(str(file))
    damage(file)
    with pytest.raises(UserError, match=says) as error:
        Exported(str(file))
    assert str(error.value).startswith(str(file))
    assert "\n" not in str(error.value)
    with pytest.raises(UserError, match=says):
        before.split(load("digits", settings()).train_y, 4, 0)


def test_another_partition_than_was_declared_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "who.parquet"
    write(digits(TwoClasses()), file)
    before = Exported(str(file))
    write(digits(TwoClasses()), file, seed=1)
    assert Exported(str(file)) != before
    with pytest.raises(UserError, match=f"has the checksum {Exported(str(file)).checksum}, declared is "):
        before.split(load("digits", settings()).train_y, 4, 0)


WRONG: list[tuple[Any, str]] = [
    (digits(IID(), 5), "is a partition among 4 clients, not 5"),
    (digits(IID(), 4, train_samples=200), "is of digits, 300 or 1,437 train samples, not 200"),
    (digits(IID(), 4, train_samples=300, subset_seed=1), r"is of digits \(SHA-256 \w{12}\), and these are other data"),
    (digits(BalancedDirichlet(1.0), 4, train_samples=300, test_partition=True), "has no test sets of the clients"),
    (
        Classification(ImageBlobs(3, 8, 100, 8, 9.0, 0), ConvNet(1, 8, (2, 3), (4,), 3, kernel=3, padding=1), IID(), 4,
                       Shuffled(8)),
        "and these are other data: train sample [0-9]+ has the label [0-2], there [0-9]$",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("problem", "says"), WRONG)
def test_a_partition_of_something_else_is_a_line(problem: Any, says: str, tmp_path: Path) -> None:
    file = tmp_path / "who.parquet"
    write(digits(TwoClasses(), train_samples=300), file)
    with pytest.raises(UserError, match=says):
        use(problem, file)
