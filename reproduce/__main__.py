"""The command line: `python -m reproduce COMMAND`. Every command is one module in `reproduce/commands`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from reproduce.commands import data, findings, list_, plan, render, replay, report, schedule, train, verify
from reproduce.errors import UserError

COMMANDS = (list_, plan, schedule, data, train, replay, render, verify, report, findings)


def parser() -> argparse.ArgumentParser:
    """The parser of all commands; a command module gives NAME, its docstring, `arguments(parser)` and `run(args)`."""
    top = argparse.ArgumentParser(
        prog="python -m reproduce",
        description="Reproduce the tables and figures of five federated-learning papers.",
        epilog="The whole workflow: snakemake --cores N (see README.md).",
    )
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in COMMANDS:
        about = (module.__doc__ or "").split("\n\n")
        sub = commands.add_parser(module.NAME, help=about[0].rstrip("."), description="\n\n".join(about))
        module.arguments(sub)
        sub.set_defaults(run=module.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status: 0, or 2 for an error that the user can mend (one line on stderr)."""
    args = parser().parse_args(argv)
    try:
        args.run(args)
        sys.stdout.flush()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of a pipe left early (`... | head`); Python's exit would complain once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
