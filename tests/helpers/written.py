"""Results files and cells as tests write them: runs of one row each, with little said of where they come from; a clock
of experiments that are declared, stored and shown, but never run."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from reproduce import store
from reproduce.declare.experiment import COLUMNS, Experiment
from reproduce.store import Stored

PARTS = {part: {"type": part} for part in ("problem", "system", "algorithm", "clock")}
SAID = {"git": "c0ffee", "date": "then"}


def run(of: Experiment | dict[str, Any], seed: int, code: str = "", **training: Any) -> Stored:
    """A run of an experiment, or of one with these labels and parts of no meaning."""
    record = of.record() if isinstance(of, Experiment) else {"labels": of, **PARTS}
    return Stored(record, seed, {**SAID, **training}, code, 1, 1.0, 1.0)


def rows(runs: Sequence[Stored]) -> pd.DataFrame:
    """One row of each run."""
    said = {"round": 0, "time": 0.0, "metric": "m", "key": "", "value": 1.0, "status": "ok"}
    return pd.DataFrame([{**run.labels, "seed": run.seed, **said} for run in runs])


def none(run: Stored) -> bool:
    return False


def write(
    path: Path, runs: Sequence[Stored], stays: Callable[[Stored], bool] = none, frame: pd.DataFrame | None = None
) -> Path:
    """A results file with these runs; frame: their rows, in one order."""
    store.merge(path, rows(runs) if frame is None else frame, runs, stays)
    return path


def histories(path: Path, frame: pd.DataFrame, experiments: Sequence[Experiment] = (), **training: Any) -> Path:
    """A results file with these rows: of these experiments, or of such with their labels."""
    labels = [c for c in frame.columns if c not in COLUMNS]
    known = {tuple(str(e.labels.get(c)) for c in labels): e for e in experiments}
    found, parts = [], []
    keys = frame[[*labels, "seed"]].astype(str).agg("|".join, axis=1)
    for _, mine in frame.groupby(keys, sort=False):
        said = {c: mine[c].iloc[0].item() if hasattr(mine[c].iloc[0], "item") else mine[c].iloc[0] for c in labels}
        of = known.get(tuple(str(value) for value in said.values()), said)
        found.append(replace(run(of, int(mine["seed"].iloc[0]), **training), rows=len(mine)))
        parts.append(mine)
    return write(path, found, frame=pd.concat(parts))


def edit(
    path: str | Path,
    change: Callable[[Stored], Stored | None] | None = None,
    values: Callable[[pd.DataFrame], pd.DataFrame] = lambda rows: rows,
    code: str | None = None,
    **training: Any,
) -> Path:
    """Change the runs of a results file, or leave some out (None), and their rows; code: of all of them; training: what
    is said of their trainings."""
    frame, runs = store.read(Path(path))
    pairs = [(run, change(run) if change else run) for run in runs]
    parts = [values(frame.iloc[old.start : old.start + old.rows]) for old, new in pairs if new]
    kept = [
        replace(new, training={**new.training, **training}, code=new.code if code is None else code)
        for _, new in pairs
        if new
    ]
    return write(Path(path), kept, frame=pd.concat(parts))


def runs(path: str | Path) -> tuple[Stored, ...]:
    """Those of a results file."""
    return store.result(Path(path))[1]


def cells(folder: Path, name: str, frame: pd.DataFrame) -> None:
    """Cells as they are committed, with their record."""
    folder.mkdir(parents=True, exist_ok=True)
    frame.to_csv(folder / f"{name}.csv", index=False)
    store.record(folder / f"{name}.csv").write_text(json.dumps(store.sealed({}, folder / f"{name}.csv")))


@dataclass(frozen=True)
class Unplayed:
    value: float = 0.0

    def check(self, experiment: object) -> None:
        """Everything goes with everything."""
