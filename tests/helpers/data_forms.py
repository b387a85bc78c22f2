"""Forms of a user's data, a row each: a name, what makes it in the working directory, and what is expected of it.

Expected are the plain arrays (`Plain`), or the line that refuses it (a pattern). Add a row for a form. What makes the
data gives what `bring` is given.
"""

import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from datasets import Array2D, Array3D, ClassLabel, Dataset, DatasetDict, Features, Image, Value
from PIL import Image as Pillow
from torch.utils.data import TensorDataset

RNG = np.random.default_rng(0)
NAMES = ["cat", "dog", "owl"]
Y, U = np.repeat(NAMES, 5), np.repeat(NAMES, 2)
X, T = (RNG.integers(0, 256, (len(y), 4, 5, 3), dtype=np.uint8) for y in (Y, U))
A, B = (RNG.normal(size=(len(y), 2)).astype(np.float32) for y in (Y, U))


class Plain(NamedTuple):
    """What is to be read: features and names of classes of both parts, the classes in order, the notes."""

    x: Any = X
    y: Any = Y
    test_x: Any = T
    test_y: Any = U
    order: Any = NAMES
    note: str = ""
    label: str = "label"
    holder: str = ""


PICTURES, TABLE = Plain(), Plain(A, Y, B, U)
GREY = Plain(X[..., :1], Y, T[..., :1], U)


def numbered(*names: str) -> Plain:
    """The table with other names of classes, in this order."""
    new = dict(zip(NAMES, names, strict=True))
    return Plain(A, [new[n] for n in Y], B, [new[n] for n in U], names)


def tree(name: str = "{part}/{label}/{i:02}.png", want: Plain = PICTURES, to: Any = None, **save: Any) -> str:
    """Pictures in folders; a name with `{part}` has both parts."""
    for part, x, y in (("train", want.x, want.y), ("test", want.test_x, want.test_y))[: 1 + ("{part}" in name)]:
        for i, (pixels, label) in enumerate(zip(x, y, strict=True)):
            path = Path("photos", name.format(part=part, label=label, i=i))
            path.parent.mkdir(parents=True, exist_ok=True)
            picture = Pillow.fromarray(pixels.squeeze())
            (to(picture) if to else picture).save(path, **save)
    return "photos"


def after(given: Any, *steps: Any) -> Any:
    """`given`, when these steps have been made."""
    return given


def moved(old: str, new: str) -> None:
    Path(new).parent.mkdir(parents=True, exist_ok=True)
    Path(old).rename(new)


def linked(*paths: str) -> None:
    """Each path becomes a link to what it was, which now lies elsewhere."""
    for i, path in enumerate(paths):
        moved(path, f"elsewhere/{i}{Path(path).suffix}")
        Path(path).symlink_to(Path(f"elsewhere/{i}{Path(path).suffix}").absolute())


def put(path: str, content: str | bytes = "x") -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def noise(path: str, shape: tuple[int, ...] = (4, 5, 3), dtype: Any = np.uint8, **save: Any) -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Pillow.fromarray(np.zeros(shape, dtype)).save(path, **save)
    return path


def turned(picture: Any) -> Any:
    """Stored lying, with the sign of a camera that it stands."""
    return picture.transpose(Pillow.Transpose.ROTATE_90)


EXIF = Pillow.Exif()
EXIF[0x0112] = 6


def deep_png(colours: int = 3) -> bytes:
    """A PNG of 16 bits a colour, which Pillow does not write."""
    rows = b"".join(b"\0" + RNG.bytes(5 * 2 * colours) for _ in range(4))
    head = struct.pack(">IIBBBBB", 5, 4, 16, {1: 0, 3: 2}[colours], 0, 0, 0)
    blocks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    packed = (struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d)) for t, d in blocks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def library(
    names: Any = tuple(NAMES), other: Any = None, want: Plain = PICTURES, image: Any = None, **more: Any
) -> DatasetDict:
    """A `DatasetDict` of pictures; names: of ClassLabel, None for labels as text; other: of the test part."""
    parts = {}
    for part, x, y, order in (("train", want.x, want.y, names), ("test", want.test_x, want.test_y, other or names)):
        kind = ClassLabel(names=list(order)) if order else Value("string")
        rows = {"image": [Pillow.fromarray(p.squeeze()) for p in x], "label": [*map(str, y)], **more}
        parts[part] = Dataset.from_dict(rows, Features({"image": image or Image(), "label": kind}))
    return DatasetDict(parts)


