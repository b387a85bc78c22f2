"""The compiled parts of the engine: C sources, built by the machine's compiler when they are first needed.

The library is kept beside the package's compiled Python files, under a name that changes with the sources, the compiler
and the processor. Without a compiler other strategies take over, and the results' provenance says so.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from reproduce.errors import UserError

HERE = Path(__file__).parent
SOURCES = (HERE / "convnet.c", HERE / "softmax.c")
FLAGS = ("-O3", "-march=native", "-ffp-contract=fast", "-std=gnu11", "-shared", "-fPIC", "-w")
TYPES = {torch.float32: ("float", "int32_t", "-DSINGLE"), torch.float64: ("double", "int64_t")}
WIDTH = 64
"""Bytes of a vector, as in vectors.h."""


class Run(ctypes.Structure):
    """The struct of that name in vectors.h: a local run as `Rule` describes it."""

    _fields_ = (
        *((name, ctypes.c_double) for name in ("rate", "momentum", "decay", "mu")),
        *((name, ctypes.c_int64) for name in ("size", "first_count")),
        *((name, ctypes.c_void_p) for name in ("correction", "anchor", "velocity", "total", "first")),
    )


def addresses(values: Sequence[int]) -> Any:
    """An array of pointers."""
    return (ctypes.c_void_p * len(values))(*values)


def aligned(size: int, dtype: torch.dtype) -> Tensor:
    """Zeros that start at a multiple of a vector, as the vectors of the C sources must."""
    lanes = WIDTH // dtype.itemsize
    memory = torch.zeros(size + lanes, dtype=dtype)
    skip = -memory.data_ptr() % WIDTH // dtype.itemsize
    return memory[skip : skip + size]


def available(dtype: torch.dtype) -> bool:
    """Is there a compiler, and code for this type of number?"""
    return dtype in TYPES and compiler() is not None


@cache
def compiler() -> str | None:
    """The C compiler: $CC, or cc, gcc, clang, whichever is found first; CC=none does without."""
    names = [os.environ["CC"]] if os.environ.get("CC") else ["cc", "gcc", "clang"]
    return next((path for name in names if (path := shutil.which(name))), None)


@cache
def library(dtype: torch.dtype) -> Any:
    """The C sources for one type of number, built on first use; processes that build them at once do no harm."""
    cc = compiler()
    assert cc is not None
    real, integer, *more = TYPES[dtype]
    target = subprocess.run([cc, "-march=native", "-dM", "-E", "-x", "c", os.devnull], capture_output=True)
    sources = b"".join(file.read_bytes() for file in (HERE / "vectors.h", *SOURCES))
    key = hashlib.sha256(sources + target.stdout + " ".join(FLAGS).encode()).hexdigest()[:16]
    name = f"kernels-{real}-{key}.so"
    for folder in (HERE / "__pycache__", Path(tempfile.gettempdir()) / f"reproduce-{os.getuid()}"):
        file = folder / name
        if file.exists():
            return ctypes.CDLL(str(file))
        if os.access(folder if folder.exists() else folder.parent, os.W_OK):
            break
    folder.mkdir(exist_ok=True)
    print("building the compiled kernels (once, some seconds)", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=folder) as aside:
        built = Path(aside) / name
        types = (f"-DREAL={real}", f"-DBITS={integer}", *more)
        command = [cc, *FLAGS, *types, "-o", str(built), *map(str, SOURCES), "-lm"]
        if subprocess.run(command).returncode:
            raise UserError(f"{cc} could not build the compiled kernels: set CC to another compiler, or to none")
        built.replace(file)
    return ctypes.CDLL(str(file))
