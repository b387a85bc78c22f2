"""What the speed of a job depends on: processor, cores, torch, C compiler, instructions, compiled kernels."""

from __future__ import annotations

import hashlib
import math
import os
import platform
import shlex
import shutil
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path

from reproduce.errors import UserError

KERNELS = Path(__file__).parent / "kernels"
CPUINFO = Path("/proc/cpuinfo")
ALLOWED = Path("/sys/fs/cgroup/memory.max")
"""What a container may take; `max` where there is no limit."""

Machine = dict[str, str | int]


def machine() -> Machine:
    """This machine as JSON-ready data; measurements hold for an equal one only."""
    processor, flags = _processor()
    return {
        "processor": processor,
        "cores": os.cpu_count() or 1,
        "instructions": os.environ.get("REPRODUCE_ISA") or _instructions(flags),
        "torch": _torch(),
        "compiler": _compiler(os.environ.get("CC")),
        "kernels": _kernels(),
    }


def memory() -> float:
    """Bytes of memory that this machine, or the container on it, has; no bound where the system does not tell."""
    try:
        allowed = ALLOWED.read_text().strip()
    except OSError:
        allowed = "max"
    try:
        whole = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        whole = math.inf
    return min(whole, float(allowed)) if allowed.isdecimal() else whole


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


def find_compiler(wanted: str | None) -> tuple[str, ...] | None:
    """A C compiler as a command: `wanted`, or cc, gcc, clang, whichever is there first; UserError for an open quote."""
    try:
        commands = [shlex.split(wanted)] if wanted else [["cc"], ["gcc"], ["clang"]]
    except ValueError as error:
        raise UserError(f"CC={wanted}: {error}") from error
    for program, *options in filter(None, commands):
        if path := shutil.which(program):
            return (path, *options)
    return None


@cache
def version(command: tuple[str, ...]) -> str:
    """The first line that a compiler says of itself."""
    try:
        said = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError):
        said = ""
    return next(iter(said.splitlines()), "unknown")


def _compiler(wanted: str | None) -> str:
    try:
        command = find_compiler(wanted)
    except UserError:  # whoever compiles says so
        command = None
    return " ".join([*command[1:], version(command)]) if command else "none"


@cache
def _kernels() -> str:
    sources = sorted(file for kind in ("c", "h") for file in KERNELS.glob(f"*.{kind}"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in sources)).hexdigest()[:8]