def each(given: DatasetDict, change: Callable[[Any], Any]) -> DatasetDict:
    return DatasetDict({part: change(rows) for part, rows in given.items()})


def parquet(given: DatasetDict) -> str:
    """The parts as parquet files of a folder."""
    for part, rows in given.items():
        put(f"tables/{part}.parquet", b"")
        rows.to_parquet(f"tables/{part}.parquet")
    return "tables"


def npz(x: Any = None, y: Any = None, key: str = "{part}_{name}", want: Plain = PICTURES, **more: Any) -> str:
    """An archive whose features and labels are changed by x and y, and whose arrays are called so."""
    number = {name: i for i, name in enumerate(want.order)}
    found = dict(more)
    for part, (a, b) in {"train": (want.x, want.y), "test": (want.test_x, want.test_y)}.items():
        labels = np.array([number[n] for n in b])
        found |= {
            key.format(part=part, name=n): v for n, v in (("x", x(a) if x else a), ("y", y(labels) if y else labels))
        }
    np.savez("mine.npz", **found)
    return "mine.npz"


def frames(want: Plain = TABLE, **more: Any) -> dict[str, pd.DataFrame]:
    """The parts as frames with the columns a, b, label, and more."""
    parts = {"train": (want.x, want.y), "test": (want.test_x, want.test_y)}
    return {p: pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "label": [*y]}).assign(**more) for p, (x, y) in parts.items()}


def table(kind: str = "csv", want: Plain = TABLE, change: Any = None, **how: Any) -> str:
    """train.csv and test.csv (.parquet) of a folder."""
    for part, frame in frames(want).items():
        put(f"tables/{part}.{kind}", b"")
        how = how if "index" in how else {"index": False, **how}
        getattr(change(frame) if change else frame, f"to_{kind}")(f"tables/{part}.{kind}", **how)
    return "tables"


def text(change: Callable[[bytes], bytes], **how: Any) -> str:
    """The folder of CSV files, whose bytes are changed."""
    for path in Path(table(**how)).iterdir():
        path.write_bytes(change(path.read_bytes()))
    return "tables"


def one(content: str | bytes, path: str = "mine.csv") -> str:
    return put(path, content)


def arrow(change: Callable[[pa.Table], pa.Table]) -> str:
    """The folder of parquet files, whose tables are changed."""
    for path in Path(table("parquet")).iterdir():
        pq.write_table(change(pq.read_table(path)), path)
    return "tables"


def cast(name: str, kind: Any) -> Callable[[pa.Table], pa.Table]:
    return lambda t: t.set_column(t.column_names.index(name), name, t[name].cast(kind))


Row = tuple[str, Callable[[], Any], Plain | str]
INDEXED = TABLE._replace(note="the column {} is an index and not used")
FEW = Plain(X, Y, T[:4], U[:4])

