"""One job: train a panel's experiments with all their seeds in one cohort, resumably, and write the results file."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from tqdm import tqdm

from reproduce.engine.cohort import Cohort, Run, prepare
from reproduce.engine.cost import estimate
from reproduce.engine.store import Checkpoint, environment, write_results
from reproduce.engine.task import Tasks
from reproduce.engine.trainer import Trainer
from reproduce.errors import UserError
from reproduce.experiment import Experiment, Panel, canonical
from reproduce.settings import settings


def train_job(
    panel: Panel, experiments: Sequence[Experiment], scale: str, paper: str, job: str, digest: str, output: Path
) -> None:
    """Train and write `output`; a job that was killed goes on from its checkpoint and ends in the same bits.

    `digest` names the job's code and configuration: a checkpoint of another digest is never resumed.
    """
    here = settings()
    if here.device == "cuda" and not torch.cuda.is_available():
        raise UserError("device is cuda, but torch sees no GPU: set device to cpu in the configuration")
    started = time.monotonic()
    tasks = Tasks(here)
    runs = prepare(experiments, panel.seeds, tasks)
    checkpoint = Checkpoint(here.store / "checkpoints" / f"{scale}-{paper}-{job}-{digest}.pt", runs)
    resumed = checkpoint.restore()
    trainer = Trainer(here.threads, precision=here.precision)
    with Progress(f"{scale}/{paper}/{job}", runs) as progress:

        def tick() -> None:
            checkpoint.tick()
            progress.update()

        cohort = Cohort(runs, trainer, tick)
        cohort.run()
    trainer.close()
    cost = [estimate(e, panel.seeds) for e in experiments]
    provenance = {
        "scale": scale,
        "paper": paper,
        "job": job,
        "digest": digest,
        "panel": panel.name,
        "substitute": panel.substitute,
        "seeds": list(panel.seeds),
        "experiments": [{"labels": dict(e.labels), **_parts(e)} for e in experiments],
        "data": tasks.provenance,
        "device": here.device,
        # What was trained before a resumption is not in the trainer's books.
        "precision": here.precision if resumed else trainer.precision,
        "threads": here.threads,
        "strategies": sorted(trainer.used),
        "seconds": round(time.monotonic() - started, 2),
        "seconds_by_part": {k: round(v, 2) for k, v in cohort.seconds.items()},
        "resumed": resumed,
        "samples": sum(c.samples for c in cost),
        "flops": sum(c.flops for c in cost),
        **environment(),
    }
    write_results(output, runs, provenance)
    checkpoint.remove()


def _parts(e: Experiment) -> dict[str, object]:
    names = ("problem", "system", "algorithm", "clock")
    parts = {name: canonical(getattr(e, name)) for name in names}
    # Long tuples (grids of minimisers and the like) are in the code; the provenance keeps what a reader looks for.
    return {name: part if len(json.dumps(part)) < 4000 else {"type": part["type"]} for name, part in parts.items()}


class Progress:
    """A bar over the rounds of all runs with the time left; one line per half minute where there is no terminal."""

    def __init__(self, title: str, runs: Sequence[Run]) -> None:
        self.title, self.runs = title, runs
        self.total = sum(r.experiment.clock.length for r in runs)
        terminal = sys.stderr.isatty()
        self.bar = tqdm(
            total=self.total, desc=title, unit="round", mininterval=0.5 if terminal else 30, smoothing=0.1, leave=True
        )

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.update()
        self.bar.close()

    def update(self) -> None:
        done = sum(r.experiment.clock.length if r.done else r.state.get("round", 0) for r in self.runs)
        self.bar.update(done - self.bar.n)
