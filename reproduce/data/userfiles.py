"""A user's own files as columns: picture folders, CSV, parquet, npz, and data sets of the `datasets` library.

`datasets`' imagefolder would split pictures by words in their names (test_1.png) and follow no links; torchvision's
takes hidden folders for classes; pandas guesses labels.
"""

import io
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduce.data.formats import SPLIT, classed, listed, pixels
from reproduce.errors import UserError

LABEL = "label"
TESTS = ("test", "validation", "valid", "val")
"""Names of a test part; the first that is there is taken."""
FILES = "a folder, or a file that ends in .csv, .parquet, .npz, .json"
CSV = "no CSV file in UTF-8 whose first line names the columns, with commas between them"
INDEX = re.compile(r"|Unnamed: \d+|__index_level_\d+__")
"""Names that pandas gives an index which is written as a column."""

Columns = dict[str, NDArray[Any]]
"""Name -> N values; pictures are uint8 [N, H, W, C], labels of a `ClassLabel` its numbers."""


def read(where: Any, what: str, label: str) -> tuple[dict[str, Columns], list[str]]:
    """The columns of "train" and, if there is one, of "test"; what was left out, in words.

    where: a path, or data in memory; `what` is its name in errors. label: the name that labels of folders and archives
    get. Raises UserError.
    """
    notes = list[str]()
    try:
        parts = _parts(where, what, label)
        odd = [n for n in parts if n not in ("train", *TESTS) and SPLIT.fullmatch(n)]
        if odd or ("train" not in parts and (len(parts) != 1 or {*parts} & {*TESTS})):
            raise UserError(f"{what} has the parts {', '.join(parts)}: call them train and test")
        of = {n: f"{what}/{p.name}" if isinstance(p, Path) and p != where else what for n, p in parts.items()}
        train, tests = "train" if "train" in parts else next(iter(parts)), [n for n in TESTS if n in parts]
        taken = {"train": train} | ({"test": tests[0]} if tests else {})
        columns = {part: _columns(parts[n], of[n], label, notes) for part, n in taken.items()}
        notes += [f"the part {n} is left out" for n in parts if n not in taken.values()]
    except UserError:
        raise
    except Exception as error:  # the libraries raise whatever they like
        raise UserError(f"{what} cannot be read: {' '.join(str(error.__cause__ or error).split())}") from error
    return columns, list(dict.fromkeys(notes))


def _parts(where: Any, what: str, label: str) -> dict[str, Any]:
    """Each part by its name, as `_columns` takes it."""
    from datasets import load_from_disk

    if not isinstance(where, Path):
        return {str(n): part for n, part in where.items()} if isinstance(where, dict) else {"train": where}
    if where.is_file():
        return _archive(where, label) if where.suffix == ".npz" else {"train": where}
    if loops := [p for p in where.rglob("*") if p.is_symlink() and p.parent.resolve().is_relative_to(p.resolve())]:
        raise UserError(f"{loops[0]} is a link to a folder around it: take it out")
    files = listed(where)
    if Path("dataset_dict.json") in files or {Path("state.json"), Path("dataset_info.json")} <= {*files}:
        return _parts(load_from_disk(where), what, label)
    folders = {f.parts[0] for f in files if len(f.parts) > 1}
    tables = {f.stem: where / f for f in files if f.suffix in (".csv", ".parquet")}
    if tables and not folders:
        return tables
    if "train" in folders and all(map(SPLIT.fullmatch, folders)):
        return {name: where / name for name in sorted(folders)}
    if odd := sorted(filter(SPLIT.fullmatch, folders)):
        raise UserError(f"{what}: {odd[0]} looks like a part of the data: call the parts train and test, no class so")
    return {"train": where}


def _archive(path: Path, label: str) -> dict[str, Columns]:
    """`x` and `y`, or `train_x, train_y, test_x, test_y` (`x_train` is as good); other arrays are columns, too."""
    parts, known = dict[str, Columns](), "|".join(("train", *TESTS))
    with path.open("rb") as stream, np.load(stream) as archive:
        for key in archive.files:
            match = re.fullmatch(rf"({known})_(\w+)|(\w+)_({known})", key)
            part, name = (match[1] or match[4], match[2] or match[3]) if match else ("train", key)
            parts.setdefault(part, {})[label if name == "y" else name] = archive[key]
    return parts


