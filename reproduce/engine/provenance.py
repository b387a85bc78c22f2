"""Where a result comes from: versions, commit, machine, time."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from reproduce.engine import library
from reproduce.engine.hardware import machine

PACKAGE = Path(__file__).parent.parent


def environment() -> dict[str, Any]:
    """Versions, commit, machine and time, for the provenance of a result."""
    versions = {"python": sys.version.split()[0]}
    for package in ("torch", "numpy", "pandas", "pyarrow"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "absent"
    return {"versions": versions, "git": commit(), "machine": machine(), "compiled": library.how(), "date": now()}


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@cache
def commit() -> str:
    """Commit of the source, with "+" if a file of the package differs from it; "unknown" outside a repository.

    Results, tables and documents may differ: they change no number, and a workflow writes them as it goes.
    """
    try:
        name = _git("describe", "--always", "--abbrev=12", "--exclude=*")
        return name + ("+" if _git("status", "--porcelain", "--", str(PACKAGE)) else "")
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(PACKAGE), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
