"""The record of a loaded data set, its texts as bytes or as token ids, and what its arrays must be."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduce.data.sources import VOCABULARY
from reproduce.declare.values import Count, Ints, Sample, check
from reproduce.errors import UserError

PARTS = ("train", "test")
ARRAYS = "train_x", "train_y", "test_x", "test_y"
LARGEST = float(np.finfo(np.float32).max)


def declaration(data: Any) -> None:
    """UserError unless a record of data says what it holds: `load()`, `sample`, `sizes` and `classes`."""
    name = type(data).__name__
    if not callable(getattr(data, "load", None)):
        raise UserError(f"data {data!r} are neither the name of a data set nor a record with load()")
    sample = getattr(data, "sample", None)
    if not isinstance(sample, Sample) or sample.dtype not in ("float", "int64") or len(sample.shape) not in (1, 3):
        wanted = "shape (features,), (tokens,) or (channels, height, width)"
        raise UserError(f"{name}.sample is a Sample of 'float' or 'int64' and {wanted}, not {sample!r}")
    check(f"{name}.sample.shape", sample.shape, tuple[Count, ...])
    check(f"{name}.sizes, of the training and the test set,", getattr(data, "sizes", None), tuple[Count, Count])
    check(f"{name}.classes", getattr(data, "classes", None), Count)
    if sample.dtype == "int64":
        check(f"{name}.sample.vocabulary", sample.vocabulary, Count)


def both(
    arrays: Mapping[str, Any], sample: Sample, sizes: tuple[int, int], classes: int, floats: bool
) -> dict[str, NDArray[Any]]:
    """Features and labels of the training and the test set as arrays of this machine's types.

    Images are uint8 [N, H, W, C] or, where `floats` are allowed, floats [N, C, H, W] that are taken as they are.
    ValueError that names the array and the property that is wrong: type, shape, number or range.
    """
    checked: dict[str, NDArray[Any]] = {}
    for part, rows in zip(PARTS, sizes, strict=True):
        x, y = features(f"{part}_x", arrays[f"{part}_x"], sample, floats), array(f"{part}_y", arrays[f"{part}_y"])
        if y.dtype.kind not in "iu" or y.ndim != 1:
            raise ValueError(f"{part}_y is {y.dtype} {list(y.shape)}; labels are whole numbers [N]")
        if not len(x) == len(y) == rows:
            raise ValueError(f"{part}_x has {len(x)} samples and {part}_y {len(y)} labels; declared are {rows}")
        if y.min() < 0 or y.max() >= classes:
            wrong = int(np.flatnonzero((y < 0) | (y >= classes))[0])
            raise ValueError(f"{part}_y has the label {y[wrong]} (sample {wrong}); labels are 0 .. {classes - 1}")
        checked |= {f"{part}_x": x, f"{part}_y": y.astype(np.int64, copy=False)}
    return checked


def features(name: str, x: Any, sample: Sample, floats: bool) -> NDArray[Any]:
    """The features of `both`; all finite, token ids below the vocabulary."""
    x, shape, tokens = array(name, x), sample.shape, sample.dtype == "int64"
    fits, wanted = x.dtype.kind == "f", "features are floats"
    if tokens:
        fits, wanted = x.dtype.kind in "iu", "token ids are whole numbers"
    if len(shape) == 3 and not (floats and fits):  # floats have the channels first
        fits, wanted = x.dtype == np.uint8, f"images are uint8{', or floats [N, C, H, W]' * floats}:"
        shape = (*shape[1:], shape[0])
    if not fits or x.shape[1:] != shape or not len(x):
        raise ValueError(f"{name} is {x.dtype} {list(x.shape)}; {wanted} [N, {', '.join(map(str, shape))}]")
    low, high = x.min(), x.max()
    if tokens and not 0 <= low <= high < sample.vocabulary:
        raise ValueError(f"{name} has token ids outside 0 .. {sample.vocabulary - 1}: {low} .. {high}")
    if x.dtype.kind == "f" and not -LARGEST <= float(low) <= float(high) <= LARGEST:
        wrong = int(np.flatnonzero(~(np.abs(x.astype(np.float64)) <= LARGEST).reshape(len(x), -1).all(1))[0])
        raise ValueError(f"{name} has a value that is no finite float32 (sample {wrong})")
    return x.astype(np.int32, copy=False) if tokens and x.dtype.itemsize < 8 else x


def array(name: str, value: Any) -> NDArray[Any]:
    """`value` as an array of numbers in this machine's byte order; ValueError if it is none."""
    x = np.asarray(value)
    if x.dtype.kind not in "biuf" or x.ndim == 0:
        raise ValueError(f"{name} is {x.dtype} {list(x.shape)}; it is an array of numbers, one for each sample")
    return x.astype(x.dtype.newbyteorder("="), copy=False)


