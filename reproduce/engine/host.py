"""A job and its host: what its speed depends on, how much memory there is, signals that ask it to stop, a bar."""

from __future__ import annotations

import math
import os
import platform
import signal
import sys
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from reproduce.errors import Stopped
from reproduce.text import counted, duration

if TYPE_CHECKING:
    from reproduce.engine.scheduler import Run

CPUINFO = Path("/proc/cpuinfo")
ALLOWED = Path("/sys/fs/cgroup/memory.max")
"""The memory that a container may take; `max` where there is no limit."""


def machine() -> dict[str, str | int]:
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


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopping:
    """Context in which the first SIGINT, SIGTERM or SIGHUP is a wish; a second one ends the process as usual.

    Checkpoints are possible only where every run stands at the beginning of a round, so the wish has to wait for that.
    """

    def __enter__(self) -> Stopping:
        self.signal = 0  # the wish
        main = threading.current_thread() is threading.main_thread()
        self.before: dict[int, Any] = {n: signal.signal(n, self._asked) for n in SIGNALS} if main else {}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _asked(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        self.__exit__()
        text = "stopping at the end of this round; once more: at once, to go on from the latest checkpoint"
        print(f"\n{signal.Signals(number).name}: {text}", file=sys.stderr, flush=True)

    def end(self, kept: bool = True) -> None:
        """Raises `Stopped`; to be called when the checkpoint is written, if one is kept."""
        goes = "the checkpoint is written, the same command goes on from it"
        if not kept:
            goes = "own code has no checkpoints, the same command trains it from its beginning"
        raise Stopped(f"stopped by {signal.Signals(self.signal).name}; {goes}", self.signal)


class Progress:
    """A bar over the rounds of all runs with the time left; a line at the end where there is no terminal."""

    def __init__(self, title: str, runs: Sequence[Run]) -> None:
        from tqdm import tqdm  # the benchmark of a GPU runs where only torch and numpy are

        self.runs, self.title, self.terminal = runs, title, sys.stderr.isatty()
        self.rounds = sum(r.experiment.clock.length(r.experiment) for r in runs)
        delay = 0 if self.terminal else math.inf
        self.bar = tqdm(total=self.rounds, desc=title, unit="round", mininterval=0.5, smoothing=0.1, delay=delay)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.update()
        self.bar.close()
        if not self.terminal:
            taken = duration(self.bar.format_dict["elapsed"])
            print(f"{self.title}: {self.bar.n:,} of {counted(self.rounds, 'round')} in {taken}", file=sys.stderr)

    def update(self) -> None:
        done = sum(r.experiment.clock.length(r.experiment) if r.done else r.state.get("round", 0) for r in self.runs)
        self.bar.update(done - self.bar.n)
