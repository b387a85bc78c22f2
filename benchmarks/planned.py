"""Planned against measured: short jobs of every kind, each in a process and a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from reproduce import plan
from reproduce.settings import settings
from reproduce.speed import kept

JOBS = (
    ("smoke", "fedacs", "toy2d-comm-only"),
    ("smoke", "fedacs", "fig7-static"),
    ("smoke", "fedagrac", "fig3-lr-equal"),
    ("smoke", "fedacs", "image-blobs-dynamic"),
    ("smoke", "dynamic_init", "gaussian-n4-o00-a03"),
    ("smoke", "fedagrac", "table6"),
    ("smoke", "defedavg", "gaussian-noniid-n3"),
    ("reduced", "fedagrac", "table6-small-mlp-dp2-v1-fixed"),
    ("reduced", "fedagrac", "fig5-lr-10"),
    ("reduced", "fedagrac", "table6-cnn2-dp2-v1-fixed"),
    ("smoke", "fiarse", "four-image-blobs"),
)


def planned() -> None:
    """Seconds of short jobs: by the rates of one core, by the clock, and of the processor (with the start of torch)."""
    here = settings()
    rates = kept.rates(here)
    if not rates.measured:
        rates = kept.calibrate(here)
        plan.forget_speed()
    print(f"Rates: {rates.source}; corrections by finished jobs are left out.\n")
    print("Seeds: two at smoke scale, one at reduced.\n")
    print("| job | kind | planned | measured | measured / planned | processor time |")
    print("| --- | --- | --- | --- | --- | --- |")
    for scale, paper, name in JOBS:
        os.environ["REPRODUCE_SEEDS"] = "0" if scale == "reduced" else "0,1"
        job = plan.job(scale, paper, name)
        if reason := plan.missing(job):
            print(f"| {scale} {paper}/{name} | | | {reason} | | |")
            continue
        expected = plan.cost(job).seconds / plan.correction(job)
        clock, busy = run(scale, paper, name)
        print(
            f"| {scale} {paper}/{name} | {plan.kind(job)} | {expected:.1f} | {clock:.1f} | {clock / expected:.2f} |"
            f" {busy:.1f} |",
            flush=True,
        )


def run(scale: str, paper: str, name: str) -> tuple[float, float]:
    """(seconds that the job's provenance states, processor seconds of its process)."""
    import pyarrow.parquet as pq  # the other benchmarks run without it

    with tempfile.TemporaryDirectory() as folder:
        here = settings()
        environment = os.environ | {
            "REPRODUCE_STORE": str(Path(folder) / "store"),
            "REPRODUCE_DATA": str(here.data.resolve()),
            "REPRODUCE_THREADS": "1",
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]),
        }
        command = [sys.executable, "-m", "reproduce", "train", scale, paper, name]
        before = os.times()
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        after = os.times()
        output = Path(folder) / plan.job(scale, paper, name).output
        provenance = json.loads(pq.read_schema(output).metadata[b"provenance"])
    busy = sum(getattr(after, key) - getattr(before, key) for key in ("children_user", "children_system"))
    return float(provenance["seconds"]), busy
