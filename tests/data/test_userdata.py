"""A user's own data set: what works as it is, and what ends in one line before any training."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
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
from reproduce.data.load import of_record
from reproduce.data.tokens import BytePairs
from reproduce.data.userdata import bring
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClientSplits
from reproduce.errors import UserError
from reproduce.models.declared import ConvNet, FastText, ResNet, Softmax
from reproduce.models.model import Model
from reproduce.partitions.dirichlet import BalancedDirichlet
from reproduce.partitions.labels import IID
from reproduce.problem import Classification
from reproduce.settings import settings
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
    ("a negative label", "table", put("train_y", 5, -1), "train_y has the label -1"),
    ("labels [N, 1]", "table", to("train_y", lambda y: y[:, None]), r"train_y is int64 \[60, 1\]; labels are whole"),
    ("labels of floats", "table", to("train_y", lambda y: y.astype(float)), r"float64 \[60\]; labels are whole"),
    ("labels of words", "table", to("train_y", lambda y: y.astype(str)), r"train_y is <U21 \[60\]; it is an array"),
    ("too few labels", "table", to("train_y", lambda y: y[:-1]), "train_x has 60 samples and train_y 59 labels; decl"),
    ("NaN", "table", put("train_x", (5, 1), np.nan), r"train_x has a value that is no finite float32 \(sample 5\)"),
    ("whole numbers in a table", "table", to("train_x", lambda x: x.astype(int)), r"is int64 \[60, 4\]; features are"),
    ("rows of two lengths", "table", to("train_x", lambda x: [[1.0], [1.0, 2.0]]), "cannot be used: .*inhomogeneous"),
    ("nothing", "table", to("train_x", lambda x: None), r"train_x is object \[\]; it is an array of numbers"),
    ("a column too few", "table", to("train_x", lambda x: x[:, :3]), r"train_x is float32 \[60, 3\]; .* \[N, 4\]"),
    ("no test set", "table", lambda p: p.update({k: p[k][:0] for k in ("test_x", "test_y")}), r"test_x is float32 \[0"),
    ("fewer rows", "table", lambda p: p.update({k: p[k][:50] for k in ARRAYS[:2]}), "train_x has 50 samples .* are 60"),
    ("more classes", "table", lambda p: p.update(n_classes=4), "it has 4 classes; declared are 3"),
    ("floats, channels last", "image", both(lambda x: x / 255.0), r"is float64 \[60, 8, 8, 1\]; .* \[N, 1, 8, 8\]"),
    ("bytes, channels first", "image", to("train_x", lambda x: x.transpose(0, 3, 1, 2)), r"images .* \[N, 8, 8, 1\]"),
    ("bytes, and floats", "image", lambda p: p.update(test_x=np.zeros((24, 1, 8, 8))), "uint8 and test_x float64"),
    ("a token too large", "text", put("train_x", (3, 3), 30), r"train_x has token ids outside 0 \.\. 29: 0 \.\. 30"),
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


# --- always the same data ---------------------------------------------------------------------------------------------


def test_data_that_are_drawn_without_a_seed_are_refused() -> None:
    def unseeded(parts: Parts) -> None:
        parts["train_x"] = np.random.default_rng().standard_normal(parts["train_x"].shape, np.float32)

    with pytest.raises(UserError, match="the data set Own cannot be used: a generator without a seed"):
        trained(own(unseeded, "table"), "table")


def test_global_generators_give_the_same_data_and_are_as_before() -> None:
    def change(parts: Parts) -> None:
        parts["train_x"] = (np.random.random((60, 4)) + torch.rand(60, 4).numpy()).astype(np.float32)  # noqa: NPY002

    np.random.seed(1)  # noqa: NPY002
    torch.manual_seed(1)
    first = trained(own(change, "table"), "table")["x"]
    after = np.random.random(), torch.rand(1)  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    torch.manual_seed(1)
    assert after == (np.random.random(), torch.rand(1))  # noqa: NPY002
    assert torch.equal(first, trained(own(change, "table"), "table")["x"])


def test_the_checksum_is_of_the_data_whatever_the_record_says() -> None:
    changes: list[Change] = [
        lambda parts: None, put("train_x", (0, 0), 0.0), put("test_x", (0, 0), 0.0),
        to("train_y", lambda y: y[::-1]), to("test_y", lambda y: y[::-1]), both(lambda x: x.astype(np.float64)),
        lambda parts: parts.update(train_text=["a"] * 60, test_text=["b"] * 24),
        lambda parts: parts.update(train_text=["a"] * 59 + ["b"], test_text=["b"] * 24),
    ]  # fmt: skip
    sums = [of_record(own(change, "table")).sha256 for change in changes]
    assert len(set(sums)) == len(changes)
    assert sums[0] == of_record(own(changes[0], "table", "under another name")).sha256
    tasks = ClientSplits(settings())
    tasks.get(Classification(own(changes[0], "table"), MODELS["table"], IID(), 3, Shuffled(8)), 0)
    assert list(tasks.provenance.values()) == sums[:1]


# --- the order of a test set ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reordered(ImageBlobs):
    """The same test set in another order."""

    order: int = 0

    def load(self) -> Dataset:
        data = ImageBlobs(*(getattr(self, name) for name in ImageBlobs.__dataclass_fields__)).load()
        order = np.random.default_rng(self.order).permutation(len(data.test_y))
        return replace(data, test_x=data.test_x[order], test_y=data.test_y[order])


SEEN_TOGETHER = ResNet(1, 4, (2, 4), (1, 1))


def evaluated(order: int, model: Model, data: Any = None, **more: Any) -> tuple[Any, Any]:
    data = data or Reordered(4, 8, 40, 20, 30.0, 0, 1, order)
    problem = Classification(data, model, BalancedDirichlet(0.5), 4, Shuffled(10), evaluation_batch=8, **more)
    (played,) = run([Experiment({}, problem, System(work=Steps(3)), FedAvg(0.05), Rounds(2))])
    return played.state["history"], played.env.split.labels("test").tolist()  # type: ignore[union-attr]


@pytest.mark.parametrize("more", [{}, {"test_samples": 40}, {"test_partition": True}])
def test_no_order_of_a_test_set_enters_a_number_under_batch_statistics(more: dict[str, Any]) -> None:
    assert SEEN_TOGETHER.batch_statistics
    first, *others = [evaluated(order, SEEN_TOGETHER, **more) for order in range(4)]
    assert all(other == first for other in others)


def test_nor_does_that_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPRODUCE_STORE", str(tmp_path))
    data, histories = ImageBlobs(4, 8, 40, 20, 30.0, 0).load(), []
    for order in (np.arange(80), np.arange(80)[::-1]):
        rows = {"test_x": data.test_x[order], "test_y": data.test_y[order]}
        np.savez(tmp_path / "mine.npz", train_x=data.train_x, train_y=data.train_y, **rows)
        histories.append(evaluated(0, SEEN_TOGETHER, bring(tmp_path / "mine.npz"))[0])
    assert histories[0] == histories[1]


# --- texts ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OwnTexts(Own):
    """Texts of a user's own, which a tokenizer cuts."""

    def load(self) -> Any:
        data = super().load()
        given: Parts = {"train_text": ["red fox", "blue fish", "old dog"] * 20, "test_text": ["red fox"] * 24}
        CHANGES[f"{self.change} texts"](given)
        return replace(data, **given)


