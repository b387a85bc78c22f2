"""Loads data sets: finds the files, checks that they are whole, and returns them as arrays.

Looked for in `settings.data`; the decoded copy and the memory of verified checksums lie in `settings.store`/data.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from reproduce.data import dataset as checks
from reproduce.data import decoded as store
from reproduce.data.dataset import ARRAYS, PARTS, Arrays, Dataset, tokenize, unpacked
from reproduce.data.formats import listed
from reproduce.data.sources import File, Files, Source, find_source
from reproduce.declare.values import calling, foreign
from reproduce.errors import MissingData, UserError
from reproduce.models import weights
from reproduce.settings import Settings

AGAIN = "copy it again, or delete it and run `reproduce data get {}`"


@dataclass(frozen=True)
class Availability:
    """State of a data set: `verified` (checksums matched, decoded copy ready), `present` (to be verified at the first
    load), `missing`, or `embedded`. `path` is where it is or should be; empty for an embedded set.
    """

    name: str
    state: Literal["verified", "present", "missing", "embedded"]
    path: str
    detail: str


def available(name: str, settings: Settings) -> Availability:
    """Finds the files of a data set, or of stored weights, without reading them. UserError for unknown names."""
    if weights.known(name):
        path = weights.find(name, settings.data)
        detail = "checked when read" if path else weights.missing(name, settings.data)
        return Availability(name, "present" if path else "missing", str(path or ""), detail)
    source = find_source(name)
    if source.embedded:
        return Availability(name, "embedded", "", "part of the package")
    layout = find_layout(source, settings.data)
    where = str(settings.data / (layout or source.layouts[0]).files[0].path)
    if layout is None:
        return Availability(name, "missing", where, missing(source, settings.data))
    if Path(where).is_dir():
        return Availability(name, "present", where, "a folder of images, checked when loaded")
    if copy := _copy(name, layout, settings):
        return Availability(name, "verified", where, copy.note)
    return Availability(name, "present", where, "checksum not verified yet")


def load(name: str, settings: Settings) -> Dataset:
    """The data set `name`, decoded once and mapped from disk afterwards.

    Raises MissingData if it is not in the data folder, UserError for an unknown name, a damaged file or a full disk.
    """
    source = find_source(name)
    if source.embedded:
        from reproduce.data import embedded

        return embedded.load(name)
    layout = find_layout(source, settings.data)
    if layout is None:
        raise MissingData(name, missing(source, settings.data))
    copy = _copy(name, layout, settings)
    if copy is None:
        sums = [verified(file, settings.data, name) for file in layout.files]
        summed = sums[0] if len(sums) == 1 else hashlib.sha256("\n".join(sums).encode()).hexdigest()
        stamps = [_stamp(file, settings.data) for file in layout.files]
        copy = store.write(settings.store / "data", name, summed, *decode(source, layout, settings.data), stamps)
    arrays: dict[str, Any] = {k: unpacked(v) if k.endswith("_text") else v for k, v in copy.arrays().items()}
    return Dataset(name, n_classes=source.classes, sha256=copy.sha256, note=copy.note, **arrays)


def _copy(name: str, layout: Files, settings: Settings) -> store.Decoded | None:
    """The decoded copy of the files as they are now."""
    stamps = [_stamp(file, settings.data) for file in layout.files]
    return store.find(settings.store / "data", name, lambda c: list(c.stamps) == stamps)


def find_layout(source: Source, folder: Path) -> Files | None:
    """The first layout all of whose files are there."""
    return next((layout for layout in source.layouts if not _absent(layout, folder)), None)


def missing(source: Source, folder: Path) -> str:
    """The message for missing files, with the two ways to get them."""
    absent = min((_absent(layout, folder) for layout in source.layouts), key=len)
    where = f"in the data folder {folder}{'' if folder.is_dir() else ', which does not exist'}"
    return (
        f"data set {source.name}: there is no {' and '.join(absent)} {where}; set the folder (REPRODUCE_DATA, or "
        f"`data` in config/config.yaml) or run `reproduce data get {source.name}`"
    )


def of_record(record: Any) -> Dataset:
    """The data set that a record loads, checked as files are; UserError for other data than the record declares.

    Of a record that is not of this package the checksum is computed here.
    """
    own, name = foreign(record), type(record).__name__
    with calling(f"the data set {name}", "data") if own else nullcontext():
        data = record.load()
        given, classes = {key: np.asarray(getattr(data, key)) for key in ARRAYS}, data.n_classes
    texts: dict[str, Any] = {f"{part}_text": getattr(data, f"{part}_text", None) for part in PARTS}
    try:
        if classes != record.classes:
            raise ValueError(f"it has {classes} classes; declared are {record.classes}")
        arrays: dict[str, Any] = checks.both(given, record.sample, record.sizes, record.classes, floats=True)
        for rows, (key, text) in zip(record.sizes, texts.items(), strict=True):
            if text is not None and (len(text) != rows or not isinstance(text[0], str)):
                raise ValueError(
                    f"{key} has {len(text)} texts, the first a {type(text[0]).__name__}; {rows} are needed"
                )
        train, test = (arrays[f"{part}_x"].dtype for part in PARTS)
        if len(record.sample.shape) == 3 and (train == np.uint8) != (test == np.uint8):
            raise ValueError(f"train_x has the type {train} and test_x {test}; images of both have the same")
    except ValueError as error:
        raise UserError(f"data set {name}: {error}") from error
    summed = checks.summed(arrays.values(), texts.values()) if own else data.sha256
    return Dataset(name, n_classes=classes, sha256=summed, note=str(getattr(data, "note", "")), **arrays, **texts)


def decode(source: Source, layout: Files, folder: Path) -> tuple[Arrays, str]:
    """The arrays of the files, with token ids for texts, and the note; raises UserError if the files cannot be decoded,
    or are not as the set is declared (`checks`)."""
    from reproduce.data import formats

    try:
        arrays, note = getattr(formats, layout.reader)([folder / file.path for file in layout.files], source)
        for part in PARTS:
            if f"{part}_text" in arrays:
                arrays[f"{part}_x"] = tokenize(unpacked(arrays[f"{part}_text"]))
        return arrays | checks.both(arrays, source.sample, source.sizes, source.classes, floats=False), note
    except UserError:
        raise
    except Exception as error:  # the decoders of six formats raise whatever they like on damaged bytes
        files = " and ".join(str(folder / file.path) for file in layout.files)
        what = f"data set {source.name}: {files} cannot be decoded ({type(error).__name__}: {error})"
        raise UserError(f"{what}; {AGAIN.format(source.name)}") from error


def _absent(layout: Files, folder: Path) -> list[str]:
    return [file.path for file in layout.files if not (folder / file.path).exists()]


def _stamp(file: File, folder: Path) -> store.Stamp:
    """Returns [path, size, time of change], by which a changed file is noticed; of a folder, the digest of its
    listing."""
    path = folder / file.path
    if path.is_dir():
        return [file.path, _listing(path), 0]
    return [file.path, path.stat().st_size, path.stat().st_mtime_ns]


def _listing(folder: Path) -> str:
    """SHA-256 of the names and sizes of all files below `folder`: what stands for the checksum of 100,000 images."""
    lines = (f"{file.as_posix()}\0{(folder / file).stat().st_size}\n" for file in listed(folder))
    return hashlib.sha256(os.fsencode("".join(lines))).hexdigest()


def verified(file: File, folder: Path, name: str) -> str:
    """Returns the SHA-256 of a file of the data set `name`. It must equal the known checksum or that of the side file
    <path>.sha256, else UserError. A folder has a hash of names and sizes instead, which is not checked."""
    path = folder / file.path
    if path.is_dir():
        return _listing(path)
    digest, side = sha256(path), path.with_name(path.name + ".sha256")
    accepted = [file.sha256] if file.sha256 else []
    if side.is_file():
        accepted.append(side.read_text(encoding="utf-8", errors="replace").split(" ")[0].strip()[:64])
    if digest not in accepted:
        expected = " or ".join(accepted) or f"that of a side file {side.name}, which is not there"
        raise UserError(
            f"data set {name}: {path} has SHA-256 {digest}, expected {expected}: the file is cut short, damaged or "
            f"another one; {AGAIN.format(name)}"
        )
    return digest


def sha256(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