FOLDERS: list[Row] = [
    ("train and test", tree, PICTURES),
    *((f"train and {n}", lambda n=n: after("photos", tree(), moved("photos/test", f"photos/{n}")), PICTURES)
      for n in ("validation", "valid", "val")),
    ("test and val", lambda: after(tree(), noise("photos/val/cat/1.png")),
     PICTURES._replace(note="the part val is left out")),
    ("links to pictures", lambda: after(tree(), linked("photos/train/cat/00.png", "photos/test/dog/02.png")), PICTURES),
    ("hidden part", lambda: after(tree(), noise("photos/__MACOSX/train/cat/._00.png")), PICTURES),
    ("beside a state", lambda: after(tree(), put("photos/state.json", "{}")), PICTURES),
    ("hidden files", lambda: after(tree(), put("photos/.DS_Store"), put("photos/train/cat/.DS_Store")), PICTURES),
    ("folders in classes", lambda: tree("{part}/{label}/images/{i:02}.png"), PICTURES),
    *((kind, lambda kind=kind: tree(f"{{part}}/{{label}}/{{i:02}}.{kind}"), PICTURES) for kind in ("bmp", "tif",
     "ppm")),
    ("palettes", lambda: tree(to=lambda p: p.convert("P", palette=Pillow.Palette.ADAPTIVE)), PICTURES),
    ("grey", lambda: tree(want=GREY), GREY),
    ("one grey", lambda: after(tree(), Pillow.fromarray(X[0, ..., 0]).save("photos/train/cat/00.png")),
     PICTURES._replace(x=np.concatenate([np.repeat(X[:1, ..., :1], 3, 3), X[1:]]))),
    ("as cameras hold them", lambda: tree(to=turned, exif=EXIF), PICTURES),
    ("classes called train", lambda: tree(want=PICTURES._replace(y=[*map({"cat": "train"}.get, Y, Y)],
     test_y=[*map({"cat": "train"}.get, U, U)])), PICTURES._replace(
        x=np.roll(X, -5, 0), test_x=np.roll(T, -2, 0), y=np.roll(Y, -5), test_y=np.roll(U, -2), order=["dog", "owl",
        "cat"])),
    ("numbers", lambda: tree(want=PICTURES._replace(y=np.repeat(["2", "9", "10"], 5), test_y=np.repeat(["2", "9",
     "10"], 2))),
     PICTURES._replace(x=np.roll(X, 5, 0), test_x=np.roll(T, 2, 0), y=np.roll(Y, 5), test_y=np.roll(U, 2),
     order=["owl", "cat", "dog"])),
    ("fewer classes in test", lambda: tree(want=FEW), FEW._replace(note="the test part has no sample of owl")),
    *((f"{a} and {b}", lambda a=a, b=b: after("photos", tree(), moved("photos/train", "photos/x"), moved("photos/test",
       f"photos/{b}"), moved("photos/x", f"photos/{a}")), "photos.* call the? ?parts|call them train and test")
      for a, b in (("Train", "Test"), ("training", "testing"), ("train", "Test"), ("train_images", "test_images"),
                   ("train", "testing"), ("TRAIN", "VAL"), ("train_set", "test_set"), ("dev", "eval"))),
    ("only tests", lambda: after("photos", tree(), moved("photos/train", "gone")), "photos: test looks like a part"),
    ("a part in a class", lambda: tree("{label}/test/{i:02}.png"), "test looks like a part of the data"),
    ("one class", lambda: tree(want=Plain(X[:5], Y[:5], T[:2], U[:2])), "photos has one class, cat: there must be two"),
    ("a folder around", lambda: tree("inner/{part}/{label}/{i:02}.png"), "looks like a part of the data"),
    ("no classes", lambda: tree("{i:02}.png"), r"photos: 00.png lies in no folder of a class; .* photos/CLASS/"),
    ("a class of tests", lambda: after(tree(), noise("photos/test/emu/1.png")),
     "the class emu is in the test part and n"),
    ("damaged", lambda: after(tree(), put("photos/train/cat/03.png", b"\x89PNG")), "cat/03.png cannot be .*is damaged"),
    ("two sizes", lambda: after(tree(), noise("photos/train/dog/09.png", (6, 5, 3))), "have 5 x 6 and 5 x 4 pixels"),
    ("16 bits, grey", lambda: after(tree(), put("photos/train/cat/0.png", deep_png(1))), "more than 8 bits a colour"),
    ("16 bits, colour", lambda: after(tree(), put("photos/train/cat/0.png", deep_png(3))), "more than 8 bits a colour"),
    ("moving", lambda: after(tree(), noise("photos/train/cat/0.gif", save_all=True, append_images=[Pillow.new("RGB",
     (5, 4), "red")])), "several pictures in one"),
    ("a circle of links", lambda: after(tree(), Path("photos/train/cat/all").symlink_to(Path("photos").resolve())),
     "all is a link to a folder around it"),
]  # fmt: skip

