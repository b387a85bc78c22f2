"""The decoded copy of a data set: mapped, not whole, on full disks."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from test_data import copies
from test_data import mnist as mnist

from reproduce.data import decoded as store
from reproduce.data.load import available, load
from reproduce.errors import UserError
from reproduce.settings import Settings


def said(change: Callable[[list[object]], object]) -> Callable[[Path], object]:
    """The stamp says something else."""

    def damage(folder: Path) -> None:
        content = json.loads((folder / store.STAMP).read_text())
        change(content)
        (folder / store.STAMP).write_text(json.dumps(content))

    return damage


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a short array": lambda folder: (folder / "train_x.npy").write_bytes((folder / "train_x.npy").read_bytes()[:-1]),
    "a lost array": lambda folder: (folder / "test_y.npy").unlink(),
    "half a stamp": lambda folder: (folder / store.STAMP).write_text((folder / store.STAMP).read_text()[:-3]),
    "no stamp": lambda folder: (folder / store.STAMP).unlink(),
    "an old format": said(lambda content: content.__setitem__(0, store.FORMAT - 1)),
    "a stamp of other files": said(lambda content: content.__setitem__(3, [])),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_copy_that_is_not_whole_or_of_other_files_is_made_again(
    place: Settings, mnist: dict[str, np.ndarray], damage: str
) -> None:
    whole = load("mnist", place)
    (folder,) = copies(place)
    stamp = (folder / store.STAMP).read_text()
    DAMAGES[damage](folder)
    assert available("mnist", place).state == "present"
    data = load("mnist", place)
    assert (data.sha256, data.note) == (whole.sha256, "")
    for key, value in mnist.items():
        assert np.array_equal(getattr(data, key).reshape(value.shape), value)
    assert copies(place) == [folder]
    assert (folder / store.STAMP).read_text() == stamp
    assert sorted(f.name for f in folder.iterdir()) == sorted([store.STAMP, *(f"{k}.npy" for k in mnist)])


def test_a_touched_archive_is_verified_again(place: Settings, mnist: dict[str, np.ndarray]) -> None:
    before = load("mnist", place)
    os.utime(place.data / "mnist" / "mnist.npz", ns=(1, 1))
    assert available("mnist", place).state == "present"
    assert np.array_equal(load("mnist", place).train_x, before.train_x)
    assert available("mnist", place).state == "verified"


def test_an_array_that_does_not_fit_has_an_error_number(place: Settings, mnist: dict[str, np.ndarray]) -> None:
    """A real refusal of the operating system in the middle of an array, by a limit on the size of files."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(UserError, match=f"no space left.*{place.store}.* REPRODUCE_STORE"):
            load("mnist", place)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert available("mnist", place).state == "present"
