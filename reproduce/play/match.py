"""Algorithms on benchmarks: what has to be trained, what it costs, tuning, training.

Every (algorithm, benchmark, rate) with its seeds is a job; those of a benchmark have one results file,
results/SCALE/play/BENCHMARK.parquet, so that nothing is trained twice. What is missing of a benchmark is trained in one
cohort, or in as many as half of the memory asks for; a user's own class is trained by itself, and if it fails nothing
else does.
"""

import dataclasses
import hashlib
import json
import math
import re
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from reproduce import store
from reproduce.declare.experiment import Experiment, Panel, canonical
from reproduce.engine.host import memory
from reproduce.errors import OwnCodeError, UserError
from reproduce.files import check_writable, sole
from reproduce.partitions.heldout import HELD_OUT, JUDGE, judged
from reproduce.play import scores
from reproduce.play.benchmarks import Benchmark, Refused
from reproduce.play.specs import Spec, parse
from reproduce.report.histories import Source, load
from reproduce.runs import costs, plan, results, saved, training
from reproduce.runs.plan import Job
from reproduce.settings import settings
from reproduce.text import counted, duration, short

FACTORS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Multiples of the rate that an algorithm has untuned: all have a grid of as many points."""
TUNING_SEEDS = (1000, 1001)
"""Seeds on which rates are chosen; they are never reported."""


@dataclass
class Entry:
    """One algorithm on one benchmark. refused: why it cannot run; failed: what its own code raised. edge: the rate is
    the smallest or the largest of its grid. chosen_on: what chose its rate, `HELD_OUT`; "" if nothing did."""

    benchmark: Benchmark
    spec: Spec
    experiment: Experiment | None
    refused: str = ""
    failed: str = ""
    edge: bool = False
    chosen_on: str = ""

    @property
    def own(self) -> bool:
        """Tells whether the code is the user's."""
        return self.spec.cls is not None


