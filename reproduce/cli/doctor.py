"""Check this machine and installation, a line each, and say what to do about what is amiss."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from reproduce import __version__
from reproduce.declare.experiment import PACKAGE
from reproduce.text import fill, paint

NAME = "doctor"
ROOM = 5e9
"""Free bytes that decoded data, checkpoints and results of all scales need."""


def arguments(parser: argparse.ArgumentParser) -> None:
    pass


def run(args: argparse.Namespace) -> None:
    for name, found, amiss in checks():
        print(fill(f"{paint('look' if amiss else 'ok', 'yellow' if amiss else 'green'):<5}{name}: {found}"))
        if amiss:
            print(fill(amiss, "       "))


def checks() -> Iterator[tuple[str, str, str]]:
    """What is looked at, what is there, and the next step ("": none is needed)."""
    import torch

    from reproduce.data.load import available
    from reproduce.data.sources import SOURCES
    from reproduce.engine import host
    from reproduce.engine.kernels import library
    from reproduce.settings import settings

    here = settings()
    memory = f"{os.cpu_count()} cores, {host.memory() / 1e9:.0f} GB of memory"
    yield "reproduce", f"{__version__} in {PACKAGE}; python {sys.version.split()[0]}, {memory}", ""
    if library.compiler() is not None:
        library.library(torch.float32)  # builds the kernels
    compiled = library.how()
    slow = "small CNNs train up to three times slower: install a C compiler (gcc), or name one by CC"
    yield "compiler", f"{compiled['compiler']}, instructions {compiled['isa']}", slow * (compiled["isa"] == "none")
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    lacking = "REPRODUCE_DEVICE=cuda without a GPU: unset it, or install torch for CUDA (docs/gpu.md)"
    yield "GPU", f"{gpu or 'none'}; device {here.device}", lacking * (here.device == "cuda" and not gpu)
    missing = [name for name in SOURCES if available(name, here).state == "missing"]
    fetch = f"missing: {', '.join(missing)}; `reproduce data get NAME` fetches one, smoke scale needs none"
    yield "data", f"{len(SOURCES) - len(missing)} of {len(SOURCES)} sets in {here.data}", fetch * bool(missing)
    free = shutil.disk_usage(Path.cwd()).free
    yield "disk", f"{free / 1e9:.1f} GB free here", "free some, or set REPRODUCE_STORE elsewhere" * (free < ROOM)
    tools = ", ".join(name for name in ("snakemake", "make") if not shutil.which(name))
    yield "tools", "snakemake, make", f"not found: {tools}; is .venv active?" * bool(tools)
    other = "; ".join(_deviating())
    again = f"tested were others: {other}; pip install -c constraints.txt -e '.[workflow]'"
    yield "versions", "not all as in constraints.txt" if other else "as in constraints.txt", again * bool(other)


def _deviating() -> Iterator[str]:
    """Direct dependencies whose version is another than the one that was tested."""
    file = PACKAGE.parent / "constraints.txt"
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    tested = dict(line.split("==") for line in lines if "==" in line)
    for name in ("torch", "torchvision", "numpy", "pandas", "pyarrow", "snakemake", "matplotlib", "transformers"):
        try:
            there = metadata.version(name).partition("+")[0]
        except metadata.PackageNotFoundError:
            there = "absent"
        if there != tested.get(name, there).partition("+")[0]:
            yield f"{name} {there} (tested: {tested[name]})"
