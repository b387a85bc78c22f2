"""A user's own data as the data of a problem: known by what they say, kept decoded in the store.

from reproduce.data.userdata import ByColumn, bring

data = bring("photos")  # a UserData
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from reproduce.data import decoded as store
from reproduce.data.dataset import ARRAYS, Arrays, Dataset, summed
from reproduce.data.formats import listed
from reproduce.data.userfiles import LABEL, PATHS, Columns, Names, read
from reproduce.declare.values import Indices, Labels, Sample
from reproduce.errors import UserError
from reproduce.settings import settings
from reproduce.streams import rng
from reproduce.text import spelled

FORMAT = 2  # raise it when the same files give other arrays
HELD = 5
"""One of so many samples of each class is held out where there is no test part."""
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?")
ROWS = "(rows count from 0): fill it in, or take the row out"


@dataclass(frozen=True)
class UserData:
    """Data that `bring` has read: `sha256` is of the files (of the arrays, if there are none) and how they are read.

    shape: (C, H, W) of pictures, (D,) of a table. train, test: samples. holders: different values in the column that
    names the client; 0 without one.
    """

    sha256: str
    shape: tuple[int, ...]
    train: int
    test: int
    classes: int
    holders: int = 0

    called: ClassVar[str] = "your data"
    brought: ClassVar[bool] = True

    def __str__(self) -> str:
        """The name by which the user calls the data, for errors; it is no part of their identity."""
        return self.called

    @property
    def sample(self) -> Sample:
        return Sample(self.shape)

    @property
    def sizes(self) -> tuple[int, int]:
        """Training and test samples."""
        return self.train, self.test

    @property
    def words(self) -> str:
        """A description for people."""
        colours, *sides = self.shape
        kind = f"pictures {' x '.join(map(str, sides))} x {colours}" if sides else f"rows of {colours} numbers"
        return f"{self.train:,} + {self.test:,} {kind}, {self.classes} classes"

    @property
    def copy(self) -> store.Decoded:
        """The decoded copy; UserError if it is not there any more."""
        decoded = _found(self.sha256)
        if decoded is None:
            raise UserError(f"the decoded copy of your data is not in {settings().store}: give the files once more")
        return decoded

    @property
    def held_by(self) -> NDArray[Any]:
        """The number of the client of each training sample."""
        return self.copy.arrays()["holders"]

    def load(self) -> Dataset:
        """The arrays; raises UserError if the decoded copy is not there any more."""
        copy = self.copy
        arrays: dict[str, Any] = {k: v for k, v in copy.arrays().items() if k in ARRAYS}
        return Dataset("own data", n_classes=self.classes, sha256=self.sha256, note=copy.note, **arrays)


@dataclass(frozen=True)
class ByColumn:
    """A client for each value that the column `name` of a user's data has in the training part, in sorted order.

    data: a `UserData`; or one of which a part is held out (`HeldOut`), where a client may lose all.
    """

    by_place: ClassVar[bool] = True  # its lists are of these data and of no part of them
    leaves_empty = property(lambda self: not isinstance(self.data, UserData))

    data: Any
    name: str

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        holders = self.data.held_by
        if len(holders) != len(labels) or clients != self.data.holders:
            raise UserError(
                f"the column {self.name} gives {len(holders)} samples to {self.data.holders} clients, and not "
                f"{len(labels)} to {clients}: leave the number of clients out, and take all samples"
            )
        return [np.flatnonzero(holders == m).astype(np.int64, copy=False) for m in range(clients)]


def bring(where: Any, label: str = LABEL, holder: str = "", drop: Sequence[str] = ()) -> UserData:
    """Read a user's data, once for each content, into the store.

    where: a folder of class folders with pictures (with or without train/ and test/ above them), a CSV, parquet or npz
    file, a folder with train and test files of these kinds, a `datasets.Dataset` or `DatasetDict`, saved to disk or
    not, arrays (x, y), a DataFrame, a data set of torch with pairs (x, y), or a dict of "train" and "test". label: the
    column of labels, names or whole numbers, which become 0 .. C - 1 in sorted order. holder: the column that names the
    client, for `ByColumn`. drop: columns that are left out. Without a test part, the same fifth of each class is held
    out.

    Raises UserError for what cannot be used, in a line that names the file, the column or the row.
    """
    sha256, what, files = "", "the data set", list[Path]()
    if isinstance(where, str | Path):
        where, what = Path(where), spelled(where)
        if not where.exists():
            raise UserError(f"{what} is not there: name a folder or a file")
        files = listed(where) if where.is_dir() else [Path(where.name)]
        sha256 = _sum(where if where.is_dir() else where.parent, files, label, holder, *drop)
    copy = _found(sha256)
    if copy is None:
        parts, left = read(where, files, what, (label, holder))
        if lost := [
            name for name in drop if not any(columns.pop(name, None) is not None for columns in parts.values())
        ]:
            raise UserError(f"{what} has no column {lost[0]} that could be left out")
        arrays, notes = _arranged(parts, what, label, holder)
        sha256 = "" if PATHS in left else sha256  # then the files do not say what the pictures are
        sha256 = sha256 or summed(arrays.values())
        copy = _found(sha256) or store.write(settings().store / "data", "own", sha256, arrays, "; ".join(notes + left))
    arrays = copy.arrays()
    x, y = arrays["train_x"], arrays["train_y"]
    shape = (x.shape[3], *x.shape[1:3]) if x.ndim == 4 else x.shape[1:]
    holders = int(arrays["holders"].max()) + 1 if holder else 0
    data = UserData(sha256, shape, len(y), len(arrays["test_y"]), int(y.max()) + 1, holders)
    object.__setattr__(data, "called", what)
    return data


def _found(sha256: str) -> store.Decoded | None:
    return store.find(settings().store / "data", "own", lambda copy: copy.sha256 == sha256) if sha256 else None


def _sum(root: Path, files: Sequence[Path], *how: str) -> str:
    """SHA-256 of the names and contents of the files, and of how they are read."""
    digest = hashlib.sha256(repr((FORMAT, how)).encode())
    for file in files:
        try:
            with (root / file).open("rb") as stream:
                digest.update(os.fsencode(f"{file.as_posix()}\0{hashlib.file_digest(stream, 'sha256').hexdigest()}\n"))
        except OSError as error:
            raise UserError(f"{root / file} cannot be read ({error.strerror}): mend it, or take it out") from error
    return digest.hexdigest()


# --- columns to samples -----------------------------------------------------------------------------------------------


def _arranged(parts: Mapping[str, Columns], what: str, label: str, holder: str) -> tuple[Arrays, list[str]]:
    """The arrays of a data set; notes on what was done to them."""
    names, notes = _features(parts["train"], what, label, holder)
    words = {part: _names(columns, f"{what}, {part} part", label) for part, columns in parts.items()}
    x = {part: _numbers(columns, f"{what}, {part} part", names, len(words[part][0])) for part, columns in parts.items()}
    classes = words["train"][1]
    if len(classes) < 2:
        raise UserError(f"{what} has one class, {classes[0]}: there must be two at least")
    if all(map(NUMBER.fullmatch, classes)) and any(Decimal(c) % 1 for c in classes):
        raise UserError(
            f"{what}: the column {label} has the labels {', '.join(classes[:3])}: they are names or whole numbers"
        )
    if strange := sorted({*words.get("test", [()])[0]} - {*classes}):
        raise UserError(f"{what}: the class {strange[0]} is in the test part and not in the training part")
    number = {name: k for k, name in enumerate(classes)}
    y = {part: np.array([number[name] for name in rows]) for part, (rows, _) in words.items()}
    kept, rows = np.arange(len(y["train"])), x["train"]
    if "test" not in parts:
        held = _held_out(y["train"], what)
        notes.append(f"without a test part: {len(held)} of {len(kept)} samples, a fifth of each class, are held out")
        kept, x["test"], y["test"] = np.setdiff1d(kept, held), rows[held], y["train"][held]
    elif np.array_equal(rows, x["test"]) and np.array_equal(y["train"], y["test"]):
        notes.append("the training part and the test part are the same samples")
    if lost := [name for k, name in enumerate(classes) if k not in y["test"]]:
        notes.append(f"the test part has no sample of {', '.join(lost[:3])}{' and others' * (len(lost) > 3)}")
    for name in names:
        values: Any = parts["train"][name]
        if values.ndim == 1 and (values == np.round(values)).all() and len({*values.tolist()}) == len(values):
            notes.append(f"the column {name} has another whole number in each row: --drop {name}, if it names the rows")
    if x["train"].shape[1:] != x["test"].shape[1:]:
        shapes = " and ".join(" x ".join(map(str, x[part].shape[1:])) for part in ("train", "test"))
        raise UserError(f"{what}: samples of the training part and of the test part have the shapes {shapes}")
    arrays = {"train_x": x["train"][kept], "train_y": y["train"][kept], "test_x": x["test"], "test_y": y["test"]}
    if holder:
        clients = np.array(_names(parts["train"], f"{what}, train part", holder)[0], dtype=object)[kept]
        order = {name: k for k, name in enumerate(_sorted({*clients}))}
        arrays["holders"] = np.array([order[name] for name in clients])
    return arrays, notes


def _held_out(y: NDArray[Any], what: str) -> NDArray[Any]:
    """Ascending positions of a fifth of each class, the same for every seed of a run. UserError if that is none."""
    order = rng("held out").permutation(len(y))
    classes = (order[y[order] == c] for c in np.unique(y))
    held = np.sort(np.concatenate([m[: len(m) // HELD] for m in classes]))
    if not len(held):
        raise UserError(f"{what} has fewer than {HELD} samples of each class: add some, or a test part")
    return held


def _features(columns: Columns, what: str, label: str, holder: str) -> tuple[list[str], list[str]]:
    """The names of the columns that are features; a note on those that are not used."""
    for name, of in ((label, "labels (--label names another)"), (holder, "clients")):
        if name and name not in columns:
            raise UserError(f"{what} has no column {name} of {of}; its columns are {', '.join(columns)}")
    names = [name for name in columns if name not in (label, holder)]
    arrays = [name for name in names if not isinstance(c := columns[name], Names) and c.ndim > 1]
    if len(arrays) > 1 or not names:
        raise UserError(f"{what} has {len(arrays) or 'no'} columns of features that are pictures or lists: leave one")
    return arrays or names, [f"the column {name} is not used" for name in names if arrays and name not in arrays]


def _names(columns: Columns, what: str, name: str) -> tuple[list[str], list[str]]:
    """A column of names or whole numbers as text, all of which must be there; the different ones in their order."""
    values = columns.get(name, np.zeros(0))
    if not isinstance(values, Names):
        values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
        if values.ndim != 1 or not len(values) or values.dtype.kind == "c":
            wrong = "is not there, or has no rows" if not len(values) else "has lists in it (one-hot labels?)"
            wrong = "has complex numbers" if values.dtype.kind == "c" else wrong
            raise UserError(f"{what}: the column {name} {wrong}: use class numbers or names, or --label another column")
        values = Names([_text(value) for value in values.tolist()], ())
    if None in values.rows:
        raise UserError(f"{what}: the column {name} is empty in row {values.rows.index(None)} {ROWS}")
    texts = [*map(str, values.rows)]
    distinct = {*texts}
    return texts, [text for text in values.order if text in distinct] or _sorted(distinct)


def _text(value: Any) -> str | None:
    """A label as text, a whole number as such; None for an empty one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = os.fsdecode(value) if isinstance(value, bytes) else str(value)
    return text if text.strip() and value is not None and value == value else None


