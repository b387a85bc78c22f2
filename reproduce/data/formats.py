"""Readers of the files: train_x, train_y, test_x, test_y in the types of `Dataset`, texts packed.

Each takes (files, source) and gives (arrays, note); a damaged file raises any exception.
"""

from __future__ import annotations

import io
import lzma
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduce.data.dataset import PARTS, Arrays, packed
from reproduce.data.sources import Source
from reproduce.errors import UserError


def read_npz(paths: Sequence[Path], source: Source) -> tuple[Arrays, str]:
    """An archive with `train_x, train_y, test_x, test_y`, images possibly as differences `train_x_d` (docs/data.md)."""
    arrays: Arrays = {}
    with paths[0].open("rb") as stream, np.load(stream) as archive:
        for part in ("train", "test"):
            if f"{part}_x_d" in archive.files:
                arrays[f"{part}_x"] = undo_differences(archive[f"{part}_x_d"])
            else:
                arrays[f"{part}_x"] = archive[f"{part}_x"]
            arrays[f"{part}_y"] = archive[f"{part}_y"].astype(np.int64)
            if arrays[f"{part}_x"].ndim == 3:
                arrays[f"{part}_x"] = arrays[f"{part}_x"][..., None]
        lossy = sum(len(archive[k]) for k in ("lossy_train_idx", "lossy_test_idx") if k in archive.files)
    return arrays, f"{lossy} images are JPEG re-encodings" if lossy else ""


