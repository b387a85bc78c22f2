"""The record of a loaded data set, and its texts as bytes or as token ids."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduce.data.checks import array
from reproduce.data.sources import VOCABULARY

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
    train_y: NDArray[np.int64]
    test_x: NDArray[Any]
    test_y: NDArray[np.int64]
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
