"""The rates of this machine in the store: read, or measured and written. Another machine's are never used."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reproduce import files
from reproduce.engine.hardware import machine
from reproduce.engine.rates import ASSUMED, Anchor, Rates
from reproduce.errors import UserError
from reproduce.settings import Settings

LIMIT = 600.0
"""Seconds that a measurement may take."""


def rates(settings: Settings) -> Rates:
    """The rates that were measured on this machine, else `ASSUMED`; a file that cannot be read counts as none."""
    if settings.device != "cpu":
        return ASSUMED
    try:
        content = json.loads(files.read_text(_file(settings)))
        return _rates(content) if content["machine"] == machine() else ASSUMED
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ASSUMED


def calibrate(settings: Settings) -> Rates:
    """Measure this machine and keep the rates; some seconds.

    Raises UserError if the measurement fails or cannot be kept.
    """
    files.check_writable(_file(settings))
    print("measuring this machine (once, some seconds)", file=sys.stderr)
    command = [sys.executable, "-m", "reproduce.runs.speed.measure"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
        if run.returncode:
            raise ValueError((run.stderr.strip().splitlines() or [f"exit status {run.returncode}"])[-1])
        date = datetime.now(UTC).date().isoformat()
        content = {"machine": machine(), "date": date, "rates": json.loads(run.stdout)}
        measured = _rates(content)
    except subprocess.TimeoutExpired:
        raise UserError(f"measuring this machine took more than {LIMIT:.0f} s: use plan --no-calibrate") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"this machine could not be measured ({error}): use plan --no-calibrate") from error
    write(_file(settings), content)
    return measured


def write(path: Path, content: Any) -> None:
    """JSON under `path`, complete or not at all; raises UserError where nothing can be written."""
    try:
        files.write_text(path, json.dumps(content, indent=1))
    except UserError as error:
        raise UserError(f"{error}, or use plan --no-calibrate") from error


def _file(settings: Settings) -> Path:
    name = hashlib.sha256(json.dumps(machine(), sort_keys=True).encode()).hexdigest()[:16]
    return settings.store / "machines" / f"{name}.json"


def _rates(content: Any) -> Rates:
    """The rates of a file; raises ValueError, KeyError, TypeError or AttributeError if it is not one."""
    found, here = content["rates"], content["machine"]
    kinds = {kind: tuple(Anchor(**a) for a in anchors) for kind, anchors in found["kinds"].items()}
    if kinds.keys() != ASSUMED.kinds.keys():
        raise ValueError("other kinds of models")
    source = f"measured here ({here['processor']}, {here['cores']} cores, {content['date']})"
    return Rates(kinds, found["start"], found["run"], found["round"], found["quadratic"], source)
