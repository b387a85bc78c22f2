"""Texts as word pieces and byte pairs: of their own training texts, or stored ones; what is said about them."""

import hashlib
import json
import lzma
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reproduce.data import tokens
from reproduce.data.batches import Shuffled
from reproduce.data.load import sha256
from reproduce.data.sources import SOURCES, File, Files
from reproduce.data.tokens import BytePairs, pieces
from reproduce.engine.client_split import ClientSplits
from reproduce.errors import UserError
from reproduce.models.declared import FastText
from reproduce.models.roberta import RoBERTa
from reproduce.partitions.labels import IID
from reproduce.problem import Classification
from reproduce.settings import Settings

TRAIN = ["The markets rose, and the markets fell.", "Markets rise again: markets!", "A rocket rose from the pad"] * 4
TEST = ["Rockets rose", "zzz \u4f60 caf\u00e9 " + "markets " * 80, ""]
PROBLEM = Classification("ag_news", FastText(), IID(), 2, Shuffled(4), tokenizer="pieces")

MODEL = RoBERTa(300, 34, 8, 2, 1, 8)
PAIRS = Classification("ag_news", MODEL, IID(), 2, Shuffled(4), tokenizer=BytePairs(300, 32))
OWN = BytePairs(300, 32, "roberta-base")


@pytest.fixture(autouse=True)
def _no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)


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


@pytest.mark.parametrize("problem", [PROBLEM, PAIRS])
def test_a_split_of_tokens_says_what_they_are(
    problem: Classification, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = news(tmp_path, monkeypatch)
    splits = ClientSplits(here)
    held: Any = splits.get(problem, 0).device_data
    expected = pieces(TRAIN, TEST, here.data) if problem is PROBLEM else BytePairs(300, 32).cut(TRAIN, TEST, here.data)
    assert np.array_equal(held.train_x.numpy(), expected.train)
    assert np.array_equal(held.test_x.numpy(), expected.test)
    assert splits.provenance["tokenizer"] == expected.sha256
    assert splits.notes == {"ag_news": expected.note}


@pytest.mark.parametrize(
    ("problem", "changes", "words"),
    [
        (PROBLEM, {"data": "digits"}, "cannot read|wants token ids|no texts"),
        (PROBLEM, {"model": FastText(30_000)}, "does not fit the 30000 rows"),
        (PAIRS, {"tokenizer": BytePairs(301, 32)}, "the tokenizer has 301 ids and does not fit the 300 rows"),
        (PAIRS, {"tokenizer": BytePairs(300, 33)}, "texts of 33 tokens do not fit RoBERTa.* its 32 positions"),
        (PAIRS, {"data": "digits"}, "no texts to cut"),
    ],
)
def test_what_does_not_fit_is_refused(problem: Classification, changes: dict[str, Any], words: str) -> None:
    with pytest.raises((UserError, ValueError), match=words):
        replace(problem, **changes)


def stored(folder: Path, merges: list[tuple[str, str]], marks: tuple[str, ...] = ()) -> dict[str, int]:
    """The files of a model with these merges; returns its vocabulary."""
    from tokenizers.pre_tokenizers import ByteLevel

    words = [*(marks or ("<s>", "<pad>", "</s>", "<unk>")), *sorted(ByteLevel.alphabet()), *map("".join, merges)]
    vocabulary = {word: i for i, word in enumerate(words)}
    folder.mkdir(parents=True, exist_ok=True)
    joined = [" ".join(pair) for pair in merges]
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocabulary, "merges": joined}}))
    return vocabulary


def test_pairs_of_the_texts_are_their_bytes_and_what_is_frequent(tmp_path: Path) -> None:
    made = BytePairs(280, 32).cut(TRAIN, [*TEST, "<s> <pad>"], tmp_path)
    assert made.train.shape == (12, 32)
    assert made.train.dtype == np.int32
    assert (made.train[:, 0] == 0).all()
    row = made.train[0]
    assert row[(row != 1).sum() - 1] == 2, "the end mark, then padding"
    assert (row == 2).sum() == 1
    assert made.test[1, 31] == 2, "a long text is cut and ends"
    assert made.test[2].tolist() == [0, 2] + [1] * 30, "an empty text"
    assert not (made.test == 3).any(), "bytes know every text"
    assert (made.test[3] == 0).sum() == 1, "a mark that a text spells out is letters"
    assert (made.test[3] == 1).sum() == 32 - (made.test[3] > 3).sum() - 2
    assert made.train.max() < 280
    assert made.note == "tokens: 280 byte pairs of the training texts"
    assert made.sha256 != BytePairs(290, 32).cut(TRAIN, TEST, tmp_path).sha256
    assert made.sha256 == BytePairs(280, 20).cut(TRAIN, ["another test"], tmp_path).sha256


PROCESS = """
from pathlib import Path
from tests.data.test_tokens import TRAIN
from reproduce.data.tokens import BytePairs
letters = [f"{text} {i * i} \u00e9t\u00e9" for i, text in enumerate(TRAIN * 50)]
made = BytePairs(500, 32).cut(letters, letters[:9], Path())
print(made.sha256, made.train.sum())
"""


def test_two_processes_make_the_same_pairs() -> None:
    said = {
        subprocess.run(
            [sys.executable, "-c", PROCESS], capture_output=True, text=True, cwd=Path(__file__).parents[2]
        ).stdout
        for _ in range(2)
    }
    assert len(said) == 1
    assert len(said.pop().split()) == 2


@pytest.mark.parametrize("place", ["data/roberta-base", "hub/hub/models--FacebookAI--roberta-base/snapshots/abc"])
def test_pairs_of_a_model_are_read_from_its_folder(place: str, tmp_path: Path) -> None:
    """By merging by hand: "the" and "market" are whole, "ed" is letters. And as the library of the model reads them."""
    merges = [("t", "h"), ("th", "e"), ("Ġ", "m"), ("a", "r"), ("Ġm", "ar"), ("k", "e"), ("ke", "t"), ("Ġmar", "ket")]
    vocabulary = stored(tmp_path / place, merges)
    made = OWN.cut(TRAIN, ["the marketed", "The markets rose again"], tmp_path / "data")
    ids = [vocabulary[w] for w in ("<s>", "the", "Ġmarket", "e", "d", "</s>")]
    assert made.test[0].tolist() == ids + [1] * 26
    assert made.note == "tokens: byte pairs of roberta-base"
    from transformers import RobertaTokenizer

    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    (tmp_path / "merges.txt").write_text("\n".join(["#version: 0.2", *map(" ".join, merges)]) + "\n")
    theirs = RobertaTokenizer.from_pretrained(tmp_path)
    cut = theirs("The markets rose again", max_length=32, truncation=True, padding="max_length")["input_ids"]
    assert cut == made.test[1].tolist()
