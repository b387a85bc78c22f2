"""What makes a user's data in the working directory, for the rows of `data_forms`; each gives what `bring` is given."""

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import ClassLabel, Dataset, DatasetDict, Features, Image, Value
from PIL import Image as Pillow

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
