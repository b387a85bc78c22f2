"""Texts as byte pairs: those of the training texts, the same in every process, or those of a stored model."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_tokens import TEST, TRAIN, news

from reproduce.data.batches import Shuffled
from reproduce.data.load import available
from reproduce.data.tokens import BytePairs
from reproduce.declare.experiment import canonical
from reproduce.engine.client_split import ClientSplits
from reproduce.errors import MissingData, UserError
from reproduce.models.roberta import RoBERTa
from reproduce.partitions.named import IID
from reproduce.problem import Classification

MODEL = RoBERTa(300, 34, 8, 2, 1, 8)
PROBLEM = Classification("ag_news", MODEL, IID(), 2, Shuffled(4), tokenizer=BytePairs(300, 32))
OWN = BytePairs(300, 32, "roberta-base")


@pytest.fixture(autouse=True)
def _no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)


def stored(folder: Path, merges: list[tuple[str, str]], form: str, marks: tuple[str, ...] = ()) -> dict[str, int]:
    """The files of a model with these merges; returns its vocabulary."""
    from tokenizers.pre_tokenizers import ByteLevel

    words = [*(marks or ("<s>", "<pad>", "</s>", "<unk>")), *sorted(ByteLevel.alphabet()), *map("".join, merges)]
    vocabulary = {word: i for i, word in enumerate(words)}
    folder.mkdir(parents=True, exist_ok=True)
    if form == "tokenizer.json":
        joined = [" ".join(pair) for pair in merges]
        (folder / form).write_text(json.dumps({"model": {"vocab": vocabulary, "merges": joined}}), encoding="utf-8")
    else:
        (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
        lines = ["#version: 0.2", *map(" ".join, merges)]
        (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
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
from test_bytepairs import TRAIN
from reproduce.data.tokens import BytePairs
letters = [f"{text} {i * i} \u00e9t\u00e9" for i, text in enumerate(TRAIN * 50)]
made = BytePairs(500, 32).cut(letters, letters[:9], Path())
print(made.sha256, made.train.sum())
"""


def test_two_processes_make_the_same_pairs() -> None:
    said = {
        subprocess.run(
            [sys.executable, "-c", PROCESS], capture_output=True, text=True, cwd=Path(__file__).parent
        ).stdout
        for _ in range(2)
    }
    assert len(said) == 1
    assert len(said.pop().split()) == 2


@pytest.mark.parametrize("form", ["tokenizer.json", "merges.txt"])
@pytest.mark.parametrize("place", ["data/roberta-base", "hub/hub/models--FacebookAI--roberta-base/snapshots/abc"])
def test_pairs_of_a_model_are_read_from_its_folder(place: str, form: str, tmp_path: Path) -> None:
    """By merging by hand: "the" and "market" are whole, "ed" is letters. And as the library of the model reads them."""
    merges = [("t", "h"), ("th", "e"), ("Ġ", "m"), ("a", "r"), ("Ġm", "ar"), ("k", "e"), ("ke", "t"), ("Ġmar", "ket")]
    vocabulary = stored(tmp_path / place, merges, form)
    made = OWN.cut(TRAIN, ["the marketed"], tmp_path / "data")
    ids = [vocabulary[w] for w in ("<s>", "the", "Ġmarket", "e", "d", "</s>")]
    assert made.test[0].tolist() == ids + [1] * 26
    assert made.note == "tokens: byte pairs of roberta-base"
    from transformers import RobertaTokenizer

    if form == "merges.txt":
        theirs = RobertaTokenizer.from_pretrained(tmp_path / place)
        assert theirs("The markets rose again", max_length=32, truncation=True, padding="max_length")["input_ids"] == (
            OWN.cut(TRAIN, ["The markets rose again"], tmp_path / "data").test[0].tolist()
        )


def test_a_missing_folder_is_one_error_that_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = news(tmp_path, monkeypatch)
    problem = replace(PROBLEM, tokenizer=OWN)
    with pytest.raises(MissingData) as error:
        ClientSplits(here).get(problem, 0)
    assert error.value.needs == "roberta-base"
    for words in (str(here.data / "roberta-base"), "huggingface.co/FacebookAI/roberta-base", "tokenizer.json"):
        assert words in str(error.value)
    assert problem.requires == ("ag_news", "roberta-base")
    assert available("roberta-base", here).state == "missing"


def test_other_byte_pairs_than_declared_are_refused(tmp_path: Path) -> None:
    stored(tmp_path / "roberta-base", [("t", "h")] * 1, "tokenizer.json")
    with pytest.raises(UserError, match=r"roberta-base are 261 ids, not 260 .* first: declare as many"):
        BytePairs(260, 32, "roberta-base").cut(TRAIN, TEST, tmp_path)
    stored(tmp_path / "roberta-base", [("t", "h")], "tokenizer.json", ("[PAD]", "[CLS]"))
    with pytest.raises(UserError, match="marks <s> <pad> </s> <unk> first"):
        OWN.cut(TRAIN, TEST, tmp_path)
    (tmp_path / "roberta-base" / "tokenizer.json").write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match=r"tokenizer.json holds no byte pairs .* copy it again"):
        OWN.cut(TRAIN, TEST, tmp_path)


def test_a_task_of_byte_pairs_says_what_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = news(tmp_path, monkeypatch)
    tasks = ClientSplits(here)
    arena: Any = tasks.get(PROBLEM, 0).device_data
    expected = BytePairs(300, 32).cut(TRAIN, TEST, here.data)
    assert np.array_equal(arena.train_x.numpy(), expected.train)
    assert tasks.provenance["tokenizer"] == expected.sha256
    assert tasks.notes == {"ag_news": expected.note}
    assert canonical(PROBLEM)["tokenizer"] == {"type": "BytePairs", "vocabulary": 300, "length": 32, "name": ""}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tokenizer": BytePairs(301, 32)}, "the tokenizer has 301 ids and does not fit the 300 rows of RoBERTa"),
        ({"tokenizer": BytePairs(300, 33)}, "texts of 33 tokens do not fit RoBERTa.* cut them to its 32 positions"),
        ({"data": "digits"}, "no texts to cut"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        replace(PROBLEM, **changes)


@pytest.mark.parametrize(("vocabulary", "name"), [(259, ""), (300, "bert")])
def test_impossible_byte_pairs_are_refused(vocabulary: int, name: Any) -> None:
    with pytest.raises(ValueError, match="byte pairs"):
        BytePairs(vocabulary, 32, name)
