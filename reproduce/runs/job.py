"""One job: train experiments with all their seeds in one cohort, resumably, and put the runs into a results file."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from reproduce import store
from reproduce.declare import isolation
from reproduce.declare.experiment import Experiment, Panel, code, own_code
from reproduce.engine.checkpoint import Checkpoint
from reproduce.engine.client_split import ClientSplits
from reproduce.engine.host import Progress, Stopping
from reproduce.engine.kernels import library
from reproduce.engine.machine import peak_memory
from reproduce.engine.scheduler import Run, Scheduler, prepare
from reproduce.engine.trainer import Trainer
from reproduce.errors import UserError
from reproduce.runs.provenance import commit, environment
from reproduce.runs.rates import estimate
from reproduce.settings import Settings, settings
from reproduce.store import Stored

if TYPE_CHECKING:
    import pandas as pd


def begin(
    experiments: Sequence[Experiment],
    seeds: Sequence[int],
    here: Settings,
    splits: ClientSplits | None = None,
    strategy: str = "auto",
) -> Scheduler:
    """The scheduler of all these runs, experiments in order and seeds within, at their beginning."""
    runs = prepare(experiments, seeds, splits or ClientSplits(here))
    return Scheduler(runs, Trainer(here.threads, strategy, here.precision))


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


def train_job(
    panel: Panel,
    experiments: Sequence[Experiment],
    scale: str,
    paper: str,
    job: str,
    digest: str,
    output: Path,
    stays: Callable[[Stored], bool] = lambda run: True,
) -> None:
    """Train, and put the runs into the results file `output`, beside those there that `stays` is true of; a job that
    was killed goes on from its checkpoint and ends in the same bits.

    `digest` names the job's code and configuration: a checkpoint of another digest is never resumed.
    """
    here = settings()
    if here.device == "cuda" and not torch.cuda.is_available():
        raise UserError("device is cuda, but torch sees no GPU: set device to cpu in the configuration")
    if commit().endswith("+"):
        print("the code differs from its commit: the result will be marked as of uncommitted code", file=sys.stderr)
    # The digests of the files as they are now; they may change while it trains.
    started, declared = time.monotonic(), {e: (e.record(), code([e])) for e in experiments}
    own, loaded = any(map(own_code, experiments)), isolation.sources()
    splits = ClientSplits(here)
    scheduler = begin(experiments, panel.seeds, here, splits)
    runs, trainer = scheduler.runs, scheduler.trainer
    asked = [(e.labels, seed) for e in experiments for seed in panel.seeds]
    store.check_data(output, asked, splits.provenance, stays)
    earlier = 0.0, 0.0, 0  # seconds, processor time and memory before an interruption

    def note() -> dict[str, Any]:
        used = {
            "cpu": scheduler.cpu,
            "seconds": earlier[0] + time.monotonic() - started,
            "process": earlier[1] + sum(os.times()[:4]),  # of this process and of those that it waited for
            "memory": max(earlier[2], peak_memory()),
        }
        made = {"by": _made_by(), "strategies": sorted(trainer.used)}
        if own:
            made["own"] = {**isolation.sources(), **scheduler.sources, **loaded}
        return {**made, "shared": scheduler.shared, **used}

    checkpoint = Checkpoint(
        here.store / "checkpoints" / f"{scale}-{paper}-{job}-{digest}.pt", runs, note, here.checkpoint
    )
    kept, changed = here.reuse or not own, ""  # what own code remembers is in no state
    resumed = kept and checkpoint.restore()
    if resumed:
        trainer.used |= set(checkpoint.noted["strategies"])
        scheduler.shared |= checkpoint.noted["shared"]
        scheduler.cpu = list(checkpoint.noted["cpu"])
        loaded |= checkpoint.noted.get("own", {})
        earlier = checkpoint.noted["seconds"], checkpoint.noted["process"], checkpoint.noted["memory"]
        changed = _made_otherwise(checkpoint.noted["by"])
        print(changed, end="\n" if changed else "", file=sys.stderr)
    if here.device == "cpu" and any(getattr(e.problem, "model", None) for e in experiments):
        library.available(torch.float32)  # what is built is said before the bar
    with Progress(re.sub(r"-[0-9a-f]{10}$", "", f"{scale}/{paper}/{job}"), runs) as progress, Stopping() as stopping:

        def tick() -> None:
            if stopping.signal:
                if kept:
                    checkpoint.save()
                stopping.end(kept)
            if kept:
                checkpoint.tick()
            progress.update()

        finish(scheduler, tick)
    used = note()
    cost = [estimate(e, panel.seeds) for e in experiments]
    training = {
        "substitute": panel.substitute,
        "data": splits.provenance,
        "data_notes": splits.notes,
        "device": here.device,
        **({"gpu": torch.cuda.get_device_name()} if here.device == "cuda" else {}),
        "configured_precision": here.precision,
        "precision": trainer.precision,
        "threads": here.threads,
        "strategies": sorted(trainer.used),
        "local_runs": scheduler.shared,
        "seconds": round(used["seconds"], 2),
        "cpu_seconds": round(used["process"], 2),
        "peak_memory": used["memory"],
        "seconds_by_part": {k: round(v, 2) for k, v in scheduler.seconds.items()},
        "resumed": resumed,
        "instructions_changed": changed,
        "samples": sum(c.samples for c in cost),
        "flops": sum(c.flops for c in cost),
        **({"own": used["own"]} if own else {}),
        **environment(),
    }
    stored = []
    for run, seconds in zip(runs, used["cpu"], strict=True):
        record, source = declared[run.experiment]
        size, work = len(run.state["history"]), float(run.state["work"])
        stored.append(Stored(record, run.seed, training, source, size, round(seconds, 3), work))
    store.merge(output, frame(runs), stored, stays)
    checkpoint.remove()


def _made_by() -> dict[str, str]:
    """The versions on which the rounding of a job depends."""
    compiled = library.how()
    return {"instructions": compiled["isa"], "torch": str(torch.__version__), "compiler": compiled["compiler"]}


def _made_otherwise(begun: Mapping[str, str]) -> str:
    """A sentence on the versions of `_made_by` that changed since a resumed job began; "" if none did."""
    changes = [f"{name} {begun[name]}, goes on with {now}" for name, now in _made_by().items() if begun[name] != now]
    return f"begun with {' and '.join(changes)}: rounding may differ from here on" if changes else ""