LIBRARY: list[Row] = [
    ("in memory", library, PICTURES),
    ("saved", lambda: after("saved", library().save_to_disk("saved")), PICTURES),
    ("parquet", lambda: parquet(library()), PICTURES),
    ("an order of classes", lambda: library(("owl", "cat", "dog")), PICTURES._replace(order=["owl", "cat", "dog"])),
    ("labels as text", lambda: library(None), PICTURES),
    ("read as grey", lambda: library(image=Image(mode="L"), want=GREY), GREY),
    ("a format", lambda: each(library(), lambda d: d.with_format("numpy")), PICTURES),
    *((f"arrays, {kind}", lambda make=make: DatasetDict({p: make(x, y) for p, x, y in (("train", X, Y), ("test", T,
     U))}),
       want) for kind, make, want in (
        ("lists", lambda x, y: Dataset.from_dict({"px": x, "label": y}), PICTURES),
        ("3-D", lambda x, y: Dataset.from_dict({"px": x, "label": y}, Features({"px": Array3D((4, 5, 3), "uint8"),
         "label": Value("string")})), PICTURES),
        ("2-D", lambda x, y: Dataset.from_dict({"px": x[..., 0], "label": y}, Features({"px": Array2D((4, 5), "uint8"),
         "label": Value("string")})), GREY),
        ("channels first", lambda x, y: Dataset.from_dict({"px": x.transpose(0, 3, 1, 2), "label": y}), PICTURES),
        ("int64", lambda x, y: Dataset.from_dict({"px": x.astype(int), "label": y}), PICTURES),
    )),
    *((f"{kind} in memory", lambda make=make: {"train": make(X, Y), "test": make(T, U)}, PICTURES) for kind, make in (
        ("arrays", lambda x, y: (x, y)),
        ("tensors", lambda x, y: TensorDataset(torch.tensor(x), torch.tensor([NAMES.index(n) for n in y]))),
        ("pairs", lambda x, y: [(Pillow.fromarray(a), b) for a, b in zip(x, y, strict=True)]),
    )),
    ("three arrays", lambda: (X, Y, Y), "give a folder, .* arrays .x, y., .* not a tuple"),
    ("one row of arrays is shorter", lambda: Dataset.from_dict({"v": [[1, 2]] * 9 + [[1]], "label": [0, 1] * 5}),
     "several"),
    ("a transform", lambda: each(library(), lambda d: d.with_transform(lambda b: b)), "has a transform, .* by map"),
    ("Train and Test", lambda: DatasetDict(Train=library()["train"], Test=library()["test"]),
     "the parts Train, Test: c"),
    ("a and b", lambda: DatasetDict(a=library()["train"], b=library()["test"]), "has the parts a, b: call them train"),
    ("a stream", lambda: library()["train"].to_iterable_dataset(), "or a DatasetDict, not a IterableDataset"),
    ("no label", lambda: each(library(), lambda d: d.map(lambda r, i: {"label": -1 if i == 1 else 0},
     with_indices=True)),
     "train part: the column label is empty in row 1"),
    
]  # fmt: skip

