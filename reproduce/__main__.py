"""The command line: `python -m reproduce COMMAND`. Every command is one module in `reproduce/commands`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from reproduce.commands import data, findings, list_, plan, play, render, replay, report, schedule, train, verify
from reproduce.errors import Stopped, UserError

COMMANDS = (list_, plan, play, schedule, data, train, replay, render, verify, report, findings)


def parser() -> argparse.ArgumentParser:
    """The parser of all commands; a command module gives NAME, its docstring, `arguments(parser)` and `run(args)`."""
    top = argparse.ArgumentParser(
        prog="python -m reproduce",
        description="Reproduce the tables and figures of five federated-learning papers.",
        epilog="The whole workflow: snakemake --cores N (see README.md).",
    )
    top.add_argument("--debug", action="store_true", help="show where an unexpected error comes from")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in COMMANDS:
        about = (module.__doc__ or "").split("\n\n")
        sub = commands.add_parser(module.NAME, help=about[0].rstrip("."), description="\n\n".join(about))
        module.arguments(sub)
        sub.set_defaults(run=module.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status, with one line on stderr if it is not 0.

    2: an error that the user can mend. 1: an error of the program (`--debug` shows its traceback). 128 + n: stopped by
    signal n.
    """
    args = parser().parse_args(argv)
    if args.debug:
        args.run(args)
        return 0
    try:
        args.run(args)
        sys.stdout.flush()
    except UserError as error:
        return _failed(f"error: {error}", 2)
    except Stopped as stopped:
        return _failed(str(stopped), 128 + stopped.number)
    except KeyboardInterrupt:
        return _failed("interrupted; what was finished is kept, and so is the latest checkpoint", 130)
    except BrokenPipeError:  # the reader of a pipe left early (`... | head`); Python's exit would complain once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        return _failed(f"error: {error.filename or 'a file'}: {error.strerror or error}", 2)
    except Exception as error:  # the last resort: nobody can act on a traceback
        said = " ".join(str(error).split())
        return _failed(f"error in the program: {type(error).__name__}: {said}; `--debug` shows where", 1)
    return 0


def _failed(line: str, status: int) -> int:
    print(line, file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