@dataclass(frozen=True)
class WrongPairs(BytePairs):
    """Byte pairs of a user's own that number beyond their vocabulary."""

    def cut(self, *arguments: Any) -> Any:
        found = super().cut(*arguments)
        return found._replace(test=found.test + 300)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda parts: parts.update(train_text=None, test_text=None), "OwnTexts has no texts to cut into tokens"),
        (lambda parts: parts["train_text"].pop(), "train_text has 59 texts, the first a str; 60 are needed"),
        (lambda parts: parts.update(test_text=[b"red"] * 24), "the first a bytes; 24 are needed"),
    ],
)
def test_texts_that_are_none(change: Change, words: str) -> None:
    CHANGES["it texts"] = change
    CHANGES["it"] = lambda parts: None
    with pytest.raises(UserError, match=words):
        of_texts(BytePairs(300, 8))


def of_texts(tokenizer: BytePairs) -> Any:
    pytest.importorskip("tokenizers")
    problem = Classification(OwnTexts("it", "text"), FastText(300, 2, 3), IID(), 3, Shuffled(8), tokenizer=tokenizer)
    return ClientSplits(settings()).get(problem, 0)


def test_own_texts_are_cut_and_what_is_cut_is_checked() -> None:
    CHANGES["it texts"] = CHANGES["it"] = lambda parts: None
    assert of_texts(BytePairs(300, 8)).device_data.train_x.shape == (60, 8)
    with pytest.raises(UserError, match=r"the tokens of OwnTexts: test_x has token ids outside 0 \.\. 299"):
        of_texts(WrongPairs(300, 8))
