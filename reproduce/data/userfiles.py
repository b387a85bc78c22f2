"""A user's own files as columns: image folders, parquet, CSV, npz, and data sets of the `datasets` library."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from reproduce.errors import UserError

Columns = dict[str, NDArray[Any]]
"""Name -> N values; pictures are uint8 [N, H, W, C] with one channel (grey) or three."""
LABEL = "label"
TESTS = ("test", "validation", "valid", "val")
"""Names of a test part; the first that is there is taken."""
TABLES = (".csv", ".parquet", ".npz")
_GREY = ("1", "L", "LA")
_T = TypeVar("_T")


def read(where: Any, what: str, label: str) -> tuple[dict[str, Columns], list[str]]:
    """The columns of "train" and, if there is one, of "test"; what was left out, in words.

    where: a folder, a file, a `datasets.Dataset` or a `DatasetDict`. what: its name in errors. label: the column that
    labels of folders and archives get. Raises UserError.
    """
    if not isinstance(where, Path):
        return _library(where, what)
    if where.is_dir():
        if (where / "dataset_dict.json").is_file() or (where / "state.json").is_file():
            from datasets import load_from_disk

            return _library(_guarded(what, "a data set saved to disk", lambda: load_from_disk(where)), what)
        return _folder(where, what, label)
    if where.suffix not in TABLES:
        raise UserError(f"{what}: give a folder, or a file that ends in {', '.join(TABLES)}")
    return _table(where, what, label), []


def _folder(folder: Path, what: str, label: str) -> tuple[dict[str, Columns], list[str]]:
    """Class folders, with or without `train` and `test` above them; or `train.csv` and `test.csv` (.parquet, .npz)."""
    below = {p.name: p for p in sorted(folder.iterdir()) if p.is_dir() and not p.name.startswith(".")}
    tables = {p.stem: p for p in sorted(folder.iterdir()) if p.suffix in TABLES}
    if tables and not below:
        chosen, left = _chosen(tables, what)
        return {n: _table(p, f"{what}/{p.name}", label)["train"] for n, p in chosen.items()}, left
    parted = "train" in below and set(below) <= {"train", *TESTS}
    chosen, left = _chosen(below, what) if parted else ({"train": folder}, [])
    return {n: _pictures(p, f"{what}/{p.name}" if parted else what, label, left) for n, p in chosen.items()}, left


def _chosen(parts: Mapping[str, _T], what: str) -> tuple[dict[str, _T], list[str]]:
    """The training part, or the only one, and the test part; the others by name."""
    if len(parts) > 1 and "train" not in parts:
        raise UserError(f"{what} has the parts {', '.join(parts)}: call them train and test")
    train = "train" if "train" in parts else next(iter(parts))
    test = next((n for n in TESTS if n in parts and n != train), None)
    left = [f"the part {n} is left out" for n in parts if n not in (train, test)]
    return {"train": parts[train]} | ({"test": parts[test]} if test else {}), left


def _pictures(folder: Path, what: str, label: str, left: list[str]) -> Columns:
    """The pictures of a folder with a folder for each class, listed by torchvision: `datasets` takes five times as long
    to the arrays."""
    from reproduce.vision import torchvision

    try:
        found = torchvision.datasets.ImageFolder(folder)
    except FileNotFoundError as error:
        said = str(error).splitlines()[0].partition(" Supported")[0].rstrip(".")
        raise UserError(f"{what}: {said}; labels are the names of folders, {what}/CLASS/picture.png") from error
    others = sum(p.is_file() for p in folder.rglob("*")) - len(found.samples)
    left += [f"{others} files of {what} are no pictures"] if others else []
    x = pixels(((str(Path(p).relative_to(folder)), Path(p)) for p, _ in found.samples), what)
    return {"image": x, label: np.array([found.classes[k] for _, k in found.samples])}


def pixels(files: Iterable[tuple[str, Any]], what: str) -> NDArray[np.uint8]:
    """Pictures uint8 [N, H, W, C], with one channel if all are grey; upright, as cameras mean them.

    files: (name, what Pillow opens). Raises UserError with the first name that cannot be read, or is of another size.
    """
    from PIL import Image, ImageOps

    found: list[NDArray[np.uint8]] = []
    for name, file in files:
        try:
            with Image.open(file) as image:
                if image.mode.startswith(("I", "F")):
                    raise ValueError("more than 8 bits a pixel")
                one = np.asarray(ImageOps.exif_transpose(image).convert("L" if image.mode in _GREY else "RGB"))
        except Exception as error:  # Pillow raises whatever it likes on damaged bytes
            why = "it is damaged" if isinstance(error, OSError) else str(error)
            raise UserError(f"{what}: {name} cannot be read as a picture ({why}): repair it, or take it out") from error
        if found and one.shape[:2] != found[0].shape[:2]:
            sizes = " and ".join(f"{a.shape[1]} x {a.shape[0]}" for a in (one, found[0]))
            raise UserError(f"{what}: {name} and the first picture have {sizes} pixels: make all of one size")
        found.append(one if one.ndim == 3 else one[..., None])
    colours = max(a.shape[2] for a in found)
    return np.stack([np.broadcast_to(a, (*a.shape[:2], colours)) for a in found])


def _table(path: Path, what: str, label: str) -> dict[str, Columns]:
    if path.suffix == ".npz":
        return _guarded(what, "an archive of arrays", lambda: _archive(path, what, label))

    def rows() -> dict[str, Columns]:
        import pandas as pd
        import pyarrow.parquet as pq
        from datasets import Dataset
        from datasets.table import InMemoryTable

        if path.suffix == ".csv":
            return {"train": _columns(Dataset.from_pandas(pd.read_csv(path), preserve_index=False), what)}
        return {"train": _columns(Dataset(InMemoryTable(pq.read_table(path))), what)}

    return _guarded(what, f"a table ({path.suffix})", rows)


def _archive(path: Path, what: str, label: str) -> dict[str, Columns]:
    """`x` and `y`, or `train_x, train_y, test_x, test_y` (`x_train` is as good); other arrays are columns, too."""
    parts: dict[str, Columns] = {}
    with np.load(path) as archive:
        for key in archive.files:
            found = re.fullmatch(r"(?:(train|test)_)?(\w+?)(?:_(train|test))?", key)
            part, name = (found[1] or found[3] or "train", found[2]) if found else ("train", key)
            values = archive[key]
            pictures = name == "x" and values.dtype == np.uint8 and values.ndim == 3
            parts.setdefault(part, {})[label if name == "y" else name] = values[..., None] if pictures else values
    if "train" not in parts:
        raise UserError(f"{what} has no training part: name its arrays x and y, or train_x, train_y, test_x and test_y")
    return parts


def _library(given: Any, what: str) -> tuple[dict[str, Columns], list[str]]:
    from datasets import Dataset

    if isinstance(given, Dataset):
        given = {"train": given}
    if not isinstance(given, dict) or not all(isinstance(d, Dataset) for d in given.values()):
        kind = type(given).__name__
        raise UserError(f"{what}: give a folder, a file, a datasets.Dataset or a DatasetDict, not a {kind}")
    parts, left = _chosen(given, what)
    return {n: _guarded(what, "a data set", lambda d=d: _columns(d, what)) for n, d in parts.items()}, left


def _columns(rows: Any, what: str) -> Columns:
    """A `datasets.Dataset` as arrays; lists of one length become arrays of more axes."""
    from datasets import ClassLabel, Image

    table, found = rows.with_format("arrow")[:], Columns()
    for name, feature in rows.features.items():
        if isinstance(feature, Image):
            stored = rows.cast_column(name, Image(decode=False)).select_columns(name)
            cells = (row[name] or {"bytes": b"", "path": None} for row in stored)
            files = (io.BytesIO(cell["bytes"]) if cell["bytes"] is not None else cell["path"] for cell in cells)
            found[name] = pixels(((f"row {i}", file) for i, file in enumerate(files)), what)
        else:
            values: NDArray[Any] = table[name].to_numpy()
            if values.dtype == object and len(values) and isinstance(values[0], np.ndarray):
                values = np.array(table[name].to_pylist())
                if values.ndim in (3, 4) and values.dtype.kind in "iu" and 0 <= values.min() <= values.max() <= 255:
                    values = values.astype(np.uint8).reshape(*values.shape[:3], -1)
            if isinstance(feature, ClassLabel) and (gone := values < 0).any():  # the library's sign for no label
                values = values.astype(object)
                values[gone] = None
            found[name] = values
    return found


def _guarded(what: str, kind: str, call: Any) -> Any:
    """What `call` gives; whatever a library raises is one UserError."""
    try:
        return call()
    except UserError:
        raise
    except Exception as error:
        why = " ".join(str(error.__cause__ or error).split())
        raise UserError(f"{what} cannot be read as {kind}: {why}") from error
