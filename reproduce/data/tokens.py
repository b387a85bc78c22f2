"""Texts as token ids: BERT's word pieces and RoBERTa's byte pairs, stored or made from the training texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from reproduce.data.dataset import LENGTH
from reproduce.data.sources import VOCABULARY
from reproduce.declare.values import Sample
from reproduce.errors import MissingData, UserError
from reproduce.models import weights

BERT = "bert/vocab.txt"
"""The vocabulary of bert-base-uncased, in the data folder."""
CHECKSUM = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
PAIRS = "tokenizer.json"
"""The byte pairs of a model, in its folder."""
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
MARKS = ("<s>", "<pad>", "</s>", "<unk>")
"""Start, padding, end, unknown: the ids 0 to 3 of byte pairs."""
Pairs = tuple[dict[str, int], list[tuple[str, str]]]
"""Vocabulary, and merges in their order."""


class Tokens(NamedTuple):
    """Ids int32 [n, length] of training and test texts; SHA-256 of the vocabulary; what it is, in words."""

    train: NDArray[np.int32]
    test: NDArray[np.int32]
    sha256: str
    note: str


def _encoded(
    tokenizer: Any, length: int, pad: tuple[str, int], train: Sequence[str], test: Sequence[str], known: str, note: str
) -> Tokens:
    """The texts, cut and padded to `length`; known: the vocabulary, as its checksum is of it."""
    tokenizer.enable_truncation(length)
    tokenizer.enable_padding(length=length, pad_token=pad[0], pad_id=pad[1])
    cut = [[e.ids for e in tokenizer.encode_batch(list(texts))] for texts in (train, test)]
    train_x, test_x = (np.array(ids, np.int32).reshape(-1, length) for ids in cut)
    return Tokens(train_x, test_x, hashlib.sha256(known.encode()).hexdigest(), f"tokens: {note}")


# --- word pieces ------------------------------------------------------------------------------------------------------


def pieces(train: Sequence[str], test: Sequence[str], data: Path) -> Tokens:
    """Word pieces of lower-case text between a start and an end mark, cut and padded to `LENGTH`.

    The vocabulary is BERT's if its file is in the folder `data`; otherwise one of at most as many pieces is made from
    the training texts, by the algorithm that made BERT's. Raises UserError for another file.
    """
    file = data / BERT
    if file.is_file():
        if hashlib.sha256(file.read_bytes()).hexdigest() != CHECKSUM:
            raise UserError(f"{file} is not the vocabulary of bert-base-uncased; copy it again, or delete it")
        vocabulary = {word: i for i, word in enumerate(file.read_text(encoding="utf-8").splitlines())}
        note = "BERT's word pieces"
    else:
        vocabulary = _trained_pieces(train)
        note = f"{len(vocabulary):,} word pieces of the training texts, in place of BERT's"
    tokenizer = _word_pieces(vocabulary)
    tokenizer.post_processor = processors.BertProcessing(*((m, vocabulary[m]) for m in ("[SEP]", "[CLS]")))
    listed = "\n".join(sorted(vocabulary, key=vocabulary.__getitem__))
    return _encoded(tokenizer, LENGTH, ("[PAD]", vocabulary["[PAD]"]), train, test, listed, note)


def _trained_pieces(texts: Sequence[str]) -> dict[str, int]:
    """The vocabulary of the texts, the same whenever it is made.

    The library numbers letters that go on with a word in the order of a hash table of its own, and breaks ties by these
    numbers. So they get theirs beforehand, as special tokens; what encodes in the end knows them as ordinary pieces.
    """
    tokenizer = _word_pieces({})
    letters = {c for text in texts for c in tokenizer.normalizer.normalize_str(text) if not c.isspace()}
    known = [*SPECIAL, *(f"##{c}" for c in sorted(letters))]
    trainer = trainers.WordPieceTrainer(vocab_size=VOCABULARY, special_tokens=known, show_progress=False)
    tokenizer.train_from_iterator(iter(texts), trainer)
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    return vocabulary


def _word_pieces(vocabulary: dict[str, int]) -> Any:
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


# --- byte pairs -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BytePairs:
    """Byte-level BPE between a start and an end mark (ids 0 and 2), cut to `length` tokens, padded with 1.

    vocabulary: token ids, at most. name: the model whose byte pairs they are ("roberta-base", a folder in the data
        folder or in the hub's cache); "" makes them from the training texts, the same whenever it is done.
    """

    vocabulary: int = 50_265
    length: int = 512
    name: Literal["", "roberta-base"] = ""

    def __post_init__(self) -> None:
        if not self.name and self.vocabulary < 256 + len(MARKS):
            raise ValueError(f"byte pairs have at least 256 bytes and {len(MARKS)} marks, not {self.vocabulary} ids")

    @property
    def sample(self) -> Sample:
        """Shape and type of one text as token ids."""
        return Sample((self.length,), "int64", self.vocabulary)

    def cut(self, train: Sequence[str], test: Sequence[str], data: Path) -> Tokens:
        """The texts as ids. Raises MissingData without the folder of the model, UserError for other byte pairs."""
        vocabulary, merges = _stored_pairs(self.name, data) if self.name else _trained_pairs(train, self.vocabulary)
        if len(vocabulary) > self.vocabulary or [vocabulary.get(mark) for mark in MARKS] != list(range(len(MARKS))):
            have = f"the byte pairs of {self.name} are {len(vocabulary)} ids, not {self.vocabulary}"
            raise UserError(f"{have} with the marks {' '.join(MARKS)} first: declare as many, or give another folder")
        # From vocabulary and merges alone: a mark that a text spells out is letters here.
        tokenizer = _byte_pairs(vocab=vocabulary, merges=merges)
        tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
        known = json.dumps([vocabulary, merges], sort_keys=True)
        note = f"byte pairs of {self.name}" if self.name else f"{len(vocabulary):,} byte pairs of the training texts"
        return _encoded(tokenizer, self.length, ("<pad>", 1), train, test, known, note)


def _stored_pairs(name: str, data: Path) -> Pairs:
    """The byte pairs in the folder of a stored model."""
    file = weights.find(name, data, PAIRS)
    if file is None:
        raise MissingData(name, weights.missing(name, data, PAIRS, "declare byte pairs of the texts (no name)"))
    try:
        return _pairs(file.read_text(encoding="utf-8"))
    except Exception as error:  # json and the file each have their own
        raise UserError(f"{file} holds no byte pairs ({error}); copy it again") from error


def _trained_pairs(texts: Sequence[str], size: int) -> Pairs:
    """Byte pairs trained on the texts: at most `size`, with the marks and all bytes among them."""
    known: dict[str, Any] = {
        "special_tokens": [*MARKS],
        "initial_alphabet": sorted(pre_tokenizers.ByteLevel.alphabet()),
    }
    tokenizer = _byte_pairs()
    tokenizer.train_from_iterator(iter(texts), trainers.BpeTrainer(vocab_size=size, show_progress=False, **known))
    return _pairs(tokenizer.to_str())


def _byte_pairs(**known: Any) -> Any:
    tokenizer = Tokenizer(models.BPE(**known))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer


def _pairs(text: str) -> Pairs:
    """Vocabulary and merges of a tokenizer in the library's format, in which older files join a pair by a space."""
    model = json.loads(text)["model"]
    return model["vocab"], [tuple(m.split(" ") if isinstance(m, str) else m) for m in model["merges"]]