@dataclass
class Match:
    """Algorithms on benchmarks with the reported seeds; on each benchmark its reference comes first, and all others are
    compared with it.

    factors: the grid. lenient: an algorithm that does not fit a benchmark is a line of the table, and no error.
    finished: stale results are taken as they are, and nothing is trained.
    Raises UserError for what cannot be, before anything is trained.
    """

    specs: Sequence[Spec]
    benchmarks: Sequence[Benchmark]
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    tune: bool = False
    lenient: bool = False
    factors: tuple[float, ...] = FACTORS
    finished: bool = False
    entries: list[Entry] = field(init=False)

    def __post_init__(self) -> None:
        if self.tune and set(self.seeds) & set(TUNING_SEEDS):
            raise UserError("the seeds on which rates are chosen must not be reported: use others")
        if sorted({f for f in self.factors if 0 < f < math.inf}) != list(self.factors) or not self.factors:
            raise UserError("a grid has different positive numbers, in ascending order, such as 0.1,1,10")
        self.entries = [
            self._entry(benchmark, spec)
            for benchmark in self.benchmarks
            for spec in dict.fromkeys([Spec(benchmark.reference), *self.specs])
        ]

    def _entry(self, benchmark: Benchmark, spec: Spec) -> Entry:
        try:
            return Entry(benchmark, spec, benchmark.experiment(spec))
        except Refused as error:
            if not self.lenient or spec == Spec(benchmark.reference):
                raise
            return Entry(benchmark, spec, None, refused=error.reason)

    # --- jobs ---------------------------------------------------------------------------------------------------------

    def grid(self, entry: Entry) -> list[Job]:
        """The jobs that its rate is chosen by, in the order of the rates."""
        if not self.tune or entry.experiment is None:
            return []
        middle = entry.benchmark.experiment(entry.spec).algorithm.lr  # not the entry's own, which may be tuned by now
        rates = [float(f"{factor * middle:.12g}") for factor in self.factors]
        tried = [entry.benchmark.experiment(entry.spec, lr) for lr in rates]
        return [job(entry, TUNING_SEEDS, judged(e)) for e in tried]

    def reported(self, entry: Entry) -> Job | None:
        """The job whose numbers are shown; None if there is none."""
        if entry.experiment is None or entry.failed:
            return None
        return job(entry, self.seeds, entry.experiment)

    def holds(self, j: Job) -> bool:
        """Tells whether nothing of a job needs training."""
        standing = results.standing(j)
        return (standing.usable if self.finished else standing.holds) and models_there(j)

    def groups(self, jobs: Iterable[tuple[Entry, Job]]) -> list[tuple[list[Entry], list[Job]]]:
        """Groups to train together: the package's algorithms on one benchmark with equal seeds, as many as fit into
        half of the memory; own ones alone."""
        by_key: dict[object, list[tuple[list[Entry], list[Job]]]] = {}
        filled: dict[object, float] = {}
        for entry, j in jobs:
            trained = results.standing(j).holds  # and lacks its models: all of its runs are trained again
            key = (entry.benchmark.name, j.panel.seeds, entry.spec if entry.own else None, trained)
            cohorts, size = by_key.setdefault(key, []), costs.held(j)
            if not cohorts or filled[key] + size > memory() / 2:
                cohorts.append(([], []))
                filled[key] = 0.0
            entries, members = cohorts[-1]
            entries.append(entry)
            members.append(j)
            filled[key] += size
        return [cohort for cohorts in by_key.values() for cohort in cohorts]

    def _settle(self) -> list[Entry]:
        """Choose the rates whose grids are there and hold; returns the entries whose rates are still to be chosen."""
        grids = [(e, grid) for e in self.entries if (grid := self.grid(e))]
        unsettled = [e for e, grid in grids if not all(map(self.holds, grid))]
        for entry, _ in grids:
            if entry not in unsettled:
                self._choose(entry)
        return unsettled

    def _jobs(self) -> list[tuple[Entry, Job]]:
        """The grids, and the reported seeds at today's rates."""
        grids = [(e, j) for e in self.entries for j in self.grid(e)]
        return grids + [(e, j) for e in self.entries if (j := self.reported(e)) is not None]

    def cost(self) -> str:
        """One line: what is to be trained, tuning included, how long that takes on one core, and the most memory."""
        unsettled = [id(e) for e in self._settle()]
        jobs = self._jobs()
        # A rate that is still to be chosen may be any: what is reported at it counts as missing.
        due = [(e, j) for e, j in jobs if (id(e) in unsettled and j.panel.seeds == self.seeds) or not self.holds(j)]
        cohorts = [members for _, members in self.groups(due)]
        each = [costs.cost(joined(members)) for members in cohorts]
        if not each:
            all_ = "the result is there and holds" if len(jobs) == 1 else f"{len(jobs)} results are there and hold"
            return f"{all_}; nothing to train"
        samples, flops, seconds = (sum(getattr(c, k) for c in each) for k in ("samples", "flops", "seconds"))
        most = max(c.bytes + sum(map(costs.held, members)) for c, members in zip(each, cohorts, strict=True))
        runs = sum(j.runs for _, j in due)
        missing = ("at most " if unsettled else "") + f"{len(due)} of {len(jobs)} results"
        return (
            f"{missing} to train, {counted(runs, 'run')} in {counted(len(each), 'cohort')}: "
            f"{short(samples)} samples, {short(flops)}FLOP, about {duration(seconds)} on one core, "
            f"up to {most / 1e9:.1f} GB"
        )

    def check(self) -> None:
        """Raises MissingData or UserError if something of it cannot be trained here."""
        if folder := settings().save:
            if lost := [b.name for b in self.benchmarks if not b.has_data]:
                raise UserError(f"{lost[0]} has a function and no model to save: leave --save out")
            check_writable(folder / "one")
        for entry in () if self.finished else self.entries:
            for j in filter(None, [self.reported(entry), *self.grid(entry)]):
                if not results.standing(j).usable:
                    training.check(j, Path(j.output))

    # --- training -----------------------------------------------------------------------------------------------------

    def train(self) -> None:
        """Train what does not hold: the grids, then the reported seeds at the rates that won."""
        self.check()
        self._settle()
        start, due = time.perf_counter(), sum(not self.holds(j) for _, j in self._jobs())
        if self.tune:
            self._train((e, j) for e in self.entries for j in self.grid(e))
            for entry in self.entries:
                self._choose(entry)
        self._train((e, j) for e in self.entries if (j := self.reported(e)) is not None)
        if due:
            print(f"trained in {duration(time.perf_counter() - start)}", file=sys.stderr)

    def _train(self, jobs: Iterable[tuple[Entry, Job]]) -> None:
        due = [(e, j) for e, j in jobs if not self.holds(j)]
        if due and self.finished:
            raise UserError(f"{due[0][1].name} is not trained: leave --finished out")
        for entries, members in self.groups(due):
            try:
                if entries[0].own:
                    guarded(entries[0], members)
                else:
                    training.train(joined(members))
            except OwnCodeError as error:
                if not entries[0].own:
                    raise
                entries[0].failed = str(error)

    def _choose(self, entry: Entry) -> None:
        """Take the rate with the best mean score over the tuning seeds, of equals the one nearest to the middle; a
        diverged seed makes a rate the worst."""
        grid = self.grid(entry)
        if not grid or entry.failed:
            return
        sign = -1 if entry.benchmark.metric[0] == "distance" else 1
        tried = scores.of(joined(grid), entry.benchmark).groupby("lr")["value"]  # in the order of the rates
        worth = [-math.inf if math.isnan(m) else sign * m for m in tried.agg(lambda v: v.mean(skipna=False))]
        middle = min(range(len(grid)), key=lambda i: abs(math.log(self.factors[i])))
        best = max(range(len(grid)), key=lambda i: (worth[i], -abs(i - middle)))
        if worth[best] == -math.inf:
            entry.failed = "diverged at every rate of its grid"
            return
        entry.edge, entry.chosen_on = best in (0, len(grid) - 1), HELD_OUT if entry.benchmark.has_data else ""
        entry.experiment = entry.benchmark.experiment(entry.spec, grid[best].experiments[0].algorithm.lr)

    # --- results ------------------------------------------------------------------------------------------------------

    def frame(self) -> pd.DataFrame:
        """One row per benchmark, algorithm and seed: benchmark, scale, algorithm, lr, seed, metric, value, difference
        (to the reference, same seed), status ("ok", "diverged", "failed: ...", "refused: ..."), edge, chosen_on
        (`HELD_OUT`, or ""); what is `scores.beside` it somewhere.

        The value is a mean over a run's last evaluations (`Benchmark.window`), over the sizes where a model has
        several; NaN where there is none.
        """
        parts = []
        for benchmark in self.benchmarks:
            frames = [self._rows(e) for e in self.entries if e.benchmark is benchmark]
            base = frames[0].set_index("seed")["value"]
            parts += [rows.assign(difference=rows["value"] - rows["seed"].map(base)) for rows in frames]
        columns = ["benchmark", "scale", "algorithm", "lr", "seed", "metric", "value", "difference", "status"]
        columns += dict.fromkeys(name for b in self.benchmarks for name in scores.beside(b))
        return pd.concat(parts, ignore_index=True).reindex(columns=[*columns, "edge", "chosen_on"])

    def _rows(self, entry: Entry) -> pd.DataFrame:
        j = self.reported(entry)
        if j is None:
            status = f"refused: {entry.refused}" if entry.refused else f"failed: {entry.failed}"
            rows = pd.DataFrame({"seed": self.seeds, "value": math.nan, "status": status})
        else:
            rows = scores.of(j, entry.benchmark)
        lr = math.nan if entry.experiment is None else float(entry.experiment.algorithm.lr)
        named = {"benchmark": entry.benchmark.name, "scale": entry.benchmark.scale, "algorithm": entry.spec.text}
        named |= {"metric": entry.benchmark.metric[0], "chosen_on": entry.chosen_on}
        return rows.assign(**named, lr=lr, edge=entry.edge)

    def twins(self) -> list[tuple[Spec, Spec]]:
        """Own algorithms with another that gives their numbers, to the last digit, wherever both have some."""
        curves: dict[Spec, dict[str, pd.DataFrame]] = {}
        for e in self.entries:
            if (j := self.reported(e)) is not None:
                curves.setdefault(e.spec, {})[e.benchmark.name] = scores.evaluations(j, e.benchmark)
        pairs = []
        for own in (spec for spec in curves if spec.cls is not None):
            for other in (spec for spec in curves if spec != own):
                both = curves[own].keys() & curves[other].keys()
                if both and all(curves[own][name].equals(curves[other][name]) for name in both):
                    pairs.append((own, other))
                    break
        return pairs

    def histories(self, benchmark: Benchmark) -> pd.DataFrame:
        """The curves of a benchmark: algorithm, seed, round, time, value, status."""
        jobs = [(e, self.reported(e)) for e in self.entries if e.benchmark is benchmark]
        curves = [scores.evaluations(j, benchmark).assign(algorithm=e.spec.text) for e, j in jobs if j is not None]
        return pd.concat(curves, ignore_index=True)


