"""Texts as word pieces: trained on their own training texts, or BERT's; what is said about them."""

from __future__ import annotations

import hashlib
import lzma
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reproduce.data import tokens
from reproduce.data.batches import Shuffled
from reproduce.data.load import load, sha256
from reproduce.data.sources import SOURCES, File, Files
from reproduce.data.tokens import pieces
from reproduce.engine.client_split import ClientSplits
from reproduce.errors import UserError
from reproduce.models.declared import FastText
from reproduce.partitions.named import IID
from reproduce.problem import Classification
from reproduce.settings import Settings

TRAIN = ["The markets rose, and the markets fell.", "Markets rise again: markets!", "A rocket rose from the pad"] * 4
TEST = ["Rockets rose", "zzz \u4f60 caf\u00e9 " + "markets " * 80, ""]
PROBLEM = Classification("ag_news", FastText(), IID(), 2, Shuffled(4), tokenizer="pieces")


def news(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A small AG News in the data folder, known to the table."""
    (folder / "data" / "ag_news").mkdir(parents=True)
    for name, texts in (("train_subset", TRAIN), ("test", TEST)):
        rows = "".join(f'"{1 + i % 4}","{text}"\n' for i, text in enumerate(texts))
        (folder / "data" / "ag_news" / f"{name}.csv.xz").write_bytes(lzma.compress(rows.encode()))
    paths = ("ag_news/train_subset.csv.xz", "ag_news/test.csv.xz")
    files = tuple(File(p, sha256(folder / "data" / p)) for p in paths)
    found = Files("read_news", files)
    source = replace(SOURCES["ag_news"], train=len(TRAIN), test=len(TEST), layouts=(found,))
    monkeypatch.setitem(SOURCES, "ag_news", source)
    return Settings(folder / "data", folder / "store", "cpu", 1)


def test_pieces_are_of_the_training_texts_alone(tmp_path: Path) -> None:
    made = pieces(TRAIN, TEST, tmp_path)
    for again in (pieces(TRAIN, TEST, tmp_path) for _ in range(5)):
        assert all(np.array_equal(a, b) for a, b in zip(made[:2], again[:2], strict=True))
        assert made.sha256 == again.sha256
    assert made.sha256 == pieces(TRAIN, ["another test"], tmp_path).sha256
    assert made.sha256 != pieces(TRAIN[:1], TEST, tmp_path).sha256
    assert made.train.shape == (12, 64)
    assert made.train.dtype == np.int32
    assert made.train.max() < 30_522
    start, end, unknown = 2, 3, 1
    assert (made.train[:, 0] == start).all()
    row = made.train[0]
    assert row[(row > 0).sum() - 1] == end, "the end mark, then padding"
    assert (made.test[1] > 0).all(), "a long text is cut"
    assert made.test[1, 63] == end
    assert unknown in made.test[1], "letters that no training text has"
    assert made.test[2].tolist() == [start, end] + [0] * 62
    assert "word pieces of the training texts, in place of BERT's" in made.note
    literal = pieces(TRAIN, ["##s"], tmp_path).test[0]
    assert (literal > 0).sum() > 3, "two signs and a letter, not the piece of that name"


def test_a_vocabulary_at_hand_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the longest-match-first rule of WordPiece, written out for four words."""
    words = [*tokens.SPECIAL, "rocket", "##s", "rose", "mark", "##et", "the", "."]
    file = tmp_path / tokens.BERT
    file.parent.mkdir()
    file.write_text("\n".join(words) + "\n", encoding="utf-8")
    with pytest.raises(UserError, match="is not the vocabulary of bert-base-uncased"):
        pieces(TRAIN, TEST, tmp_path)
    monkeypatch.setattr(tokens, "CHECKSUM", hashlib.sha256(file.read_bytes()).hexdigest())
    made = pieces(TRAIN, ["The ROCKETS rose. markets marketed"], tmp_path)
    ids = [
        words.index(w) for w in ("[CLS]", "the", "rocket", "##s", "rose", ".", "mark", "##et", "##s", "[UNK]", "[SEP]")
    ]
    assert made.test[0].tolist() == ids + [0] * (64 - len(ids))
    assert made.note == "tokens: BERT's word pieces"


def test_a_task_of_pieces_says_what_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = news(tmp_path, monkeypatch)
    tasks = ClientSplits(here)
    arena: Any = tasks.get(PROBLEM, 0).device_data
    expected = pieces(TRAIN, TEST, here.data)
    assert np.array_equal(arena.train_x.numpy(), expected.train)
    assert np.array_equal(arena.test_x.numpy(), expected.test)
    assert tasks.provenance["tokenizer"] == expected.sha256
    assert tasks.notes == {"ag_news": expected.note}


def test_hashed_words_are_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = news(tmp_path, monkeypatch)
    tasks = ClientSplits(here)
    arena: Any = tasks.get(replace(PROBLEM, tokenizer="hashed"), 0).device_data
    assert np.array_equal(arena.train_x.numpy(), load("ag_news", here).train_x)
    assert tasks.notes == {}
    assert set(tasks.provenance) == {"ag_news"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"data": "digits"}, "cannot read|wants token ids|no texts"),
        ({"model": FastText(30_000)}, "does not fit the 30000 rows"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises((UserError, ValueError), match=words):
        replace(PROBLEM, **changes)


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("REPRODUCE_DATA"), reason="REPRODUCE_DATA is not set: no real data sets")
def test_real_news_trains_a_vocabulary_of_its_own(tmp_path: Path) -> None:
    here = Settings(Path(os.environ["REPRODUCE_DATA"]), tmp_path, "cpu", 1)
    data = load("ag_news_subset", here)
    assert data.train_text is not None
    assert data.test_text is not None
    made = pieces(data.train_text, data.test_text, here.data)
    assert (made.test == 1).sum() < 0.001 * (made.test > 0).sum(), "hardly a piece of a test text is unknown"
    assert 20_000 < made.train.max() < 30_522
    assert made.sha256 == pieces(data.train_text, ["a"], here.data).sha256
