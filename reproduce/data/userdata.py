"""A user's own data as the data of a problem: known by what they say, kept decoded in the store.

from reproduce.data.userdata import ByColumn, bring

data = bring("photos")  # a UserData
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reproduce.data import decoded as store
from reproduce.data.dataset import ARRAYS, Arrays, Dataset, summed
from reproduce.data.userfiles import FILES, LABEL, Columns, read
from reproduce.declare.values import Indices, Labels, Sample
from reproduce.errors import UserError
from reproduce.settings import settings
from reproduce.streams import rng
from reproduce.text import spelled

HELD = 5
"""One of so many samples of each class is held out where there is no test part."""


@dataclass(frozen=True)
class UserData:
    """Data that `bring` has read: `sha256` is of their arrays.

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
        decoded = _stored(self.sha256)
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

    def __str__(self) -> str:
        return f"column:{self.name}"

    def split(self, labels: Labels, clients: int, seed: int) -> list[Indices]:
        holders = self.data.held_by
        if len(holders) != len(labels) or clients != self.data.holders:
            raise UserError(
                f"the column {self.name} gives {len(holders)} samples to {self.data.holders} clients, and not "
                f"{len(labels)} to {clients}: leave the number of clients out, and take all samples"
            )
        return [np.flatnonzero(holders == m).astype(np.int64, copy=False) for m in range(clients)]


def bring(where: Any, label: str = LABEL, holder: str = "", drop: Sequence[str] = ()) -> UserData:
    """Read a user's data into the store, where each content is once.

    where: a folder of class folders with pictures (with or without train/ and test/ above them), a CSV, parquet or npz
    file, a folder with train and test tables, a `datasets.Dataset` or `DatasetDict`, saved to disk or not, arrays
    (x, y), a DataFrame, a data set of torch with pairs (x, y), or a dict of "train" and "test". label: the column of
    labels, names or whole numbers, which become 0 .. C - 1 in sorted order. holder: the column that names the client,
    for `ByColumn`. drop: columns that are left out. Without a test part, the same fifth of each class is held out.

    Raises UserError for what cannot be used, in a line that names the file, the column or the row.
    """
    what = "the data set"
    if isinstance(where, str | Path):
        where, what = Path(where), spelled(where)
        if not where.exists():
            raise UserError(f"{what} is not there: name {FILES}")
    parts, remarks = read(where, what, label)
    for name in drop:
        if not any([columns.pop(name, None) is not None for columns in parts.values()]):
            raise UserError(f"{what} has no column {name} that could be left out")
    arrays, notes = _arranged(parts, what, label, holder)
    sha256, y, shape = summed(arrays.values()), arrays["train_y"], arrays["train_x"].shape[1:]
    if not _stored(sha256):
        store.write(settings().store / "data", "own", sha256, arrays, "; ".join(notes + remarks))
    shape = (shape[2], *shape[:2]) if len(shape) == 3 else shape
    holders = int(arrays["holders"].max()) + 1 if holder else 0
    data = UserData(sha256, shape, len(y), len(arrays["test_y"]), int(y.max()) + 1, holders)
    object.__setattr__(data, "called", what)
    return data


def _stored(sha256: str) -> store.Decoded | None:
    return store.find(settings().store / "data", "own", lambda copy: copy.sha256 == sha256)


# --- columns to samples -----------------------------------------------------------------------------------------------