def models_there(j: Job) -> bool:
    """Tells whether the models of a job are where they are to be saved, if they are."""
    reported, folder = [e for e in j.experiments if JUDGE not in e.labels], settings().save
    return folder is None or all(saved.path(folder, e, seed).is_file() for e in reported for seed in j.panel.seeds)


def job(entry: Entry, seeds: tuple[int, ...], experiment: Experiment) -> Job:
    """The job of an experiment, which the record of replays knows by this name."""
    identity = json.dumps([experiment.declaration, canonical(experiment.labels), seeds])
    word = re.sub("[^a-z0-9]", "-", entry.spec.name.lower())
    name = f"{entry.benchmark.slug}--{word}-{hashlib.sha256(identity.encode()).hexdigest()[:10]}"
    panel = Panel(name, (experiment,), seeds, f"benchmark of {entry.benchmark.panel}")
    return Job(entry.benchmark.scale, "play", name, panel, (experiment,), (), entry.benchmark.slug)


def joined(jobs: Sequence[Job]) -> Job:
    """The jobs as one job with one cohort; equal experiments occur once."""
    first = jobs[0]
    experiments = tuple(dict.fromkeys(e for j in jobs for e in j.experiments))
    if len(experiments) == 1:
        return first
    panel = Panel(first.file, experiments, first.panel.seeds, first.panel.substitute)
    return dataclasses.replace(first, name=first.file, panel=panel, experiments=experiments)