ARCHIVES: list[Row] = [
    ("plain", npz, PICTURES),
    *((f"called {key}", lambda key=key: npz(key=key), PICTURES) for key in ("{name}_{part}",)),
    ("val", lambda: after("mine.npz", np.savez("mine.npz", train_x=X, train_y=Y, val_x=T, val_y=U)), PICTURES),
    ("channels first", lambda: npz(lambda x: x.transpose(0, 3, 1, 2)), PICTURES),
    ("one channel first", lambda: npz(lambda x: x[:, None, :, :, 0]), GREY),
    ("no channel", lambda: npz(lambda x: x[..., 0]), GREY),
    ("whole numbers", lambda: npz(lambda x: x.astype(np.int64)), PICTURES),
    ("labels digits", lambda: npz(y=lambda y: np.array(["2", "10", "11"])[y]),
     PICTURES._replace(order=["dog", "owl", "cat"])),
    *((f"labels {kind}", lambda change=change: npz(y=change), PICTURES) for kind, change in (
        ("[N, 1]", lambda y: y[:, None]), ("uint8", lambda y: y.astype(np.uint8)), ("float", lambda y: y.astype(float)),
        ("apart", lambda y: y * 10 - 7), ("text", lambda y: np.array(NAMES)[y]),
        ("bytes", lambda y: np.array(NAMES).astype("S")[y]))),
    ("vectors", lambda: npz(want=TABLE), TABLE),
    ("an array more", lambda: npz(classes=NAMES), PICTURES._replace(note="the column classes is not used")),
    *((f"pictures {kind}", lambda change=change: npz(change), "pictures are 0 .. 255, .N, H, W.") for kind, change in (
        ("of floats", lambda x: x / 255), ("beyond 255", lambda x: x.astype(int) + 1),
        ("below 0", lambda x: x.astype(int) - 1), ("of 4 channels", lambda x: np.repeat(x, 2, 3)[..., :4]))),
    ("complex labels", lambda: npz(y=lambda y: y * 1j), "the column label has complex numbers: use class numbers"),
    ("one-hot", lambda: npz(y=lambda y: np.eye(3, dtype=int)[y]), "the column label has lists in it .one-hot labels"),
    ("not a number", lambda: npz(lambda x: x[:, 0, 0] * np.nan), r"the column x \(0\) has no finite number in row 0"),
    ("fewer labels", lambda: npz(y=lambda y: y[:-1]), r"14 labels and samples \[15, 4, 5, 3\]"),
    ("other widths", lambda: npz(lambda x: x[:, 0, 0, : 1 + len(x) % 2]), r"6, 1\], the training part .15, 2"),
    ("no test labels", lambda: after("mine.npz", np.savez("mine.npz", x=X, y=Y, test_x=T)),
     "test part: the column label is not there"),
    ("damaged", lambda: one(b"PK\3\4 not really", "mine.npz"), "mine.npz cannot be read: "),
    ("an array", lambda: after("mine.npy", np.save("mine.npy", X)), "give a folder, or a file that ends in .csv"),
    ("nothing", lambda: "nowhere", "nowhere is not there: name a folder, or a file that ends in"),
]  # fmt: skip

