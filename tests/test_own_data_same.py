"""A user's own data set is the same each time; what the order of its test set is worth; its texts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from runs import run
from test_own_data import CHANGES, MODELS, Change, Own, Parts, both, own, put, to, trained

from reproduce.algorithms.base import FedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Shuffled
from reproduce.data.dataset import Dataset
from reproduce.data.embedded import ImageBlobs
from reproduce.data.load import of_record
from reproduce.data.tokens import BytePairs
from reproduce.data.userdata import bring
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClientSplits
from reproduce.errors import UserError
from reproduce.models.declared import FastText, ResNet
from reproduce.models.model import Model
from reproduce.partitions.dirichlet import BalancedDirichlet
from reproduce.partitions.labels import IID
from reproduce.problem import Classification
from reproduce.settings import settings
from reproduce.systems import Steps, System

# --- always the same data ---------------------------------------------------------------------------------------------


def test_data_that_differ_from_call_to_call_are_refused() -> None:
    calls: list[int] = []

    def change(parts: Parts) -> None:
        calls.append(0)
        parts["test_x"] = parts["test_x"] + len(calls)

    def unseeded(parts: Parts) -> None:
        parts["train_x"] = np.random.default_rng().standard_normal(parts["train_x"].shape, np.float32)

    for each in (change, unseeded):
        with pytest.raises(UserError, match=r"Own\.load\(\) gives other data each time"):
            trained(own(each, "table"), "table")


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
