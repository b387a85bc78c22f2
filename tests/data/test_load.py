"""Data sets: reading, checksums, the table of sets, the real files.

Tests of the real files need REPRODUCE_DATA.
"""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fakes import declare, grey, known

from reproduce.data import decoded as store
from reproduce.data.load import available, load
from reproduce.errors import MissingData, UserError
from reproduce.settings import Settings


@pytest.fixture
def mnist(place: Settings, monkeypatch: pytest.MonkeyPatch) -> dict[str, np.ndarray]:
    """A small mnist.npz in the data folder, known to the table."""
    arrays = {"train_x": grey(30), "train_y": np.arange(30) % 10, "test_x": grey(10), "test_y": np.arange(10)}
    (place.data / "mnist").mkdir(parents=True)
    np.savez(place.data / "mnist" / "mnist.npz", **{k: v.astype(np.uint8) for k, v in arrays.items()})
    declare(monkeypatch, "mnist", known(place, "mnist/mnist.npz"), "read_npz", 30, 10)
    return arrays


def copies(settings: Settings) -> list[Path]:
    return sorted((settings.store / "data").glob("*"))


def test_load_gives_the_arrays_read_only_and_maps_them_the_second_time(
    place: Settings, mnist: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load("mnist", place)
    monkeypatch.setattr("reproduce.data.load.decode", None)  # the second load must not decode
    monkeypatch.setattr("reproduce.data.load.sha256", None)  # nor read the archive
    for data in (first, load("mnist", place)):
        assert data.train_x.shape == (30, 28, 28, 1)
        assert data.train_x.dtype == np.uint8
        assert data.train_y.dtype == data.test_y.dtype == np.int64
        for key, value in mnist.items():
            array = getattr(data, key)
            assert np.array_equal(array.reshape(value.shape), value)
            assert not array.flags.writeable
        assert (data.name, data.n_classes, data.note) == ("mnist", 10, "")
        assert data.sha256 == hashlib.sha256((place.data / "mnist" / "mnist.npz").read_bytes()).hexdigest()


def test_availability_goes_from_missing_over_present_to_verified(place: Settings, mnist: dict[str, np.ndarray]) -> None:
    assert available("mnist", place).state == "present"
    load("mnist", place)
    found = available("mnist", place)
    assert (found.state, found.path) == ("verified", str(place.data / "mnist" / "mnist.npz"))
    (place.data / "mnist" / "mnist.npz").write_bytes(b"another file")
    assert available("mnist", place).state == "present"
    (place.data / "mnist" / "mnist.npz").unlink()
    assert available("mnist", place).state == "missing"
    assert available("digits", place).state == "embedded"


def test_missing_data_names_file_folder_and_both_ways_out(place: Settings) -> None:
    for create in (False, True):
        if create:
            place.data.mkdir()
        with pytest.raises(MissingData) as caught:
            load("cifar10", place)
        assert caught.value.needs == "cifar10"
        for words in ("cifar10/cifar10.npz", str(place.data), "REPRODUCE_DATA", "reproduce data get cifar10"):
            assert words in str(caught.value)
        assert ("which does not exist" in str(caught.value)) is not create
    (place.data / "a9a").mkdir()
    (place.data / "a9a" / "a9a.xz").write_bytes(b"")
    with pytest.raises(MissingData, match=r"there is no a9a/a9a\.t\.xz in the"):
        load("a9a", place)


@pytest.mark.parametrize("damage", ["truncated", "one bit", "empty"])
def test_damaged_archive_is_named_with_both_checksums(
    place: Settings, mnist: dict[str, np.ndarray], damage: str
) -> None:
    path = place.data / "mnist" / "mnist.npz"
    good = bytearray(path.read_bytes())
    expected = hashlib.sha256(good).hexdigest()
    bad = {"truncated": good[:-100], "one bit": good[:50] + bytes([good[50] ^ 1]) + good[51:], "empty": b""}[damage]
    path.write_bytes(bad)
    with pytest.raises(UserError) as caught:
        load("mnist", place)
    for words in (str(path), expected, hashlib.sha256(bad).hexdigest(), "data get mnist"):
        assert words in str(caught.value)
    assert not copies(place)


FOLDER = os.environ.get("REPRODUCE_DATA", "")
OFFICIAL = {
    "mnist": {
        "train_x": "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
        "test_x": "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
        "test_y": "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5",
    },
    "cifar100": {
        "train_x": "4e457917601a66aed021f5fa37957b56c6319557c0a8ed5484de3c390af45430",
        "train_y": "9f11b9f97aad759ba6df0a33e3218b01d8deaf4ed3a14aa1185d69b9ad7ebcb3",
    },
}
"""SHA-256 of arrays as uint8, of the files that the authors give: an archive of differences gives them, too."""
REAL = ["mnist", "fashion_mnist", "cifar10", "cifar100", "a9a", "ag_news_subset"]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(Path(FOLDER), tmp_path_factory.mktemp("store"), "cpu", 1)


def uint8_sha(array: np.ndarray) -> str:
    return hashlib.sha256(array.astype(np.uint8).tobytes()).hexdigest()


@pytest.mark.data
@pytest.mark.skipif(not Path(FOLDER or "none").is_dir(), reason="REPRODUCE_DATA is not set: no real data sets")
@pytest.mark.parametrize("name", REAL)
def test_real_files_decode_to_the_golden_arrays(real: Settings, name: str) -> None:
    if available(name, real).state == "missing":
        pytest.skip(f"{name} is not in REPRODUCE_DATA")
    data = load(name, real)
    for key, expected in OFFICIAL.get(name, {}).items():
        assert uint8_sha(getattr(data, key)) == expected
    assert available(name, real).state == "verified"
    if name == "cifar10" and data.note:
        assert data.note == "98 images are JPEG re-encodings"
        assert uint8_sha(data.train_x) == "c7c6557433f8d7c52900e0fc5549bd21bf6f33fefee1f478f5adbc5499bb11c7"
        assert uint8_sha(data.test_x) == "25a508aee148b4ccf689df271258bb61c79db1edd6c7bdc2d32e0f748c0bf68c"
    if name == "mnist":
        assert np.bincount(data.train_y).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
        assert np.bincount(data.test_y).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    if name == "a9a":
        assert (data.train_y.sum(), data.test_y.sum()) == (7_841, 3_846)
        assert set(np.unique(data.train_x)) == {0, 1}
        assert data.train_x[:, 122].sum() == 1
        assert data.test_x[:, 122].sum() == 0
    if name == "ag_news_subset":
        assert np.bincount(data.test_y).tolist() == [1900] * 4
        assert (data.test_text or [""])[0].startswith("Fears for T N pension after talks Unions representing")
        assert np.bincount(data.train_y).tolist() == [4648, 2824, 2820, 4879]


def said(change: Callable[[list[object]], object]) -> Callable[[Path], object]:
    """The stamp says something else."""

    def damage(folder: Path) -> None:
        content = json.loads((folder / store.STAMP).read_text())
        change(content)
        (folder / store.STAMP).write_text(json.dumps(content))

    return damage


def flipped(array: Path) -> None:
    content = array.read_bytes()
    array.write_bytes(content[:-60] + bytes(255 - b for b in content[-60:]))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a short array": lambda folder: (folder / "train_x.npy").write_bytes((folder / "train_x.npy").read_bytes()[:-1]),
    "a lost array": lambda folder: (folder / "test_y.npy").unlink(),
    "60 other bytes": lambda folder: flipped(folder / "train_x.npy"),
    "half a stamp": lambda folder: (folder / store.STAMP).write_text((folder / store.STAMP).read_text()[:-3]),
    "no stamp": lambda folder: (folder / store.STAMP).unlink(),
    "an old format": said(lambda content: content.__setitem__(0, store.FORMAT - 1)),
    "a stamp of other files": said(lambda content: content.__setitem__(3, [])),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_copy_that_is_not_whole_or_of_other_files_is_made_again(
    place: Settings, mnist: dict[str, np.ndarray], damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = load("mnist", place)
    (folder,) = copies(place)
    stamp = (folder / store.STAMP).read_text()
    DAMAGES[damage](folder)
    assert available("mnist", place).state == "present"
    data = load("mnist", place)
    assert (data.sha256, data.note) == (whole.sha256, "")
    said = f"the decoded copy {folder} is damaged: it is made anew"
    assert (said in capsys.readouterr().err) == (not damage.endswith(("no stamp", "old format", "other files")))
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
        with pytest.raises(UserError, match=f"{place.store}.*`ulimit -f`.* REPRODUCE_STORE"):
            load("mnist", place)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert available("mnist", place).state == "present"
