"""Deaths of every kind for every smoke job: does it end in the bits of a training that nobody disturbed?

A life is a forked process that trains a job from its checkpoint, if there is one; it knows nothing of earlier lives
but what lies on the disk. It ends by kill -9 at a random moment, between two batches of requests or in the middle of
writing a file, by SIGTERM, or because the disk is full; then the next one begins. The end of every other job is reached
by two lives at once, as by two workflows that share a store.
"""

from __future__ import annotations

import ctypes
import math
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import torch

from reproduce import files, store
from reproduce.errors import Stopped, UserError
from reproduce.runs import costs, plan
from reproduce.runs.plan import Job

KINDS = ("kill -9", "kill -9 between batches", "kill -9 in a write", "SIGTERM", "full disk")
COLUMNS = ("jobs", *KINDS, "lives", "resumed", "two at once", "changed jobs", "half files")
LIVES = 4
"""Disturbed lives of a job, at least, before it may end in peace; more only if each has two batches to itself."""
SPACE = 256
"""Megabytes of the file system in memory that becomes full."""
EXPECTED = {"SIGTERM": 128 + signal.SIGTERM, "full disk": 2}
"""Exit status of a life that ended as it should; the others are killed."""


@dataclass(frozen=True)
class Whole:
    """An undisturbed job: checksum of its rows, batches of requests, seconds of processor time, and those of them that
    pass before the first batch."""

    content: str
    batches: int
    seconds: float
    start: float


@dataclass(frozen=True)
class Fate:
    """What happens to a life: at batch `batch`, or at its file number `file` after a `part` of the bytes, or when it
    has used `seconds` of the processor."""

    kind: str
    batch: int
    file: int
    part: float
    seconds: float


