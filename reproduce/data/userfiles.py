"""A user's own files as columns: picture folders, CSV, parquet, npz.

A folder's files are listed once, for its checksum and for reading. torchvision's folders take hidden ones for classes;
pandas guesses labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduce.data.formats import SPLIT, classed, pixels
from reproduce.errors import UserError

LABEL = "label"
TESTS = ("test", "validation", "valid", "val")
"""Names of a test part; the first that is there is taken."""
TABLES = (".csv", ".parquet", ".npz")
INDEX = re.compile(r"|Unnamed: \d+|__index_level_\d+__")
"""Names that pandas gives an index which is written as a column."""


Columns = dict[str, NDArray[Any]]
"""Name -> N values; pictures are uint8 [N, H, W, C]."""
Part = Callable[[], tuple[Columns, list[str]]]
"""Reads the columns of the training or the test part, and notes on what was left out."""


def read(where: Path, files: Sequence[Path], what: str, words: tuple[str, str]) -> tuple[dict[str, Columns], list[str]]:
    """The columns of "train" and, if there is one, of "test"; what was left out, in words.

    where: a folder with its `files`, or a file. what: its name in errors. words: columns that are text in a CSV file,
    the first of which labels of folders and archives get. Raises UserError.
    """
    found: dict[str, Columns] = {}
    try:
        parts = _parts(where, files, what, words)
        odd = [n for n in parts if n not in ("train", *TESTS) and SPLIT.fullmatch(n)]
        if odd or ("train" not in parts and (len(parts) != 1 or {*parts} & {*TESTS})):
            raise UserError(f"{what} has the parts {', '.join(parts)}: call them train and test")
        train, test = "train" if "train" in parts else next(iter(parts)), next((n for n in TESTS if n in parts), "")
        notes = [f"the part {n} is left out" for n in parts if n not in (train, test)]
        for name, part in [("train", train)] + [("test", test)] * bool(test):
            found[name], left = parts[part]()
            notes += left
    except UserError:
        raise
    except Exception as error:  # the libraries raise whatever they like
        raise UserError(f"{what} cannot be read: {' '.join(str(error.__cause__ or error).split())}") from error
    return found, list(dict.fromkeys(notes))


def _parts(where: Path, files: Sequence[Path], what: str, words: tuple[str, str]) -> dict[str, Part]:
    """Each part by its name, and what reads it."""
    if where.is_file():
        return _table(where, what, words)
    tops = {f.parts[0] for f in files if len(f.parts) > 1}
    tables = [f for f in files if f.suffix.lower() in TABLES]
    if tables and not tops:
        each = {f.stem: _table(where / f, f"{what}/{f}", words) for f in tables}
        if len(each) < len(tables) or any([*parts] != ["train"] for parts in each.values()):
            raise UserError(f"{what} has {', '.join(map(str, tables))}: leave one file for each part")
        return {name: parts["train"] for name, parts in each.items()}
    if "train" in tops and all(map(SPLIT.fullmatch, tops)):
        below = {n: [f.relative_to(n) for f in files if f.parts[0] == n and len(f.parts) > 1] for n in sorted(tops)}
        return {n: partial(_pictures, where / n, mine, f"{what}/{n}", words[0]) for n, mine in below.items()}
    if odd := sorted(filter(SPLIT.fullmatch, tops)):
        raise UserError(f"{what}: {odd[0]} looks like a part of the data: call the parts train and test, no class so")
    return {"train": partial(_pictures, where, files, what, words[0])}


# --- pictures ---------------------------------------------------------------------------------------------------------


def _pictures(root: Path, files: Sequence[Path], what: str, label: str) -> tuple[Columns, list[str]]:
    pictures, classes = classed(files, what)
    others = len(files) - len(pictures)
    notes = [f"{others} files of {what} are no pictures"] if others else []
    return {"image": pixels([(str(f), root / f) for f in pictures], what), label: np.array(classes)}, notes


# --- tables -----------------------------------------------------------------------------------------------------------


def _table(path: Path, what: str, words: tuple[str, str]) -> dict[str, Part]:
    """The parts of a file: one but for an archive's."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    if (kind := path.suffix.lower()) not in TABLES:
        raise UserError(f"{what}: give a folder, or a file that ends in {', '.join(TABLES)}")
    if kind == ".npz":
        return _archive(path, words[0])

    def part() -> tuple[Columns, list[str]]:
        if kind == ".csv":
            options = csv.ReadOptions(block_size=min(max(path.stat().st_size, 1), 2**31 - 1))  # types are of all rows
            text = csv.ConvertOptions(column_types=dict.fromkeys(words, pa.string()))
            table = csv.read_csv(path, read_options=options, convert_options=text)
        else:
            table = parquet.ParquetFile(path).read()  # `read_table` makes columns of folders that are called a=1
        index = {n for n in table.column_names if INDEX.fullmatch(n)}
        index |= {n for n in (table.schema.pandas_metadata or {}).get("index_columns", []) if isinstance(n, str)}
        notes = [
            f"the column {n or 'without a name'} is an index and not used" for n in table.column_names if n in index
        ]
        kept = [n for n in table.column_names if n not in index]
        return {n: table[n].combine_chunks().to_numpy(zero_copy_only=False) for n in kept}, notes

    return {"train": part}


def _archive(path: Path, label: str) -> dict[str, Part]:
    """`x` and `y`, or `train_x, train_y, test_x, test_y` (`X_train` is as good); other arrays are columns, too."""
    parts: dict[str, Columns] = {}
    known = "|".join(("train", *TESTS))
    with path.open("rb") as stream, np.load(stream) as archive:
        for key in archive.files:
            found = re.fullmatch(rf"({known})_(\w+)|(\w+)_({known})", key)
            part, name = (found[1] or found[4], found[2] or found[3]) if found else ("train", key)
            columns, name = parts.setdefault(part, {}), label if name in ("y", "Y") else name
            if name in columns:
                raise UserError(f"{path.name} has two arrays {name} of the part {part}: leave one")
            columns[name] = archive[key]
    return {name: lambda columns=columns: (columns, []) for name, columns in parts.items()}  # type: ignore[misc]
