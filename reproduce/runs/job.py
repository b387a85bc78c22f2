"""One job: train experiments with all their seeds in one cohort, resumably, and put the runs into a results file."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from reproduce import store
from reproduce.declare import isolation
from reproduce.declare.experiment import Experiment, code, own_code
from reproduce.engine.checkpoint import Checkpoint
from reproduce.engine.client_split import ClientSplits
from reproduce.engine.host import Progress, Stopping
from reproduce.engine.kernels import library
from reproduce.engine.machine import free_memory, peak_memory
from reproduce.engine.scheduler import Run, Scheduler, prepare
from reproduce.engine.trainer import Trainer
from reproduce.errors import UserError
from reproduce.runs import saved
from reproduce.runs.provenance import commit, environment
from reproduce.runs.rates import estimate, held
from reproduce.settings import Settings, settings
from reproduce.store import Stored

if TYPE_CHECKING:
    import pandas as pd

    from reproduce.runs.plan import Job


def begin(
    experiments: Sequence[Experiment],
    seeds: Sequence[int],
    here: Settings,
    splits: ClientSplits | None = None,
    strategy: str = "auto",
) -> Scheduler:
    """The scheduler of all these runs, experiments in order and seeds within, at their beginning."""
    runs = prepare(experiments, seeds, splits or ClientSplits(here))
    scheduler = Scheduler(runs, Trainer(here.threads, strategy, here.precision))
    scheduler.cohorts = cohorts([held(run.experiment) for run in runs], free_memory(here.device))
    return scheduler


def cohorts(needs: Sequence[float], room: float) -> list[list[int]]:
    """Consecutive runs, which need so many bytes each, in parts that fit into the room; one run always does."""
    found: list[list[int]] = [[]]
    used = 0.0
    for i, need in enumerate(needs):
        if found[-1] and used + need > room:
            found, used = [*found, []], 0.0
        found[-1].append(i)
        used += need
    return found


def finish(scheduler: Scheduler, tick: Callable[[], None] | None = None) -> list[Run]:
    """The runs of a scheduler at their ends, or where it has enough; `tick` is called whenever all stand at the
    beginning of a round."""
    scheduler.tick = tick
    try:
        scheduler.run()
    finally:
        scheduler.trainer.close()
    return list(scheduler.runs)


def frame(runs: Sequence[Run]) -> pd.DataFrame:
    """The histories of runs in one tidy table: labels, seed, round, time, metric, key, value, status."""
    import pandas as pd

    found = []
    for run in runs:
        rows = pd.DataFrame(run.state["history"], columns=["round", "time", "metric", "key", "value"])
        for i, (name, value) in enumerate({**run.experiment.labels, "seed": run.seed}.items()):
            rows.insert(i, name, value)
        found.append(rows.assign(status=run.state["status"]))
    return pd.concat(found, ignore_index=True)


def train_job(job: Job, place: Path, output: Path, stays: Callable[[Stored], bool] = lambda run: True) -> None:
    """Train, and put the runs into the results file `output`, beside those there that `stays` is true of; a job that
    was killed goes on from its checkpoint and ends in the same bits.

    place: of the checkpoint; its name has the digest of the job's code and configuration, and no other is resumed.
    """
    here, panel, experiments, own = settings(), job.panel, job.experiments, any(map(own_code, job.experiments))
    if here.device == "cuda" and not torch.cuda.is_available():
        raise UserError("device is cuda, but torch sees no GPU: set device to cpu in the configuration")
    if commit().endswith("+"):
        print("the code differs from its commit: the result will be marked as of uncommitted code", file=sys.stderr)
    # The digests of the files as they are now; they may change while it trains.
    declared, loaded = {e: (e.record(), code([e])) for e in experiments}, isolation.sources()
    splits = ClientSplits(here)
    scheduler = begin(experiments, panel.seeds, here, splits)
    asked = [(e.labels, seed) for e in experiments for seed in panel.seeds]
    store.check_data(output, asked, splits.provenance, stays)
    used = Used(scheduler, loaded if own else None)
    checkpoint = Checkpoint(place, scheduler.runs, used.note, here.checkpoint)
    kept = here.reuse or not own  # what own code remembers is in no state
    resumed = kept and checkpoint.restore()
    changed = used.go_on(checkpoint.noted) if resumed else ""
    if here.device == "cpu" and any(getattr(e.problem, "model", None) for e in experiments):
        library.available(torch.float32)  # what is built is said before the bar
    title = re.sub(r"-[0-9a-f]{10}$", "", f"{job.scale}/{job.paper}/{job.name}")
    _follow(scheduler, title, checkpoint, kept)
    noted, cost = used.note(), [estimate(e, panel.seeds) for e in experiments]
    training = {
        "substitute": panel.substitute,
        "data": splits.provenance,
        "data_notes": splits.notes,
        "device": here.device,
        **({"gpu": torch.cuda.get_device_name()} if here.device == "cuda" else {}),
        "configured_precision": here.precision,
        "precision": scheduler.trainer.precision,
        "threads": here.threads,
        "strategies": noted["strategies"],
        "local_runs": scheduler.shared,
        "seconds": round(noted["seconds"], 2),
        "cpu_seconds": round(noted["process"], 2),
        "peak_memory": noted["memory"],
        "seconds_by_part": {k: round(v, 2) for k, v in scheduler.seconds.items()},
        "resumed": resumed,
        "instructions_changed": changed,
        "samples": sum(c.samples for c in cost),
        "flops": sum(c.flops for c in cost),
        **({"own": noted["own"]} if own else {}),
        **environment(),
    }
    stored = []
    for run, seconds in zip(scheduler.runs, noted["cpu"], strict=True):
        record, source = declared[run.experiment]
        size, work = len(run.state["history"]), float(run.state["work"])
        stored.append(Stored(record, run.seed, training, source, size, round(seconds, 3), work))
    if here.save:
        saved.write(scheduler.runs, here.save)
    store.merge(output, frame(scheduler.runs), stored, stays)
    checkpoint.remove()


class Used:
    """The record of what a job has used, before its interruptions too, and of what its numbers depend on.

    loaded: digests of the files of a user's own code, as it began; None without such code.
    """

    def __init__(self, scheduler: Scheduler, loaded: dict[str, str] | None) -> None:
        self.scheduler, self.loaded, self.started = scheduler, loaded, time.monotonic()
        self.before: dict[str, Any] = {"seconds": 0.0, "process": 0.0, "memory": 0}

    def note(self) -> dict[str, Any]:
        """All of it, as a checkpoint keeps it."""
        scheduler, before, loaded, made = self.scheduler, self.before, self.loaded, library.how()
        return {
            "by": {"instructions": made["isa"], "torch": str(torch.__version__), "compiler": made["compiler"]},
            "strategies": sorted(scheduler.trainer.used),
            **({} if loaded is None else {"own": {**isolation.sources(), **scheduler.sources, **loaded}}),
            "shared": scheduler.shared,
            "cpu": scheduler.cpu,
            "seconds": before["seconds"] + time.monotonic() - self.started,
            "process": before["process"] + sum(os.times()[:4]),  # of this process and of those that it waited for
            "memory": max(before["memory"], peak_memory()),
        }

    def go_on(self, noted: dict[str, Any]) -> str:
        """Take over what a checkpoint noted; returns, and says, why numbers may differ from here on ("": no reason)."""
        scheduler, begun, now = self.scheduler, noted["by"], self.note()["by"]
        other = [f"{name} {begun[name]}, goes on with {now[name]}" for name in now if begun[name] != now[name]]
        said = f"begun with {' and '.join(other)}: rounding may differ from here on" if other else ""
        print(said, end="\n" if said else "", file=sys.stderr)
        self.before = noted
        scheduler.trainer.used |= set(noted["strategies"])
        scheduler.shared |= noted["shared"]
        scheduler.cpu = list(noted["cpu"])
        if self.loaded is not None:
            self.loaded |= noted["own"]
        return said


def _follow(scheduler: Scheduler, title: str, checkpoint: Checkpoint, kept: bool) -> None:
    """Train to the end, with a bar; kept: with checkpoints, one of them where a signal asks to stop."""
    with Progress(title, scheduler.runs) as progress, Stopping() as stopping:

        def tick() -> None:
            if kept:
                checkpoint.save() if stopping.signal else checkpoint.tick()
            if stopping.signal:
                stopping.end(kept)
            progress.update()

        try:
            finish(scheduler, tick)
        except torch.OutOfMemoryError as error:
            why = f"the GPU's memory is too small for a client of {title} beside what its runs keep"
            raise UserError(f"{why}: set REPRODUCE_SEEDS for fewer seeds a job, or take a larger one") from error
