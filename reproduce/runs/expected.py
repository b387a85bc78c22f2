"""The expected results of a scale, in short: `results/<scale>.json`, a number for each experiment and metric.

At smoke scale no number means anything, but a kernel or an algorithm that is broken gives others. A number is the mean
over all rounds, keys and seeds: it moves with any part of a curve, and little with the rounding of one round.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from reproduce import files, store
from reproduce.errors import UserError
from reproduce.runs import plan

TOLERANCE, FEW, FAR = 0.01, 0.1, 0.1
"""A number agrees within TOLERANCE, relative to what is expected or to a tenth of the largest of its metric in the job.
Of a job a share of FEW may deviate by up to FAR: another processor rounds otherwise, and where two clients or classes
are nearly even that decides who is chosen. Without compiled code and vector instructions 8 of 1,640 numbers moved at
all, three of them by more than 1 %, none by 4 %; with AVX2 in place of AVX-512 four and two."""

Numbers = dict[str, dict[str, list[float | None]]]
"""Job -> metric -> a number for each experiment, in the order of their declaration; None where nothing is finite."""


def file(scale: str) -> Path:
    return Path(f"results/{scale}.json")


def found(scale: str) -> Numbers:
    """The numbers of the results that are there; UserError if some are not, or not whole."""
    return {f"{job.paper}/{job.name}": _means(job) for job in plan.jobs(scale)}


def _means(job: plan.Job) -> dict[str, list[float | None]]:
    try:
        table, runs = store.result(Path(job.output))
    except store.Unusable as error:
        raise UserError(f"{job.output}: {error}; `snakemake {job.scale}` makes it") from error
    frame = table.select(["metric", "time", "value"]).to_pandas()
    values: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    place = {tuple(sorted(e.labels.items())): i for i, e in enumerate(job.experiments)}
    for run in runs:
        rows, at = frame.iloc[run.start : run.start + run.rows], place.get(tuple(sorted(run.labels.items())))
        if at is not None and run.seed in job.panel.seeds:  # the file keeps seeds of an earlier declaration
            for metric, value in [*rows.groupby("metric")["value"].mean().items(), ("time", rows["time"].mean())]:
                values[str(metric)][at].append(value)
    means = {metric: [_mean(of.get(i, [])) for i in place.values()] for metric, of in sorted(values.items())}
    return {metric: numbers for metric, numbers in means.items() if numbers.count(None) < len(numbers)}


def _mean(values: list[float]) -> float | None:
    finite = [v for v in values if math.isfinite(v)]
    return float(f"{sum(finite) / len(finite):.5g}") if finite else None


def differences(expected: Numbers, there: Numbers) -> list[str]:
    """The deviations in the jobs that do not agree, in words, the largest first."""
    found = []
    for job in sorted({*expected, *there}):
        old, new = expected.get(job, {}), there.get(job, {})
        deviating = [pair for m in sorted({*old, *new}) for pair in _compared(job, m, old.get(m, []), new.get(m, []))]
        if len(deviating) > FEW * sum(map(len, old.values())) or any(far > FAR for far, _ in deviating):
            found += deviating
    return [text for _, text in sorted(found, reverse=True)]


def _compared(
    job: str, metric: str, old: Sequence[float | None], new: Sequence[float | None]
) -> Iterator[tuple[float, str]]:
    """The deviations beyond the tolerance of a metric of a job, each in words."""
    if len(old) != len(new):
        yield math.inf, f"{job}, {metric}: of {len(new)} experiments, expected {len(old)}"
        return
    least = FAR * max((abs(v) for v in old if v is not None), default=0.0)
    for i, (was, now) in enumerate(zip(old, new, strict=True)):
        if (far := _deviation(was, now, least)) > TOLERANCE:
            yield far, f"{job}, experiment {i + 1}, {metric}: {now}, expected {was}"


def _deviation(was: float | None, now: float | None, least: float) -> float:
    if was is None or now is None:
        return 0.0 if was is now else math.inf
    return abs(now - was) / (max(abs(was), least) or 1.0)


def read(scale: str) -> Numbers:
    """The committed numbers; UserError for none."""
    path = file(scale)
    try:
        numbers: Numbers = json.loads(files.read_text(path))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: {error}; `reproduce verify --scale {scale} --update` writes it") from error
    return numbers


def count(numbers: Numbers) -> int:
    """The number of all values."""
    return sum(len(values) for metrics in numbers.values() for values in metrics.values())


def write(scale: str, numbers: Numbers) -> None:
    """Write them, a line for each metric of a job."""
    jobs = []
    for job, metrics in numbers.items():
        lines = (f"  {json.dumps(metric)}: {json.dumps(values)}" for metric, values in metrics.items())
        jobs.append(f" {json.dumps(job)}: {{\n" + ",\n".join(lines) + "\n }")
    files.write_text(file(scale), "{\n" + ",\n".join(jobs) + "\n}\n")
