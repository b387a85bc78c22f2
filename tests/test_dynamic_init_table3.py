"""dynamic_init, Table 3: windows, shared runs, declarations, and what the smoke scale must show."""

from __future__ import annotations

from functools import cache

import pandas as pd
import pytest
import torch

from reproduce.algorithms.session_starts import Proposed
from reproduce.engine.cohort import Cohort, prepare
from reproduce.engine.task import Tasks
from reproduce.engine.trainer import Trainer
from reproduce.papers.dynamic_init import table3
from reproduce.papers.dynamic_init.cells import TRANSITIONS, shared, windows
from reproduce.papers.dynamic_init.panels import FASHION, GAUSSIAN, MNIST, SVHN, panel
from reproduce.report.tables import reported
from reproduce.settings import settings


def curve(values: dict[int, float], **labels: object) -> pd.DataFrame:
    rows = [{"round": r, "value": v} for r, v in values.items()]
    fixed = {"seed": 0, "time": float("nan"), "metric": "accuracy", "key": "", "status": "ok"}
    return pd.DataFrame(rows).assign(**{**fixed, **labels})


def test_windows_of_a_curve_made_by_hand() -> None:
    """T = 50: 95 % at the end of session 2, then 10, 20, 30, 40, 50 ... in session 3, constant 7 in session 4."""
    values = {0: 1.0, **dict.fromkeys(range(51, 151), 95.0)}
    values |= {150 + i: 10.0 * min(i, 10) for i in range(1, 51)} | dict.fromkeys(range(201, 251), 7.0)
    labels = {"dataset": "mnist", "algorithm": "fedavg"}
    cells = windows(curve(values, **labels), [panel(MNIST, 0.0, 0.3)], TRANSITIONS).set_index(["metric", "transition"])
    found = cells["value"].to_dict()
    assert found["accuracy_after_transition_pct", "first"] == pytest.approx((95 + 10 + 20 + 30 + 40) / 5)
    assert found["accuracy_first5_rounds_pct", "first"] == pytest.approx(30)
    assert found["accuracy_first10_rounds_pct", "first"] == pytest.approx(55)
    assert found["accuracy_after_transition_pct", "second"] == pytest.approx((100 + 4 * 7) / 5)
    assert found["accuracy_first10_rounds_pct", "second"] == pytest.approx(7)


def test_continuous_is_trained_once_per_learning_rate_and_given_to_all() -> None:
    p = panel(MNIST, 0.0, 0.3)
    trained = [e.labels["algorithm"] for e in p.experiments if e.labels["init_scheme"] == "continuous"]
    assert trained == ["fedavg", "scaffold"]
    rows = [{**e.labels, "seed": 0, "metric": "m", "value": float(i)} for i, e in enumerate(p.experiments)]
    cells = shared(pd.DataFrame(rows), [p])
    here = cells[cells["init_scheme"] == "continuous"].set_index("algorithm")["value"]
    assert set(here.index) == {"fedavg", "fedprox", "scaffold", "fedacg"}
    assert here["fedavg"] == here["fedprox"] == here["fedacg"] != here["scaffold"]
    assert not cells.duplicated(["algorithm", "init_scheme"]).any()


def test_the_printed_cells_are_all_declared() -> None:
    paper = reported("dynamic_init", "table3")
    assert paper is not None
    settings_of = ["dataset", "label_overlap", "dirichlet_alpha", "num_clients", "init_scheme", "algorithm"]
    printed = {tuple(row) for row in paper[settings_of].itertuples(index=False)}
    declared = set()
    for p in table3.panels("paper"):
        for e in p.experiments:
            row = {**e.labels}
            names = ("fedavg", "fedprox", "fedacg") if row["init_scheme"] == "continuous" else ()
            for name in {row["algorithm"], *(names if row["algorithm"] == "fedavg" else ())}:
                declared.add(tuple(str({**row, "algorithm": name}[c]) for c in settings_of))
    assert declared == printed