def summed(arrays: Iterable[NDArray[Any]], texts: Iterable[Any] = ()) -> str:
    """SHA-256 of arrays, their types and shapes, and of lists of texts."""
    sha256 = hashlib.sha256()
    for values in arrays:
        sha256.update(f"{values.dtype.str} {values.shape}\n".encode())
        sha256.update(np.ascontiguousarray(values).data)
    for given in texts:
        sha256.update(f"{-1 if given is None else len(given)} texts\n".encode())
        for text in given or ():
            sha256.update(f"{len(text)} {text}\n".encode("utf-8", "surrogatepass"))
    return sha256.hexdigest()


def by_contents(x: NDArray[Any], y: Ints) -> Ints:
    """An order of samples that their contents decide: any permutation of them is put into the same order."""
    rows = zip(x, y, strict=True)
    keys = [hashlib.blake2b(a.tobytes(), key=b"order %d" % b, digest_size=16).digest() for a, b in rows]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


# --- the record -------------------------------------------------------------------------------------------------------

Arrays = dict[str, NDArray[Any]]

LENGTH = 64  # of a text in dynamic_init
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set in memory (or mapped from the decoded copy on disk); all arrays are read-only.

    train_x, test_x: images uint8 [N, H, W, C] (C = 1 for grey), tables float32 [N, D], texts int32 [N, 64] token ids of
        `tokenize` with padding 0; of a problem's own record also what `checks.both` lets pass.
    train_y, test_y: int64 [N], labels 0 .. n_classes - 1.
    sha256: of the files used, or of the arrays of a set without files.
    note: what a caption must say about the data; empty if they are the official ones.
    train_text, test_text: the raw texts of a text set, in the order of the labels.
    """

    name: str
    train_x: NDArray[Any]
    train_y: Ints
    test_x: NDArray[Any]
    test_y: Ints
    n_classes: int
    sha256: str
    note: str = ""
    train_text: Sequence[str] | None = None
    test_text: Sequence[str] | None = None

    def __post_init__(self) -> None:
        for key in ("train_x", "train_y", "test_x", "test_y"):
            view = array(key, getattr(self, key)).view()
            view.flags.writeable = False
            object.__setattr__(self, key, view)


def packed(texts: Iterable[str]) -> NDArray[np.uint8]:
    """Texts as one array of bytes, which can stay on disk."""
    return np.frombuffer("\0".join(texts).encode(), np.uint8)


def unpacked(array: NDArray[np.uint8]) -> list[str]:
    return array.tobytes().decode().split("\0")


def tokenize(texts: Iterable[str], vocabulary: int = VOCABULARY, length: int = LENGTH) -> NDArray[np.int32]:
    """Token ids int32 [N, length]: lower case, split on non-alphanumerics, each word hashed.

    The id of a word is 1 + CRC-32 mod (vocabulary - 1). Rows are cut and padded with 0 to `length`. Stands in for
    BERT's word pieces (dynamic_init, gap 10).
    """
    ids: dict[str, int] = {}
    rows = []
    for text in texts:
        words = _WORD.findall(text.lower())[:length]
        for word in words:
            if word not in ids:
                ids[word] = 1 + zlib.crc32(word.encode()) % (vocabulary - 1)
        rows.append([ids[word] for word in words] + [0] * (length - len(words)))
    return np.array(rows, np.int32).reshape(-1, length)
