"""What people get wrong on the command line: settings, names, numbers, places to write to. One row an input.

A row is tried in a folder with a finished table of smoke scale (`tests/test_inputs.py`); damaged files are in
`inputs_damage.py`.
"""

from __future__ import annotations

import contextlib
import os
import socket as socketlib
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


OTHER = "results/smoke/fedagrac/table1-cnn2.parquet"
"""Command -> what it writes under the name x."""


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


def pipe(name: str) -> Callable[[Path], object]:
    return lambda folder: os.mkfifo(_clear(folder / name))


def socket(name: str) -> Callable[[Path], object]:
    def prepare(here: Path) -> None:
        with socketlib.socket(socketlib.AF_UNIX) as made, contextlib.chdir(_clear(here / name).parent):
            made.bind(Path(name).name)  # whose whole path may be too long

    return prepare


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
    for command, ending in ((TRAIN, ".parquet"), (PARTITION, ".png"), (PARTITION, ".parquet")):
        for name, output, says, prepare in (
            ("a folder", f"there{ending}", "it is a folder; name a file", folder(f"there{ending}")),
            ("under a file", f"there/a{ending}", "name a file in a folder", file("there")),
            ("deep under a file", f"there/a/b/c{ending}", "name a file in a folder", file("there")),
            ("a name too long", "x" * 300 + ending, "File name too long", nothing),
            ("a path too long", f"{'d/' * 3000}a{ending}", "File name too long", nothing),
            ("a loop", f"loop/a{ending}", "name a file in a folder", link("loop", "loop")),
            ("a link to nowhere", f"there/a{ending}", "name a file in a folder", link("there", NEVER)),
            ("not writable", f"{NEVER}{ending}", "name a file in a folder", nothing),
            ("a folder of the kernel", f"/sys/a{ending}", "name a file in a folder", nothing),
            ("a pipe", f"pipe{ending}", "it is a device or a pipe", pipe(f"pipe{ending}")),
            ("a name with NUL", f"a\0b{ending}", "null", nothing),
        ):
            yield Bad(f"-o is {name} ({ending})", (*command, "-o", output), says, prepare)
        yield Bad(f"the disk is full ({ending})", (*command, "-o", f"a{ending}"), "no space left", full=True)
    yield Bad("-o is too long", (*PLAY, "-o", "x" * 300), "File name too long")
    for output in ("there/a", NEVER, "loop/a", "/sys/a"):
        prepare = link("loop", "loop") if output == "loop/a" else file("there")
        yield Bad("-o cannot be written to", (*PLAY, "-o", output), "cannot write", prepare)
    yield Bad("-o is empty", (*TRAIN, "-o", ""), "it is a folder")
    yield Bad("-o is this folder", (*TRAIN, "-o", "."), "it is a folder")
    yield Bad("-o is the root", (*TRAIN, "-o", "/"), "it is a folder")
    for output in ("", "a", "a.csv", ".", "/dev/stdout", ".parquet"):
        yield Bad("-o is no partition", (*PARTITION, "-o", output), "end its name in .parquet for the partition")
    for output in ("/dev/stdout", "/dev/stderr", "/dev/null", "/proc/self/fd/1", "Makefile", ".parquet", "a"):
        yield Bad("-o is no results file", (*TRAIN, "-o", output), "give a name that ends in .parquet")
    for output in ("/dev/null", "pipe"):
        yield Bad(f"-o {output}", (*PLAY, "-o", output), "cannot write", pipe("pipe"))


def places() -> Iterator[Bad]:
    """Folders of the project that cannot be written to."""
    wanted = {
        TRAIN: ("results", "results/smoke", "results/smoke/fedagrac"),
        RENDER: ("tables", "tables/smoke", "results/smoke/cells"),
        ("report", "--scale", "smoke"): ("report", "report/smoke"),
    }
    for command, names in wanted.items():
        for name in names:
            yield Bad(f"{name} is a file", command, "cannot write", file(name))
            yield Bad(f"{name} is a loop", command, "cannot write", link(name, Path(name).name))
            yield Bad(f"{name} is not writable", command, "cannot write", link(name, NEVER))
    for command in (TRAIN, RENDER, ("report", "--scale", "smoke")):
        yield Bad("the disk is full", command, "no space left", full=True)
    stem = TABLE.replace("/", "_")
    for name in (f"tables/smoke/{stem}.{e}" for e in ("md", "csv", "tex")):
        yield Bad(f"{name} is a folder", RENDER, "it is a folder", folder(name))
    for name in (f"results/smoke/cells/{stem}.csv", f"results/smoke/cells/{stem}.json"):
        yield Bad(f"{name} is a folder", RENDER, "it is a folder", folder(name))
    yield Bad(
        "the page is a folder", ("report", "--scale", "smoke"), "it is a folder", folder("report/smoke/index.html")
    )
    yield Bad(
        "the record of replays is a folder",
        ("replay", "--scale", "smoke"),
        "replay.csv",
        folder("results/smoke/replay.csv"),
    )
    yield Bad("documents where there are none", ("report", "--docs"), "docs/claims.md: No such file")


