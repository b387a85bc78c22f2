"""Errors that a user can act on: one sentence that says what is wrong and what to do."""

import difflib
import sys
from collections.abc import Iterable
from functools import cache

SHOWN = 12
"""How many known names an error lists when none is near."""


def check_platform() -> None:
    """End with status 2, in a line, on Windows, which has neither the locks nor the signals that are needed."""
    if sys.platform == "win32":
        print("error: reproduce runs on Linux and macOS; on Windows install and start it in WSL", file=sys.stderr)
        sys.exit(2)


class UserError(Exception):
    """Wrong input or environment; the command line prints the message alone and exits with status 2."""


class OwnCodeError(UserError):
    """A fault of code of the user's own, found while it ran; what else is trained is not touched by it."""


class Stopped(Exception):
    """A training that was asked to stop by a signal, and did; `number` is the signal's."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number = number


class MissingData(UserError):
    """A data set that is not there; `needs` names it, so that the plan can leave the panel out."""

    def __init__(self, needs: str, message: str) -> None:
        super().__init__(f"{message}; smoke scale needs no data set")
        self.needs = needs


@cache
def say_once(line: str) -> None:
    """Prints a note on stderr, once a process: what people should know, and what stops nothing."""
    print(line, file=sys.stderr)


def unknown(kind: str, name: str, known: Iterable[str]) -> UserError:
    """The error for an unknown `name` of a `kind` ('data set', 'artifact', ...), with the nearest known names."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    more = f", ... and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known[:SHOWN])}{more}"
    return UserError(f"unknown {kind} '{name}'; {hint}")
