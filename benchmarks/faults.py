"""Kills of every kind against every smoke job: does it end in the bits of a training that nobody disturbed?

A life is a forked process that trains a job from its checkpoint. It ends by kill -9 at a random moment, by kill -9 in
the middle of writing a file, by SIGTERM, or on a full disk (a limit to the size of files); then the next one begins.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from reproduce import files, plan
from reproduce.errors import Stopped, UserError
from reproduce.plan import Job

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("kill -9", "kill -9 in a write", "SIGTERM", "full disk")
LIVES = 4
"""Disturbed lives of a job before it may end."""


def faults(kills: int = 200, seed: int = 0) -> Counter[str]:
    """Disturb the smoke jobs in turn until `kills` lives have ended early; prints and returns what was counted."""
    chance, counted = random.Random(seed), Counter({"changed jobs": 0, "half files": 0, "lives": 0, "jobs": 0})
    jobs = plan.jobs("smoke")
    with tempfile.TemporaryDirectory() as folder:
        whole = {job.output: _undisturbed(job, Path(folder)) for job in jobs}
        while sum(counted[k] for k in KINDS) < kills:
            for job in jobs:
                if sum(counted[k] for k in KINDS) < kills:
                    counted += _disturbed(job, Path(folder), chance, *whole[job.output])
    print("| " + " | ".join(counted) + " |\n|" + " ---: |" * len(counted))
    print("| " + " | ".join(f"{n:,}" for n in counted.values()) + " |")
    return counted


def _undisturbed(job: Job, folder: Path) -> tuple[pd.DataFrame, float]:
    import pandas as pd  # the other benchmarks run where there is none

    started = time.monotonic()
    place = folder / "undisturbed"
    status = _wait(_life(job, place, lambda: None))
    if status:
        raise RuntimeError(f"{job.paper}/{job.name} ends with status {status} although nobody disturbs it")
    return pd.read_parquet(place / "result.parquet"), time.monotonic() - started


def _disturbed(job: Job, folder: Path, chance: random.Random, whole: pd.DataFrame, seconds: float) -> Counter[str]:
    """A job with `LIVES` disturbed lives at most, and then in peace to its end."""
    import pandas as pd

    counted: Counter[str] = Counter(jobs=1)
    place = folder / "disturbed"
    shutil.rmtree(place, ignore_errors=True)
    result = place / "result.parquet"
    for _ in range(LIVES):
        kind = chance.choice(KINDS)
        counted["lives"] += 1
        at, part, which = chance.uniform(0.1, 1.0) * seconds, chance.random(), chance.randint(1, 4)
        process = _life(job, place, partial(_trap, kind, part, which))
        if kind in ("kill -9", "SIGTERM"):
            time.sleep(at)
            os.kill(process, signal.SIGKILL if kind == "kill -9" else signal.SIGTERM)
        status = _wait(process)
        if status == 0:
            break  # it was faster than its fate
        counted[kind] += 1
        counted["half files"] += result.exists()
    else:
        counted["lives"] += 1
        if status := _wait(_life(job, place, lambda: None)):
            raise RuntimeError(f"{job.paper}/{job.name} does not go on: status {status}")
    counted["changed jobs"] += not pd.read_parquet(result).equals(whole)
    return counted


def _life(job: Job, place: Path, prepare: Callable[[], None]) -> int:
    """Fork a process that trains `job` with many checkpoints; its number."""
    sys.stdout.flush()
    place.mkdir(parents=True, exist_ok=True)
    if child := os.fork():
        return child
    status = 1
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        os.environ.update(REPRODUCE_STORE=str(place / "store"), REPRODUCE_CHECKPOINT="0.02")
        prepare()
        from reproduce.engine.train import train_job

        train_job(job.panel, job.experiments, "smoke", job.paper, job.name, "faults", place / "result.parquet")
        status = 0
    except Stopped as stopped:
        status = 128 + stopped.number
    except UserError:
        status = 2
    finally:
        os._exit(status)


def _wait(process: int) -> int:
    return os.waitpid(process, 0)[1]


def _trap(kind: str, part: float, which: int) -> None:
    """Set up in a life what shall happen to it from within: at its file number `which`, after a `part` of its bytes."""
    if kind == "full disk":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(part * 20_000),) * 2)
    if kind == "kill -9 in a write":
        write, left = files.write, [which]

        def deadly(path: Path, fill: Callable[[IO[bytes]], object]) -> Path:
            left[0] -= 1
            return write(path, fill if left[0] else lambda file: _die(file, fill, part))

        files.write = deadly


def _die(file: IO[bytes], fill: Callable[[IO[bytes]], object], part: float) -> Any:
    fill(file)
    file.truncate(int(part * file.tell()))
    os.kill(os.getpid(), signal.SIGKILL)