def settings() -> Iterator[Bad]:
    """Variables that make no sense, for commands that read them."""
    readers = TRAIN, ("plan", "fedagrac", "--scale", "smoke"), ("data",)
    numbers = {
        "THREADS": ("", "0", "-1", "x", "1.5", "1e3", "nan", "1025", "9" * 30, "1:30"),
        "CHECKPOINT": ("", "x", "-1", "nan", "inf", "-inf", "1e999"),
        "TO_TARGET": ("", "true", "2"),
        "DEVICE": ("", "tpu", "CUDA", "cpu "),
        "PRECISION": ("", "half", "fp16", "tf32"),
    }
    for name, values in numbers.items():
        for i, value in enumerate(values):
            yield Bad(f"{name}={value}", readers[i % 3], f"REPRODUCE_{name}=", env={f"REPRODUCE_{name}": value})
    for i, value in enumerate(
        ("", "x", "0,x", "0,,1", "0,1,", "1.5", "-1", f"{2**32}", "9" * 40, "0,0", "7,8,7", "0 1")
    ):
        yield Bad(f"SEEDS={value}", readers[i % 2], "REPRODUCE_SEEDS=", env={"REPRODUCE_SEEDS": value})
    for value in ("", "x", "-1", "nan", "-inf"):
        yield Bad(f"BUDGET={value}", readers[1], "REPRODUCE_BUDGET=", env={"REPRODUCE_BUDGET": value})
    yield Bad("ISA=avx1024", TRAIN, "did you mean avx512", env={"REPRODUCE_ISA": "avx1024"})
    yield Bad("CC with an open quote", TRAIN, "CC=", env={"CC": "'gcc"})
    for name in ("STORE", "DATA"):
        for command in readers:
            for what, value, prepare in (
                ("a file", "there", file("there")),
                ("a loop", "there", link("there", "there")),
                ("empty", "", nothing),
                ("under a file", "there/store", file("there")),
                ("a name too long", "x" * 300, nothing),
                ("a device", "/dev/null", nothing),
            ):
                variable = f"REPRODUCE_{name}"
                yield Bad(f"{name} is {what}", command, f"{variable}=", prepare, {variable: value})
    yield Bad("STORE is not writable", TRAIN, "cannot write", env={"REPRODUCE_STORE": NEVER})


def names() -> Iterator[Bad]:
    """Names that are not there, everywhere where a name is asked for; the near ones are suggested."""
    slots: tuple[tuple[tuple[str, ...], str, str], ...] = (
        (("list", "--scale", "{}"), "scale", "papre"),
        (("plan", "fedagrac", "--scale", "{}"), "scale", "smok"),
        (("train", "--scale", "{}", "fedagrac", JOB), "scale", "smke"),
        (("replay", "--scale", "{}"), "scale", "papr"),
        (("render", "--scale", "{}", TABLE), "scale", "smoek"),
        (("verify", "--scale", "{}"), "scale", "paperr"),
        (("report", "--scale", "{}"), "scale", "Smoke"),
        (("plan", "{}"), "", "fedasc"),
        (("replay", "--scale", "smoke", "{}"), "", "dynamic-init"),
        (("train", "--scale", "smoke", "{}", JOB), "paper", "fedagarc"),
        (("train", "--scale", "smoke", "fedagrac", "{}"), "job", "table1lr"),
        (("render", "--scale", "smoke", "{}"), "", "fedagrac/tabel1"),
        (("data", "get", "{}"), "data set", "mnits"),
        (("play", "fednova", "--on", "{}", "--scale", "smoke"), "", "fedagrac-stesp"),
        (("play", "fednova", "--on", "fedagrac-steps", "--scale", "{}"), "scale", "smkoe"),
        (("partition", "{}"), "", "fedagrac-stesp"),
        (("partition", "fedagrac-steps", "--scale", "{}"), "scale", "smkoe"),
        (("{}",), "command", "trian"),
    )
    others = ("", "..", "../../etc/passwd", "fedagrac/../fedagrac/table1", "two\nlines", "ü", "x" * 5000, "a\0b", "*")
    for command, kind, typo in slots:
        yield Bad("a typo", tuple(w.format(typo) for w in command), "did you mean")
        for other in others:
            yield Bad(f"unknown name {other[:30]}", tuple(w.format(other) for w in command), f"unknown {kind}")


