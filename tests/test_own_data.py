"""A user's own data set: what works as it is, and what ends in one line before any training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from runs import run

from reproduce.algorithms.base import FedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Shuffled
from reproduce.data.dataset import Dataset
from reproduce.data.embedded import GaussianClasses, ImageBlobs, TopicTokens
from reproduce.declare.experiment import Experiment
from reproduce.errors import UserError
from reproduce.models.declared import ConvNet, FastText, Softmax
from reproduce.models.model import Model
from reproduce.partitions.labels import IID
from reproduce.problem import Classification
from reproduce.systems import Steps, System

Parts = dict[str, Any]
Change = Callable[[Parts], object]
CHANGES: dict[str, Change] = {}
"""What `Own` does to its data, by name: a record's fields are plain values."""

BASE: dict[str, Any] = {
    "table": GaussianClasses(3, 4, 20, 8, 1.0, 0),
    "image": ImageBlobs(3, 8, 20, 8, 9.0, 0),
    "text": TopicTokens(3, 30, 6, 20, 8, 0),
}
MODELS: dict[str, Model] = {
    "table": Softmax(4, 3),
    "image": ConvNet(1, 8, (2, 3), (4,), 3, kernel=3, padding=1),
    "text": FastText(30, 2, 3),
}
ARRAYS = ("train_x", "train_y", "test_x", "test_y")


@dataclass(frozen=True)
class Own:
    """A generated data set that was changed, as a user would declare it."""

    change: str
    kind: str

    @property
    def sample(self) -> Any:
        return BASE[self.kind].sample

    @property
    def sizes(self) -> tuple[int, int]:
        return BASE[self.kind].sizes

    classes = 3

    def load(self) -> Any:
        data = BASE[self.kind].load()
        parts: Parts = {name: np.array(getattr(data, name)) for name in ARRAYS} | {"n_classes": 3}
        CHANGES[self.change](parts)
        return Dataset("own", **parts, sha256="the same whatever the data are")


def own(change: Change, kind: str, name: str = "it") -> Own:
    CHANGES[name] = change
    return Own(name, kind)


def trained(data: Any, kind: str, **more: Any) -> Any:
    problem = Classification(data, MODELS[kind], IID(), 3, Shuffled(8), **more)
    experiment = Experiment({}, problem, System(work=Steps(3)), FedAvg(0.1), Rounds(2))
    return run([experiment])[0].state


def put(name: str, where: Any, value: Any) -> Change:
    return lambda parts: parts[name].__setitem__(where, value)


def to(name: str, function: Callable[[Any], Any]) -> Change:
    return lambda parts: parts.update({name: function(parts[name])})


def both(function: Callable[[Any], Any]) -> Change:
    return lambda parts: parts.update({name: function(parts[name]) for name in ("train_x", "test_x")})


# --- what works -------------------------------------------------------------------------------------------------------

WORKS: list[tuple[str, str, Change]] = [
    ("lists", "table", lambda parts: parts.update({k: parts[k].tolist() for k in ("train_x", "train_y")})),
    ("big-endian features", "table", to("train_x", lambda x: x.astype(">f4"))),
    ("small labels", "image", to("train_y", lambda y: y.astype(np.uint8))),
    ("float64", "table", both(lambda x: x.astype(np.float64))),
    ("columns first", "table", to("train_x", np.asfortranarray)),
    ("strides backwards", "text", to("train_x", lambda x: np.ascontiguousarray(x[::-1])[::-1])),
    ("read-only", "table", lambda parts: [parts[k].setflags(write=False) for k in ARRAYS]),
    ("unsigned tokens", "text", to("train_x", lambda x: x.astype(np.uint16))),
]


@pytest.mark.parametrize(("kind", "change"), [row[1:] for row in WORKS], ids=[row[0] for row in WORKS])
def test_the_same_numbers_in_another_form_train_the_same_model(kind: str, change: Change) -> None:
    assert torch.equal(trained(own(change, kind), kind)["x"], trained(BASE[kind], kind)["x"])


def test_images_of_floats_are_taken_as_they_are() -> None:
    """With the channels first and the numbers that uint8 pixels become, they train the same model."""
    change = both(lambda x: (x / np.float32(255)).astype(np.float32).transpose(0, 3, 1, 2))
    assert torch.equal(trained(own(change, "image"), "image")["x"], trained(BASE["image"], "image")["x"])


# --- what is refused --------------------------------------------------------------------------------------------------

