"""YAML is read in one way: keys occur once, and what ends in no value is refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from reproduce.errors import UserError
from reproduce.files import read_yaml

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a: 1\na: 2", "is not YAML: the key 'a' occurs twice"),
        (b"a: {b: 1, c: 2, b: 3}", "is not YAML: the key 'b' occurs twice"),
        (b"a: !!python/name:os.system", "is not YAML: could not determine a constructor"),
        (b"a: b: c", "is not YAML: "),
        (b"a: " + b"[" * 5000, "is not YAML: "),
        (b"? [1]\n: 2", "is not YAML: "),
        ("a: \N{LATIN SMALL LETTER U WITH DIAERESIS}".encode("latin-1"), "not text in UTF-8"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "a.yaml").write_bytes(data)
    with pytest.raises(UserError, match=words) as refused:
        read_yaml(tmp_path / "a.yaml")
    assert "\n" not in str(refused.value)


def test_every_file_of_the_repository_is_read() -> None:
    found = [*ROOT.glob("config/*.yaml"), *ROOT.glob("profiles/*/*.yaml"), *ROOT.glob("reproduce/papers/*/claims.yaml")]
    assert len(found) >= 8
    assert all(map(read_yaml, found))
