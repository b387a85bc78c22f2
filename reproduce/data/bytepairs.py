"""Texts as token ids: byte pairs as RoBERTa has them, its own or those that the training texts themselves make."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

from reproduce.data.sample import Sample
from reproduce.data.tokens import Tokens, encoded
from reproduce.errors import MissingData, UserError
from reproduce.models import weights

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
"""Start, padding, end, unknown: the ids 0 to 3."""
FILES = ("tokenizer.json", "merges.txt")
"""What a folder of the hub has one of; `vocab.json` goes with the latter."""


Pairs = tuple[dict[str, int], list[tuple[str, str]]]
"""Vocabulary, and merges in their order."""


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
        if self.name and self.name not in weights.HUB:
            raise ValueError(f"byte pairs of '{self.name}': use 'roberta-base', or '' for those of the texts")
        if not self.name and self.vocabulary < 256 + len(SPECIAL):
            raise ValueError(f"byte pairs have at least 256 bytes and {len(SPECIAL)} marks, not {self.vocabulary} ids")

    @property
    def sample(self) -> Sample:
        """One text."""
        return Sample((self.length,), "int64", self.vocabulary)

    def cut(self, train: Sequence[str], test: Sequence[str], data: Path) -> Tokens:
        """The texts as ids.

        Raises MissingData without the folder of the model, UserError for other byte pairs.
        """
        vocabulary, merges = self._stored(data) if self.name else _trained(train, self.vocabulary)
        if len(vocabulary) > self.vocabulary or [vocabulary.get(mark) for mark in SPECIAL] != list(range(len(SPECIAL))):
            raise UserError(
                f"the byte pairs of {self.name} are {len(vocabulary)} ids, not {self.vocabulary} with the marks "
                f"{' '.join(SPECIAL)} first: declare as many, or give the folder of another model"
            )
        # From vocabulary and merges alone: a mark that a text spells out is letters here.
        tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
        tokenizer.enable_truncation(self.length)
        tokenizer.enable_padding(length=self.length, pad_id=1, pad_token="<pad>")
        said = json.dumps([vocabulary, merges], sort_keys=True)
        whose = f"byte pairs of {self.name}" if self.name else f"{len(vocabulary):,} byte pairs of the training texts"
        return encoded(tokenizer, self.length, train, test, said, f"tokens: {whose}")

    def _stored(self, data: Path) -> Pairs:
        """Those of the model's folder."""
        found = next(filter(None, (weights.find(self.name, data, file) for file in FILES)), None)
        if found is None:
            otherwise = "declare byte pairs of the texts (no name)"
            raise MissingData(self.name, weights.missing(self.name, data, " or ".join(FILES), otherwise))
        try:
            if found.name == "tokenizer.json":
                return _model(json.loads(found.read_text(encoding="utf-8")))
            vocabulary, merges = models.BPE.read_file(str(found.with_name("vocab.json")), str(found))
            return vocabulary, merges
        except Exception as error:  # the library raises its own
            raise UserError(f"{found} holds no byte pairs ({error}); copy it again") from error


def _trained(texts: Sequence[str], size: int) -> Pairs:
    """At most `size` byte pairs of the texts, the marks and all bytes among them."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(SPECIAL), initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(iter(texts), trainer)
    return _model(json.loads(tokenizer.to_str()))


def _model(content: Any) -> Pairs:
    """Vocabulary and merges of a tokenizer in the library's format, in which older files join a pair by a space."""
    merges = content["model"]["merges"]
    return content["model"]["vocab"], [tuple(m.split(" ") if isinstance(m, str) else m) for m in merges]
