"""The expected results of a scale, in short: `results/<scale>.csv`, a number for each job, experiment and metric.

At smoke scale no number means anything, but a kernel or an algorithm that is broken gives others. A number is the mean
over all rounds, keys and seeds: it moves with any part of a curve, and little with the rounding of one round.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from reproduce import files, store
from reproduce.errors import UserError
from reproduce.runs import plan

TOLERANCE, FEW, FAR = 0.01, 0.1, 0.1
"""A number agrees within TOLERANCE, relative to what is expected or to a tenth of the largest of its metric in the job.
Of a job a share of FEW may deviate by up to FAR: another processor rounds otherwise, and where two clients or classes
are nearly even that decides who is chosen. Without compiled code and vector instructions 8 of 1,640 numbers moved at
all, three of them by more than 1 %, none by 4 %; with AVX2 in place of AVX-512 four and two."""
COLUMNS = ["job", "metric", "experiment", "value"]
"""Experiments are numbered from 1, in the order of their declaration; a value is NaN where no run has a finite mean."""


def file(scale: str) -> Path:
    return Path(f"results/{scale}.csv")


def numbers(scale: str) -> pd.DataFrame:
    """The numbers of the results that are there; UserError if some are not, or not whole."""
    return pd.concat([_means(job) for job in plan.jobs(scale)], ignore_index=True)[COLUMNS]


def _means(job: plan.Job) -> pd.DataFrame:
    try:
        table, runs = store.result(Path(job.output))
    except store.Unusable as error:
        raise UserError(f"{job.output}: {error}; `snakemake {job.scale}` makes it") from error
    numbers = range(1, len(job.experiments) + 1)
    place = {tuple(sorted(e.labels.items())): i for i, e in zip(numbers, job.experiments, strict=True)}
    at = np.repeat([place.get(run.name[:-1], 0) for run in runs], [run.rows for run in runs])
    rows = table.select(["seed", "metric", "time", "value"]).to_pandas().assign(experiment=at)
    rows = rows[(at > 0) & rows["seed"].isin(job.panel.seeds)]  # the file keeps seeds of an earlier declaration
    rows = pd.concat([rows, rows.assign(metric="time", value=rows["time"])])
    of_runs = rows.groupby(["metric", "experiment", "seed"])["value"].mean().replace([np.inf, -np.inf], np.nan)
    means = of_runs.groupby(["metric", "experiment"]).mean().map(lambda mean: float(f"{mean:.5g}"))
    wide = means.unstack("metric").dropna(axis=1, how="all").reindex(pd.Index(numbers, name="experiment"))
    return wide.reset_index().melt("experiment", var_name="metric").assign(job=f"{job.paper}/{job.name}")


def differences(expected: pd.DataFrame, measured: pd.DataFrame) -> list[str]:
    """The deviations in the jobs that do not agree, in words, the largest first."""
    both = expected.merge(measured, "outer", COLUMNS[:-1], suffixes=("_was", ""))
    was, now = both["value_was"], both["value"]
    least = FAR * was.abs().groupby([both["job"], both["metric"]]).transform("max")
    size = was.abs().fillna(0).clip(lower=least.fillna(0)).replace(0, 1)
    far = ((now - was).abs() / size).fillna(np.inf).mask(was.isna() & now.isna(), 0.0)
    off = both.assign(far=far)[far > TOLERANCE]
    allowed = FEW * expected.groupby("job").size()
    jobs = off.groupby("job")["far"].agg(["size", "max"])
    wrong = jobs[(jobs["size"] > allowed.reindex(jobs.index).fillna(0)) | (jobs["max"] > FAR)].index
    ordered = off[off["job"].isin(wrong)].sort_values("far", ascending=False, kind="stable")
    template = "{job}, experiment {experiment}, {metric}: {value:g}, expected {value_was:g}"
    return [template.format_map(row) for row in ordered.to_dict("records")]


def read(scale: str) -> pd.DataFrame:
    """The committed numbers; UserError for none."""
    path = file(scale)
    try:
        return pd.read_csv(path)[COLUMNS]
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{path}: {error}; `reproduce verify --scale {scale} --update` writes it") from error


def write(scale: str, numbers: pd.DataFrame) -> None:
    files.write_text(file(scale), numbers.to_csv(index=False, lineterminator="\n"))
