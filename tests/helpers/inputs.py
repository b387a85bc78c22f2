"""What people get wrong on the command line: settings, names, numbers, places to write to. One row an input.

A row is tried in a folder with a finished table of smoke scale (`tests/cli/test_inputs.py`); damaged files are in
`inputs_damage.py`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

TABLE = "fedagrac/table1"
JOB = "table1-lr"
TRAIN = ("train", "--scale", "smoke", "fedagrac", JOB)
RENDER = ("render", "--scale", "smoke", TABLE)
PARTITION = ("partition", "fedagrac-steps", "--scale", "smoke")
PLAY = ("play", "fednova", "--on", "fedagrac-steps", "--scale", "smoke")


def nothing(folder: Path) -> None:
    pass


@dataclass(frozen=True)
class Bad:
    """One input. name: what is wrong. command: its words. says: what the error must contain. prepare: done in the
    folder before; patch: likewise, for what is declared. full: the disk takes no byte more. status: the exit status."""

    name: str
    command: tuple[str, ...]
    says: str
    prepare: Callable[[Path], object] = nothing
    env: Mapping[str, str] = field(default_factory=dict)
    full: bool = False
    patch: Callable[[Path, pytest.MonkeyPatch], object] | None = None
    status: int = 2

    def __str__(self) -> str:
        command = " ".join(word[:20] for word in self.command)
        return f"{self.name}: {command}".encode("unicode_escape").decode()


# --- what lies in the way ---------------------------------------------------------------------------------------------


def file(name: str) -> Callable[[Path], object]:
    return lambda folder: _clear(folder / name).write_text("in the way")


def folder(name: str) -> Callable[[Path], object]:
    return lambda here: _clear(here / name).mkdir()


def link(name: str, target: str) -> Callable[[Path], object]:
    return lambda folder: _clear(folder / name).symlink_to(target)


def _clear(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        path.rename(path.with_name(f"{path.name} before"))
    else:
        path.unlink(missing_ok=True)
    return path


NEVER = "/proc/nothing"
"""Where not even root can write."""


# --- rows -------------------------------------------------------------------------------------------------------------


def outputs() -> Iterator[Bad]:
    """Places for `-o` that cannot be written to: said before any training or simulation."""
    for command, ending in ((TRAIN, ".parquet"), (PARTITION, ".parquet")):
        for name, output, says, prepare in (
            ("a folder", f"there{ending}", "it is a folder; name a file", folder(f"there{ending}")),
            ("under a file", f"there/a{ending}", "name a file in a folder", file("there")),
            ("a name too long", "x" * 300 + ending, "File name too long", nothing),
            ("a link to nowhere", f"there/a{ending}", "name a file in a folder", link("there", NEVER)),
            ("not writable", f"{NEVER}{ending}", "name a file in a folder", nothing),
        ):
            yield Bad(f"-o is {name} ({command[0]})", (*command, "-o", output), says, prepare)
        yield Bad(f"the disk is full ({command[0]})", (*command, "-o", f"a{ending}"), "that large here", full=True)
    for output in ("there/a", NEVER):
        yield Bad("-o cannot be written to", (*PLAY, "-o", output), "cannot write", file("there"))
    for output in ("", "."):
        yield Bad("-o is a folder", (*TRAIN, "-o", output), "it is a folder")
    for output in ("a", "a.csv", ".parquet"):
        yield Bad("-o is no partition", (*PARTITION, "-o", output), "give a name that ends in .parquet")
    for output in ("/dev/stdout", "a"):
        yield Bad("-o is no results file", (*TRAIN, "-o", output), "give a name that ends in .parquet")


def places() -> Iterator[Bad]:
    """Folders and files of the project that cannot be written to."""
    report = ("report", "--scale", "smoke")
    for command, name in ((TRAIN, "results/smoke"), (RENDER, "tables/smoke"), (report, "report/smoke")):
        yield Bad(f"{name} is a file", command, "cannot write", file(name))
        yield Bad(f"{name} is not writable", command, "cannot write", link(name, NEVER))
        yield Bad("the disk is full", command, "that large here", full=True)
    stem = TABLE.replace("/", "_")
    for name in (f"tables/smoke/{stem}.md", f"results/smoke/cells/{stem}.csv", f"results/smoke/cells/{stem}.json"):
        yield Bad(f"{name} is a folder", RENDER, "it is a folder", folder(name))
    yield Bad("the page is a folder", report, "it is a folder", folder("report/smoke/index.html"))
    record = folder("results/smoke/replay.csv")
    yield Bad("the record of replays is a folder", ("replay", "--scale", "smoke"), "replay.csv", record)
    yield Bad("documents where there are none", ("report", "--docs"), "docs/claims.md: No such file")


def settings() -> Iterator[Bad]:
    """Variables that make no sense, for commands that read them."""
    readers = TRAIN, ("plan", "fedagrac", "--scale", "smoke"), ("data",)
    numbers = {
        "THREADS": ("", "0", "-1", "x", "1.5", "1025"),
        "CHECKPOINT": ("", "x", "-1", "nan", "inf"),
        "TO_TARGET": ("true", "2"),
        "DEVICE": ("", "tpu", "CUDA"),
        "PRECISION": ("", "half", "tf32"),
    }
    for name, values in numbers.items():
        for i, value in enumerate(values):
            yield Bad(f"{name}={value}", readers[i % 3], f"REPRODUCE_{name}=", env={f"REPRODUCE_{name}": value})
    for i, value in enumerate(("", "x", "0,,1", "1.5", "-1", f"{2**32}", "7,8,7", "0 1")):
        yield Bad(f"SEEDS={value}", readers[i % 2], "REPRODUCE_SEEDS=", env={"REPRODUCE_SEEDS": value})
    for value in ("", "x", "-1", "nan"):
        yield Bad(f"BUDGET={value}", readers[1], "REPRODUCE_BUDGET=", env={"REPRODUCE_BUDGET": value})
    yield Bad("ISA=avx1024", TRAIN, "this machine can execute", env={"REPRODUCE_ISA": "avx1024"})
    for name in ("STORE", "DATA"):
        variable = f"REPRODUCE_{name}"
        for what, value in (("a file", "there"), ("empty", ""), ("under a file", "there/store")):
            yield Bad(f"{name} is {what}", TRAIN, f"{variable}=", file("there"), {variable: value})
    yield Bad("STORE is not writable", TRAIN, "cannot write", env={"REPRODUCE_STORE": NEVER})


def names() -> Iterator[Bad]:
    """Names that are not there, everywhere where a name is asked for; the near ones are suggested."""
    slots: tuple[tuple[tuple[str, ...], str], ...] = (
        (("list", "--scale", "{}"), "papre"),
        (("plan", "{}"), "fedasc"),
        (("replay", "--scale", "smoke", "{}"), "dynamic-init"),
        (("train", "--scale", "smoke", "{}", JOB), "fedagarc"),
        (("train", "--scale", "smoke", "fedagrac", "{}"), "table1lr"),
        (("render", "--scale", "smoke", "{}"), "fedagrac/tabel1"),
        (("data", "get", "{}"), "mnits"),
        (("play", "fednova", "--on", "{}", "--scale", "smoke"), "fedagrac-stesp"),
        (("partition", "{}"), "fedagrac-stesp"),
    )
    for command, typo in slots:
        yield Bad("a typo", tuple(w.format(typo) for w in command), "did you mean")
    for other in ("", "../../etc/passwd", "two\nlines", "ü", "a\0b"):
        yield Bad(f"unknown name {other}", ("render", "--scale", "smoke", other), "unknown ")


def arguments() -> Iterator[Bad]:
    """Numbers out of range; words that are missing, too many, or unknown."""
    for value in ("-1", f"{2**32}", "x"):
        yield Bad(f"--seed {value}", (*PARTITION, f"--seed={value}"), "--seed")
    for command in (
        ("--scale",), ("list", "more"), ("data", "get"), ("train",), ("train", "--scale", "smoke", "fedagrac"),
        (*TRAIN, "-o"), (*TRAIN, "--threads", "2"), ("render", "--scale", "smoke"), ("partition",),
        ("verify", "--scale", "smoke", "--jsn"),
    ):  # fmt: skip
        yield Bad("wrong words", command, "")
    yield Bad("no alias is at paper scale", ("play", "--all", "--scale", "paper"), "name an algorithm and a benchmark")
    yield Bad("no `get`", ("data", "mnist"), "unknown action 'mnist'; known: get")
    yield Bad("an algorithm as a benchmark", ("play", "--on", "sessions", "fedprox"), "name it before --on")
    nothing_run = "nothing of paper was run here yet: `snakemake paper --cores 2`"
    yield Bad("no results at all", ("report", "--scale", "paper"), nothing_run)
    yield Bad("an embedded set", ("data", "get", "digits"), "nothing to get")
    yield Bad("nothing to split", ("partition", "fedacs/fig7-static"), "there are no data to split")
    absent = ("train", "--scale", "paper", "fedagrac", "fig4-lr-async--fedagrac")
    yield Bad("the set is missing", absent, "data set a9a")


ROWS = tuple(row for rows in (outputs, places, settings, names, arguments) for row in rows())