def _sorted(names: set[str]) -> list[str]:
    """The names sorted by value if all are distinct numbers (01 and 1 are not), else as text."""
    numbers = {Decimal(name): name for name in names if NUMBER.fullmatch(name)}
    return [numbers[n] for n in sorted(numbers)] if len(numbers) == len(names) else sorted(names)


def _numbers(columns: Columns, what: str, names: list[str], rows: int) -> NDArray[Any]:
    """Features uint8 [N, H, W, C] or float32 [N, D]."""
    taken = []
    for name in names:
        values = columns.get(name)
        if values is None or isinstance(values, Names) or values.dtype.kind not in "biuf":
            out = f"leave it out, or let it name the clients, --partition column:{name}"
            wrong = "is missing" if values is None else f"has {_kind(values)}; features are numbers or pictures: {out}"
            raise UserError(f"{what}: the column {name} {wrong}")
        if not np.size(values):
            raise UserError(f"{what}: the column {name} has empty lists")
        if len(values) != rows:
            raise UserError(f"{what}: the column {name} has {len(values)} rows and the labels have {rows}")
        taken.append(values)
    if taken[0].ndim > 2:
        return _images(taken[0], f"{what}: {names[0]}")
    with np.errstate(over="ignore"):
        x = np.column_stack(taken).astype(np.float32)
    if not np.isfinite(x).all():
        row, column = np.argwhere(~np.isfinite(x))[0]
        where = names[column] if len(names) > 1 else f"{names[0]} ({column})"
        raise UserError(f"{what}: the column {where} has no finite number in row {row} {ROWS}")
    return x


