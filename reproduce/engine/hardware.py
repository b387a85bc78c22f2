"""What the speed of a job depends on: processor, cores, torch, C compiler, instructions, compiled kernels."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path

ENGINE = Path(__file__).parents[1] / "engine"
CPUINFO = Path("/proc/cpuinfo")

Machine = dict[str, str | int]


def machine() -> Machine:
    """This machine as JSON-ready data; measurements hold for an equal one only."""
    processor, flags = _processor()
    return {
        "processor": processor,
        "cores": os.cpu_count() or 1,
        "instructions": os.environ.get("REPRODUCE_ISA") or _instructions(flags),
        "torch": _torch(),
        "compiler": _compiler(os.environ.get("CC") or ""),
        "kernels": _kernels(),
    }


@cache
def _processor() -> tuple[str, frozenset[str]]:
    """Name and instruction flags of the first core; where virtual machines hide the name, family and model tell."""
    try:
        lines = CPUINFO.read_text().split("\n\n")[0].splitlines()
    except OSError:
        return platform.processor() or platform.machine(), frozenset()
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    name = fields.get("model name") or platform.machine()
    if "cpu family" in fields:
        name += f" (family {fields['cpu family']}, model {fields.get('model', '?')})"
    return name, frozenset(fields.get("flags", "").split())


def _instructions(flags: frozenset[str]) -> str:
    if "avx512f" in flags:
        return "avx512"
    return "avx2" if {"avx2", "fma"} <= flags else platform.machine()


@cache
def _torch() -> str:
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return "absent"


@cache
def _compiler(chosen: str) -> str:
    """The first line of its `--version`; "none" where there is none."""
    for command in [chosen] if chosen else ["cc", "gcc", "clang"]:
        try:
            words = shlex.split(command)
        except ValueError:  # an open quote; whoever compiles says so
            continue
        if words and shutil.which(words[0]):
            try:
                run = subprocess.run([*words, "--version"], capture_output=True, text=True, timeout=10)
            except (OSError, subprocess.TimeoutExpired):
                continue
            return " ".join(words[1:] + run.stdout.splitlines()[:1])
    return "none"


@cache
def _kernels() -> str:
    sources = sorted(file for kind in ("c", "h") for file in ENGINE.glob(f"*.{kind}"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in sources)).hexdigest()[:8]