TABLES: list[Row] = [
    ("csv", table, TABLE),
    ("parquet", lambda: table("parquet"), TABLE),
    ("in memory", lambda: DatasetDict({p: Dataset.from_pandas(f) for p, f in frames().items()}), TABLE),
    ("frames in memory", frames, TABLE),
    ("in a folder a=1", lambda: after("a=1", table("parquet"), moved("tables", "a=1")), TABLE),
    ("an index, csv", lambda: table(index=True), INDEXED._replace(note=INDEXED.note.format("without a name"))),
    ("an index, parquet", lambda: table("parquet", change=lambda f: f.set_axis(f.index * 7), index=True),
     INDEXED._replace(note=INDEXED.note.format("__index_level_0__"))),
    ("an index in memory", lambda: DatasetDict({p: Dataset.from_pandas(f[f.a > -99]) for p, f in frames().items()}),
     TABLE),
    *((f"labels {', '.join(names)}", lambda names=names: table(want=numbered(*names)), numbered(*names)) for names in (
        ("None", "nan", "x"), ("2", "9", "10"), ("-1", "0", "1"),
        ("1.0", "2.0", "10.0"), ("False", "True", "unknown"), ("a,b", 'c"d', "e\nf"), ("1.5", "2", "v1"))),
    ("with a mark of UTF-8", lambda: text(lambda b: b"\xef\xbb\xbf" + b), TABLE),
    ("lines of Windows", lambda: text(lambda b: b.replace(b"\n", b"\r\n")), TABLE),
    ("a comma at the end", lambda: text(lambda b: b.replace(b"\n", b",\n")), INDEXED._replace(note=INDEXED.note.format(
     "without a name"))),
    ("columns of test in another order", lambda: after(table(), frames()["test"][["b", "label", "a"]].to_csv(
     "tables/test.csv", index=False)), TABLE),
    ("another column of labels", lambda: table(change=lambda f: f.rename(columns={"label": "kind"})),
     TABLE._replace(label="kind")),
    ("clients", lambda: table(change=lambda f: f.assign(who=np.resize(["1", "2", "x"], len(f)))),
     TABLE._replace(holder="who")),
    ("truth", lambda: table(change=lambda f: f.assign(a=f.a > 0)), Plain(np.column_stack([A[:, 0] > 0, A[:,
     1]]).astype("f4"),
     Y, np.column_stack([B[:, 0] > 0, B[:, 1]]).astype("f4"), U)),
    ("whole, then not", lambda: table(change=lambda f: f.assign(a=[*map(str, range(1, len(f))), "0.5"])),
     Plain(np.column_stack([
     [*range(1, 15), 0.5], A[:, 1]]).astype("f4"), Y, np.column_stack([[*range(1, 6), 0.5], B[:, 1]]).astype("f4"), U)),
    *((f"{kind}", lambda change=change: arrow(change), TABLE) for kind, change in (
        ("large strings", cast("label", pa.large_string())), ("float64", cast("a", pa.float64())),
        ("categories", lambda t: t.set_column(2, "label", t["label"].dictionary_encode())))),
    ("Train.csv", lambda: after("tables", table(), *(moved(f"tables/{p}.csv",
     f"tables/{p.title()}.csv") for p in ("train",
     "test"))), "has the parts Test, Train: call them train and test"),
    ("test.csv alone", lambda: after("tables", table(), os.remove("tables/train.csv")),
     "has the parts test: call them"),
    ("a feature too few", lambda: after(table(), frames()["test"].drop(columns="a").to_csv("tables/test.csv")),
     "the column a has nothing"),
    ("no labels in test", lambda: after(table(), frames()["test"].drop(columns="label").to_csv("tables/test.csv")),
     "test part: the column label is not"),
    ("a word", lambda: table(change=lambda f: f.assign(a="word")), "the column a has str word, and features are n"),
    ("decimal commas", lambda: table(decimal=","), "the column a has str -"),
    ("semicolons", lambda: table(sep=";"), "no CSV file .*with commas between them .its first line is 'a;b;label'"),
    ("UTF-16", lambda: one("a,label\n1,x\n2,y\n".encode("utf-16")), "is no CSV file in UTF-8"),
    ("no names", lambda: table(header=False), "has no column label of labels"),
    ("a gap", lambda: table(change=lambda f: f.assign(a=[*f.a[:-1], None])),
     "train part: the column a has no finite number in row 14"),
    ("a cell too many", lambda: one("a,label\n1,x\n2,y,3\n"),
     "mine.csv is no CSV file .*CSV parse error: Expected 2 columns, got 3"),
    ("empty", lambda: one(""), "is no CSV file .*Empty CSV file"),
    ("not parquet", lambda: one(b"PAR1 not really", "mine.parquet"), "mine.parquet cannot be read: "),
    ("text", lambda: one("1 2", "mine.txt"), "mine.txt: give a folder, or a file that ends in .csv, .parquet, .npz"),
    
]  # fmt: skip

KINDS = {"folder": FOLDERS, "library": LIBRARY, "npz": ARCHIVES, "table": TABLES}
FORMS = {f"{kind}: {name}": (make, want) for kind, rows in KINDS.items() for name, make, want in rows}