@pytest.mark.parametrize(
    ("setting", "algorithm", "rate", "rounds"),
    [
        (MNIST, "fedavg", (0.001, 0.6), 50),
        (MNIST, "scaffold", (0.03, 0.9), 50),
        (FASHION, "fedacg", (0.003, 0.3), 50),
        (SVHN, "fedprox", (0.005, 0.2), 200),
        (SVHN, "scaffold", (0.1, 0.9), 200),
    ],
)
def test_learning_rates_of_the_authors(setting, algorithm, rate, rounds) -> None:  # type: ignore[no-untyped-def]
    e = next(e for e in panel(setting, 0.2, 0.7).experiments if e.labels["algorithm"] == algorithm)
    assert (e.algorithm.lr, e.clock.floor) == rate
    assert (e.clock.rounds, e.clock.sessions, e.clock.pilots, e.problem.clients) == (rounds, 6, 1, 40)
    assert e.algorithm.momentum == 0.9
    assert e.clock.views == ("labels:0,1,2,3,4", "labels:4,5,6,7,8")


@cache
def smoke() -> tuple[pd.Series, pd.DataFrame]:
    """clean5 by (session, algorithm, scheme), mean over seeds; all histories."""
    p = panel(GAUSSIAN, 0.0, 0.3)
    runs = prepare(p.experiments, p.seeds, Tasks(settings()))
    trainer = Trainer()
    Cohort(runs, trainer).run()
    trainer.close()
    frames = []
    for run in runs:
        frame = pd.DataFrame(run.state["history"], columns=["round", "time", "metric", "key", "value"])
        frames.append(frame.assign(seed=run.seed, status=run.state["status"], **run.experiment.labels))
    frame = pd.concat(frames, ignore_index=True)
    cells = windows(frame, [p], {s: s for s in (3, 4, 5)})
    clean = cells[cells["metric"] == "accuracy_first5_rounds_pct"]
    return clean.groupby(["transition", "algorithm", "init_scheme"])["value"].mean(), frame


def test_smoke_scale_shows_the_effect() -> None:
    """Proposed beats the baselines clearly at the second recurrence; FedACG suffers most from the previous model."""
    clean, _ = smoke()
    for algorithm in ("fedavg", "fedprox"):
        assert clean[4, algorithm, "proposed"] - clean[4, algorithm, "previous"] >= 5
        assert clean[4, algorithm, "proposed"] - clean[4, algorithm, "average"] >= 8
        assert abs(clean[3, algorithm, "proposed"] - clean[3, algorithm, "average"]) <= 2
    assert clean[4, "fedacg", "proposed"] - clean[4, "fedacg", "previous"] >= 5
    assert clean[3, "fedacg", "previous"] < clean[3, "fedavg", "previous"]
    assert all(clean[s, "fedavg", "proposed"] > clean[s, "fedavg", "continuous"] for s in (3, 4, 5))


def test_smoke_curves_coincide_until_the_schemes_can_differ() -> None:
    _, frame = smoke()
    rows = frame[(frame["metric"] == "accuracy") & (frame["algorithm"] == "fedacg") & (frame["seed"] == 0)]
    table = rows.pivot(index="round", columns="init_scheme", values="value")
    early = table[table.index <= 3 * GAUSSIAN.rounds]
    assert (early["proposed"] == early["previous"]).all()
    assert (early["average"] == early["previous"]).all()
    assert (table["proposed"] != table["previous"]).any()


def test_smoke_weights_sum_to_one() -> None:
    _, frame = smoke()
    alpha = frame[(frame["metric"] == "alpha") & (frame["init_scheme"] == "proposed")]
    sums = alpha.groupby(["algorithm", "seed", "round"])["value"].sum()
    assert len(sums) == 4 * 2 * 4
    torch.testing.assert_close(torch.tensor(sums.to_numpy()), torch.ones(len(sums), dtype=torch.float64))


def test_the_same_training_has_one_digest_whatever_its_label() -> None:
    first, second = (
        next(e for e in panel(MNIST, 0.0, 0.3, names).experiments if e.labels["init_scheme"] == "continuous")
        for names in (("fedavg",), ("fedacg",))
    )
    assert first.labels["algorithm"] != second.labels["algorithm"]
    assert first.digest == second.digest
    proposed = [e for e in panel(MNIST, 0.0, 0.3).experiments if isinstance(e.clock.start, Proposed)]
    assert len({e.digest for e in proposed}) == 4
