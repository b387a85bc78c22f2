"""Where the time of `make smoke` goes: the whole workflow in a folder of its own, and what its steps were busy with."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]


def smoke() -> None:
    """Seconds of `snakemake smoke` on two cores, from nothing, by what they were spent on."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "config", folder / "config")
        command = [sys.executable, "-m", "snakemake", "smoke", "--cores", "2", "--quiet", "all"]
        start = time.perf_counter()
        subprocess.run([*command, "--snakefile", str(ROOT / "Snakefile"), "--directory", name], check=True)
        wall = time.perf_counter() - start
        steps = _steps(folder)
        busy = _jobs(folder)
    print("| what | steps | seconds | share |\n| --- | --- | --- | --- |")
    inside = sum(busy.values())
    rows = {f"{rule}: {len(times)} processes": (len(times), sum(times)) for rule, times in steps.items()}
    total = 2 * wall
    for rule, (count, seconds) in rows.items():
        print(f"| {rule} | {count} | {seconds:.0f} | {100 * seconds / total:.0f} % |")
        if rule.startswith("train"):
            parts = {**busy, "start of Python, torch and the data": seconds - inside}
            for part, value in parts.items():
                print(f"| of which {part} | | {value:.0f} | {100 * value / total:.0f} % |")
    rest = total - sum(seconds for _, seconds in rows.values())
    print(f"| Snakemake itself, and waiting | | {rest:.0f} | {100 * rest / total:.0f} % |")
    print(f"\n{wall:.0f} s on the clock, of two cores each.")


def _steps(folder: Path) -> dict[str, list[float]]:
    """Seconds of every finished process by rule, from Snakemake's own records (one per output file)."""
    spans: dict[str, dict[str, tuple[float, float]]] = defaultdict(dict)
    for record in (folder / ".snakemake/metadata").rglob("*"):
        if record.is_file():
            entry = json.loads(record.read_text())
            spans[entry["rule"]][str(entry["log"])] = entry["starttime"], entry["endtime"]
    return {rule: [end - start for start, end in jobs.values()] for rule, jobs in sorted(spans.items())}


def _jobs(folder: Path) -> dict[str, float]:
    """Seconds inside the training jobs by part, from the provenance of their results."""
    from reproduce import store

    parts: dict[str, float] = defaultdict(float)
    for file in sorted((folder / "results/smoke").rglob("*.parquet")):
        for said in {id(run.training): run.training for run in store.found(file)[1]}.values():
            for part, seconds in said["seconds_by_part"].items():
                parts[{"train": "training", "evaluate": "evaluation", "gradient": "gradients"}[part]] += seconds
            parts["the rest of a job"] += said["seconds"] - sum(said["seconds_by_part"].values())
    return parts
