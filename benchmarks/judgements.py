"""Verdicts under the first check of a claim."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from reproduce.errors import UserError
from reproduce.files import read_yaml, write_text
from reproduce.text import markdown
from reproduce.verdicts.claims import ClaimsFile, claims_files, load_claims
from reproduce.verdicts.scoreboard import scoreboard

PAGE = Path("docs/papers/asked.md")
TEXT = """# Changed checks

This page has the claims whose check was changed after it was first written down, before the first results at paper
scale. Both verdicts are at paper scale, by current rules and values. – marks a first check that the current grammar
cannot express, or that was not run. {changed} of {all} claims have another check now. {both} claims are evaluated under
both checks, and {turned} of them have another verdict. `python -m benchmarks asked` makes this page from the history of
the claims files.

"""
HEAD = ("claim", "first written", "first check", "verdict", "last changed", "current check", "verdict")


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout


def versions(path: Path) -> Iterator[tuple[str, dict[str, dict[str, Any]]]]:
    """(date, claim -> entry) of a claims file, from the first commit on that has the grammar of checks."""
    for line in git("log", "--reverse", "--format=%H %cs", "--", str(path)).splitlines():
        commit, date = line.split()
        text = git("show", f"{commit}:{path.relative_to(Path.cwd())}")
        data = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        if data.get("claims"):
            yield date, {entry["id"]: entry for entry in data["claims"]}


def question(entry: dict[str, Any]) -> dict[str, Any]:
    """What an entry asks at paper scale."""
    fields = {key: entry.get(key) for key in ("artifact", "check", "readings")}
    return {**fields, "at": entry.get("at", {}).get("paper")}


def asked() -> None:
    """Writes the page of claims whose check was changed, with the verdicts under the first and today's."""
    if git("rev-parse", "--is-shallow-repository").strip() == "true":
        raise UserError("this clone has no history: `git fetch --unshallow` brings it")
    today = {v.id: v for v in scoreboard("paper")}
    rows, total = [], 0
    for file in claims_files():
        first: dict[str, tuple[str, dict[str, Any]]] = {}
        last: dict[str, tuple[str, dict[str, Any]]] = {}
        for date, entries in versions(file.path):
            for name, entry in entries.items():
                first.setdefault(name, (date, entry))
                if name not in last or question(last[name][1]) != question(entry):
                    last[name] = date, entry
        data = read_yaml(file.path)
        for entry in data["claims"]:
            v, (began, old) = today[f"{file.paper}/{entry['id']}"], first.get(entry["id"], ("", entry))
            total += "rests_on" not in entry
            if "rests_on" not in entry and question(old) != question(entry):
                date = last[entry["id"]][0] if question(last[entry["id"]][1]) == question(entry) else "now"
                was = "–" if v.verdict == "not run" else _under(file, data, entry, old)
                rows.append((v, began, old, was, date, entry))
    both = [(was, v.verdict) for v, _, _, was, _, _ in rows if "not run" not in (was, v.verdict) and was != "–"]
    table = [
        (f"`{v.id}`", began, _shown(old), _word(was), date, _shown(new), _word(v.verdict))
        for v, began, old, was, date, new in rows
    ]
    turned = sum(a != b for a, b in both)
    text = TEXT.format(changed=len(rows), all=total, turned=turned, both=len(both))
    write_text(PAGE, f"{text}{markdown(HEAD, table)}\n")
    print(f"{PAGE}: {len(rows)} claims, {turned} of {len(both)} turned")


def _under(file: ClaimsFile, today: dict[str, Any], new: dict[str, Any], old: dict[str, Any]) -> str:
    """The verdict at paper scale under an earlier entry's check; "–" where today's grammar has no such check."""
    entry = {key: value for key, value in new.items() if key not in ("check", "at", "readings", "ours")}
    entry |= {key: old[key] for key in ("check", "at", "readings", "artifact") if key in old}
    data = {**today, "claims": [entry]}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as place:
        place.write(yaml.safe_dump(data))
        place.flush()
        try:
            (found,) = scoreboard("paper", files=[replace(load_claims(Path(place.name)), path=file.path)])
        except UserError:
            return "–"
    return found.verdict


def _shown(entry: dict[str, Any]) -> str:
    content = {key: value for key, value in question(entry).items() if value and key != "artifact"}
    text = yaml.safe_dump(content, default_flow_style=True, width=10**6).strip()
    return f"`{text.replace('|', '/')}`"


def _word(verdict: str) -> str:
    return "–" if verdict == "not run" else verdict