def _kind(values: Any) -> str:
    """The content of a column that is not numeric."""
    some = None if isinstance(values, Names) else next((v for v in values.ravel().tolist() if v is not None), None)
    dates = not isinstance(values, Names) and (values.dtype.kind in "mM" or isinstance(some, date | time | timedelta))
    return (
        "dates or times" if dates
        else "True and False with gaps" if isinstance(some, bool)
        else "decimals (make them float)" if isinstance(some, Decimal)
        else "words"
    )  # fmt: skip


def _images(values: NDArray[Any], what: str) -> NDArray[np.uint8]:
    """Whole numbers from 0 to 255, [N, H, W], [N, H, W, C] or [N, C, H, W], as pictures."""
    x = values[..., None] if values.ndim == 3 else values
    if x.ndim == 4 and x.shape[3] not in (1, 3):
        x = x.transpose(0, 2, 3, 1)
    whole = x.dtype.kind in "iu" and x.size and 0 <= x.min() <= x.max() <= 255
    if x.ndim != 4 or x.shape[3] not in (1, 3) or not whole:
        kind = f"{values.dtype} {list(values.shape)}"
        raise UserError(f"{what} is {kind}; pictures are 0 .. 255, [N, H, W], [N, H, W, C] or [N, C, H, W], C = 1 or 3")
    return np.ascontiguousarray(x, np.uint8)