def faults(kills: int = 200, seed: int = 0, moments: bool = True) -> Counter[str]:
    """Disturb the smoke jobs until `kills` lives have ended early; prints and returns what was counted.

    Few kills are for few jobs: the cheapest of each paper and clock come first. moments: kill at random moments too,
    which no seed repeats.
    """
    kinds = KINDS if moments else KINDS[1:]
    chance, clocks = random.Random(seed), defaultdict[str, Counter[str]](Counter)
    wholes: dict[str, Whole] = {}

    def ended() -> int:
        return sum(counted[kind] for counted in clocks.values() for kind in kinds)

    with _disk() as (folder, small):
        jobs = _jobs()[: max(1, kills // LIVES)]
        lives = max(LIVES, math.ceil(kills / len(jobs)))
        try:
            while ended() < kills:
                for job in jobs[: max(1, math.ceil((kills - ended()) / lives))]:
                    _warm(job)
                    counted = clocks[_clocks(job)]
                    counted["jobs"] += job.output not in wholes
                    whole = wholes[job.output] = wholes.get(job.output) or _undisturbed(job, folder)
                    most = min(lives, max(LIVES, whole.batches // 2), kills - ended())
                    _disturb(job, folder, small, chance, kinds, whole, most, counted)
                    print(f"{ended():,} of {kills:,}: {job.paper}/{job.name}", file=sys.stderr, flush=True)
        finally:  # what was counted is said also if it is stopped
            full = "a full file system in memory" if small else "a limit to the size of files"
            print(f"{ended():,} lives ended early; a full disk is {full}.\n")
            total = sum(clocks.values(), Counter())
            print("| clock | " + " | ".join(COLUMNS) + " |\n| --- |" + " ---: |" * len(COLUMNS))
            for name, counted in (*sorted(clocks.items()), ("all", total)):
                print(f"| {name} | " + " | ".join(f"{counted[column]:,}" for column in COLUMNS) + " |", flush=True)
    return total


def _warm(job: Job) -> None:
    """What every process finds out about files that do not change, once for all lives: digests, versions, libraries."""
    import pandas  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    from reproduce.declare.experiment import code
    from reproduce.engine.kernels import library
    from reproduce.runs import job as train

    code(job.experiments)
    train.environment()
    library.library(torch.float32)


def _jobs() -> list[Job]:
    """The smoke jobs: the cheapest of each paper and clock, then the second of each, and so on."""
    groups = defaultdict(list)
    for job in sorted(plan.jobs("smoke"), key=lambda j: costs.cost(j).seconds):
        groups[job.paper, _clocks(job)].append(job)
    ranked = [(rank, name, job) for name, group in sorted(groups.items()) for rank, job in enumerate(group)]
    return [job for *_, job in sorted(ranked, key=lambda r: r[:2])]


def _clocks(job: Job) -> str:
    return ", ".join(sorted({type(e.clock).__name__ for e in job.experiments}))


@contextmanager
def _disk() -> Iterator[tuple[Path, bool]]:
    """A folder, and whether it is a small file system of its own, which only this process and its children see."""
    with tempfile.TemporaryDirectory() as name:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={SPACE}m", "none", name]
        private = getattr(ctypes.CDLL(None), "unshare", lambda flag: -1)(0x00020000) == 0  # CLONE_NEWNS
        calls = (["mount", "--make-rprivate", "/"], mount) if private else ()
        small = private and all(subprocess.run(call, capture_output=True).returncode == 0 for call in calls)
        try:
            yield Path(name), small
        finally:
            if small:
                subprocess.run(["umount", "--lazy", name], check=True)


def _undisturbed(job: Job, folder: Path) -> Whole:
    place = folder / "undisturbed"
    shutil.rmtree(place, ignore_errors=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    if status := _wait(_life(job, place, 0.02, lambda: _count_batches(place))):
        raise RuntimeError(f"{job.paper}/{job.name} ends with status {status} although nobody disturbs it")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    start = float((place / "start").read_text())
    return Whole(_content(place / "result.parquet"), int((place / "batches").stat().st_size), seconds, start)


def _disturb(
    job: Job,
    folder: Path,
    small: bool,
    chance: random.Random,
    kinds: Sequence[str],
    whole: Whole,
    lives: int,
    counted: Counter[str],
) -> None:
    """A job with so many disturbed lives at most, and then in peace to its end, alone or as two."""
    place = folder / "disturbed"
    shutil.rmtree(place, ignore_errors=True)
    interval = 0.0 if whole.batches < 300 else 0.02
    for _ in range(lives):
        share = chance.uniform(0, 2 / (lives + 1))
        moment = chance.random() * (whole.start + 2 / (lives + 1) * (whole.seconds - whole.start))
        kind, batch = chance.choice(kinds), 1 + int(share * whole.batches)
        fate = Fate(kind, batch, chance.randint(1, 4), chance.random(), moment)
        counted["resumed"] += _begun(place)
        process = _life(job, place, interval, lambda fate=fate: _trap(fate, place / "ballast" if small else None))
        status = _wait(process, fate.seconds if fate.kind == "kill -9" else math.inf)
        (place / "ballast").unlink(missing_ok=True)
        counted["lives"] += 1
        counted["half files"] += _half_files(place)
        if status == 0:
            break  # it was faster than its fate
        if status != EXPECTED.get(fate.kind, -signal.SIGKILL):
            raise RuntimeError(f"{job.paper}/{job.name} ends with status {status} by {fate}")
        counted[fate.kind] += 1
    counted["resumed"] += _begun(place)
    last = [_life(job, place, interval, lambda: None) for _ in range(chance.randint(1, 2))]
    if any(_wait(process) for process in last):
        raise RuntimeError(f"{job.paper}/{job.name} does not go on after its lives")
    counted["lives"] += len(last)
    counted["two at once"] += len(last) == 2
    counted["changed jobs"] += _content(place / "result.parquet") != whole.content


def _life(job: Job, place: Path, interval: float, prepare: Callable[[], None]) -> int:
    """Fork a process that trains `job`; its number."""
    sys.stdout.flush()
    place.mkdir(parents=True, exist_ok=True)
    if child := os.fork():
        return child
    status = 1
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        os.environ.update(REPRODUCE_STORE=str(place / "store"), REPRODUCE_CHECKPOINT=str(interval))
        prepare()
        from reproduce.runs.job import train_job

        train_job(job, place / "store/checkpoints/faults.pt", place / "result.parquet")
        status = 0
    except Stopped as stopped:
        status = 128 + stopped.number
    except UserError:
        status = 2
    finally:
        os._exit(status)


def _wait(process: int, seconds: float = math.inf) -> int:
    """The exit status of a process (minus the signal that ended it), killed when it has used the processor so long."""
    clock = (~process << 3) | 2  # clock_getcpuclockid(3): the processor time of another process
    while seconds < math.inf:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.clock_gettime(clock) >= seconds:
            os.kill(process, signal.SIGKILL)
            break
        time.sleep(0.001)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _begun(place: Path) -> bool:
    """Does the next life find a checkpoint?"""
    return any(place.glob("store/checkpoints/*.pt"))


def _half_files(place: Path) -> int:
    """Files under their final names that are not whole."""
    from reproduce.engine.checkpoint import load

    result = place / "result.parquet"
    half = result.exists() and not store.usable(result)[1]
    for checkpoint in place.glob("store/checkpoints/*.pt"):
        try:
            load(checkpoint)
        except ValueError:
            half += 1
    return int(half)


def _content(result: Path) -> str:
    """The checksum of all rows, to the bit."""
    from pyarrow import parquet

    return store.of_table(parquet.read_table(result))


# --- inside a life ----------------------------------------------------------------------------------------------------


def _count_batches(place: Path) -> None:
    """A byte for every batch of requests, and the processor time before the first."""
    file, begun = (place / "batches").open("ab", buffering=0), time.process_time()

    def count() -> None:
        if not file.tell():
            (place / "start").write_text(str(time.process_time() - begun))
        file.write(b".")

    _at_batches(count)


def _trap(fate: Fate, ballast: Path | None) -> None:
    """Set up what shall happen from within."""
    if fate.kind == "full disk":
        _fill(ballast, int(fate.part * 20_000))
    elif fate.kind == "kill -9 in a write":
        _in_writing(fate)
    elif fate.kind != "kill -9":
        left, number = [fate.batch], signal.SIGTERM if fate.kind == "SIGTERM" else signal.SIGKILL

        def count() -> None:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), number)

        _at_batches(count)


def _at_batches(call: Callable[[], object]) -> None:
    """Call before every batch of requests."""
    from reproduce.engine.scheduler import Scheduler

    execute = Scheduler.execute

    def counted(self: Scheduler, jobs: Any) -> Any:
        call()
        return execute(self, jobs)

    Scheduler.execute = counted  # type: ignore[method-assign]


def _fill(ballast: Path | None, left: int) -> None:
    """Leave so many bytes on the disk, or allow no longer file."""
    if ballast is None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (left, left))
        return
    disk = os.statvfs(ballast.parent)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, disk.f_bavail * disk.f_frsize - left))


def _in_writing(fate: Fate) -> None:
    write, left = files.write, [fate.file]

    def deadly(path: Path, fill: Callable[[IO[bytes]], object]) -> Path:
        left[0] -= 1
        return write(path, fill if left[0] else lambda file: _die(file, fill, fate.part))

    files.write = deadly


def _die(file: IO[bytes], fill: Callable[[IO[bytes]], object], part: float) -> None:
    fill(file)
    file.flush()
    file.truncate(int(part * file.tell()))
    os.kill(os.getpid(), signal.SIGKILL)
