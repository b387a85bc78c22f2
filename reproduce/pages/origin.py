"""Where an artifact comes from: its results, what they cost, the files behind it, and whether to cite its numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproduce.declare.artifact import Artifact
from reproduce.declare.experiment import PACKAGE
from reproduce.report.histories import one_split
from reproduce.runs import plan, results
from reproduce.text import counted, duration, short
from reproduce.verdicts.scope import GROUNDS, STAND_IN, ground

KINDS = {
    **{".md": "Markdown", ".pdf": "PDF", ".png": "PNG", ".txt": "caption and notes", ".tex": "LaTeX", ".csv": "CSV"},
    ".ours.tex": "LaTeX, our numbers only",
}
CITED = {
    "yes": "", "in part": "what is there; some is missing",
    "with care": "few seeds, one split, two rounds, or older code that no replay confirmed",
    "no": "stand-in data",
}  # fmt: skip
"""May numbers be cited? -> why not all of them, in short."""
FEW = 3
CODE = {"runs": "configuration", "artifacts": "declaration", "measures": "measures", "pictures": "picture"}


@dataclass(frozen=True)
class Origin:
    """facts: (name, text) each; links: (text, path in the repository) of files that are there; command: in a shell.
    cited, seeds, why: whether to cite its numbers (`citing`)."""

    facts: tuple[tuple[str, str], ...]
    links: tuple[tuple[str, str], ...]
    command: str
    cited: str
    seeds: str
    why: str


def origin(artifact: Artifact, scale: str) -> Origin:
    """Of an artifact as it is made at a scale."""
    first = plan.outputs(scale, artifact.id)[0]
    return Origin(
        tuple(_facts(artifact, scale)),
        tuple(_links(artifact, scale)),
        f"snakemake {first} --cores 2",
        *citing(artifact, scale),
    )


def _facts(artifact: Artifact, scale: str) -> Iterable[tuple[str, str]]:
    jobs = plan.artifact_jobs(scale, artifact.id)
    used = [j for j in jobs if results.standing(j).usable]
    if not jobs:
        yield "Results", "nothing is trained: computed when it is drawn"
    if not used:
        return
    runs = [run for j in used for run in results.standing(j).there]
    yield "Results", f"{results.tally(jobs)}, of {len(jobs)} jobs" if len(used) < len(jobs) else results.tally(jobs)
    made = [*{id(run.training): run.training for run in runs}.values()]
    yield "Commit", _several(n["git"] for n in made)
    read = plan.seeds_read(scale, artifact.id)
    seeds = {r.seed for j in used for r in results.standing(j).there if r.seed in read[j.panel.name]}
    whole = len(seeds) > 2 and len(seeds) == max(seeds) - min(seeds) + 1
    yield "Seeds", f"{min(seeds)} to {max(seeds)}" if whole else ", ".join(map(str, sorted(seeds)))
    yield "Device", _several(_device(n) for n in made)
    yield "Precision", _several(run.precision for run in runs)
    seconds, flops = (sum(float(n.get(k) or 0) for n in made) for k in ("seconds", "flops"))
    cost = [f"{duration(seconds)} ({seconds:,.0f} s)" if seconds else "", f"{short(flops)}FLOP" if flops else ""]
    yield "Training", ", ".join(filter(None, cost))
    days = sorted({str(n["date"])[:10] for n in made})
    yield "Made", " to ".join(dict.fromkeys((days[0], days[-1])))


def citing(artifact: Artifact, scale: str) -> tuple[str, str, str]:
    """May its numbers be cited as those of the paper's settings? One of `CITED`, of how many seeds, and why; "" for all
    where there are none."""
    panels, read = {p.name: p for p in artifact.panels(scale)}, plan.seeds_read(scale, artifact.id)
    jobs = plan.artifact_jobs(scale, artifact.id)
    if not jobs:
        return "yes", "", "computed from the definitions, not trained"
    runs = [run for j in jobs for run in results.standing(j).runs if run.seed in read[j.panel.name]]
    there = [run for run in runs if run.stored]
    if not there:
        return "", "", ""
    wanted, seeds = {run.experiment for run in runs}, Counter(run.experiment for run in there)
    fewest, most = min(seeds.values()), max(seeds.values())
    names = {e: panels[j.panel.name] for j in jobs for e in j.experiments}
    grounds = [g for g in reversed(GROUNDS) if g in {ground(names[e], e.problem) for e in seeds}]
    said = f"{fewest} to {most} seeds" if fewest < most else counted(most, "seed")
    odd = ["one split of the data"] * any(map(one_split, seeds))
    odd += ["two rounds"] * any(0 < getattr(e.clock, "rounds", 0) <= 2 for e in seeds)
    why = [f"on {' and '.join(grounds)}", said, *odd]
    why += [f"{len(seeds)} of {len(wanted)} settings are run"] * (len(seeds) < len(wanted))
    why += filter(None, [results.said(there)])
    doubtful = fewest < FEW or bool(odd) or any(run.state in ("older", "differs") for run in there)
    partly = len(seeds) < len(wanted)
    return [*CITED][3 if STAND_IN in grounds else 2 if doubtful else int(partly)], said, "; ".join(why)


def _device(note: Mapping[str, Any]) -> str:
    threads = note.get("threads")
    return str(note.get("gpu", note.get("device", "cpu").upper())) + (
        f", {counted(threads, 'thread')}" if threads else ""
    )


def _several(values: Iterable[str]) -> str:
    found = list(dict.fromkeys(map(str, values)))
    return ", ".join(found[:4]) + (f" and {len(found) - 4} more" if len(found) > 4 else "")


def _links(artifact: Artifact, scale: str) -> Iterable[tuple[str, str]]:
    *drawn, cells, _ = plan.outputs(scale, artifact.id)
    folder = f"reproduce/papers/{artifact.paper}"
    named = [(KINDS["." + Path(f).name.partition(".")[2]], f) for f in drawn]
    named += [("cells per seed (CSV)", cells), ("the paper's numbers", f"{folder}/reported/{artifact.name}.csv")]
    named += [(text, f"{folder}/{name}.py") for name, text in CODE.items() if artifact.draw or name != "pictures"]
    for text, path in [*named, ("claims", f"{folder}/claims.yaml")]:
        if Path(path).is_file() or (PACKAGE.parent / path).is_file():
            yield text, path
