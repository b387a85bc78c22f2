"""A user's own data: known by its content, a fifth held out, clients by a column. Its forms are in `data_forms`."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from data_forms import FORMS
from datasets import ClassLabel, Dataset, Features, Image
from PIL import Image as Pillow

from reproduce.__main__ import main
from reproduce.data.load import of_record
from reproduce.data.userdata import ByColumn, bring
from reproduce.errors import UserError
from reproduce.play.owndata import benchmarks

NAMES = ["owl", "cat", "dog"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory with a space in its name; the user's home may not be written."""
    here = tmp_path / "my [own] files"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("REPRODUCE_STORE", str(tmp_path / "store"))
    return here


def pictures(colours: int = 3, each: int = 10, shape: tuple[int, int] = (6, 8), seed: int = 0) -> tuple[Any, Any]:
    """Pixels uint8 [N, H, W, C] and names of classes, class after class in sorted order."""
    x = np.random.default_rng(seed).integers(0, 256, (each * len(NAMES), *shape, colours), dtype=np.uint8)
    return x, np.repeat(sorted(NAMES), each)


def saved(folder: Path, x: Any, y: Any) -> None:
    """A folder of class folders; files sort as the rows."""
    for i, (pixels, name) in enumerate(zip(x, y, strict=True)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        Pillow.fromarray(pixels if pixels.shape[2] == 3 else pixels[..., 0]).save(folder / name / f"{i:03d}.png")


def library(x: Any, y: Any) -> Dataset:
    rows = {"image": [Pillow.fromarray(p if p.shape[2] == 3 else p[..., 0]) for p in x]}
    rows |= {"label": [sorted(NAMES).index(n) for n in y]}
    return Dataset.from_dict(rows, Features({"image": Image(), "label": ClassLabel(names=sorted(NAMES))}))


def table(rows: int = 40, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(random.normal(size=(rows, 3)), columns=["a", "b", "c"])
    return frame.assign(n=range(rows), label=np.resize(NAMES, rows), who=np.resize(["x", "y", "z", "z"], rows))


@pytest.mark.skipif(sys.platform == "darwin", reason="names of files are UTF-8 there")
def test_names_in_another_encoding_are_names(folder: Path) -> None:
    """Latin-1, as folders, as pictures and as labels."""
    for name in (b"\xe9t\xe9", b"hiver"):
        (place := Path(os.fsdecode(b"bild\xe9r/" + name))).mkdir(parents=True)
        for i in range(5):
            Pillow.fromarray(np.full((6, 8), i, np.uint8)).save(place / os.fsdecode(b"\xff%d.png" % i))
    (benchmark,) = benchmarks([], "smoke", data=os.fsdecode(b"bild\xe9r"))
    assert benchmark.name == r"bild\xe9r"
    assert benchmark.own["fedavg"].problem.data.classes == 2


def test_the_same_content_is_the_same_data_and_other_is_not(folder: Path) -> None:
    saved(folder / "photos", *pictures())
    data = bring("photos")
    assert bring("photos") == data
    (folder / "photos" / "cat" / ".hidden").write_bytes(b"x")
    assert bring(str(folder / "photos")) == data
    first = max((folder / "photos" / "cat").glob("*.png"))
    Pillow.fromarray(255 - np.asarray(Pillow.open(first))).save(first)
    changed = bring("photos")
    assert changed != data, "other pixels"
    first.rename(folder / "photos" / "dog" / "!.png")
    assert bring("photos") not in (changed, data), "another class"
    link = folder / "links" / "cat"
    link.parent.mkdir()
    for name in ("cat", "dog", "owl"):
        (folder / "links" / name).symlink_to(folder / "photos" / name)
    before = bring("links")
    assert (before, before.sizes) == (bring("photos"), (25, 5))
    (folder / "photos" / "dog" / "!.png").unlink()
    assert bring("links").sizes == (24, 5), "what a link leads to is in the checksum, too"


def test_pictures_that_a_column_names_are_in_the_checksum(folder: Path) -> None:
    saved(folder / "photos", *pictures())
    files = sorted(map(str, (folder / "photos").glob("*/*.png")))
    rows = {"image": files, "label": [Path(file).parent.name for file in files]}
    Dataset.from_dict(rows).cast_column("image", Image()).to_parquet("mine.parquet")
    data = bring("mine.parquet")
    assert bring("mine.parquet") == data
    Pillow.fromarray(255 - np.asarray(Pillow.open(files[0]))).save(files[0])
    assert bring("mine.parquet") != data


def test_a_fifth_of_each_class_is_held_out_always_the_same(folder: Path) -> None:
    x, y = pictures()
    saved(folder / "photos", x, y)
    library(x, y).save_to_disk(folder / "saved")
    first, second = bring("photos").load(), bring("saved").load()
    assert np.bincount(first.test_y).tolist() == [2, 2, 2]
    for part in ("train_x", "train_y", "test_x", "test_y"):
        assert np.array_equal(getattr(first, part), getattr(second, part))
    rows = {p.tobytes() for p in [*first.train_x, *first.test_x]}
    assert rows == {p.tobytes() for p in x}, "each sample is in one of them"
    assert first.note == "without a test part: 6 of 30 samples, a fifth of each class, are held out"


def test_what_a_user_may_not_expect_of_the_data_is_said(folder: Path) -> None:
    x, y = np.random.default_rng(0).normal(size=(24, 3)), np.repeat([0, 1, 2], (10, 10, 4))
    np.savez("rare.npz", x=x, y=y)
    assert bring("rare.npz").load().note.endswith("are held out; the test part has no sample of 2")
    np.savez("twice.npz", train_x=x, train_y=y, test_x=x, test_y=y)
    assert bring("twice.npz").load().note == "the training part and the test part are the same samples"
    numbered = pd.DataFrame(x[:20], columns=["a", "b", "c"]).assign(id=np.arange(20) + 2**30, label=y[:20])
    numbered.to_csv("numbered.csv", index=False)
    assert "the column id has another whole number in each row: --drop id" in bring("numbered.csv").load().note
    dropped = bring("numbered.csv", drop=("id",))
    assert (dropped.shape, dropped.load().note.count("--drop")) == ((3,), 0)
    with pytest.raises(UserError, match="has no column idd that could be left out"):
        bring("numbered.csv", drop=("idd",))
    assert main(["play", "fedavg", "--data", "numbered.csv", "--drop", "id", "b", "--cost"]) == 0
    assert main(["play", "fedavg", "--on", "digits", "--drop", "id", "--cost"]) == 2


def test_a_column_names_the_clients(folder: Path) -> None:
    train = table().assign(who=np.resize(["10", "9", "x", "x"], 40))
    train.to_csv("mine.csv", index=False)
    data = bring("mine.csv", holder="who")
    found, who = data.load(), {n: w for n, w in zip(train["n"], train["who"], strict=True)}
    parts = ByColumn(data, "who").split(found.train_y, 3, 0)
    for client, name in enumerate(("10", "9", "x")):
        assert {who[int(n)] for n in found.train_x[parts[client], 3]} == {name}
    with pytest.raises(UserError, match="samples to 3 clients, and not 34 to 4: leave"):
        ByColumn(data, "who").split(found.train_y, 4, 0)
    for frame, line in ((train.assign(who=None), "the column who is empty in row 0"), (table().drop(columns="who"),
                        "has no column who of clients; its columns are a, b, c, n, label")):  # fmt: skip
        frame.to_csv("mine.csv", index=False)
        with pytest.raises(UserError, match=line):
            bring("mine.csv", holder="who")


def test_the_users_of_leaf_are_clients(folder: Path) -> None:
    """Of two files of a part, with a user that has no samples; a user's samples are in its own order."""
    held = {"b": [[1.0, 2], [3, 4], [9, 9]], "a": [[5, 6]], "c": []}
    of = {user: {"x": x, "y": [int(row[0]) % 4 // 2 for row in x]} for user, x in held.items()}
    for name, users in (("train/0.json", "bc"), ("train/1.json", "a"), ("test/0.json", "b")):
        Path("leaf", name).parent.mkdir(parents=True, exist_ok=True)
        about = {"users": list(users), "num_samples": [len(held[u]) for u in users]}
        Path("leaf", name).write_text(json.dumps({**about, "user_data": {u: of[u] for u in users}}))
    data = bring("leaf", holder="user")
    loaded = data.load()
    parts = ByColumn(data, "user").split(loaded.train_y, data.holders, 0)
    assert [loaded.train_x[part].tolist() for part in parts] == [held["a"], held["b"]]
    assert loaded.train_y.tolist() == [0, 1, 0, 0]
    assert loaded.test_x.tolist() == held["b"]
    of["a"]["y"].append(of["b"]["y"].pop())  # in all there are as many labels as samples
    Path("leaf/train/0.json").write_text(json.dumps({"user_data": of}))
    Path("leaf/train/1.json").unlink()
    with pytest.raises(UserError, match="leaf/train: the user b has 3 samples and 2 labels"):
        bring("leaf")


def test_a_deleted_copy_is_said_and_made_again(folder: Path, tmp_path: Path) -> None:
    import shutil

    saved(folder / "photos", *pictures())
    data = bring("photos")
    shutil.rmtree(tmp_path / "store")
    with pytest.raises(UserError, match=r"decoded copy of your data is not in .* give the files once more"):
        data.load()
    assert bring("photos") == data
    assert not [p for p in (tmp_path / "store" / "data").iterdir() if p.name.startswith(".")], "nothing is left"


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_read_as_plain_arrays_or_refused_in_a_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("REPRODUCE_STORE", str(tmp_path / "store"))
    make, want = FORMS[name]
    given: Any = make()
    capfd.readouterr()
    if isinstance(want, str):
        with pytest.raises(UserError, match=want) as error:
            bring(given)
        assert "\n" not in str(error.value)
    else:
        found, number = of_record(bring(given, want.label, want.holder)), {n: i for i, n in enumerate(want.order)}
        for part, pixels, names in (("train", want.x, want.y), ("test", want.test_x, want.test_y)):
            x, y = getattr(found, f"{part}_x"), getattr(found, f"{part}_y")
            assert x.dtype == pixels.dtype
            assert np.array_equal(x, pixels)
            assert y.tolist() == [number[n] for n in names]
        assert (found.n_classes, found.note) == (len(want.order), want.note)
    assert capfd.readouterr() == ("", ""), "no library says more"