def guarded(entry: Entry, jobs: Sequence[Job]) -> None:
    """Train jobs of a user's own class. Raises OwnCodeError, and leaves no results, if it does not repeat itself."""
    job = joined(jobs)
    aside = settings().store / "checkpoints" / f"{job.name}-{plan.digest(job, settings().precision)}.parquet"
    with sole(aside, f"{entry.spec.text} on {entry.benchmark.name}"):
        try:
            training.train(job, aside)
            repeated(entry, jobs, aside)
            store.merge(Path(job.output), *store.read(aside))
        finally:
            aside.unlink(missing_ok=True)


def repeated(entry: Entry, jobs: Sequence[Job], results: Path) -> None:
    """Train the first rounds of own jobs once more, by code that is loaded anew, seeds in another order: they give the
    bits of their results file. Raises OwnCodeError if they do not: nobody could reproduce them."""
    from reproduce.runs.replay import replay

    stored = load([Source(entry.benchmark.name, results)], entry.benchmark.scale).frame
    loaded = dict(sys.modules)
    try:
        spec = parse(entry.spec.text)
        originals = [e for j in jobs for e in j.experiments]
        anew = [entry.benchmark.experiment(spec, float(e.algorithm.lr)) for e in originals]
        anew = [judged(e) if JUDGE in old.labels else e for e, old in zip(anew, originals, strict=True)]
        outcome = replay(anew, jobs[0].panel.seeds[::-1], 2, stored, settings().precision)
    finally:
        sys.modules.update(loaded)
    if outcome.deviation:
        raise OwnCodeError(
            f"its first rounds give other numbers when they are trained once more ({outcome.where}): it may draw from "
            "a generator without a seed, ask the time, or remember something in a file"
        )
