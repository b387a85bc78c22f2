"""A user's own data: every form gives the same samples; what cannot be used is one line that names the place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, Image, Value
from PIL import Image as Pillow

from reproduce.data.load import of_record
from reproduce.data.userdata import ByColumn, bring
from reproduce.errors import UserError

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


def same(data: Any, train: tuple[Any, Any], test: tuple[Any, Any]) -> None:
    """Does the record load exactly these samples? `of_record` checks it against its declaration."""
    found = of_record(data)
    for x, y, (pixels, names) in ((found.train_x, found.train_y, train), (found.test_x, found.test_y, test)):
        assert np.array_equal(x, pixels)
        assert x.dtype == pixels.dtype
        assert y.tolist() == [sorted(NAMES).index(n) for n in names]


@pytest.mark.parametrize("colours", [1, 3])
def test_pictures_are_the_same_in_every_form(folder: Path, colours: int) -> None:
    train, test = pictures(colours), pictures(colours, 4, seed=1)
    for part, (x, y) in (("train", train), ("test", test)):
        saved(folder / "photos" / part, x, y)
        (folder / "tables").mkdir(exist_ok=True)
        library(x, y).to_parquet(folder / "tables" / f"{part}.parquet")
    both = DatasetDict({part: library(*samples) for part, samples in (("train", train), ("test", test))})
    both.save_to_disk(folder / "saved")
    arrays = {f"{p}_{k}": v for p, s in (("train", train), ("test", test)) for k, v in zip("xy", s, strict=True)}
    np.savez(folder / "mine.npz", **arrays)
    found = [bring(where) for where in ("photos", folder / "tables", "saved", "mine.npz", both)]
    for data in found:
        same(data, train, test)
        assert data.shape == (colours, 6, 8)
        assert (data.sizes, data.classes) == ((30, 12), 3)
        assert data.copy.note == ""
    assert found[0] == bring("photos"), "the same content is the same record"
    first = next(folder.glob("photos/train/cat/*.png"))
    Pillow.fromarray(255 - np.asarray(Pillow.open(first))).save(first)
    changed = bring("photos")
    assert changed != found[0], "other content is another one"
    last = max(first.parent.iterdir())
    last.rename(first.parents[1] / "dog" / "!.png")  # the same bytes in the same order
    assert bring("photos") not in (changed, found[0]), "and so is another class"


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


def table(rows: int = 40, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(random.normal(size=(rows, 3)), columns=["a", "b", "c"])
    return frame.assign(n=range(rows), label=np.resize(NAMES, rows), who=np.resize(["x", "y", "z", "z"], rows))


def test_tables_are_the_same_in_every_form(folder: Path) -> None:
    train, test = table(), table(8, 1)
    for part, frame in (("train", train), ("test", test)):
        for ending in ("csv", "parquet"):
            (folder / ending).mkdir(exist_ok=True)
            getattr(frame, f"to_{ending}")(folder / ending / f"{part}.{ending}", index=False)
    both = DatasetDict(train=Dataset.from_pandas(train), test=Dataset.from_pandas(test))
    wanted = [(f[["a", "b", "c", "n"]].to_numpy(np.float32), f["label"]) for f in (train, test)]
    for where in ("csv", "parquet", both):
        data = bring(where, holder="who")
        same(data, *wanted)
        parts = ByColumn(data, "who").split(data.load().train_y, 3, 0)
        assert [p.tolist() for p in parts] == [np.flatnonzero(train["who"] == w).tolist() for w in "xyz"]
    with pytest.raises(UserError, match="gives 40 samples to 3 clients, and not 40 to 4"):
        ByColumn(data, "who").split(data.load().train_y, 4, 0)
    labels = bring(Dataset.from_pandas(train.assign(label=train["n"] % 2 * 10 - 5)).remove_columns(["who"])).load()
    assert set(zip(labels.train_x[:, 3] % 2, labels.train_y, strict=True)) == {(0, 0), (1, 1)}, "-5, 5 become 0, 1"


def test_lists_of_numbers_are_features_or_pictures(folder: Path) -> None:
    x, y = pictures()
    same(bring(DatasetDict({p: Dataset.from_dict({"px": x, "label": y}) for p in ("train", "test")})), (x, y), (x, y))
    vectors = x.reshape(len(x), -1).astype(np.float32)
    rows = {"v": vectors.tolist(), "kind": y, "id": range(len(y))}
    data = bring(DatasetDict({p: Dataset.from_dict(rows) for p in ("train", "validation", "extra")}), label="kind")
    same(data, (vectors, y), (vectors, y))
    assert data.copy.note == "the column id is not used; the part extra is left out"
    np.savez(folder / "mine.npz", x_train=vectors, y_train=y, x_test=vectors, y_test=y)
    same(bring("mine.npz"), (vectors, y), (vectors, y))


def test_a_deleted_copy_is_said_and_made_again(folder: Path, tmp_path: Path) -> None:
    import shutil

    saved(folder / "photos", *pictures())
    data = bring("photos")
    shutil.rmtree(tmp_path / "store")
    with pytest.raises(UserError, match=r"decoded copy of your data is not in .* give the files once more"):
        data.load()
    assert bring("photos") == data
    assert not [p for p in (tmp_path / "store" / "data").iterdir() if p.name.startswith(".")], "nothing is left"


# --- what cannot be used ----------------------------------------------------------------------------------------------


def _photos(folder: Path) -> Path:
    saved(folder / "photos", *pictures())
    return folder / "photos"


def _one_class(folder: Path) -> str:
    saved(folder / "photos", *(v[:10] for v in pictures()))
    return "photos"


def _unlabelled(folder: Path) -> str:
    for file in list(_photos(folder).glob("*/*.png")):
        file.rename(folder / "photos" / file.name)
    for name in NAMES:
        (folder / "photos" / name).rmdir()
    return "photos"


def _damaged(folder: Path) -> str:
    file = _photos(folder) / "cat" / "003.png"
    file.write_bytes(file.read_bytes()[:60])
    return "photos"


def _two_sizes(folder: Path) -> str:
    Pillow.new("RGB", (5, 6)).save(_photos(folder) / "dog" / "012.png")
    return "photos"


def _empty_class(folder: Path) -> str:
    (_photos(folder) / "bird").mkdir()
    return "photos"


def _deep(folder: Path) -> str:
    Pillow.fromarray(np.zeros((6, 8), np.uint16)).save(_photos(folder) / "cat" / "000.png")
    return "photos"


def _strange(folder: Path) -> str:
    saved(folder / "photos" / "train", *pictures())
    saved(folder / "photos" / "test", *(np.concatenate([v, v[:1]]) for v in pictures(each=2)))
    (folder / "photos" / "test" / "owl").rename(folder / "photos" / "test" / "emu")
    return "photos"


def _csv(**changes: Any) -> Any:
    def write(folder: Path) -> str:
        frame = table().drop(columns="who").assign(**changes)
        frame.to_csv(folder / "mine.csv", index=False)
        return "mine.csv"

    return write


def _unnamed(folder: Path) -> str:
    table().drop(columns=["who", "label"]).to_csv(folder / "mine.csv", index=False)
    return "mine.csv"


def _broken(folder: Path) -> str:
    (folder / "mine.parquet").write_bytes(b"PAR1 not really")
    return "mine.parquet"


def _ragged(folder: Path) -> str:
    (folder / "mine.csv").write_text("a,label\n1,x\n2,y,3\n")
    return "mine.csv"


def _pickled(folder: Path) -> str:
    np.savez(folder / "mine.npz", x=np.array([{}]), y=np.array([1]))
    return "mine.npz"


def _unequal(folder: Path) -> str:
    np.savez(folder / "mine.npz", x=np.zeros((5, 2)), y=np.arange(6))
    return "mine.npz"


def _unmatched(folder: Path) -> str:
    np.savez(
        folder / "mine.npz",
        **{f"{p}_y": [0, 1] for p in ("train", "test")},
        train_x=np.zeros((2, 3)),
        test_x=np.zeros((2, 4)),
    )
    return "mine.npz"


def _few(folder: Path) -> str:
    np.savez(folder / "mine.npz", x=np.zeros((4, 2)), y=np.arange(4))
    return "mine.npz"


def _word(folder: Path) -> str:
    (folder / "mine.txt").write_text("1 2")
    return "mine.txt"


CLASSES = Features({"a": Value("float32"), "label": ClassLabel(names=["x", "y"])})
GAP = [0.0] * 39 + [np.nan]
BAD = [
    (_one_class, "photos has one class, cat: there must be two at least"),
    (_unlabelled, "photos: Couldn't find any class folder .* labels are the names of folders, photos/CLASS/"),
    (_damaged, "photos: cat/003.png cannot be read as a picture .it is damaged.: repair it, or take it out"),
    (_two_sizes, "photos: dog/012.png and the first picture have 5 x 6 and 8 x 6 pixels: make all of one size"),
    (_empty_class, "photos: Found no valid file for the classes bird; labels are"),
    (_deep, "cat/000.png cannot be read as a picture .more than 8 bits a pixel."),
    (_strange, "photos: the class emu is in the test part and not in the training part"),
    (_unnamed, "mine.csv has no column label of labels .--label names another.; its columns are a, b, c, n"),
    (_csv(b=GAP), "mine.csv, train part: the column b has no finite number in row 39"),
    (_csv(b=[0.0] * 39 + [np.inf]), "the column b has no finite number in row 39"),
    (_csv(b=[1e300] * 40), "the column b has no finite number in row 0"),
    (_csv(b="word"), "mine.csv, train part: the column b has words; features are numbers or pictures: leave it out"),
    (_csv(label=GAP), "mine.csv, train part: the column label is empty in row 39"),
    (_csv(label=[0.5] * 40), "the column label has the label 0.5; labels are names or whole numbers"),
    (_broken, "mine.parquet cannot be read as a table"),
    (_ragged, "mine.csv cannot be read as a table"),
    (_pickled, "mine.npz cannot be read as an archive of arrays"),
    (_unequal, "the column x has 5 rows and the labels have 6"),
    (_unmatched, "samples of the training part and of the test part have the shapes 3 and 4"),
    (_few, "mine.npz has fewer than 5 samples of each class: add some, or a test part"),
    (_word, "mine.txt: give a folder, or a file that ends in .csv, .parquet, .npz"),
    (lambda folder: "nothing", "nothing is not there: name a folder or a file"),
    (lambda folder: 3, "give a folder, a file, a datasets.Dataset or a DatasetDict, not a int"),
    (
        lambda folder: DatasetDict(a=library(*pictures()), b=library(*pictures())),
        "the data set has the parts a, b: call them train and test",
    ),
    (
        lambda folder: Dataset.from_dict({"a": [1.0, 2.0], "label": [0, -1]}, CLASSES),
        "the data set, train part: the column label is empty in row 1",
    ),
    (
        lambda folder: library(*pictures()).map(lambda row: {"image": None}),
        "the data set: row 0 cannot be read as a picture",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("make", "words"), BAD)
def test_what_cannot_be_used_is_one_line(
    folder: Path, make: Any, words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    where = make(folder)
    capfd.readouterr()
    with pytest.raises(UserError, match=words) as error:
        bring(where)
    assert "\n" not in str(error.value)
    assert capfd.readouterr() == ("", ""), "no library says more"