FLOATS = both(lambda x: np.zeros((len(x), 1, 8, 8), np.float32))
REFUSED: list[tuple[str, str, Change, str]] = [
    ("a label too large", "table", put("train_y", 5, 3), r"train_y has the label 3 \(sample 5\); labels are 0 \.\. 2"),
    ("a label far too large", "text", put("train_y", 5, 2**40), "train_y has the label 1099511627776"),
    ("a negative label", "table", put("train_y", 5, -1), "train_y has the label -1"),
    ("in the test set", "image", put("test_y", 2, 3), r"test_y has the label 3 \(sample 2\)"),
    ("labels [N, 1]", "table", to("train_y", lambda y: y[:, None]), r"train_y is int64 \[60, 1\]; labels are whole"),
    ("labels of floats", "table", to("train_y", lambda y: y.astype(float)), r"float64 \[60\]; labels are whole"),
    ("labels of words", "table", to("train_y", lambda y: y.astype(str)), r"train_y is <U21 \[60\]; it is an array"),
    ("too few labels", "table", to("train_y", lambda y: y[:-1]), "train_x has 60 samples and train_y 59 labels; decl"),
    ("NaN", "table", put("train_x", (5, 1), np.nan), r"train_x has a value that is no finite float32 \(sample 5\)"),
    ("infinity in the test set", "table", put("test_x", (3, 0), -np.inf), r"test_x has a value .* \(sample 3\)"),
    ("beyond float32", "table", to("train_x", lambda x: x.astype(float) * 1e300), "no finite float32"),
    ("NaN in an image", "image", lambda p: (FLOATS(p), p["test_x"].__setitem__((1, 0, 0, 0), np.nan)), "test_x has a"),
    ("whole numbers in a table", "table", to("train_x", lambda x: x.astype(int)), r"is int64 \[60, 4\]; features are"),
    ("rows of two lengths", "table", to("train_x", lambda x: [[1.0], [1.0, 2.0]]), "cannot be used: .*inhomogeneous"),
    ("nothing", "table", to("train_x", lambda x: None), r"train_x is object \[\]; it is an array of numbers"),
    ("a column too few", "table", to("train_x", lambda x: x[:, :3]), r"train_x is float32 \[60, 3\]; .* \[N, 4\]"),
    ("no test set", "table", lambda p: p.update({k: p[k][:0] for k in ("test_x", "test_y")}), r"test_x is float32 \[0"),
    ("fewer rows", "table", lambda p: p.update({k: p[k][:50] for k in ARRAYS[:2]}), "train_x has 50 samples .* are 60"),
    ("more classes", "table", lambda p: p.update(n_classes=4), "it has 4 classes; declared are 3"),
    ("floats, channels last", "image", both(lambda x: x / 255.0), r"is float64 \[60, 8, 8, 1\]; .* \[N, 1, 8, 8\]"),
    ("bytes, channels first", "image", to("train_x", lambda x: x.transpose(0, 3, 1, 2)), r"images .* \[N, 8, 8, 1\]"),
    ("images of int64", "image", to("train_x", lambda x: x.astype(int)), "is int64 .*; images are uint8, or floats"),
    ("bytes, and floats", "image", lambda p: p.update(test_x=np.zeros((24, 1, 8, 8))), "uint8 and test_x float64"),
    ("a token too large", "text", put("train_x", (3, 3), 30), r"train_x has token ids outside 0 \.\. 29: 0 \.\. 30"),
    ("a negative token", "text", put("test_x", (3, 3), -1), "test_x has token ids outside"),
    ("tokens of floats", "text", to("train_x", lambda x: x.astype(float)), "is float64 .*; token ids are whole"),
    ("an error", "table", lambda parts: parts["none"], "the data set Own cannot be used: KeyError: 'none'"),
]


@pytest.mark.parametrize(("kind", "change", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_no_such_data_set_ends_in_one_line(kind: str, change: Change, words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        trained(own(change, kind), kind)
    assert "\n" not in str(caught.value)
    assert "data set Own" in str(caught.value)


def test_floats_are_not_normalised_in_silence() -> None:
    with pytest.raises(UserError, match="mean, std and pad are for uint8 images"):
        trained(own(FLOATS, "image"), "image", mean=(0.5,), std=(0.5,))


@pytest.mark.parametrize(
    ("kind", "more", "words"),
    [
        ("table", {"train_samples": 61}, "train_samples is 61, and .* has 60"),
        ("table", {"train_samples": 2, "subset_balanced": True}, "0 samples of each of 3 classes"),
        ("table", {"mean": (0.5,), "std": (0.5,)}, "mean, std and pad are for images"),
        ("image", {"mean": (0.5,) * 3, "std": (0.5,) * 3}, "one number each for 1 channels"),
    ],
)
def test_numbers_of_a_problem_that_the_data_do_not_have(kind: str, more: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        trained(BASE[kind], kind, **more)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("sizes", (60, 0), r"sizes, of the .* set, is \(a whole number .*, not \(60, 0\)"),
        ("sizes", 60, "sizes, of .*, not 60"),
        ("classes", "3", "classes is a whole number at least 1 .*, not '3'"),
        ("sample", (4,), "sample is a Sample"),
        ("load", None, "neither the name of a data set nor a record with load"),
    ],
)
def test_a_record_that_does_not_say_what_it_holds(field: str, value: Any, words: str) -> None:
    cls = dataclass(frozen=True)(type("Partly", (Own,), {field: value}))
    with pytest.raises(UserError, match=words):
        Classification(cls("it", "table"), MODELS["table"], IID(), 3, Shuffled(8))


def test_a_record_that_cannot_be_named_is_refused() -> None:
    for cls in (type("Plain", (), {"load": None}), dataclass(type("Unfrozen", (), {"load": None}))):
        with pytest.raises(UserError, match=r"data is a @dataclass\(frozen=True\) with"):
            Classification(cls(), MODELS["table"], IID(), 3, Shuffled(8))