def numbers() -> Iterator[Bad]:
    """Numbers out of range, and words that are none."""
    for value in ("-1", f"{2**32}", "x", "1.5"):
        yield Bad(f"--seed {value}", (*PARTITION, f"--seed={value}"), "--seed")
    for options in ("mu=[1]", "mu={}", "mu={1: [2]}", "mu=(1, [2])", "mu=nan", "mu=1e999", "1", "**{}"):
        words = (PLAY[0], f"fedprox({options})", *PLAY[2:])
        yield Bad(f"fedprox({options})", words, "is a number" if "999" in options else "options are name=value")
    for option, value in (("rounds", "0"), ("rounds", "-3"), ("rounds", "x"), ("minutes", "0"), ("minutes", "-1"),
                          ("minutes", "nan"), ("minutes", "soon")):  # fmt: skip
        yield Bad(f"--{option} {value}", ("replay", "--scale", "smoke", f"--{option}={value}"), option.rstrip("s"))


def arguments() -> Iterator[Bad]:
    """Words that are missing, too many, or unknown."""
    for command in (
        ("--json",), ("--scale",), ("list", "--scale"), ("list", "more"), ("plan", "fedagrac", "more"),
        ("plan", "--calibrate"), ("data", "fetch", "mnist"), ("data", "get"), ("train", "--scale", "smoke"),
        ("train",), ("train", "--scale", "smoke", "fedagrac"), (*TRAIN, "-o"), (*TRAIN, "--threads", "2"),
        ("render",), ("render", "--scale", "smoke"), ("render", "--scale", "smoke", TABLE, "more"),
        ("verify", "--scale", "smoke", "--jsn"), ("report", "--scale", "smoke", "--docs", "--open"), ("partition",),
    ):  # fmt: skip
        yield Bad("wrong words", command, "")
    for asked in ("--list", "--matrix", "--all"):
        yield Bad("no alias is at paper scale", ("play", asked, "--scale", "paper"), "name a panel, --on PAPER/PANEL")
    yield Bad("no `get`", ("data", "mnist"), "`data get mnist` fetches")
    yield Bad("`get` misspelt", ("data", "gett", "mnist"), "`data get mnist` fetches")
    yield Bad("neither `get` nor a data set", ("data", "gett"), "`data get NAME` fetches")
    yield Bad("not Parquet", (*TRAIN, "-o", "x.csv"), ".parquet")
    yield Bad("a folder for a name", (*PLAY, "-o", "."), "is a folder")
    yield Bad("an algorithm as a benchmark", ("play", "--on", "sessions", "fedprox"), "name it before --on")
    yield Bad("rounds of an alias", ("play", "fednova", "--on", "fedagrac-steps@3"), "fedagrac/fig5-cnn2-10@20")
    yield Bad(
        "no results at all",
        ("report", "--scale", "paper"),
        "nothing of paper was run here yet: `snakemake paper --cores 2`",
    )
    yield Bad("panels of nobody", ("play", "--panels", "fedax"), "fedacs")
    yield Bad("an embedded set", ("data", "get", "digits"), "nothing to get")
    yield Bad("an algorithm's partition", ("partition", "fedprox"), "fedprox is an algorithm, not a benchmark")
    yield Bad("nothing to split", ("partition", "fedacs/fig7-static"), "there are no data to split")
    yield Bad(
        "a set that is missing",
        ("partition", "fedacs/mnist-static", "--scale", "paper"),
        "data set mnist: there is no ",
    )
    yield Bad("data that is nowhere", ("train", "--scale", "reduced", "fedacs", "image-blobs"), "unknown job")
    yield Bad(
        "the set is missing", ("train", "--scale", "paper", "fedagrac", "fig4-lr-async--fedagrac"), "data set a9a"
    )


ROWS = tuple(row for rows in (outputs, places, settings, names, numbers, arguments) for row in rows())
