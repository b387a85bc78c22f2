"""The origin of a result: versions, commit, machine, time."""

import re
import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from typing import Any

from reproduce.declare.closure import PACKAGE
from reproduce.engine.host import machine
from reproduce.errors import UserError, say_once
from reproduce.settings import variable


def environment() -> dict[str, Any]:
    """Versions, commit, machine and time, for the provenance of a result."""
    from reproduce.engine.kernels import library

    versions = {package: metadata.version(package) for package in ("torch", "numpy", "pandas", "pyarrow")}
    versions |= {"python": sys.version.split()[0]}
    return {"versions": versions, "git": commit(), "machine": machine(), "compiled": library.how(), "date": now()}


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@cache
def commit() -> str:
    """Commit of the source, with "+" if a file of the package differs from it; outside its own repository
    `REPRODUCE_COMMIT`, else "unknown". UserError for a value of it that names no commit.

    Its own is one whose folder holds the package and that tracks it: not one around an installed copy or an unpacked
    archive. Results, tables and documents may differ: they change no number, and a workflow writes them as it goes.
    """
    try:
        top = _git("rev-parse", "--show-toplevel")
        if top and PACKAGE.parent.samefile(top) and _git("ls-files", "--", "__init__.py"):
            name = _git("describe", "--always", "--abbrev=12", "--exclude=*")
            return name + ("+" if _git("status", "--porcelain", "--", str(PACKAGE)) else "")
    except (OSError, ValueError, subprocess.SubprocessError):
        pass
    value = variable("REPRODUCE_COMMIT") or "unknown"
    if value == "unknown" and (PACKAGE.parent / ".git").exists():
        say_once(f"git does not say the commit of {PACKAGE.parent}: name it in REPRODUCE_COMMIT, for the provenance")
    if value != "unknown" and not re.fullmatch("[0-9a-f]{12,40}", value):
        raise UserError(f"REPRODUCE_COMMIT={value}: use what `git rev-parse HEAD` says where the code comes from")
    return value if value == "unknown" else value[:12]


def _git(*arguments: str) -> str:
    """The answer of git about the package's repository, whose code runs anyway, whoever its owner is."""
    command = ["git", "-c", f"safe.directory={PACKAGE.parent.resolve()}", "-C", str(PACKAGE), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
