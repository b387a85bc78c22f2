"""The compiled parts of the engine: C sources, built by the machine's compiler when they are first needed.

One source serves every vector unit: a *level* names the instructions that a library may use, and with them the width of
a vector and the number of its registers (vectors.h). The machine's level is what torch finds; REPRODUCE_ISA asks for a
lower one. Results depend on the level, not on the processor.

Libraries are kept under names that change with the sources, the compiler and the level, and that end in a checksum, in
the package's own folder or the store. Without a compiler other strategies take over.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reproduce import files
from reproduce.errors import UserError
from reproduce.settings import settings

HERE = Path(__file__).parent
SOURCES = tuple(HERE / name for name in ("convnet.c", "channels.c", "softmax.c"))
HEADERS = tuple(HERE / name for name in ("vectors.h", "network.h", "linear.h"))
FLAGS = ("-O3", "-ffp-contract=fast", "-std=gnu11", "-shared", "-fPIC", "-w")
EXACT = ("-O2", "-ffp-contract=off", "-std=gnu11", "-shared", "-fPIC", "-w")
TYPES = {torch.float32: ("float", "int32_t", "-DSINGLE"), torch.float64: ("double", "int64_t")}
PATIENCE = 1800
"""Seconds after which a compiler counts as hanging: under heavy load it may take some minutes."""


@dataclass(frozen=True)
class Level:
    """A set of vector instructions: bytes of a vector, as in vectors.h, and the compiler's options for it."""

    name: str
    machine: str
    width: int
    flags: tuple[str, ...]


LEVELS = {
    level.name: level
    for level in (
        Level("sse2", "x86_64", 16, ("-msse2",)),
        Level("avx2", "x86_64", 32, ("-mavx2", "-mfma")),
        Level("avx512", "x86_64", 64, ("-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mfma")),
        Level("neon", "aarch64", 16, ()),
    )
}
"""Lowest first, of each machine."""
FOUND = {("x86_64", "AVX512"): "avx512", ("x86_64", "AVX2"): "avx2", ("x86_64", "DEFAULT"): "sse2"}
"""Level of a machine by torch's name for its vector unit."""
LINE = 64
"""Bytes of the widest vector: rows padded to it suit every level."""


class Descent(ctypes.Structure):
    """The struct of that name in vectors.h: a local run as `Rule` describes it."""

    _fields_ = (
        *((name, ctypes.c_double) for name in ("rate", "momentum", "decay", "mu")),
        *((name, ctypes.c_int64) for name in ("size", "first_count")),
        *((name, ctypes.c_void_p) for name in ("correction", "anchor", "velocity", "total", "first")),
    )


def addresses(values: Sequence[int]) -> Any:
    """An array of pointers."""
    return (ctypes.c_void_p * len(values))(*values)


def call(function: Any, *arguments: Any) -> int:
    """Calls C on whole numbers (int64_t), tensors and arrays (where their numbers begin), and what ctypes made."""

    def handed(value: Any) -> Any:
        if isinstance(value, int):
            return ctypes.c_int64(value)
        if isinstance(value, Tensor):
            return ctypes.c_void_p(value.data_ptr())
        return ctypes.c_void_p(value.__array_interface__["data"][0]) if isinstance(value, np.ndarray) else value

    return function(*map(handed, arguments))  # type: ignore[no-any-return]


def aligned(size: int, dtype: torch.dtype) -> Tensor:
    """Zeros that start at a multiple of the widest vector, as the vectors of the C sources must."""
    memory = torch.zeros(size + LINE // dtype.itemsize, dtype=dtype)
    skip = -memory.data_ptr() % LINE // dtype.itemsize
    return memory[skip : skip + size]


# --- levels -----------------------------------------------------------------------------------------------------------


@cache
def levels() -> tuple[str, ...]:
    """The levels that this machine can execute, lowest first; empty on a machine that the sources do not know."""
    machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    names = [level.name for level in LEVELS.values() if level.machine == machine]
    best = FOUND.get((machine, torch.backends.cpu.get_cpu_capability()), names[0] if names else "")
    return tuple(names[: names.index(best) + 1]) if names else ()


def level() -> Level | None:
    """The level in force: the machine's highest, or REPRODUCE_ISA; UserError if that cannot be."""
    wanted, here = os.environ.get("REPRODUCE_ISA"), levels()
    if not wanted:
        return LEVELS[here[-1]] if here else None
    if wanted not in here:
        raise UserError(f"REPRODUCE_ISA={wanted}: this machine can execute {', '.join(here) or 'none of the levels'}")
    return LEVELS[wanted]


# --- building ---------------------------------------------------------------------------------------------------------


def available(dtype: torch.dtype) -> bool:
    """Returns whether there can be compiled code for this type of number. Nothing is built to know it."""
    return bool(dtype in TYPES and level() and compiler())


def library(dtype: torch.dtype) -> Any:
    """The C sources for one type of number at the level in force, built on first use; UserError if that fails."""
    here, command, (real, integer, *more) = level(), compiler(), TYPES[dtype]
    assert here is not None
    assert command is not None
    options = (*FLAGS, *here.flags, f"-DREAL={real}", f"-DBITS={integer}", *more)
    return _loaded(f"kernels-{real}-{here.name}", SOURCES, HEADERS, options, command)


def exact(source: Path) -> Any:
    """A C source whose float64 arithmetic is that of Python, to the bit; None without a compiler."""
    command = compiler()
    return _loaded(source.stem, (source,), (), EXACT, command) if command else None


def how() -> dict[str, str]:
    """Level and compiler of the compiled parts, for the provenance; "none" where there are none."""
    here, command = level(), compiler()
    return {"isa": here.name if here and command else "none", "compiler": version(command) if command else "none"}


def compiler() -> tuple[str, ...] | None:
    """The C compiler as a command: $CC, or cc, gcc, clang, whichever is found first; CC=none does without."""
    return _compiler(os.environ.get("CC"))


@cache
def _compiler(wanted: str | None) -> tuple[str, ...] | None:
    if wanted == "none":
        return None
    commands = [shlex.split(wanted)] if wanted else [["cc"], ["gcc"], ["clang"]]
    compilers = [(path, *options) for program, *options in filter(None, commands) if (path := shutil.which(program))]
    if compilers:
        return compilers[0]
    reason = f"CC={wanted}: there is no such program" if wanted else "there is no C compiler (cc, gcc, clang)"
    print(f"{reason}; other strategies take over (slower; CC names a compiler)", file=sys.stderr)
    return None


@cache
def version(command: tuple[str, ...]) -> str:
    """The first line that a compiler says of itself."""
    answer = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=PATIENCE).stdout
    return next(iter(answer.splitlines()), "unknown")