def undo_differences(planes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Images [N, H, W, 3] from planes [N, 3, H, W]: red and blue minus green, then first differences, modulo 256."""
    planes = np.cumsum(np.cumsum(planes, 2, dtype=np.uint8), 3, dtype=np.uint8)
    planes[:, 0] += planes[:, 1]
    planes[:, 2] += planes[:, 1]
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1))


def read_libsvm(paths: Sequence[Path], source: Source) -> tuple[Arrays, str]:
    """Two LIBSVM text files, labels -1/+1 to 0/1, as dense rows of the official width (the test file has less)."""
    from sklearn.datasets import load_svmlight_files

    files = [io.BytesIO((lzma.decompress if p.suffix == ".xz" else bytes)(p.read_bytes())) for p in paths]
    columns = load_svmlight_files(files, n_features=source.shape[0], dtype=np.float32, zero_based=False)
    arrays: Arrays = {}
    for part, x, y in zip(("train", "test"), columns[::2], columns[1::2], strict=True):
        if not np.isin(y, (-1, 1)).all():
            raise ValueError(f"a {part} label is neither -1 nor +1")
        arrays |= {f"{part}_x": x.toarray(), f"{part}_y": (y > 0).astype(np.int64)}
    return arrays, ""


def read_news(paths: Sequence[Path], source: Source) -> tuple[Arrays, str]:
    """Two CSV files of class 1-4 and text fields; text = title + " " + description (dynamic_init)."""
    import pandas as pd

    arrays: Arrays = {}
    for part, path in zip(("train", "test"), paths, strict=True):
        rows = pd.read_csv(path, header=None, dtype=str, keep_default_na=False, encoding="utf-8")
        arrays[f"{part}_y"] = rows.iloc[:, 0].to_numpy(np.int64) - 1
        arrays[f"{part}_text"] = packed(map(" ".join, rows.iloc[:, 1:].itertuples(index=False)))
    return arrays, ""


TORCHVISION = {"mnist": "MNIST", "fashion_mnist": "FashionMNIST", "cifar10": "CIFAR10", "cifar100": "CIFAR100"}


def of_torchvision(source: Source, root: Path, download: bool = False) -> Arrays:
    """The arrays of torchvision's data set, which compares what it fetches, and CIFAR always, with its MD5 sums."""
    from reproduce.vision import torchvision

    arrays: Arrays = {}
    for part in PARTS:
        known = getattr(torchvision.datasets, TORCHVISION[source.name])
        there = known(str(root), train=part == "train", download=download)
        arrays[f"{part}_x"] = np.asarray(there.data, np.uint8).reshape(-1, *source.shape)
        arrays[f"{part}_y"] = np.asarray(there.targets, np.int64)
    return arrays


def read_torchvision(paths: Sequence[Path], source: Source) -> tuple[Arrays, str]:
    """The folder that torchvision made: `MNIST/raw`, `cifar-10-batches-py`."""
    return of_torchvision(source, paths[0].parent.parent if paths[0].name == "raw" else paths[0].parent), ""


def read_svhn(paths: Sequence[Path], source: Source) -> tuple[Arrays, str]:
    """The official MATLAB files: X [32, 32, 3, N], y 1 .. 10 where 10 is the digit 0."""
    from scipy.io import loadmat

    arrays: Arrays = {}
    for part, path in zip(("train", "test"), paths, strict=True):
        content = loadmat(str(path))
        arrays[f"{part}_x"] = np.ascontiguousarray(content["X"].transpose(3, 0, 1, 2))
        arrays[f"{part}_y"] = content["y"].ravel().astype(np.int64) % 10
    return arrays, ""


def read_cinic10(paths: Sequence[Path], source: Source) -> tuple[Arrays, str]:
    """The official folders `train` and `test` with one folder of PNG images per class; `valid` is not used."""
    parts = [
        (part, root, *classed(listed(root), root.name)) for part, root in zip(("train", "test"), paths, strict=True)
    ]
    number, arrays = {name: k for k, name in enumerate(sorted({*parts[0][3]}))}, Arrays()
    if {*parts[1][3]} != {*number}:
        raise ValueError(f"the classes {' '.join({*parts[1][3]} ^ {*number})} are in train or in test alone")
    for part, root, files, classes in parts:
        arrays |= _images(part, root, [(f, number[c]) for f, c in zip(files, classes, strict=True)])
    return arrays, ""


def read_tiny_imagenet(paths: Sequence[Path], source: Source) -> tuple[Arrays, str]:
    """The official folders `train/<class>/images` and `val` with its annotations; classes sorted by folder name."""
    root, val = paths
    train, classes = classed(listed(root), root.name)
    number = {name: k for k, name in enumerate(sorted({*classes}))}
    lines = (line.split("\t") for line in (val / "val_annotations.txt").read_text().splitlines())
    tests = [(Path("images", name), number[label]) for name, label, *_ in lines]
    arrays = _images("train", root, [(f, number[c]) for f, c in zip(train, classes, strict=True)])
    return arrays | _images("test", val, tests), ""


def _images(part: str, root: Path, files: Sequence[tuple[Path, int]]) -> Arrays:
    x = pixels([(str(file), root / file) for file, _ in files], root.name, "RGB")
    return {f"{part}_x": x, f"{part}_y": np.array([label for _, label in files], np.int64)}


# --- folders of pictures: their files, the class of each, their pixels ------------------------------------------------

SPLIT = re.compile(r"(train|test|e?val|valid|dev)(ing|idation|uation)?([ _-]?(set|data|images|split))?s?", re.I)
"""A text that looks like the name of a part."""


def listed(root: Path) -> list[Path]:
    """The files below a folder, relative to it and sorted; links are followed, hidden names (`.x`, `__x`) left out."""
    files = []
    for base, folders, names in os.walk(root, followlinks=True):
        folders[:], names = ([n for n in group if not n.startswith((".", "__"))] for group in (folders, names))
        files += [Path(base, n).relative_to(root) for n in names]
    return sorted(files)


def classed(files: Sequence[Path], what: str) -> tuple[list[Path], list[str]]:
    """The pictures among the files of a folder of class folders, and the class of each."""
    from PIL import Image

    how = f"labels are the names of folders, {what}/CLASS/picture.png"
    pictures = [f for f in files if f.suffix.lower() in Image.registered_extensions()]
    if loose := [f for f in pictures if len(f.parts) == 1]:
        raise UserError(f"{what}: {loose[0]} lies in no folder of a class; {how}")
    folders = {f.parts[0] for f in files if len(f.parts) > 1}
    if empty := sorted(folders - {f.parts[0] for f in pictures}) or ([] if pictures else ["it"]):
        raise UserError(f"{what}: no picture is in {empty[0]}; {how}")
    if parts := [n for f in pictures for n in f.parts[1:-1] if SPLIT.fullmatch(n)]:
        raise UserError(f"{what}: {parts[0]} looks like a part of the data: parts lie above the folders of classes")
    return pictures, [f.parts[0] for f in pictures]


def pixels(files: Iterable[tuple[str, Any]], what: str, mode: str | None = None) -> NDArray[np.uint8]:
    """Pictures uint8 [N, H, W, C], with one channel if all are grey; upright, as cameras mean them.

    files: (name, what Pillow opens). mode: to which all are converted. Raises UserError with the first name that cannot
    be read, or is of another size.
    """
    from PIL import Image, ImageOps

    pictures: list[NDArray[np.uint8]] = []
    for name, file in files:
        try:
            with Image.open(file) as image:
                if image.mode.startswith(("I", "F")):
                    raise ValueError("more than 8 bits a colour")
                to = mode or ("L" if image.mode in ("1", "L", "LA") else "RGB")
                one = np.atleast_3d(np.asarray(ImageOps.exif_transpose(image).convert(to)))
        except Exception as error:  # Pillow raises whatever it likes on damaged bytes
            reason = "it is damaged" if isinstance(error, OSError) else error
            raise UserError(f"{what}: {name} cannot be read as a picture ({reason}): take it out") from error
        if pictures and one.shape[:2] != pictures[0].shape[:2]:
            sizes = " and ".join(f"{a.shape[1]} x {a.shape[0]}" for a in (one, pictures[0]))
            raise UserError(f"{what}: {name} and the first picture have {sizes} pixels: make all of one size")
        pictures.append(one)
    colours = max(a.shape[2] for a in pictures)
    return np.stack([np.broadcast_to(a, (*a.shape[:2], colours)) for a in pictures])
