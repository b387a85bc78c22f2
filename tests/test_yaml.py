"""YAML is read strictly: what is not what it looks like, and what ends in no value, is refused in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reproduce.errors import UserError
from reproduce.files import read_yaml

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1", 1), ("a: -7", -7), ("a: +5", 5), ("a: 0", 0), ("a: 1.5", 1.5), ("a: .inf", float("inf")),
        ("a: 1.e+3", 1000.0), ("a: true", True), ("a: False", False), ("a: ~", None), ("a:", None), ("a: '010'", "010"),
        ('a: "yes"', "yes"), ("a: 'on'", "on"), ("a: '1:30'", "1:30"), ("a: 0-4", "0-4"), ("a: 1e3", "1e3"),
        ("a: yes sir", "yes sir"), ("a: [1, 2]", [1, 2]),
        ("a: '2024-01-01'", "2024-01-01"), ("a: |\n  1:30\n", "1:30\n"),
    ],
)  # fmt: skip
def test_what_means_the_same_to_everybody_is_taken(tmp_path: Path, text: str, value: Any) -> None:
    (tmp_path / "a.yaml").write_text(text)
    found = read_yaml(tmp_path / "a.yaml")["a"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    "text",
    [
        "a: 010", "a: 1:30", "a: 1:30.5", "a: -1:30:00", "a: yes", "a: No", "a: on", "a: OFF", "on: 1", "a: [yes]",
        "a: {b: off}", "010: a", "a: 0x10", "a: 0b1", "a: 1_000", "a: 1_0.5", "a: 00", "a: 2024-01-01",
        "a: 2024-99-99", "a: 2001-12-14t21:59:43.10-05:00", "a: 2001-12-14 21:59:43 +99:99",
        "a: !!timestamp foo", "a: !!int x", "a: !!set {b}", "a: !!str [1]", "a: !mine x", "a: ! x",
        "!!bool maybe: 1", "a: !!python/object/apply:os.system ['true']", "a: !!python/name:os.system",
        "a: &x [*x]", "b: &x [1]\na: *x", "a: *x", "<<: 1", "a: \0", "\0", "a: \x01", "a: =", "? [1]\n: 2",
        "a: 1\na: 2", "a: 1\n---\nb: 2", "a: " + "9" * 5000, "a: " + "[" * 5000, "a: b: c", "\ta: 1", "a: 'x", "{",
    ],
)  # fmt: skip
def test_what_does_not_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(UserError, match=r"a\.yaml is not YAML: ") as refused:
        read_yaml(tmp_path / "a.yaml")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("data", [b"a: \xff", b"a: \xed\xa0\x80", "a: 1".encode("utf-16"), "a: ü".encode("latin-1")])
def test_what_is_not_utf_8_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.yaml").write_bytes(data)
    with pytest.raises(UserError, match="not text in UTF-8"):
        read_yaml(tmp_path / "a.yaml")


def test_every_file_of_the_repository_is_read() -> None:
    found = [*ROOT.glob("config/*.yaml"), *ROOT.glob("profiles/*/*.yaml"), *ROOT.glob("reproduce/papers/*/claims.yaml")]
    assert len(found) >= 8
    assert all(map(read_yaml, found))
