"""Planned against measured: short jobs of every kind, each in a process and a folder of its own; and committed results.

The latter are compared with the assumed rates, which are of a core with AVX-512, where they were made on such a one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

from reproduce.engine.cost import estimate_together
from reproduce.engine.rates import ASSUMED
from reproduce.runs import costs, plan, results
from reproduce.runs.speed import kept
from reproduce.settings import settings
from reproduce.store import results as store

JOBS = (
    ("smoke", "fedacs", "toy2d-comm-only"),
    ("smoke", "fedacs", "fig7-static"),
    ("smoke", "fedagrac", "fig3-lr-equal"),
    ("smoke", "fedacs", "image-blobs-dynamic"),
    ("smoke", "dynamic_init", "gaussian-n4-o00-a03"),
    ("smoke", "fedagrac", "fig3-cnn2-equal"),
    ("reduced", "fedagrac", "fig5-lr-10"),
    ("reduced", "fedagrac", "fig5-cnn2-10"),
    ("smoke", "fiarse", "four-image-blobs"),
)
"""None of them stops at a target: of those that do, plans state the most that they can take."""


def planned() -> None:
    """Seconds of short jobs, the start of their process included: by the rates of one core, and of the processor."""
    here = settings()
    rates = kept.rates(here)
    if not rates.measured:
        rates = kept.calibrate(here)
        costs.forget_speed()
    print(f"Rates: {rates.source}; corrections by finished jobs are left out.\n")
    print("Measured are processor seconds of the whole process; by the clock those of training alone. ", end="")
    print("Seeds: two at smoke scale, one at reduced.\n")
    print("| job | kind | planned | measured | measured / planned | training, by the clock |")
    print("| --- | --- | --- | --- | --- | --- |")
    for scale, paper, name in JOBS:
        with mock.patch.dict(os.environ, REPRODUCE_SEEDS="0" if scale == "reduced" else "0,1"):
            print(f"| {scale} {paper}/{name} | {' | '.join(line(plan.job(scale, paper, name)))} |", flush=True)
    costs.forget_speed()
    committed()


def line(job: plan.Job) -> list[str]:
    """Kind, planned and measured seconds, their ratio, and the time by the clock."""
    if reason := plan.missing(job):
        return ["", "", reason, "", ""]
    expected = costs.cost(job).seconds / costs.correction(job)
    clock, busy = run(job.scale, job.paper, job.name)
    return [costs.kind(job), *(f"{x:.2f}" for x in (expected, busy, busy / expected, clock))]


def committed() -> None:
    """Processor seconds of committed results made with AVX-512, by the assumed rates of such a core."""
    print("\nCommitted results of a core with AVX-512 against the assumed rates (in brackets: jobs from and to)\n")
    print("| scale | paper | kind | jobs | hours | measured / planned |")
    print("| --- | --- | --- | --- | --- | --- |")
    groups: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for scale in ("reduced", "paper"):
        for job in plan.jobs(scale):
            seconds, planned = spent(job), estimate_together(job.experiments, job.panel.seeds, ASSUMED).seconds
            if seconds and planned > 10 * ASSUMED.start and not costs.at_most(job):
                groups.setdefault((scale, job.paper, costs.kind(job)), []).append((seconds, planned))
    for group, pairs in sorted(groups.items()):
        measured, planned = (sum(column) for column in zip(*pairs, strict=True))
        each = sorted(m / p for m, p in pairs)
        row = (*group, len(pairs), f"{measured / 3600:.2f}", f"{measured / planned:.2f} ({each[0]:.2f}-{each[-1]:.2f})")
        print("| " + " | ".join(map(str, row)) + " |")


def spent(job: plan.Job) -> float:
    """Processor seconds of a job's result; 0 without one of such cores only, or if a run diverged: that is cheaper."""
    if not Path(job.output).is_file():
        return 0.0
    rows, runs = store.read(Path(job.output))
    trainings = {id(run.training): run.training for run in runs}.values()
    whole = set(rows["status"]) == {"ok"} and len(results.standing(job).there) == job.runs == len(runs)
    alike = all((t.get("compiled") or {}).get("isa") == "avx512" for t in trainings)
    return sum(float(t.get("cpu_seconds", 0)) for t in trainings) if whole and alike else 0.0


def run(scale: str, paper: str, name: str) -> tuple[float, float]:
    """(seconds that the job's provenance states, processor seconds of its process)."""
    with tempfile.TemporaryDirectory() as folder:
        here = settings()
        environment = os.environ | {
            "REPRODUCE_STORE": str(Path(folder) / "store"),
            "REPRODUCE_DATA": str(here.data.resolve()),
            "REPRODUCE_THREADS": "1",
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]),
        }
        busy = busy_with(["-m", "reproduce", "train", scale, paper, name], cwd=folder, env=environment)
        output = Path(folder) / plan.job(scale, paper, name).output
        (training,) = {id(run.training): run.training for run in results.stored(output)}.values()
    return float(training["seconds"]), busy


def busy_with(arguments: list[str], **options: Any) -> float:
    """Processor seconds of a Python process."""
    before = os.times()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, **options)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system