def _columns(source: Any, what: str, label: str, notes: list[str]) -> Columns:
    """The columns of a folder or a table, of LEAF's JSON (x, labels, `user`), of a `datasets.Dataset`, a DataFrame,
    arrays by name, arrays (x, y), or a data set of torch with pairs (x, y)."""
    import pandas as pd
    from datasets import Dataset

    if isinstance(source, Path) and (files := _leaf_files(source)):
        held = [pair for file in files for pair in json.loads(file.read_text())["user_data"].items()]
        for user, of in held:
            if len(of["x"]) != len(of["y"]):
                raise UserError(f"{what}: the user {user} has {len(of['x'])} samples and {len(of['y'])} labels")
        x, y = (np.concatenate([np.asarray(of[name]) for _, of in held if len(of["y"])]) for name in "xy")
        return {"x": x, label: y, "user": np.repeat([user for user, _ in held], [len(of["y"]) for _, of in held])}
    if isinstance(source, Path) and source.is_dir():
        pictures, classes = classed(files := listed(source), what)
        if skipped := len(files) - len(pictures):
            notes.append(f"{skipped} files of {what} are no pictures")
        return {"image": pixels(_whole(((str(f), source / f) for f in pictures), what), what), label: np.array(classes)}
    if isinstance(source, Path):
        return _rows(_table(source, what), what, notes)
    if isinstance(source, pd.DataFrame):
        source = Dataset.from_pandas(source, preserve_index=False)
    if isinstance(source, Dataset):
        return _rows(source, what, notes)
    if isinstance(source, dict):
        return source
    if hasattr(source, "__len__") and not isinstance(source, tuple | np.ndarray):
        pairs = [source[i] for i in range(len(source))]
        source = np.stack([np.asarray(x) for x, _ in pairs]), [y for _, y in pairs]
    if not isinstance(source, tuple) or len(source) != 2:
        accepted = "a folder, a file, arrays (x, y), a DataFrame, a datasets.Dataset or a DatasetDict"
        raise UserError(f"{what}: give {accepted}, not a {type(source).__name__}")
    return {"x": np.asarray(source[0]), label: np.asarray(source[1])}


def _whole(files: Iterable[tuple[str, Any]], what: str) -> Iterator[tuple[str, Any]]:
    """The pictures of `pixels`. Raises UserError at one of which it would lose colours or frames."""
    from PIL import Image

    for name, file in files:
        with suppress(OSError), Image.open(file) as image:
            lost = "more than 8 bits a colour" * bool(re.search(r"(RGBA?|LA);16|65535", str(image.tile)))
            if image.format != "MPO" and getattr(image, "n_frames", 1) > 1:  # a camera's begins with the picture
                lost = "several pictures in one"
            if lost:
                raise UserError(f"{what}: {name} has {lost}: take it out, or convert it")
        if hasattr(file, "seek"):
            file.seek(0)
        yield name, file


def _leaf_files(path: Path) -> list[Path]:
    """The JSON files of LEAF, of a part of the data: one, or a folder that has nothing else."""
    files = [path] if path.is_file() else [path / file for file in listed(path)]
    return files if all(file.suffix == ".json" for file in files) else []


def _table(path: Path, what: str) -> Any:
    """A CSV or parquet file as a `datasets.Dataset`."""
    from datasets import Dataset
    from datasets.table import InMemoryTable
    from pyarrow import csv, parquet

    if path.suffix == ".parquet":
        # `read_table` makes columns of folders that are called a=1
        return Dataset(InMemoryTable(parquet.ParquetFile(path).read()))
    if path.suffix != ".csv":
        raise UserError(f"{what}: give {FILES}")
    options = csv.ReadOptions(block_size=min(max(path.stat().st_size, 1), 2**31 - 1))  # types are of all rows
    try:
        table = csv.read_csv(path, read_options=options)
        if table.num_columns < 2:
            raise ValueError(f"its first line is {table.column_names[0]!r}")
    except ValueError as error:
        raise UserError(f"{what} is {CSV} ({' '.join(str(error).split())})") from error
    return Dataset(InMemoryTable(table))


def _rows(rows: Any, what: str, notes: list[str]) -> Columns:
    """The columns of a `datasets.Dataset` but for an index."""
    from datasets import ClassLabel, Image

    if rows.format["type"] == "custom" or rows.format["format_kwargs"]:
        raise UserError(f"{what} has a transform, which is made at each access: apply it by map() first")
    table, columns = rows.with_format("arrow")[:], Columns()
    for name in rows.format["columns"]:
        feature = rows.features[name]
        if INDEX.fullmatch(name):
            notes.append(f"the column {name or 'without a name'} is an index and not used")
        elif isinstance(feature, Image):
            cells = [cell or {"bytes": b""} for cell in table[name].to_pylist()]
            opened = [c["path"] if c["bytes"] is None else io.BytesIO(c["bytes"]) for c in cells]
            columns[name] = pixels(
                _whole(((f"row {i}", file) for i, file in enumerate(opened)), what), what, feature.mode
            )
        else:
            values = _array(table[name].combine_chunks(), f"{what}: the column {name}")
            columns[name] = np.where(values < 0, np.nan, values) if isinstance(feature, ClassLabel) else values
    return columns


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
