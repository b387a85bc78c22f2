"""The settings of artifacts as a table, read from the declarations (for `list --settings`, and the site)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from reproduce.declare.artifact import Artifact
from reproduce.declare.experiment import Experiment, Panel, is_default
from reproduce.text import markdown

COLUMNS = ("artifacts", "data", "model", "split", "clients", "batch", "local work, link", "rates", "length", "seeds")
GROUPED = ("data", "model", "clients", "batch", "length")
"""What tells the rows of an artifact apart; the other columns list all their values."""
SHOWN = 10
"""More values than this are given by their number and ends."""


def settings_table(chosen: Iterable[Artifact], scale: str) -> str:
    """Markdown: one row per data set, model and length of run; artifacts with the same settings share rows."""
    groups: dict[tuple[str, ...], tuple[list[str], tuple[Panel, ...]]] = {}
    for artifact in chosen:
        panels = artifact.panels(scale)
        groups.setdefault(tuple(p.name for p in panels), ([], panels))[0].append(artifact.name)
    untrained, _ = groups.pop((), ([], ()))
    shared: dict[tuple[str, ...], list[str]] = {}
    for names, panels in groups.values():
        rows: dict[tuple[str, ...], list[dict[str, str]]] = {}
        for row in (_row(e, p.seeds) for p in panels for e in p.experiments):
            rows.setdefault(tuple(row[c] for c in GROUPED), []).append(row)
        for found in rows.values():
            shared.setdefault(tuple(_listed(f[c] for f in found) for c in COLUMNS[1:]), []).extend(names)
    lines = [[", ".join(names), *line] for line, names in shared.items()]
    text = (
        f"{markdown(COLUMNS, lines)}\n\nNames of splits, work and links are the records of `reproduce/partitions` and "
        "`reproduce/systems`, with the\nfields that differ from their defaults."
    )
    return text + (f"\n\nWithout training: {', '.join(untrained)}." if untrained else "")


def short(record: Any) -> str:
    """A frozen record in one word, without the fields that have their defaults: `CappedDirichlet(0.1)`."""
    if not dataclasses.is_dataclass(record) or isinstance(record, type):
        return f"{record:g}" if isinstance(record, float) else str(record)
    kept = [short(getattr(record, f.name)) for f in dataclasses.fields(record) if not is_default(f, record)]
    return type(record).__name__ + (f"({', '.join(kept)})" if kept else "")


def _row(e: Experiment, seeds: tuple[int, ...]) -> dict[str, str]:
    problem: Any = e.problem
    clock = e.clock
    if hasattr(problem, "data"):
        name = problem.data if isinstance(problem.data, str) else type(problem.data).__name__
        data = f"{name}, {problem.train_samples:,} samples" if problem.train_samples else name
        model, split = f"{type(problem.model).__name__}, {problem.model.parameters:,}", short(problem.partition)
    else:
        data, model, split = "quadratic", f"{problem.dim} coordinates", "" if problem.minimisers else "N(0, I)"
    if hasattr(clock, "policy"):
        work = f"n = {clock.policy.n}, K = {e.system.work.k}"
        length = f"{clock.horizon:g} virtual s" if clock.horizon else f"{clock.aggregations} aggregations"
    else:
        link = short(e.system.link)
        work = short(e.system.work) + ("" if link == "Reliable" else f", {link}")
        length = f"{clock.sessions} x {clock.rounds}" if hasattr(clock, "sessions") else f"{clock.rounds}"
    if getattr(clock, "until", None):
        target = clock.until[1] if isinstance(clock.until, tuple) else clock.until.value
        length += f", to {target:g} %"
    return {
        "data": data, "model": model, "split": split, "clients": str(problem.clients),
        "batch": str(problem.batches.size) if hasattr(problem, "data") else "all", "local work, link": work,
        "rates": f"{e.algorithm.lr:g}", "length": length, "seeds": str(len(seeds)),
    }  # fmt: skip


def _listed(values: Iterable[str]) -> str:
    found = list(dict.fromkeys(v for v in values if v))
    if len(found) <= SHOWN:
        return "; ".join(found)
    return f"{found[0]} ... {found[-1]} ({len(found)})"
