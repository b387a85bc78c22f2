"""From histories to the numbers of FedACS's tables and figures, on made-up curves; what the choices of its sensitivity
figure change."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from runs import run

from reproduce.algorithms.base import FedAvg, Full, WeightedDraws
from reproduce.algorithms.fedacs import Calibration, FadingFedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.declare.experiment import SCALES, Experiment, changed
from reproduce.papers.fedacs import choices, findings, measures, runs, settings, theory
from reproduce.papers.fedacs.artifacts import FINAL
from reproduce.papers.fedacs.variants import DistinctDraws, DrawnTwice
from reproduce.partitions.labels import IID
from reproduce.problem import Quadratic
from reproduce.report import metrics
from reproduce.report.histories import Histories, label_columns
from reproduce.systems import System, work

SETTING = {"system": "dynamic", "dataset": "mnist", "dirichlet_alpha": settings.ONE_CLASS}
MEASURED = {"tail": 5, "seconds_per_sample": 2.43e-4}
ROUNDS = {"dynamic": 4, "static": 6}
"""How far the runs of a system are declared to go."""


def curve(
    algorithm: str, seed: int, accuracy: list[float], work: float = 100.0, **setting: Any
) -> list[dict[str, Any]]:
    """Evaluations of rounds 0, 1, ..., and the work done by then."""
    run = {**SETTING, "algorithm": algorithm, **MEASURED, **setting, "seed": seed, "time": np.nan, "key": ""}
    run["status"] = "ok"
    return [
        {**run, "round": r, "metric": metric, "value": value}
        for r, a in enumerate(accuracy)
        for metric, value in (("accuracy", a), ("work", work * r))
    ]


def histories(*played: list[dict[str, Any]], **labels: Any) -> Histories:
    """With a declaration of every run, which says how far it goes."""
    frame = pd.DataFrame([row for run in played for row in run]).assign(**labels)
    told = frame[label_columns(frame)].drop_duplicates().to_dict("records")
    runs_of = tuple(replace(PLAIN, labels=names, clock=Rounds(ROUNDS[names["system"]])) for names in told)
    return Histories(frame, "paper", experiments=runs_of)


def value(cells: pd.DataFrame, metric: str, algorithm: str, seed: int = 0) -> tuple[float, bool]:
    row = cells[(cells["metric"] == metric) & (cells["algorithm"] == algorithm) & (cells["seed"] == seed)]
    assert len(row) == 1
    return float(row["value"].iloc[0]), bool(row["censored"].iloc[0])


def test_rounds_and_time_to_the_target() -> None:
    """Target 70: raw curve, first crossing; the work until then in seconds; missed targets are lower bounds."""
    found = measures.to_target(
        histories(
            curve("fedacs", 0, [10, 50, 71, 60, 80], work=100),
            curve("fedavg", 0, [10, 50, 60, 69.9, 70], work=300),
            curve("os", 0, [10, 20, 30, 40, 50], work=200),
            curve("fedacs", 1, [10, 20, 30, 40, 50]),
            curve("fedavg", 1, [10, 75, 30, 40, 50]),
            target_accuracy_pct=70.0,
        )
    )
    assert value(found, "rounds_to_target", "fedacs") == (2, False)
    assert value(found, "rounds_to_target", "fedavg") == (4, False)
    assert value(found, "rounds_to_target", "os") == (4, True)
    assert value(found, "computation_time_to_target_s", "fedavg") == (pytest.approx(1200 * 2.43e-4), False)
    assert value(found, "computation_time_to_target_s", "os") == (pytest.approx(800 * 2.43e-4), True)
    assert value(found, "work_per_round", "fedavg") == (300, False)
    assert set(found["target_accuracy_pct"]) == {70.0}


def test_each_reading_has_the_rounds_of_its_own_runs() -> None:
    """A reading lacks FedAvg, and has the target of the paper none the less."""
    given = histories(
        curve("fedacs", 0, [10, 50, 71, 60, 80], reading="by links"),
        curve("fedacs", 0, [10, 75, 71, 60, 90], reading="mini-batches"),
        curve("os", 0, [0, 20, 30, 40, 50, 60, 69], system="static", reading="mini-batches"),
        target_accuracy_pct=70.0,
    )
    found = measures.readings(given).set_index(["table", "reading", "algorithm", "metric"])
    rounds = found.xs("rounds_to_target", level="metric")[["value", "censored"]]
    assert {key: tuple(row) for key, row in zip(rounds.index, rounds.to_numpy(), strict=True)} == {
        ("table1", "by links", "fedacs"): (2, False),
        ("table1", "mini-batches", "fedacs"): (1, False),
        ("table4", "mini-batches", "os"): (6, True),
    }
    assert found.loc[("table1", "mini-batches", "fedacs", "final_accuracy"), "value"] == pytest.approx(61.2)


def test_readings_change_what_their_names_say() -> None:
    """Beside mini-batches: the algorithm alone, and of it how clients are drawn, weighed or calibrated."""
    panels = {p.name: p.experiments for p in choices.readings("paper")}
    declared = {e.labels["algorithm"]: e for e in runs.panel(settings.MNIST, "static", settings.ONE_CLASS).experiments}
    for name in choices.READINGS:
        for e in panels[f"{name}-mnist-static"]:
            same = declared[e.labels["algorithm"]]
            assert (e.system.work.unit, same.system.work.unit) == ("steps", "epochs")
            assert (e.algorithm == same.algorithm) == (name == "batches")
            assert changed(replace(e, labels=same.labels, algorithm=same.algorithm), {"system": same.system}) == same
    (fedacs,) = panels["distinct-mnist-dynamic"]
    assert fedacs.algorithm.calibration == Calibration(target="server")
    assert fedacs.algorithm.participation == DistinctDraws(6)


def test_printed_seconds_are_not_those_of_sampling_by_15() -> None:
    """Nine panels; what (15) gives was found before by simulation (36.64 of 105.96 steps a round in the static system,
    27.91 of 80.79 in the dynamic one)."""
    found = findings.beside_fedavg()
    assert len(found) == 9
    assert found["table1", "dynamic", "mnist", settings.ONE_CLASS] == pytest.approx((3548.6 / 68) / (5470.4 / 93))
    assert findings.work("static") == pytest.approx(36.64 / 105.96, rel=1e-3)
    assert findings.work("dynamic") == pytest.approx(27.91 / 80.79, rel=0.02)
    p = 1 / (0.6 + 0.02 * np.arange(20))
    drawn = [np.unique(np.random.default_rng(r).choice(20, 6, p=p / p.sum())) for r in range(4000)]
    steps = np.mean([(2 * ids + 1).sum() for ids in drawn])
    assert findings.work("static", by_links=True) == pytest.approx(steps / 105.96, rel=0.01)
    assert found.min() > 2 * findings.work("dynamic")
    assert findings.seconds_a_round().startswith(
        "FedACS's published seconds per round are 0.79 to 1.06 of FedAvg's in 9 panels"
    )


def test_a_run_that_diverges_misses_the_target_by_the_horizon_of_its_setting() -> None:
    """Not by the round in which it ended: that would make the worst algorithm the fastest."""
    ended = [{**row, "status": "diverged"} for row in curve("fednova", 0, [10, 20, np.nan], work=200)]
    late = [{**row, "status": "diverged"} for row in curve("fednova", 1, [10, 71, 20], work=200)]
    other = curve("fedavg", 0, [10] * 7, system="static")
    found = measures.to_target(
        histories(curve("fedacs", 0, [10, 50, 60, 65, 71]), ended, late, other, target_accuracy_pct=70.0)
    )
    found = found[found["system"] == "dynamic"]
    assert value(found, "rounds_to_target", "fednova") == (4, True)
    assert value(found, "computation_time_to_target_s", "fednova") == (pytest.approx(400 * 2.43e-4), True)
    assert value(found, "rounds_to_target", "fednova", seed=1) == (1, False)
    assert value(found, "computation_time_to_target_s", "fednova", seed=1) == (pytest.approx(200 * 2.43e-4), False)
    alone = measures.to_target(histories(ended, target_accuracy_pct=70.0))
    assert value(alone, "rounds_to_target", "fednova") == (4, True), "whatever other results there are"


def test_ratios_are_those_of_the_means_beside_them() -> None:
    """FedACS needs 2 and 4 rounds of 100 samples, FedAvg 4 and 1 of 300, OS misses the target once."""
    ratio, seconds = "rounds_to_target_ratio_printed", "computation_time_to_target_s_ratio_printed"
    played = [
        curve("fedacs", 0, [10, 50, 71, 60, 80], work=100),
        curve("fedacs", 1, [10, 50, 60, 60, 80], work=100),
        curve("fedavg", 0, [10, 50, 60, 69.9, 70], work=300),
        curve("fedavg", 1, [10, 75, 30, 40, 50], work=300),
        curve("os", 0, [10, 20, 30, 40, 50], work=200),
        curve("os", 1, [10, 20, 70, 40, 50], work=200),
    ]
    found = measures.to_target(histories(*played, target_accuracy_pct=70.0))
    means = found.groupby(["algorithm", "metric"])["value"].mean()
    assert means["fedacs", ratio] == 1
    assert means["fedavg", ratio] == pytest.approx(2.5 / 3)
    assert means["fedavg", seconds] == pytest.approx(3 * 2.5 / 3)
    assert value(found, ratio, "os") == (pytest.approx(4 / 3), True)
    assert value(found, ratio, "os", seed=1) == (pytest.approx(2 / 3), False)

    played[1] = curve("fedacs", 1, [10, 20, 30, 40, 50])
    missed = measures.to_target(histories(*played, target_accuracy_pct=70.0))
    ratios = missed[missed["metric"].isin([ratio, seconds])]
    assert ratios["value"].isna().all()
    assert not ratios["censored"].any()


def test_without_a_target_of_the_paper_it_is_relative_to_fedavg() -> None:
    played = [curve(a, s, [10.0] * 20 + [60.0 + 10 * s] * 15, tail=15) for a in ("fedacs", "fedavg") for s in (0, 1)]
    assert measures.targets(histories(*played)) == {("dynamic", "mnist", settings.ONE_CLASS): 63.0}
    final = metrics.measured(FINAL, histories(*played))
    assert sorted(final["value"]) == [60, 60, 70, 70]


def test_accuracy_on_the_classes_of_slow_and_fast_clients() -> None:
    rows = curve("fedavg", 0, [0.0] * 6)
    for r in range(6):
        for c in range(10):
            rows.append({**rows[0], "round": r, "metric": "class_accuracy", "key": str(c), "value": float(c * (r > 0))})
    found = measures.halves(histories(rows)).set_index("metric")["value"]
    assert found.to_dict() == {"slow_class_accuracy": 2.0, "fast_class_accuracy": 7.0}


PLAIN = Experiment({}, Quadratic(2, 2, minimisers=((0.0, 0.0), (2.0, 0.0))), System(), FedAvg(0.1, Full()), Rounds(10))


def toy(value_of: Any, *experiments: Experiment, rounds: int = 10, seeds: int = 4) -> Histories:
    """The coordinates of the model of every experiment, seed and round."""
    rows = [
        {**e.labels, "seed": s, "round": r, "time": np.nan, "metric": "x", "key": str(k), "status": "ok",
         "value": value_of(s, r)[k]}
        for e in experiments for s in range(seeds) for r in range(1, rounds + 1) for k in range(2)
    ]  # fmt: skip
    return Histories(pd.DataFrame(rows), "paper", experiments=experiments)


def test_distance_of_the_mean_model_removes_what_averages_out() -> None:
    e = replace(PLAIN, labels={"system": "static", "algorithm": "fedavg"})  # the optimum is (1, 0)
    found = measures.mean_model(toy(lambda s, r: (1.0 + (-1) ** s, 3.0), e))
    assert found["seed"].tolist() == [0, 1, 2, 3]
    without = np.hypot(1 / 3, 3.0)  # the mean of three of the four first coordinates is 1/3 off
    assert found["value"].tolist() == [pytest.approx(4 * 3.0 - 3 * without)] * 4


def test_distance_to_the_closed_form_averages_the_plateau() -> None:
    """The closed form of full participation without heterogeneity is the optimum, (1, 0)."""
    e = replace(PLAIN, labels={"panel": "left", "algorithm": "fedavg_sgd"})
    changing = replace(e, labels={"panel": "right", "algorithm": "fedavg_sgd"}, system=settings.FIG7_SYSTEMS["dynamic"])

    def x(s: int, r: int) -> tuple[float, float]:
        return 1.0 + 2.0 * (r % 2), float(s > 1) - 0.5 + (100.0 if r <= 8 else 0.0)

    found = measures.mean_to_limit(toy(x, e, changing))
    assert set(found["panel"]) == {"left"}, "no limit where the system changes"
    without = [np.hypot(1.0, 2 / 3 - 0.5), np.hypot(1.0, 1 / 3 - 0.5)]  # of a seed at 0, at 1; rounds 9 and 10
    assert found["value"].tolist() == [pytest.approx(4 - 3 * w) for w in np.repeat(without, 2)]


def test_tail_average_is_that_of_the_second_half() -> None:
    e = replace(PLAIN, labels={"system": "toy2d", "algorithm": "os"})
    other = replace(PLAIN, labels={"system": "toy2d", "algorithm": "fedau"})
    found = measures.tail_averages(toy(lambda s, r: (float(s) if r > 5 else 50.0, 0.0), e, other), ("os",))
    assert found["value"].tolist() == [1.0, 0.0, 1.0, 2.0]
    assert set(found["algorithm"]) == {"os"}


def test_tail_average_to_the_closed_form() -> None:
    (panel,) = runs.plane("paper", "toy2d")
    e = next(e for e in panel.experiments if e.labels["algorithm"] == "fednova")
    ends = theory.limit(e)
    found = measures.tail_averages(toy(lambda s, r: (ends[0] + s, ends[1]), e), closed=True)
    assert found["value"].tolist() == [pytest.approx(s) for s in range(4)]


def test_runs_that_calibration_leaves_alone_count_as_calibrated_too() -> None:
    frame = pd.DataFrame({"algorithm": ["fedavg", "fedacs", "fedacs"], "calibrate": [False, False, True]})
    experiments = tuple(replace(PLAIN, labels=labels) for labels in frame.to_dict("records"))
    found = measures.calibrated_too(frame, Histories(frame, "paper", experiments=experiments))
    assert sorted(found[["algorithm", "calibrate"]].itertuples(index=False, name=None)) == [
        ("fedacs", False), ("fedacs", True), ("fedavg", False), ("fedavg", True),
    ]  # fmt: skip


FASHION = choices.panels("reduced")[0]


def chosen(answer: str) -> Experiment:
    """FedACS on Fashion-MNIST under a choice."""
    found = [e for e in FASHION.experiments if (e.labels["answer"], e.labels["algorithm"]) == (answer, "fedacs")]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("scale", SCALES)
def test_every_choice_is_another_run(scale: str) -> None:
    for p in choices.panels(scale):
        assert len({e.digest for e in p.experiments}) == len(p.experiments)


def test_the_network_with_larger_kernels_is_the_one_of_the_public_code() -> None:
    """21,840 parameters (docs/papers/fedacs.md); nothing else differs from the other choices of the network."""
    panels = {p.name: p for p in choices.panels("reduced")}
    panel, others = panels["sensitivity-mnist-network"], panels["sensitivity-mnist"].experiments
    base = {e.labels["algorithm"]: replace(e, labels={}) for e in others if e.labels["answer"] == choices.DEFAULT}
    for e in panel.experiments:
        plain = base[str(e.labels["algorithm"])]
        larger = e.labels["answer"] == "5x5 kernels"
        assert e.problem.model.parameters == 21_840 if larger else replace(e, labels={}) == plain
        assert changed(replace(e, labels={}), {"problem.model": plain.problem.model}) == plain


def test_who_is_drawn_twice_trains_twice() -> None:
    """One client that is always drawn twice: the mean of two local runs from the same model, the first of them that
    of the plain algorithm; without a second one nothing differs."""
    once = {"problem.clients": 1, "problem.partition": IID(), "clock.rounds": 1, "system": System(work.Steps(2))}
    plain = changed(next(iter(choices.panels("smoke")[0].experiments)), {**once, "labels": {}})
    rate = plain.algorithm.lr

    def end(made: type[FedAvg], k: int) -> torch.Tensor:
        (found,) = run([changed(plain, {"algorithm": made(rate, WeightedDraws(k))})])
        return found.state["x"]

    assert torch.equal(end(DrawnTwice, 1), end(FedAvg, 1))
    assert torch.equal(end(FedAvg, 2), end(FedAvg, 1))
    assert not torch.allclose(end(DrawnTwice, 2), end(FedAvg, 2))
    assert float((end(DrawnTwice, 2) - end(FedAvg, 2)).abs().max()) < 0.1


def test_a_fading_rate() -> None:
    """One client with the minimiser (1, 1), two steps per round: the error shrinks by (1 - 0.1 * 0.8^r)^2."""
    problem = Quadratic(1, 2, minimisers=((1.0, 1.0),))
    experiment = Experiment({}, problem, System(work.Steps(2)), FadingFedAvg(0.1, decay=0.2), Rounds(3))
    (found,) = run([experiment])
    left = np.prod([(1 - 0.1 * 0.8**r) ** 2 for r in range(3)])
    np.testing.assert_allclose(found.state["x"].numpy(), 1 - left, rtol=1e-6)


def test_classes_are_told_apart_by_who_owns_them() -> None:
    """Against sums by hand: two late rounds count, and with the last classes the halves change their places."""
    late = {0: 10.0, 1: 20.0, 2: 60.0, 3: 80.0}
    told = {"dataset": "toy", "rate": 1.0, "algorithm": "fedacs", "tail": 2}
    assert all(e.clock.by_class for panel in choices.traded("smoke") for e in panel.experiments)
    measured = {**told, "seed": 0, "metric": "class_accuracy"}
    rows = [
        {**measured, "slow_own": slow, "round": r, "key": str(k), "value": v + r - 2.5}
        for slow, r, (k, v) in itertools.product(choices.ASSIGNED, (1, 2, 3), late.items())
    ]
    rows += [{**row, "metric": "accuracy", "key": "", "value": 1.0} for row in rows]
    found = measures.traded(Histories(pd.DataFrame(rows).assign(time=0.0, status="ok"), "smoke"))
    halves = found[found["metric"] != "final_accuracy"].set_index(["slow_own", "metric"])["value"].to_dict()
    assert halves == {
        ("the first classes", "slow_class_accuracy"): 15.0, ("the first classes", "fast_class_accuracy"): 70.0,
        ("the last classes", "slow_class_accuracy"): 70.0, ("the last classes", "fast_class_accuracy"): 15.0,
    }  # fmt: skip
