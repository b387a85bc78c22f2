"""The formats of data sets: a small fake of each, decoded."""

import lzma
from dataclasses import replace

import numpy as np
import pytest
from fakes import RNG, declare, known
from PIL import Image
from scipy.io import savemat

from reproduce.data.dataset import packed, tokenize, unpacked
from reproduce.data.formats import undo_differences
from reproduce.data.load import available, load
from reproduce.data.sources import SOURCES, File, Files
from reproduce.errors import UserError
from reproduce.settings import Settings


def test_differences_are_undone_exactly() -> None:
    images = RNG.integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)
    planes = images.transpose(0, 3, 1, 2).copy()
    planes[:, 0] -= planes[:, 1]
    planes[:, 2] -= planes[:, 1]
    rows = np.diff(planes, axis=2, prepend=np.zeros_like(planes[:, :, :1]))
    both = np.diff(rows, axis=3, prepend=np.zeros_like(rows[..., :1]))
    assert np.array_equal(undo_differences(both), images)


def test_cifar_archive_of_differences_and_its_note(place: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    (place.data / "cifar10").mkdir(parents=True)
    zeros = {"train_x_d": np.zeros((5, 3, 32, 32), np.uint8), "test_x_d": np.ones((4, 3, 32, 32), np.uint8)}
    labels = {"train_y": np.arange(5, dtype=np.uint8), "test_y": np.arange(4, dtype=np.uint8)}
    np.savez(place.data / "cifar10" / "cifar10.npz", **zeros, **labels, lossy_train_idx=[1, 2], lossy_test_idx=[0])
    declare(monkeypatch, "cifar10", known(place, "cifar10/cifar10.npz"), "read_npz", 5, 4)
    data = load("cifar10", place)
    assert data.note == "3 images are JPEG re-encodings"
    assert data.test_x[0, 1, 2].tolist() == [12, 6, 12]  # (1+1)*(2+1) = 6, plus green
    assert available("cifar10", place).detail == data.note


def test_libsvm_text_has_the_width_of_the_paper_and_labels_0_1(
    place: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.data / "a9a").mkdir(parents=True)
    (place.data / "a9a" / "a9a.xz").write_bytes(lzma.compress(b"-1 3:1 123:1 \n+1 1:1 \n"))
    (place.data / "a9a" / "a9a.t.xz").write_bytes(lzma.compress(b"+1 122:0.5\n"))
    declare(monkeypatch, "a9a", known(place, "a9a/a9a.xz", "a9a/a9a.t.xz"), "read_libsvm", 2, 1)
    data = load("a9a", place)
    assert data.train_x.shape == (2, 123)
    assert data.train_x.dtype == np.float32
    assert np.flatnonzero(data.train_x[0]).tolist() == [2, 122]
    assert data.train_y.tolist() == [0, 1]
    assert data.test_x[0, 121] == 0.5
    assert len(data.sha256) == 64
    for line in (b"-1 124:1\n", b"-1 0:1\n", b"2 1:1\n", b"-1 word\n"):
        (place.data / "a9a" / "a9a.t.xz").write_bytes(lzma.compress(line))
        declare(monkeypatch, "a9a", known(place, "a9a/a9a.xz", "a9a/a9a.t.xz"), "read_libsvm", 2, 1)
        with pytest.raises(UserError, match="cannot be decoded"):
            load("a9a", place)


def test_news_subset_and_complete_set(place: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = place.data / "ag_news"
    folder.mkdir(parents=True)
    (folder / "train_subset.csv.xz").write_bytes(lzma.compress(b'"3","A ""b"" c"\n"1","D"\n'))
    (folder / "test.csv.xz").write_bytes(lzma.compress('"4","Title","Some é\\text, more"\n'.encode()))
    subset = Files("read_news", known(place, "ag_news/train_subset.csv.xz", "ag_news/test.csv.xz"))
    (folder / "train.csv").write_text('"1","T","x"\n' * 2 + '"2","T","x"\n')
    (folder / "test.csv").write_text('"2","T","y"\n')
    complete = Files("read_news", known(place, "ag_news/train.csv", "ag_news/test.csv"))
    for name, layout, rows in (("ag_news", complete, 3), ("ag_news_subset", subset, 2)):
        small = replace(SOURCES[name], train=rows, test=1, layouts=(layout,))
        monkeypatch.setitem(SOURCES, name, small)
    assert load("ag_news", place).train_text == ["T x"] * 3
    (folder / "train.csv").unlink()
    assert available("ag_news", place).state == "missing"  # the subset is a set of its own
    data = load("ag_news_subset", place)
    assert list(data.train_text or ()) == ['A "b" c', "D"]
    assert list(data.test_text or ()) == ["Title Some é\\text, more"]
    assert data.train_y.tolist() == [2, 0]
    assert np.array_equal(data.test_x, tokenize(data.test_text or ()))


def test_svhn_matlab_files(place: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    (place.data / "svhn").mkdir(parents=True)
    images = RNG.integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
    for part in ("train", "test"):
        content = {"X": images.transpose(1, 2, 3, 0), "y": np.array([[1], [10], [9]], np.uint8)}
        savemat(place.data / "svhn" / f"{part}_32x32.mat", content)
    files = known(place, "svhn/train_32x32.mat", "svhn/test_32x32.mat")
    declare(monkeypatch, "svhn", files, "read_svhn", 3, 3)
    data = load("svhn", place)
    assert np.array_equal(data.train_x, images)
    assert data.train_y.tolist() == [1, 0, 9]


def test_the_folder_of_torchvision(place: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """MNIST's files of bytes behind a head of big-endian numbers: magic, length, height, width."""
    raw = place.data / "MNIST" / "raw"
    raw.mkdir(parents=True)
    x, y = RNG.integers(0, 256, (5, 28, 28), dtype=np.uint8), np.array([3, 1, 4, 1, 5], np.uint8)
    for part, n in (("train", 5), ("t10k", 3)):
        head = np.array([2051, n, 28, 28], ">i4").tobytes()
        (raw / f"{part}-images-idx3-ubyte").write_bytes(head + x[:n].tobytes())
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(np.array([2049, n], ">i4").tobytes() + y[:n].tobytes())
    assert SOURCES["mnist"].layouts[-1] == Files("read_torchvision", (File("MNIST/raw"),))
    declare(monkeypatch, "mnist", (File("MNIST/raw"),), "read_torchvision", 5, 3)
    data = load("mnist", place)
    assert np.array_equal(data.train_x[..., 0], x)
    assert (data.train_y.tolist(), data.test_y.tolist()) == (y.tolist(), y[:3].tolist())
    assert np.array_equal(data.test_x[..., 0], x[:3])


def test_image_folders(place: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(path: str, value: int, side: int, mode: str = "RGB") -> None:
        target = place.data / path
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.new(mode, (side, side), (value,) * 3 if mode == "RGB" else value).save(target)

    for part, value in (("train", 10), ("test", 50), ("valid", 90)):
        write(f"cinic10/{part}/cat/1.png", value, 32)
        write(f"cinic10/{part}/bird/2.png", value + 1, 32, "L")
    folders = (File("cinic10/train"), File("cinic10/test"))
    declare(monkeypatch, "cinic10", folders, "read_cinic10", 2, 2)
    data = load("cinic10", place)
    assert data.train_x[:, 0, 0].tolist() == [[11] * 3, [10] * 3]
    assert data.test_y.tolist() == [0, 1]
    assert available("cinic10", place).state == "present"
    write("cinic10/test/cat/3.png", 7, 32)
    with pytest.raises(UserError, match="cannot be decoded"):  # one image more than the set has
        load("cinic10", place)

    write("tiny_imagenet/train/n02/images/n02_0.JPEG", 100, 64)
    write("tiny_imagenet/train/n01/images/n01_0.JPEG", 200, 64, "L")
    write("tiny_imagenet/val/images/val_0.JPEG", 60, 64)
    (place.data / "tiny_imagenet" / "val" / "val_annotations.txt").write_text("val_0.JPEG\tn02\t0\t0\t62\t62\n")
    folders = (File("tiny_imagenet/train"), File("tiny_imagenet/val"))
    declare(monkeypatch, "tiny_imagenet", folders, "read_tiny_imagenet", 2, 1)
    data = load("tiny_imagenet", place)
    assert abs(int(data.train_x[0, 0, 0, 0]) - 200) < 3
    assert data.train_y.tolist() == [0, 1]
    assert data.test_y.tolist() == [1]


def test_tokenizer_is_stable() -> None:
    import zlib

    ids = tokenize(["Hello, HELLO wor-ld_42!", "", "a " * 100])
    assert ids.shape == (3, 64)
    assert ids.dtype == np.int32
    words = [1 + zlib.crc32(w.encode()) % 30_521 for w in ("hello", "hello", "wor", "ld", "42")]
    assert ids[0].tolist() == words + [0] * 59
    assert not ids[1].any()
    assert (ids[2] == ids[2, 0]).all()
    assert ids.max() < 30_522
    assert tokenize(["hello"], vocabulary=10, length=2).tolist() == [[1 + zlib.crc32(b"hello") % 9, 0]]
    assert tokenize([]).shape == (0, 64)


def test_texts_are_kept_as_bytes() -> None:
    for strings in (["", "ä b", "", "c"], ["one"], ["", ""]):
        assert unpacked(packed(strings)) == strings
