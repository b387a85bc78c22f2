"""What the speed of a job depends on: processor, cores, instructions; and how much memory there is."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
ALLOWED = Path("/sys/fs/cgroup/memory.max")
"""What a container may take; `max` where there is no limit."""

Machine = dict[str, str | int]


def machine() -> Machine:
    """This machine as JSON-ready data."""
    processor, flags = _processor()
    return {
        "processor": processor,
        "cores": os.cpu_count() or 1,
        "instructions": os.environ.get("REPRODUCE_ISA") or _instructions(flags),
    }


def memory() -> float:
    """Bytes of memory that this machine, or the container on it, has."""
    try:
        allowed = ALLOWED.read_text().strip()
    except OSError:
        allowed = "max"
    whole = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
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