@cache
def _loaded(
    name: str, sources: Sequence[Path], headers: Sequence[Path], options: Sequence[str], command: tuple[str, ...]
) -> Any:
    """The library of the sources, built unless it is there; UserError if that cannot be."""
    text, failed = b"".join(file.read_bytes() for file in (*headers, *sources)), []
    try:
        key = hashlib.sha256(text + "\0".join((*options, *command, version(command))).encode()).hexdigest()
        known = f"{name}-{key[:16]}"
        for file in (file for folder in _folders() for file in _whole(folder, known)):
            with contextlib.suppress(OSError):  # of a disk from which nothing is executed
                return ctypes.CDLL(str(file))
        print("building kernels (once, some seconds)", file=sys.stderr)
        with tempfile.TemporaryDirectory() as private:  # from which it is loaded once, where no other folder takes it
            for folder in (*_folders(), Path(private)):
                try:
                    return ctypes.CDLL(str(_build(folder, known, sources, (*command, *options))))
                except (OSError, subprocess.CalledProcessError, UserError) as error:
                    failed.append(error)
        raise failed[-1]
    except (OSError, subprocess.SubprocessError, UserError) as error:
        mend = "name another compiler (CC), or do without (CC=none, slower)"
        raise UserError(f"{command[0]} made no {name}: {_reason(error)}; {mend}") from error


def _whole(folder: Path, known: str) -> Iterator[Path]:
    """The libraries of a name here whose contents are those that they were built with; others are taken away."""
    for file in sorted(folder.glob(f"{known}-*.so")):
        if file.stem.endswith(f"-{_sum(file.read_bytes())}"):
            yield file
        else:
            print(f"{file} is damaged: it is built anew", file=sys.stderr)
            with contextlib.suppress(OSError):
                file.unlink()


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _build(folder: Path, known: str, sources: Sequence[Path], call: Sequence[str]) -> Path:
    """Compile the sources into a file of `folder`, which appears when it is whole and on the disk, under a name that
    ends in its checksum. Of processes that want the same, one builds and the others wait."""
    with files.locked(folder), tempfile.TemporaryDirectory(dir=folder) as aside:
        if library := next(_whole(folder, known), None):
            return library
        built = Path(aside) / "library.so"
        whole = [*call, "-o", str(built), *map(str, sources), "-lm"]
        subprocess.run(whole, check=True, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
        content = built.read_bytes()
        return files.write(folder / f"{known}-{_sum(content)}.so", lambda to: to.write(content))


def _reason(error: Exception) -> str:
    """The reason of a failed build, in one line."""
    if isinstance(error, subprocess.TimeoutExpired):
        return f"no answer within {PATIENCE} s"
    if isinstance(error, subprocess.CalledProcessError):
        lines = [line for line in str(error.stderr).splitlines() if "error" in line.lower()]
        return lines[0].strip() if lines else f"exit status {error.returncode}"
    return str(error)


def _folders() -> Iterator[Path]:
    """The folders in which libraries are kept: beside the package's compiled Python files, or else in the store.

    What lies there is executed: a folder to which everybody may write, or a store of another user, is not taken.
    """
    for folder in (HERE / "__pycache__", settings().store / "kernels"):
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            status, beside = folder.stat(), folder.parent == HERE
            if not status.st_mode & stat.S_IWOTH and (beside or status.st_uid == os.getuid()):
                yield folder
