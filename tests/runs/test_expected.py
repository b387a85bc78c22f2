"""The committed numbers of the smoke results: which jobs they are of, and what counts as another number."""

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import written

from reproduce.__main__ import main
from reproduce.errors import UserError
from reproduce.runs import expected, plan
from reproduce.runs.job import train_job

ROOT = Path(__file__).parents[2]
JOB = "fedagrac/table1-lr"


def test_there_is_a_number_for_each_metric_of_each_declared_experiment() -> None:
    """If this fails, toys have changed: `make smoke`, then `reproduce verify --scale smoke --update`."""
    jobs = {f"{job.paper}/{job.name}": [*range(1, len(job.experiments) + 1)] for job in plan.jobs("smoke")}
    numbers = expected.read("smoke")
    assert {*numbers["job"]} == {*jobs}
    for (job, _), rows in numbers.groupby(["job", "metric"]):
        assert rows["experiment"].tolist() == jobs[job]
        assert rows["value"].notna().any()


def kinds(value: object) -> Iterator[str]:
    """The records that are in a record, and their words and flags."""
    if dataclasses.is_dataclass(value):
        yield type(value).__name__
        for f in dataclasses.fields(value):
            inner = getattr(value, f.name)
            yield from [f"{type(value).__name__}.{f.name} = {inner}"] if isinstance(inner, str | bool) else kinds(inner)
    elif isinstance(value, tuple):
        yield from itertools.chain.from_iterable(map(kinds, value))


def test_every_kind_of_algorithm_clock_and_system_has_a_number() -> None:
    """Nothing of them that a larger scale declares, no option either, goes without a run that is compared."""
    found = {
        scale: {
            kind
            for job in plan.jobs(scale)
            for e in job.experiments
            for kind in itertools.chain(kinds(e.algorithm), kinds(e.clock), kinds(e.system))
        }
        for scale in ("smoke", "reduced", "paper")
    }
    assert len(found["smoke"]) > 100
    assert not (found["reduced"] | found["paper"]) - found["smoke"]


VALUES = {("p/j", "loss"): [1.0] * 15, ("p/j", "time"): [200.0] * 5, ("p/k", "loss"): [2.0, 0.001]}
OLD = pd.DataFrame(
    [(*of, i, value) for of, values in VALUES.items() for i, value in enumerate(values)], columns=expected.COLUMNS
)


def changed(job: str, metric: str, values: dict[int, float]) -> list[str]:
    mine = (OLD["job"] == job) & (OLD["metric"] == metric)
    return expected.differences(OLD, OLD.assign(value=OLD["experiment"].map(values).where(mine, OLD["value"])))


def test_what_deviates() -> None:
    def of(n: int) -> dict[int, float]:
        """Of fifteen losses, the first n."""
        return {i: 1.02 if i < n else 1.0 for i in range(15)}

    assert expected.differences(OLD, OLD) == []
    assert changed("p/j", "loss", dict.fromkeys(range(15), 1.0099)) == [], "rounding"
    assert changed("p/j", "time", dict.fromkeys(range(5), 201.0)) == [], "relative to its size"
    assert changed("p/j", "loss", of(2)) == [], "a tenth of the job's numbers, where ties flip"
    assert len(changed("p/j", "loss", of(3))) == 3
    assert changed("p/j", "loss", {**of(0), 3: 1.11}) == ["p/j, experiment 3, loss: 1.11, expected 1"]
    assert len(changed("p/j", "loss", {**of(1), 3: 0.89})) == 2, "one is far"
    assert changed("p/j", "time", dict.fromkeys(range(1, 5), 200.0)) == ["p/j, experiment 0, time: nan, expected 200"]
    assert changed("p/k", "loss", {0: 2.03, 1: 0.001}) == ["p/k, experiment 0, loss: 2.03, expected 2"], "not of two"
    assert changed("p/k", "loss", {0: 2.0, 1: 0.002}) == [], "small beside the others"
    some = OLD[OLD["job"] == "p/j"]
    assert len(expected.differences(OLD, some)) == len(expected.differences(some, OLD)) == 2, "a job that one lacks"
    lost = OLD.assign(value=float("nan"))
    assert expected.differences(lost, lost) == []


@pytest.fixture
def one_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the results of one smoke job, which is all there is."""
    job = plan.job("smoke", *JOB.split("/"))
    numbers = expected.read("smoke").query("job == @JOB")
    monkeypatch.setattr(plan, "jobs", lambda scale: (job,))
    monkeypatch.chdir(tmp_path)
    train_job(job, tmp_path / "one.pt", Path(job.output))
    expected.write("smoke", numbers)
    return tmp_path / job.output


def test_the_results_of_today_are_as_committed(one_job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--scale", "smoke", "--expected"]) == 0
    assert "numbers of 1 jobs are as expected" in capsys.readouterr().out
    assert main(["verify", "--scale", "smoke", "--update"]) == 0
    pd.testing.assert_frame_equal(expected.read("smoke"), expected.numbers("smoke"))


def test_seeds_that_are_no_longer_declared_do_not_count(one_job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file keeps the seeds of a larger declaration; a new clone has none of them."""
    whole, (job,) = expected.numbers("smoke"), plan.jobs("smoke")
    fewer = dataclasses.replace(job, panel=dataclasses.replace(job.panel, seeds=job.panel.seeds[:1]))
    monkeypatch.setattr(plan, "jobs", lambda scale: (fewer,))
    kept = expected.numbers("smoke")
    assert not kept.equals(whole)
    written.edit(one_job, lambda run: run if run.seed in fewer.panel.seeds else None)
    pd.testing.assert_frame_equal(expected.numbers("smoke"), kept)


def test_other_results_end_in_a_line_that_says_what_to_do(one_job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numbers = expected.read("smoke")
    numbers.loc[(numbers["metric"] == "accuracy") & (numbers["experiment"] == 2), "value"] *= 0.5
    expected.write("smoke", numbers)
    assert main(["verify", "--scale", "smoke", "--expected"]) == 2
    out, err = capsys.readouterr()
    assert out.startswith(f"{JOB}, experiment 2, accuracy: ")
    assert "error: 1 of " in err
    assert "`reproduce verify --scale smoke --update`" in err


def test_results_or_numbers_that_are_not_there(one_job: Path) -> None:
    expected.file("smoke").unlink()
    with pytest.raises(UserError, match=r"results/smoke.csv: .* --update` writes it"):
        expected.read("smoke")
    one_job.unlink()
    with pytest.raises(UserError, match=r"table1-lr.parquet: .*`snakemake smoke` makes it"):
        expected.numbers("smoke")
