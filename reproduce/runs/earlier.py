"""The package as it was at a commit: what its code gives, on this machine, for the first rounds of a job."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from reproduce.errors import UserError
from reproduce.runs import results

if TYPE_CHECKING:
    import pandas as pd

    from reproduce.runs.plan import Job

ROWS = """
import json, os, sys
from dataclasses import replace
try:
    from reproduce.declare import experiment
    from reproduce.runs import plan
except ImportError:  # before the rooms of today
    from reproduce import experiment, plan
from reproduce.engine.cohort import Cohort, prepare
from reproduce.engine.task import Tasks
from reproduce.engine.trainer import Trainer
from reproduce.settings import settings

class Enough(Exception):
    pass

asked = json.loads(sys.argv[1])
job = plan.job(asked["scale"], asked["paper"], asked["job"])
here = replace(settings(), precision=asked["precision"])
runs = prepare(job.experiments, asked["seeds"], Tasks(here))
trainer = Trainer(here.threads, precision=asked["precision"])

def enough(run):
    history = run.state["history"]
    evaluated = bool(history) and history[-1][0] > history[0][0]
    return run.done or (evaluated and run.state["round"] > asked["rounds"])

def stop():
    if all(map(enough, runs)):
        raise Enough

try:
    Cohort(runs, trainer, stop).run()
except Enough:
    pass
found = [[run.experiment.labels, run.seed, run.state["history"]] for run in runs]
with open(sys.argv[2], "w") as file:
    codes = [experiment.code(job.experiments), *(experiment.code([e]) for e in job.experiments)]
    json.dump({"codes": codes, "runs": found}, file)
os._exit(0)
"""
"""Run with the earlier package; JSON keeps float64 to the bit."""


class Earlier:
    """A context with the files of the package at `commit` in a temporary folder. UserError if there is none such."""

    def __init__(self, commit: str) -> None:
        self.commit = _git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}").decode().strip()[:12]

    def __enter__(self) -> Self:
        self._aside = tempfile.TemporaryDirectory()
        self.folder = Path(self._aside.name)
        packed = _git("-c", "core.autocrlf=false", "archive", self.commit, "reproduce")
        with tarfile.open(fileobj=io.BytesIO(packed)) as tree:
            _unpack(tree, self.folder)
        (self.folder / "rows.py").write_text(ROWS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._aside.cleanup()

    def compared(self, job: Job, line: Mapping[str, str]) -> Mapping[str, str]:
        """The line of a replay that does not agree, as the earlier code decides it: the same bits, or not; the line as
        it is where it agrees already. Where the earlier code does not hold for the result either, it says so."""
        from reproduce.runs.replay import replay

        if line["agrees"] == "yes":
            return line
        there = results.standing(job).there
        seeds, rounds, precision = [int(s) for s in line["seeds"].split()], int(line["rounds"]), there[0].precision
        asked = {"scale": job.scale, "paper": job.paper, "job": job.name}
        codes, rows = self._rows({**asked, "seeds": seeds, "rounds": rounds, "precision": precision})
        if not self._holds(job, codes):
            return {**line, "where": f"{line['where']}; no record that the code of {self.commit} gave this result"}
        outcome = replay(job.experiments, seeds, int(line["asked"]), rows, precision)
        if outcome.deviation > 0:
            return {**line, "where": f"{outcome.where}, and by {outcome.deviation:.2g} from {self.commit} here"}
        where = f"{line['where']}; the bits of {self.commit} on this processor"
        return {**line, "agrees": "yes", "where": where, "rows": str(outcome.rows)}

    def _rows(self, asked: Mapping[str, Any]) -> tuple[list[str], pd.DataFrame]:
        """Digests of the earlier code, and what it records, in the columns of a results file."""
        import pandas as pd

        out = self.folder / "rows.json"
        command = [sys.executable, str(self.folder / "rows.py"), json.dumps(asked), str(out)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            why = (done.stderr.strip().splitlines() or ["no word"])[-1]
            raise UserError(f"the code of {self.commit} does not train it: {why}")
        found = json.loads(out.read_text())
        columns = ["round", "time", "metric", "key", "value"]
        frames = [pd.DataFrame(h, columns=columns).assign(seed=seed, **labels) for labels, seed, h in found["runs"]]
        return found["codes"], pd.concat(frames, ignore_index=True)

    def _holds(self, job: Job, codes: Sequence[str]) -> bool:
        """Did the results hold by the earlier code, of which `codes` are the digests, all settings' first: are they of
        it, or were they confirmed by the record of replays?"""
        line = self._replayed(job)
        until = line["result"] if line.get("agrees") == "yes" and line["code"] == codes[0] else ""
        return all(run.code in codes or run.training["date"] <= until for run in results.standing(job).there)

    def _replayed(self, job: Job) -> Mapping[str, str]:
        """The job's line in the record of replays of that commit; {} without one."""
        try:
            text = _git("show", f"{self.commit}:results/{job.scale}/replay.csv").decode()
        except UserError:
            return {}
        lines = csv.DictReader(text.splitlines())
        return next((line for line in lines if line["job"] == f"{job.paper}/{job.name}"), {})


def _unpack(tree: tarfile.TarFile, folder: Path) -> None:
    """The files of an archive in a folder; UserError for a link, a device, and a name that leads out of it.

    `extractall` has a filter for this from Python 3.11.4 on only.
    """
    for member in tree:
        target = (folder / member.name).resolve()
        if not target.is_relative_to(folder.resolve()) or not (member.isfile() or member.isdir()):
            raise UserError(f"{member.name} of that commit is not a file of the package: compare with another commit")
        if file := tree.extractfile(member):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read())


def _git(*arguments: str) -> bytes:
    done = subprocess.run(["git", *arguments], capture_output=True)
    if done.returncode:
        raise UserError(f"git {' '.join(arguments)} fails: {done.stderr.decode().strip() or 'there is no such commit'}")
    return done.stdout