def _arranged(parts: Mapping[str, Columns], what: str, label: str, holder: str) -> tuple[Arrays, list[str]]:
    """The arrays of a data set; notes on what was done to them."""
    names, notes = _features(parts["train"], what, label, holder)
    number, classes = _numbered(parts["train"], f"{what}, train part", label)
    x, y = (
        {part: _numbers(columns, f"{what}, {part} part", names) for part, columns in parts.items()},
        {"train": number},
    )
    if len(classes) < 2:
        raise UserError(f"{what} has one class, {classes[0]}: there must be two at least")
    kept, rows = np.arange(len(number)), x["train"]
    if "test" in parts:
        codes, uniques = _numbered(parts["test"], f"{what}, test part", label)
        y["test"] = classes.get_indexer(uniques)[codes]
        if strange := [name for name in uniques if name not in classes]:
            raise UserError(f"{what}: the class {strange[0]} is in the test part and not in the training part")
        if np.array_equal(rows, x["test"]) and np.array_equal(number, y["test"]):
            notes.append("the training part and the test part are the same samples")
    else:
        held = _held_out(number, what)
        notes.append(f"without a test part: {len(held)} of {len(kept)} samples, a fifth of each class, are held out")
        kept, x["test"], y["test"] = np.setdiff1d(kept, held), rows[held], number[held]
    if lost := [str(name) for k, name in enumerate(classes) if k not in y["test"]]:
        notes.append(f"the test part has no sample of {', '.join(lost[:3])}{' and others' * (len(lost) > 3)}")
    for name in names:
        values = parts["train"][name]
        if values.ndim == 1 and (values == np.round(values)).all() and len(np.unique(values)) == len(values):
            notes.append(f"the column {name} has another whole number in each row: --drop {name}, if it names the rows")
    for part in x:
        if x[part].shape != (len(y[part]), *rows.shape[1:]):
            have = f"{len(y[part])} labels and samples {list(x[part].shape)}, the training part {list(rows.shape)}"
            raise UserError(f"{what}: the {part} part has {have}: each has as many of both, and samples of one shape")
    arrays = {"train_x": rows[kept], "train_y": number[kept], "test_x": x["test"], "test_y": y["test"]}
    if holder:
        clients, _ = _numbered(parts["train"], f"{what}, train part", holder)
        arrays["holders"] = np.unique(clients[kept], return_inverse=True)[1]
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
    arrays = [name for name in names if columns[name].ndim > 1]
    if len(arrays) > 1 or not names:
        raise UserError(f"{what} has {len(arrays) or 'no'} columns of features that are pictures or lists: leave one")
    return arrays or names, [f"the column {name} is not used" for name in names if arrays and name not in arrays]


def _numbered(columns: Columns, what: str, name: str) -> tuple[NDArray[Any], pd.Index]:
    """The numbers of a column's names (or whole numbers) among all different ones, and these in sorted order."""
    values = columns.get(name, np.zeros(0))
    values = values[:, 0] if values.shape[1:] == (1,) else values
    names = pd.Series(values if values.ndim == 1 and values.dtype.kind != "c" else [], dtype=object)
    numbers, uniques = pd.factorize(names.replace("", None), sort=True)
    wrong = (
        "is not there, or has no rows" if not len(values)
        else "has lists in it (one-hot labels?)" if values.ndim > 1
        else "has complex numbers" if values.dtype.kind == "c"
        else f"is empty in row {numbers.argmin()} (rows count from 0)" if numbers.min() < 0
        else f"has {uniques[uniques % 1 != 0][0]}" if values.dtype.kind == "f" and (uniques % 1).any()
        else ""
    )  # fmt: skip
    if wrong:
        raise UserError(f"{what}: the column {name} {wrong}: use class numbers or names, or --label another column")
    return numbers, pd.Index(uniques)


def _numbers(columns: Columns, what: str, names: list[str]) -> NDArray[Any]:
    """Features uint8 [N, H, W, C] or float32 [N, D]."""
    taken = [columns.get(name, np.zeros(0)) for name in names]
    for name, values in zip(names, taken, strict=True):
        if values.dtype.kind not in "biuf" or not values.size:  # words, dates, decimals, truth values with gaps
            one = next((f"{type(v).__name__} {v}" for v in values.flat if v is not None), "nothing")
            raise UserError(
                f"{what}: the column {name} has {one}, and features are numbers without gaps or pictures: change it, "
                f"--drop {name}, or let it name the clients, --partition column:{name}"
            )
    if taken[0].ndim > 2:
        return _images(taken[0], f"{what}: {names[0]}")
    with np.errstate(over="ignore"):
        x = np.column_stack(taken).astype(np.float32)
    if not np.isfinite(x).all():
        row, column = np.argwhere(~np.isfinite(x))[0]
        where = names[column] if len(names) > 1 else f"{names[0]} ({column})"
        raise UserError(f"{what}: the column {where} has no finite number in row {row} (rows count from 0)")
    return x


def _images(values: NDArray[Any], what: str) -> NDArray[np.uint8]:
    """Whole numbers from 0 to 255, [N, H, W], [N, H, W, C] or [N, C, H, W], as pictures."""
    x = values[..., None] if values.ndim == 3 else values
    if x.ndim == 4 and x.shape[3] not in (1, 3):
        x = x.transpose(0, 2, 3, 1)
    if x.ndim != 4 or x.shape[3] not in (1, 3) or x.dtype.kind not in "iu" or x.min() < 0 or x.max() > 255:
        kind = f"{values.dtype} {list(values.shape)}"
        raise UserError(f"{what} is {kind}; pictures are 0 .. 255, [N, H, W], [N, H, W, C] or [N, C, H, W], C = 1 or 3")
    return np.ascontiguousarray(x, np.uint8)
