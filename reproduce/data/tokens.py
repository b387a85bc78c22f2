"""Texts as token ids: BERT's word pieces, or word pieces of a vocabulary that the training texts themselves make."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from reproduce.data.dataset import LENGTH
from reproduce.data.sources import VOCABULARY
from reproduce.errors import UserError

BERT = "bert/vocab.txt"
"""The vocabulary of bert-base-uncased, in the data folder."""
CHECKSUM = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


class Tokens(NamedTuple):
    """Ids int32 [n, length] of training and test texts; SHA-256 of the vocabulary; what it is, in words."""

    train: NDArray[np.int32]
    test: NDArray[np.int32]
    sha256: str
    note: str


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
        note = "tokens: BERT's word pieces"
    else:
        vocabulary = _trained(train)
        note = f"tokens: {len(vocabulary):,} word pieces of the training texts, in place of BERT's"
    tokenizer = _tokenizer(vocabulary)
    marks = [(mark, vocabulary[mark]) for mark in ("[SEP]", "[CLS]")]
    tokenizer.post_processor = processors.BertProcessing(*marks)
    tokenizer.enable_truncation(LENGTH)
    tokenizer.enable_padding(length=LENGTH, pad_id=vocabulary["[PAD]"])
    listed = "\n".join(sorted(vocabulary, key=vocabulary.__getitem__))
    return encoded(tokenizer, LENGTH, train, test, listed, note)


def encoded(
    tokenizer: Any, length: int, train: Sequence[str], test: Sequence[str], vocabulary: str, note: str
) -> Tokens:
    """The texts by a tokenizer that cuts and pads them to `length`; vocabulary: what its checksum is of."""

    def ids(texts: Sequence[str]) -> NDArray[np.int32]:
        return np.array([e.ids for e in tokenizer.encode_batch(list(texts))], np.int32).reshape(-1, length)

    return Tokens(ids(train), ids(test), hashlib.sha256(vocabulary.encode()).hexdigest(), note)


def _trained(texts: Sequence[str]) -> dict[str, int]:
    """The vocabulary of the texts, the same whenever it is made.

    The library numbers letters that go on with a word in the order of a hash table of its own, and breaks ties by these
    numbers. So they get theirs beforehand, as special tokens; what encodes in the end knows them as ordinary pieces.
    """
    tokenizer = _tokenizer({})
    letters = {c for text in texts for c in tokenizer.normalizer.normalize_str(text) if not c.isspace()}
    known = [*SPECIAL, *(f"##{c}" for c in sorted(letters))]
    trainer = trainers.WordPieceTrainer(vocab_size=VOCABULARY, special_tokens=known, show_progress=False)
    tokenizer.train_from_iterator(iter(texts), trainer)
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    return vocabulary


def _tokenizer(vocabulary: dict[str, int]) -> Any:
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer
