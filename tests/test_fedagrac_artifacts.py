"""FedaGrac: declarations against the paper, cells on made-up curves, the smoke scale from training to files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from reproduce import plan
from reproduce.algorithms.fedagrac import Constant, FedaGrac
from reproduce.engine.train import train_job
from reproduce.experiment import PACKAGE, SCALES, Experiment
from reproduce.papers.fedagrac import (
    clock,
    fig1,
    fig2,
    fig3,
    fig4,
    fig5,
    headline,
    sensitivity,
    settings,
    table1,
    table2,
    table3,
    table4,
    table5,
    table6,
)  # fmt: skip
from reproduce.problems.partitions import CappedDirichlet, Head
from reproduce.report.histories import Histories
from reproduce.report.render import render
from reproduce.systems.work import Gaussian

REPORTED = PACKAGE / "papers" / "fedagrac" / "reported"
TRAINED: tuple[ModuleType, ...] = (fig1, fig2, fig3, fig4, fig5, table1, table2, table6, sensitivity)


def histories(parts: Sequence[pd.DataFrame], scale: str) -> Histories:
    return Histories(pd.concat(parts, ignore_index=True), scale)


def curve(values: Sequence[float], experiment: Experiment, seed: int = 0, status: str = "ok") -> pd.DataFrame:
    """The accuracies of rounds 0, 1, ... of one run."""
    frame = pd.DataFrame({"round": range(len(values)), "value": np.asarray(values, float)})
    return frame.assign(**experiment.labels, seed=seed, time=np.nan, metric="accuracy", key="", status=status)


def only(cells: pd.DataFrame, **where: Any) -> float:
    for column, value in where.items():
        cells = cells[cells[column] == value]
    assert len(cells) == 1
    return float(cells["value"].iloc[0])


# --- declarations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("module", "name"), [(table3, "table3"), (table4, "table4"), (table5, "table5")])
def test_architectures_are_those_of_the_paper(module: ModuleType, name: str) -> None:
    """Layer by layer: names, output shapes, activations, hyper-parameters, numbers of parameters."""
    theirs = pd.read_csv(REPORTED / f"{name}.csv", dtype=str, keep_default_na=False).drop(columns=["artifact", "std"])
    ours = module.ARTIFACT.cells(Histories(pd.DataFrame(), "paper")).drop(columns="seed")
    ours = ours.assign(value=ours["value"].astype(int)).astype(str)[list(theirs.columns)]
    pd.testing.assert_frame_equal(ours, theirs)


def test_the_paper_scale_has_the_runs_of_the_paper() -> None:
    """Numbers of runs per seed as counted from the paper (6)."""
    count = {m: sum(len(p.experiments) for p in m.ARTIFACT.panels("paper")) for m in TRAINED}
    rows = [p for p in table6.ARTIFACT.panels("paper") if p.name.startswith("table6")]
    grids = [p for p in table6.ARTIFACT.panels("paper") if p.name.startswith("tuned")]
    assert (len(rows), sum(len(p.experiments) for p in rows)) == (15, 75)
    assert sum(len(p.experiments) for p in grids) == 495
    assert Counter(e.labels["algorithm"] for e in grids[0].experiments) == {
        "fedavg": 3, "fednova": 3, "scaffold": 3, "fedprox": 9, "fedagrac": 15,
    }  # fmt: skip
    assert (count[fig1], count[fig2], count[fig4], count[fig5]) == (8, 15, 168, 20 + 42)
    assert (count[table1], count[table2]) == (12, 160)
    drawn = [e for p in fig3.ARTIFACT.panels("paper") for e in p.experiments if e.labels["algorithm"] in fig3.SCHEMES]
    assert len([e for e in drawn if e.labels["model"] in ("lr", "cnn2")]) == 16


def test_table_6_is_declared_in_full() -> None:
    theirs = pd.read_csv(REPORTED / "table6.csv")
    names = ["dataset", "model", "partition", "k_mean", "k_variance", "k_mode", "algorithm"]
    found = [e for p in table6.ARTIFACT.panels("paper") if p.name.startswith("table6") for e in p.experiments]
    assert {tuple(r) for r in theirs[names].itertuples(index=False)} == {
        tuple(e.labels[n] for n in names) for e in found
    }
    targets = {(b.model, b.partition): b.target for b in headline.blocks("paper")}
    assert {(r.model, r.partition): float(r.target_accuracy) for r in theirs.itertuples()} == targets


def test_fig_5_shares_its_second_panel_with_table_6() -> None:
    second = fig5.ARTIFACT.panels("paper")[1]
    assert second in table6.ARTIFACT.panels("paper")
    assert second.experiments[0].labels["k_mean"] == 500
    assert second.experiments[0].system.work == Gaussian(500, 10000, "fixed")
    assert all(e.clock.until is None and e.clock.rounds == 200 for e in second.experiments)


def test_a_sweep_is_one_job() -> None:
    """At paper scale too: all 42 points train in one cohort."""
    for name in ("fig4-lr-equal--fedagrac", "fig4-lr-async--fedagrac"):
        assert len(plan.job("paper", "fedagrac", name).experiments) == 42


@pytest.mark.parametrize("scale", SCALES)
def test_sweeps_contain_what_the_text_names(scale: str) -> None:
    """λ = 1 for logistic regression with rates of at most 0.005, λ 0 and 'increase' in Fig. 2, an inner λ."""
    rates = {e.labels["learning_rate"] for p in fig4.ARTIFACT.panels(scale) for e in p.experiments}
    lambdas = {e.labels["lambda"] for p in fig4.ARTIFACT.panels(scale) for e in p.experiments}
    assert 1.0 in lambdas
    assert scale == "smoke" or len([r for r in rates if r <= 0.005]) > 1
    by = {step: [e.labels["lambda"] for p in fig2.ARTIFACT.panels(scale) for e in p.experiments
                 if e.labels["step_async"] == step] for step in (0, 1)}  # fmt: skip
    assert by[1][0] == "0"
    assert by[0][-1] == "increase"
    for p in fig4.ARTIFACT.panels(scale):
        for e in p.experiments:
            assert isinstance(e.algorithm, FedaGrac)
            assert (e.algorithm.lr, e.algorithm.calibration) == (
                e.labels["learning_rate"], Constant(float(e.labels["lambda"])),
            )  # fmt: skip


@pytest.mark.parametrize("scale", SCALES)
def test_sensitivity_asks_every_reading_at_every_rate(scale: str) -> None:
    panels = sensitivity.ARTIFACT.panels(scale)
    for question, p in zip(sensitivity.questions(scale), panels, strict=True):
        found = {(e.labels["algorithm"], e.labels["lambda"]) for e in p.experiments}
        assert found == {(a, lam) for a in question.readings for lam in question.lambdas} | {
            (a, 0.0) for a in sensitivity.REFERENCES
        }
    digests = [e.digest for p in panels for e in p.experiments]
    assert len(set(digests)) == len(digests)  # no two are the same run


def test_the_part_of_the_data_keeps_the_steps_per_pass() -> None:
    """A tenth of the steps on a tenth of the data is as many passes as in the paper."""
    (_, part), (whole,) = (sensitivity.panels(scale) for scale in ("reduced", "paper"))
    few, many = (p.experiments[0].system.work for p in (part, whole))
    share = part.experiments[0].problem.partition.share
    assert (few.low / share, few.high / share) == pytest.approx((many.low, many.high))


def test_head_keeps_the_first_part_of_every_list() -> None:
    labels = np.random.default_rng(0).integers(0, 4, 500)
    whole, part = CappedDirichlet(0.3).split(labels, 6, 0), Head(CappedDirichlet(0.3), 0.1).split(labels, 6, 0)
    for a, b in zip(whole, part, strict=True):
        assert len(b) == -(-len(a) // 10)
        assert np.array_equal(a[: len(b)], b)


# --- the clock of Fig. 5 ----------------------------------------------------------------------------------------------


def test_seconds_of_a_step() -> None:
    """LR on a9a: 3 * 2 * 246 FLOPs * 20 samples, 2 tensors, 248 parameters; and the ratios that the paper suggests."""
    plain = clock.step_seconds("fedavg", settings.LR_A9A, (123,), 20)
    assert plain == pytest.approx(3 * 2 * 246 * 20 / 1e12 + 40e-6 + 2 * 1 * 5e-6 + 3 * 248 * 4 / 3e11, rel=1e-12)
    prox = clock.step_seconds("fedprox", settings.LR_A9A, (123,), 20)
    assert prox / plain == pytest.approx(1.4, abs=0.05)
    large = [clock.step_seconds(a, settings.ALEXNET, (3, 32, 32), 25) for a in ("fedprox", "fedavg")]
    assert 1.0 < large[0] / large[1] < 1.2
    assert clock.bytes_per_round("scaffold", settings.LR_A9A) == 2 * clock.bytes_per_round("fednova", settings.LR_A9A)
    assert clock.bytes_per_round("fedavg", settings.LR_A9A) == 2 * 4 * 248


def test_seconds_of_rounds() -> None:
    """The slowest client decides; all messages go through one link."""
    experiment = next(e for e in fig5.ARTIFACT.panels("paper")[2].experiments if e.labels["algorithm"] == "fedagrac")
    k = [129, 8, 229, 51, 34, 253, 45, 81, 91, 229, 236, 217, 75, 189, 19, 72, 54, 297, 15, 23]
    step = clock.step_seconds("fedagrac", settings.LR_A9A, (123,), 20)
    each = max(k) * step + 20 * 4 * 4 * 248 / 1e9
    np.testing.assert_allclose(clock.seconds(experiment, 0), each * np.arange(201))


# --- cells ------------------------------------------------------------------------------------------------------------


def test_table_2_takes_the_first_utilisation_that_reaches_the_target_in_time() -> None:
    search = table2.SEARCHES["reduced"]  # 55 % within 40 rounds, accuracy after 60
    experiments = table2.ARTIFACT.panels("reduced")[0].experiments
    late, early, never = np.full(61, 50.0), np.full(61, 50.0), np.full(61, 54.9)
    late[41:], early[30], early[60] = 80.0, 55.0, 66.5
    early[31:41] = 40.0
    curves = {
        "fednova": {100: late, 75: never, 50: early, 25: np.full(61, 60.0)},  # what lies below does not count
        "fedagrac": dict.fromkeys(search.utilisations, never),
    }
    parts = [curve(curves[str(e.labels["algorithm"])][int(e.labels["utilization"])], e) for e in experiments]
    cells = table2.ARTIFACT.cells(histories(parts, "reduced"))
    found = [only(cells, algorithm="fednova", metric=m) for m in
             ("utilization_percent", "rounds_to_60", "accuracy_after_100_rounds")]  # fmt: skip
    assert found == [50.0, 30.0, 66.5]
    missed = cells[cells["algorithm"] == "fedagrac"].set_index("metric")
    assert np.isnan(missed.loc["utilization_percent", "value"])
    assert missed.loc["rounds_to_60", ["value", "censored"]].tolist() == [40.0, True]
    assert np.isnan(missed.loc["accuracy_after_100_rounds", "value"])


def test_table_6_reports_the_best_of_the_grid_beside_the_fixed_choice() -> None:
    block = headline.blocks("paper")[0]
    row, grid = block.panel(0, "none", stop=True), block.panel(0, "none", headline.grid(), stop=True)
    parts = [curve([0.0] * 120 + [68.0], e, seed) for e in row.experiments for seed in (0, 1)]
    for i, e in enumerate(grid.experiments):
        # The mean decides: 90 + i on average, although seed 0 alone would prefer another point.
        parts += [curve([0.0] * (60 + 50 * (i % 2) + i) + [68.0], e, 0)]
        parts += [curve([0.0] * (120 - 50 * (i % 2) + i) + [68.0], e, 1)]
    cells = table6.ARTIFACT.cells(histories(parts, "paper"))
    assert only(cells, algorithm="fedavg", seed=0, metric="rounds_to_target") == 120
    first = [e.labels["algorithm"] for e in grid.experiments].index("fedprox")
    tuned = cells[(cells["metric"] == "rounds_to_target_tuned") & (cells["algorithm"] == "fedprox")]
    assert sorted(tuned["value"]) == sorted([60 + 50 * (first % 2) + first, 120 - 50 * (first % 2) + first])
    points = cells[cells["seed"] == -1].set_index(["algorithm", "metric"])["value"]
    assert points["fedprox", "tuned_learning_rate"] == 0.01
    assert points["fedprox", "tuned_mu"] == 1.0
    assert points["fedagrac", "tuned_lambda"] == 0.01
    assert len(cells) == 20 + 5 + 2  # a rate for each, one λ, one μ


def test_the_best_point_is_never_one_that_diverged() -> None:
    rows = [
        ("fedavg", "0.1", 0, np.nan),
        ("fedavg", "0.1", 1, 99.0),
        ("fedavg", "0.01", 0, 70.0),
        ("fedavg", "0.01", 1, 71.0),
    ]
    cells = pd.DataFrame(rows, columns=["algorithm", "point", "seed", "value"]).assign(metric="last10")
    best = headline.best_points(cells, ["algorithm"], lower=False)
    assert best["value"].tolist() == [70.0, 71.0, 0.01]
    assert best["metric"].tolist() == ["last10_tuned", "last10_tuned", "tuned_learning_rate"]


def test_fig_5_has_its_grid_beside_the_figure() -> None:
    """2 means x (3 + 3 + 3 + 9 + 3) points; the figure and its other cells do not see them."""
    grids = [p for p in fig5.ARTIFACT.panels("paper") if p.name.startswith("tuned")]
    assert [len(p.experiments) for p in grids] == [21, 21]
    panel = fig5.drawn("paper")[2]
    plain = [curve(np.full(201, 60.0), e) for e in panel.experiments]
    grid = [curve(np.full(201, 80.0 + i), e) for i, e in enumerate(grids[0].experiments)]
    alone, beside = (fig5.ARTIFACT.cells(histories(parts, "paper")) for parts in (plain, plain + grid))
    extra = beside["metric"].str.contains("tuned")
    pd.testing.assert_frame_equal(beside[~extra].reset_index(drop=True)[list(alone)], alone)
    assert extra.sum() == 5 + 5 + 2
    assert only(beside, algorithm="fedagrac", metric="tuned_learning_rate") == 0.0005  # the last of the grid


def test_runs_that_miss_their_target_are_censored_at_the_cap() -> None:
    panels = table1.ARTIFACT.panels("paper")
    parts = []
    for p in panels:
        for e in p.experiments:
            both = e.labels["step_async"] and e.labels["non_iid"]
            parts.append(curve([10.0] * 1001 if both else [10.0, 79.9, 80.0], e))
    cells = table1.ARTIFACT.cells(histories(parts, "paper"))
    both = cells["step_async"].astype(bool) & cells["non_iid"].astype(bool)
    assert set(cells.loc[both, "value"]) == {1000.0}
    assert cells["censored"].tolist() == both.tolist()
    assert set(cells.loc[~both, "value"]) == {2.0}


def test_fig_5_compares_with_scaffold_and_with_the_worst_of_the_best() -> None:
    panel = fig5.ARTIFACT.panels("reduced")[2]
    ramp = np.minimum(np.arange(101.0), 50.0)
    shift = {"fedagrac": -0.1, "fedavg": -10.0, "fednova": 0.0, "scaffold": 0.0, "fedprox": -0.3}
    parts = [curve(ramp + shift[str(e.labels["algorithm"])], e) for e in panel.experiments]
    cells = fig5.ARTIFACT.cells(histories(parts, "reduced"))
    share = {a: only(cells, algorithm=a, metric="fraction_of_rounds_not_below_scaffold") for a in shift}
    assert share == {"fedagrac": 1.0, "fedavg": 0.0, "fednova": 1.0, "scaffold": 1.0, "fedprox": 0.0}
    reached = {a: only(cells, algorithm=a, metric="rounds_to_best_common_accuracy") for a in shift}
    assert reached == {"fedagrac": 41, "fedavg": 50, "fednova": 40, "scaffold": 40, "fedprox": 41}
    times = {a: only(cells, algorithm=a, metric="simulated_time_total_s") for a in shift}
    assert times["fedavg"] == times["fednova"] < times["fedprox"] < times["fedagrac"] == times["scaffold"]


# --- the smoke scale --------------------------------------------------------------------------------------------------


def test_smoke_scale_from_training_to_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every artifact but Fig. 1 (trained elsewhere) renders; runs that stop early, censored cells and all."""
    monkeypatch.chdir(tmp_path)
    trained: set[str] = set()
    for module in TRAINED[1:]:
        artifact = module.ARTIFACT
        for job in plan.artifact_jobs("smoke", artifact.id):
            output = Path(job.output)
            output.parent.mkdir(parents=True, exist_ok=True)
            if job.name not in trained:
                train_job(job.panel, job.experiments, "smoke", "fedagrac", job.name, "test", output)
            trained.add(job.name)
        written = render(artifact, "smoke", tmp_path, plan.sources("smoke", artifact.id))
        assert sorted(str(f.relative_to(tmp_path)) for f in written) == sorted(plan.outputs("smoke", artifact.id)[:-1])
        cells = pd.read_csv(tmp_path / plan.cells_file("smoke", artifact.id))
        assert set(cells["seed"]) == {0, 1}
        assert len(cells) > 7
    assert len(trained) == 20
