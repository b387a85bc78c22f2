"""The command line: `reproduce COMMAND`, or `python -m reproduce COMMAND`. A command is a module in `reproduce/cli`."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from reproduce import __version__
from reproduce.cli import data, list_, partition, plan, play, render, replay, report, train, verify
from reproduce.errors import Stopped, UserError, unknown

COMMANDS = (list_, data, plan, partition, train, render, play, verify, report, replay)


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, like every other error."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; `{self.prog} -h` shows what there is")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            raise unknown("/".join(action.option_strings) or action.dest, value, action.choices)


def parser() -> argparse.ArgumentParser:
    """The parser of all commands; a command module gives NAME, its docstring, `arguments(parser)` and `run(args)`."""
    top = Parser(
        prog="reproduce",
        description="Reproduce the tables and figures of five federated-learning papers.",
        epilog="`snakemake --cores N` makes what is affordable of everything, and says first what the rest costs; "
        "`reproduce COMMAND -h` has more.",
    )
    top.add_argument("--debug", action="store_true", help="show where an unexpected error comes from")
    top.add_argument("--version", action="version", version=f"reproduce {__version__}")
    commands = top.add_subparsers(prog="reproduce", dest="command", metavar="COMMAND", required=True)
    for module in COMMANDS:
        about = (module.__doc__ or "").split("\n\n")[0]
        sub = commands.add_parser(module.NAME, help=about.rstrip("."), description=module.__doc__)
        module.arguments(sub)
        sub.set_defaults(run=module.run)
    return top


MEMORY = ("enough memory", "out of memory", "llocate memory", "bad_alloc")
"""Parts of the messages of torch, CUDA, the operating system and C++."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status, with one line on stderr if it is not 0.

    2: an error that the user can mend. 1: an error of the program (`--debug` shows its traceback). 128 + n: stopped by
    signal n.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed (`2>&-`): print would write to the other, a file take its number
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        if isinstance(stream := getattr(sys, name), io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # signs that a terminal does not have are spelled out
    words = list(sys.argv[1:] if argv is None else argv)
    if not words:
        parser().print_help()
        return 0
    if "--debug" in words:
        args = parser().parse_args(words)
        args.run(args)
        return 0
    try:
        args = parser().parse_args(words)
        args.run(args)
        sys.stdout.flush()
    except UserError as error:
        return _failed(f"error: {error}", 2)
    except Stopped as stopped:
        return _failed(str(stopped), 128 + stopped.number)
    except KeyboardInterrupt:
        return _failed("interrupted; what was finished is kept, and so is the latest checkpoint", 130)
    except BrokenPipeError:  # the reader of a pipe left early (`... | head`)
        _leave_stdout()
    except Exception as error:  # the last resort: nobody can act on a traceback
        message = " ".join(str(error).split())
        if isinstance(error, MemoryError) or any(word in message for word in MEMORY):
            return _failed(
                "error: there is not enough memory for this: ask for less at once, or use a larger machine", 2
            )
        if not isinstance(error, OSError):
            return _failed(f"error in the program: {type(error).__name__}: {message}; `--debug` shows where", 1)
        if error.filename is None:  # what could not be written is the output itself (`... > /dev/full`)
            _leave_stdout()
        return _failed(f"error: {error.filename or 'the output'}: {error.strerror or error}", 2)
    return 0


def _leave_stdout() -> None:
    """Points stdout at the null device, because Python's exit would else write the rest once more, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _failed(line: str, status: int) -> int:
    print(" ".join(line.splitlines()), file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
