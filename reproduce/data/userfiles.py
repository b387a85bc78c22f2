"""A user's own files as columns: picture folders, CSV, parquet, npz, and data sets of the `datasets` library.

A folder's files are listed once, for its checksum and for reading. `datasets`' imagefolder would split them by words in
their names (test_1.png) and follow no links; torchvision's takes hidden folders for classes; pandas guesses labels.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reproduce.data.formats import SPLIT, classed, pixels
from reproduce.errors import UserError

LABEL = "label"
PATHS = "the pictures are files whose paths a column has"
TESTS = ("test", "validation", "valid", "val")
"""Names of a test part; the first that is there is taken."""
TABLES = (".csv", ".parquet", ".npz")
CSV = "no CSV file in UTF-8 whose first line names the columns, with commas between them"
INDEX = re.compile(r"|Unnamed: \d+|__index_level_\d+__")
"""Names that pandas gives an index which is written as a column."""


class Names(NamedTuple):
    """A column of class names, None where there is none, and the order that a `ClassLabel` gives them."""

    rows: list[str | None]
    order: tuple[str, ...]


Columns = dict[str, NDArray[Any] | Names]
"""Name -> N values; pictures are uint8 [N, H, W, C]."""
Part = Callable[[], tuple[Columns, list[str]]]
"""Reads the columns of the training or the test part, and notes on what was left out."""


def read(where: Any, files: Sequence[Path], what: str, words: tuple[str, str]) -> tuple[dict[str, Columns], list[str]]:
    """The columns of "train" and, if there is one, of "test"; what was left out, in words.

    where: a folder with its `files`, a file, or what `_library` takes. what: its name in errors. words:
    columns that are text in a CSV file, the first of which labels of folders and archives get. Raises UserError.
    """
    columns: dict[str, Columns] = {}
    try:
        parts = _parts(where, files, what, words)
        odd = [n for n in parts if n not in ("train", *TESTS) and SPLIT.fullmatch(n)]
        if odd or ("train" not in parts and (len(parts) != 1 or {*parts} & {*TESTS})):
            raise UserError(f"{what} has the parts {', '.join(parts)}: call them train and test")
        train, tests = "train" if "train" in parts else next(iter(parts)), [n for n in TESTS if n in parts]
        columns["train"], notes = parts[train]()
        while tests:
            columns["test"], left = parts[test := tests.pop(0)]()
            if not tests or not _unlabelled(columns["test"].get(words[0])):
                notes += left
                break
            notes.append(f"the part {test} has no labels: {tests[0]} is taken")
        notes += [f"the part {n} is left out" for n in parts if n in tests or n not in (train, *TESTS)]
    except UserError:
        raise
    except Exception as error:  # the libraries raise whatever they like
        raise UserError(f"{what} cannot be read: {' '.join(str(error.__cause__ or error).split())}") from error
    return columns, list(dict.fromkeys(notes))


def _unlabelled(labels: NDArray[Any] | Names | None) -> bool:
    """Tells whether no row has a label; -1 marks that."""
    rows = [] if labels is None else labels.rows if isinstance(labels, Names) else labels.ravel().tolist()
    return all(row is None or row == -1 or row != row for row in rows)


def _parts(where: Any, files: Sequence[Path], what: str, words: tuple[str, str]) -> dict[str, Part]:
    """Each part by its name, and what reads it."""
    from datasets import load_from_disk

    if not isinstance(where, Path):
        return _library(where, what, words[0])
    if where.is_file():
        return _table(where, what, words)
    if Path("dataset_dict.json") in files or {Path("state.json"), Path("dataset_info.json")} <= {*files}:
        return _library(load_from_disk(where), what, words[0])
    tops = {f.parts[0] for f in files if len(f.parts) > 1}
    tables = [f for f in files if f.suffix.lower() in TABLES]
    if tables and not tops:
        each = {f.stem: _table(where / f, f"{what}/{f}", words) for f in tables}
        if len(each) < len(tables) or any([*parts] != ["train"] for parts in each.values()):
            raise UserError(f"{what} has {', '.join(map(str, tables))}: leave one file for each part")
        return {name: parts["train"] for name, parts in each.items()}
    if "train" in tops and all(map(SPLIT.fullmatch, tops)):
        below = {n: [f.relative_to(n) for f in files if f.parts[0] == n and len(f.parts) > 1] for n in sorted(tops)}
        return {n: partial(_pictures, where / n, inner, f"{what}/{n}", words[0]) for n, inner in below.items()}
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
    from datasets import Dataset
    from datasets.table import InMemoryTable
    from pyarrow import csv, parquet

    if (kind := path.suffix.lower()) not in TABLES:
        raise UserError(f"{what}: give a folder, or a file that ends in {', '.join(TABLES)}")
    if kind == ".npz":
        return _archive(path, words[0])

    def part() -> tuple[Columns, list[str]]:
        if kind == ".csv":
            options = csv.ReadOptions(block_size=min(max(path.stat().st_size, 1), 2**31 - 1))  # types are of all rows
            text = csv.ConvertOptions(column_types=dict.fromkeys(words, pa.string()))
            try:
                table = csv.read_csv(path, read_options=options, convert_options=text)
            except pa.ArrowInvalid as error:
                raise UserError(f"{what} is {CSV} ({' '.join(str(error).split())})") from error
            if table.num_columns < 2 or table.column_names[0].startswith("sep="):
                raise UserError(f"{what} is {CSV} (its first line is {table.column_names[0]!r})")
        else:
            table = parquet.ParquetFile(path).read()  # `read_table` makes columns of folders that are called a=1
        index = [n for n in (table.schema.pandas_metadata or {}).get("index_columns", []) if isinstance(n, str)]
        return _columns(Dataset(InMemoryTable(table)), path.name, index)

    return {"train": part}


def _archive(path: Path, label: str) -> dict[str, Part]:
    """`x` and `y`, or `train_x, train_y, test_x, test_y` (`X_train` is as good); other arrays are columns, too."""
    parts: dict[str, Columns] = {}
    known = "|".join(("train", *TESTS))
    with path.open("rb") as stream, np.load(stream) as archive:
        for key in archive.files:
            match = re.fullmatch(rf"({known})_(\w+)|(\w+)_({known})", key)
            part, name = (match[1] or match[4], match[2] or match[3]) if match else ("train", key)
            columns, name = parts.setdefault(part, {}), label if name in ("y", "Y") else name
            if name in columns:
                raise UserError(f"{path.name} has two arrays {name} of the part {part}: leave one")
            columns[name] = archive[key]
    return {name: lambda columns=columns: (columns, []) for name, columns in parts.items()}  # type: ignore[misc]


def _library(given: Any, what: str, label: str) -> dict[str, Part]:
    """The parts of data in memory; what is no dict of parts is the only one."""
    parts = given if isinstance(given, dict) else {"train": given}
    return {str(name): partial(_held, rows, what, label) for name, rows in parts.items()}


def _held(given: Any, what: str, label: str) -> tuple[Columns, list[str]]:
    """The columns of a `datasets.Dataset`, a DataFrame, arrays (x, y), or a data set of torch with pairs (x, y)."""
    import pandas as pd
    from datasets import Dataset

    if isinstance(given, pd.DataFrame):
        given = Dataset.from_pandas(given, preserve_index=False)
    if isinstance(given, Dataset):
        return _columns(given, what)
    given = getattr(given, "tensors", given)  # of a TensorDataset
    if hasattr(given, "__len__") and not isinstance(given, tuple | np.ndarray):
        pairs = [given[i] for i in range(len(given))]
        given = np.stack([np.asarray(x) for x, _ in pairs]), [y for _, y in pairs]
    if not isinstance(given, tuple) or len(given) != 2:
        wanted = "a folder, a file, arrays (x, y), a DataFrame, a datasets.Dataset or a DatasetDict"
        raise UserError(f"{what}: give {wanted}, not a {type(given).__name__}")
    return {"x": np.asarray(given[0]), label: np.asarray(given[1])}, []


def _columns(rows: Any, what: str, index: Sequence[str] = ()) -> tuple[Columns, list[str]]:
    """The columns of a `datasets.Dataset` but for an index."""
    from datasets import ClassLabel, Image

    if rows.format["type"] == "custom" or rows.format["format_kwargs"]:
        raise UserError(f"{what} has a transform, which is made at each access: apply it by map() first")
    table, columns, notes = rows.with_format("arrow")[:], Columns(), []
    for name in rows.format["columns"]:
        feature = rows.features[name]
        if INDEX.fullmatch(name) or name in index:
            notes.append(f"the column {name or 'without a name'} is an index and not used")
        elif isinstance(feature, Image):
            cells = [cell or {"bytes": b""} for cell in table[name].to_pylist()]
            notes += [PATHS] * any(c["bytes"] is None for c in cells)
            opened = [c["path"] if c["bytes"] is None else io.BytesIO(c["bytes"]) for c in cells]
            columns[name] = pixels(((f"row {i}", file) for i, file in enumerate(opened)), what, feature.mode)
        elif isinstance(feature, ClassLabel):  # a negative number is the library's sign for no label
            known = [None if k is None or k < 0 else feature.names[k] for k in table[name].to_pylist()]
            columns[name] = Names(known, tuple(feature.names))
        else:
            columns[name] = _array(table[name].combine_chunks(), f"{what}: the column {name}")
    return columns, notes


def _array(values: Any, what: str) -> NDArray[Any]:
    """A column; lists of one length become an array of more axes."""
    from pyarrow import compute

    shape = [len(values)]
    while hasattr(values, "storage") or hasattr(values.type, "value_field"):
        values = getattr(values, "storage", values)
        lengths = compute.unique(compute.list_value_length(values)).to_pylist()
        if len(lengths) != 1 or lengths[0] is None:
            raise UserError(f"{what} has lists of several lengths: make all of one length")
        shape, values = [*shape, lengths[0]], values.flatten()
    array: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return array.reshape(shape)
