"""Small fakes of data sets in a temporary data folder."""

from dataclasses import replace

import numpy as np
import pytest

from reproduce.data.load import sha256
from reproduce.data.sources import SOURCES, File, Files
from reproduce.settings import Settings

RNG = np.random.default_rng(0)


def grey(rows: int) -> np.ndarray:
    return RNG.integers(0, 256, (rows, 28, 28), dtype=np.uint8)


def known(settings: Settings, *paths: str) -> tuple[File, ...]:
    """The files with the checksums they have now."""
    return tuple(File(p, sha256(settings.data / p)) for p in paths)


def declare(
    monkeypatch: pytest.MonkeyPatch, name: str, files: tuple[File, ...], reader: str, train: int, test: int
) -> None:
    small = replace(SOURCES[name], train=train, test=test, layouts=(Files(reader, files),))
    monkeypatch.setitem(SOURCES, name, small)
