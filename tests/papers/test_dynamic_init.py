"""dynamic_init: what is declared, how it is measured, what smoke scale must show; readings of Tables 8, 9, 11."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from reproduce.declare.experiment import COLUMNS, Experiment, changed
from reproduce.declare.paper import artifacts, printed_settings
from reproduce.papers.dynamic_init import findings, measures, pictures, readings, runs
from reproduce.papers.dynamic_init.settings import FASHION, MNIST, NEWS, SCALES, SVHN, SessionData
from reproduce.papers.dynamic_init.suggested import CarriedPrevious, SharedWhole
from reproduce.partitions.groups import PartialOverlap
from reproduce.report import metrics
from reproduce.report.histories import Histories
from reproduce.runs import plan
from reproduce.store import Stored

ARTIFACTS = {a.name: a for a in artifacts() if a.paper == "dynamic_init"}


def histories(rows: list[dict[str, Any]], experiments: tuple[Experiment, ...], **more: Any) -> Histories:
    labels = list(experiments[0].labels)
    fixed = {"seed": 0, "time": float("nan"), "metric": "accuracy", "key": "", "status": "ok"}
    return Histories(
        pd.DataFrame([{**fixed, **r} for r in rows])[[*labels, *COLUMNS]], "paper", experiments=experiments
    )


def one(name: str, scale: str = "paper", **labels: Any) -> Experiment:
    """The experiment of an artifact with these labels."""
    found = [e for p in ARTIFACTS[name].panels(scale) for e in p.experiments]
    (match,) = (e for e in found if all(e.labels[k] == v for k, v in labels.items()))
    return match


MAIN = {"dataset": "mnist", "label_overlap": 0.0, "dirichlet_alpha": 0.3, "init_scheme": "proposed"}


@pytest.mark.parametrize(
    ("name", "labels", "sessions"),
    [
        ("table3", {**MAIN, "algorithm": "fedavg"}, {"first": 3, "second": 4}),
        ("table5", {**MAIN, "algorithm": "fedprox"}, {"second": 4, "fourth": 6}),
        ("table8", {"label_distribution": "partial_overlap"}, {"first": 3, "second": 4, "third": 5}),
        ("table8", {"label_distribution": "two_shard"}, {"first": 4, "second": 5, "third": 6}),
        ("table9", {"label_distribution": "half"}, {"first": 3, "second": 4, "third": 5}),
        ("table9", {"label_distribution": "distinct"}, {"first": 4, "second": 5, "third": 6}),
        ("table7", {"label_overlap": 0.0, "dirichlet_alpha": 0.3, "algorithm": "moon"}, {"first": 4, "second": 6}),
        ("table12", {"dataset": "fashion_mnist"}, {"last": 5}),
    ],
)
def test_transitions_are_sessions(name: str, labels: dict[str, Any], sessions: dict[str, int]) -> None:
    """A run whose accuracy is the number of the session tells which one a transition is (docs/papers)."""
    common = {} if "dirichlet_alpha" in labels or name == "table12" else {"dataset": "mnist", "algorithm": "moon"}
    e = one(name, **{"init_scheme": "proposed", **common, **labels})
    timing = e.clock
    rows = [
        {**e.labels, "round": r, "value": (r - 1) // timing.rounds}
        for r in range(1, timing.sessions * timing.rounds + 1)
    ]
    cells = metrics.cells(ARTIFACTS[name], histories(rows, (e,)))
    clean = cells[cells["metric"] == "accuracy_first5_rounds_pct"]
    assert dict(zip(clean["transition"], clean["value"], strict=True)) == sessions
    assert set(cells["metric"]) >= set(ARTIFACTS[name].metrics)


def test_mixtures_of_given_weights() -> None:
    """Sessions 1 and 3 belong to group B, 2 and 4 to A."""
    e = one("fig1", init_scheme="proposed")
    alpha = {"2:1": 1.0, "3:1": 0.75, "3:2": 0.25, "4:1": 0.1, "4:2": 0.6, "4:3": 0.3}
    rows = [{**e.labels, "round": 0, "metric": "alpha", "key": k, "value": v} for k, v in alpha.items()]
    rows += [{**e.labels, "round": r, "value": 50.0} for r in range(51, 301)]
    found = histories(rows, (e,))
    cells = measures.mixtures(found).set_index(["session", "metric"])["value"].to_dict()
    assert cells[3, "matching_group_weight"] == pytest.approx(0.75)
    assert cells[4, "matching_group_weight"] == pytest.approx(0.6)
    assert cells[4, "alpha_weights_min"] == pytest.approx(0.1)
    assert cells[4, "alpha_weights_sum_error"] == pytest.approx(0, abs=1e-12)
    assert len(cells) == 6
    texts = [t.get_text() for t in pictures.timeline(found, pd.DataFrame()).axes[0].texts]
    assert [t for t in texts if t.startswith("0.")] == ["0.75", "0.10", "0.60"]  # the latest model's arrow is short
    assert sum(t.startswith("session") for t in texts) == 5
    assert "pilot" in texts


def test_costs_are_sums_over_schemes_and_the_largest_memory() -> None:
    """FedProx has no Continuous of its own: it pays what FedAvg's took. A setting without a number is left out."""
    panel = ARTIFACTS["table3"].panels("paper")[0]
    chosen = tuple(e for e in panel.experiments if e.labels["algorithm"] in ("fedavg", "fedprox", "fedacg"))
    trained = plan._split("paper", replace(panel, experiments=chosen))
    seconds = {"fedavg": [[1.0, 2], [10, 20], [100, 200], [1000, 2000]], "fedprox": [[3.0, 4], [5, 6], [7, 8]]}
    runs = [
        stored(e, seed, took, memory=1e9 * len(a))
        for es in trained.values()
        for a in [str(es[0].labels["algorithm"])]
        for e, row in zip(es, seconds.get(a, [[None, None]] * len(es)), strict=True)
        for seed, took in enumerate(row)
    ]
    found = costs(runs, chosen)
    assert found["fedavg", "cpu_time_seconds", 0] == 1111
    assert found["fedavg", "cpu_time_seconds", 1] == 2222
    assert found["fedprox", "cpu_time_seconds", 0] == 3 + 10 + 5 + 7
    assert found["fedprox", "max_memory_gb", 0] == 7
    assert {a for a, *_ in found} == {"fedavg", "fedprox"}
    slower = [on(run, "slow" if run.labels["algorithm"] == "fedprox" else "fast") for run in runs]
    assert {a for a, *_ in costs(slower, chosen)} == {"fedavg"}, "seconds of two processors do not compare"
    added = [on(run, "slow" if run.seed and run.labels["algorithm"] == "fedavg" else "fast") for run in runs]
    seeds = {(a, seed) for a, _, seed in costs(added, chosen)}
    assert ("fedprox", 1) not in seeds, "a seed that was added on another processor takes none of the others"
    assert {("fedavg", 0), ("fedprox", 0)} <= seeds


def stored(e: Experiment, seed: int, seconds: float | None, memory: float = 1e9) -> Stored:
    return Stored(e.record(), seed, {"peak_memory": memory}, "code", 0, seconds)


def on(run: Stored, processor: str) -> Stored:
    return replace(run, training={**run.training, "machine": {"processor": processor}})


def costs(runs: Iterable[Stored], chosen: tuple[Experiment, ...]) -> dict[tuple[str, str, int], float]:
    histories = Histories(pd.DataFrame(), "paper", (), (), tuple(runs), chosen)
    cells = measures.costs(histories, clients=20, overlap=0.8)
    return cells.set_index(["algorithm", "metric", "seed"])["value"].to_dict()


SETTING = ("dataset", "label_distribution", "label_overlap", "dirichlet_alpha", "num_clients", "similarity_scale")
SETTING = (*SETTING, "model", "init_scheme", "algorithm")


@pytest.mark.parametrize("name", [f"table{i}" for i in range(1, 15)])
def test_the_printed_settings_are_all_declared_and_no_others(name: str) -> None:
    rows = printed_settings("dynamic_init", name)
    columns = [c for c in SETTING if c in rows[0]]
    wanted = {tuple(row[c] for c in columns) for row in rows}
    declared = {
        tuple(str(e.labels[c]) for c in columns) for p in ARTIFACTS[name].panels("paper") for e in p.experiments
    }
    extra = {s for s in declared - wanted if not (name == "table10" and s[columns.index("init_scheme")] == "average")}
    assert wanted <= declared
    assert not extra


@pytest.mark.parametrize(
    ("data", "algorithm", "rate", "rounds"),
    [
        (MNIST, "fedavg", (0.001, 0.6), 50), (MNIST, "scaffold", (0.03, 0.9), 50),
        (FASHION, "fedacg", (0.003, 0.3), 50), (SVHN, "fedprox", (0.005, 0.2), 200),
        (SVHN, "moon", (0.01, 0.2), 200), (SVHN, "scaffold", (0.1, 0.9), 200), (NEWS, "scaffold", (0.05, 0.2), 100),
    ],
)  # fmt: skip
def test_learning_rates_of_the_authors(
    data: SessionData, algorithm: str, rate: tuple[float, float], rounds: int
) -> None:
    """lr_poly.json, section 2.0; the clock and the algorithm of an experiment get them."""
    assert (data.rate_of(algorithm), data.rounds) == (rate, rounds)
    row = {"dataset": data.name, "label_overlap": "0.0", "dirichlet_alpha": "0.7", "init_scheme": "average"}
    _, _, e = runs.main({**row, "algorithm": algorithm}, data, SCALES["paper"])
    assert (e.algorithm.lr, e.clock.floor) == rate
    assert (e.clock.rounds, e.clock.sessions, e.clock.pilots, e.problem.clients) == (rounds, 6, 1, 40)
    assert e.algorithm.momentum == 0.9


@pytest.mark.parametrize(("kind", "n"), [("half", 10), ("partial_overlap", 10), ("distinct", 10), ("unseen", 10)])
def test_views_are_the_labels_that_the_clients_hold(kind: str, n: int) -> None:
    import numpy as np

    partition, members, sets = runs.federation(kind, n, 10)
    labels = np.repeat(np.arange(10), 120)
    parts = partition.split(labels, members.clients, 3)
    assert len(parts) == members.clients
    for session in range(6):
        held = np.unique(np.concatenate([labels[parts[m]] for m in members.members(session)]))
        assert held.tolist() == list(sets[members.group(session)])


def test_continuous_is_trained_once_per_learning_rate() -> None:
    panel = ARTIFACTS["table3"].panels("paper")[0]
    trained = [e for es in plan._split("paper", panel).values() for e in es if e.labels["init_scheme"] == "continuous"]
    assert [e.labels["algorithm"] for e in trained] == ["fedavg", "scaffold"]
    assert sum(e.labels["init_scheme"] == "continuous" for e in panel.experiments) == 4


PANELS = {p.name: p for p in readings.readings("paper")}


def test_both_groups_hold_the_shared_labels_whole() -> None:
    """Ten labels of different sizes: the first group has 0-5, the second 4-9, each label whole and split evenly."""
    labels = np.repeat(np.arange(10), range(11, 31, 2))
    parts = SharedWhole().split(labels, 4, 3)
    for clients, held in (((0, 1), range(6)), ((2, 3), range(4, 10))):
        sizes = [np.bincount(labels[parts[m]], minlength=10) for m in clients]
        assert np.array_equal(
            np.sort(np.concatenate([parts[m] for m in clients])), np.flatnonzero(np.isin(labels, held))
        )
        assert np.abs(sizes[0] - sizes[1]).max() <= 1
    assert not np.array_equal(parts[0], SharedWhole().split(labels, 4, 4)[0])


def test_a_reading_is_its_table_but_for_what_its_name_says() -> None:
    """Taken back, the changes give the experiment of the table."""
    panel = PANELS["crossed-partial-overlap-mnist"]
    wanted = readings.Reading(0.001, decays=True, whole=False, carried=())
    table = {e.labels["init_scheme"]: e for p in runs.panels(("table8",), "paper") for e in p.experiments
             if p.name == "partial-overlap-mnist-n10" and e.labels["algorithm"] == "fedavg"}  # fmt: skip
    same = [e for e in panel.experiments if e.labels["reading"] == str(wanted)]
    assert len(same) == len(table) == 3
    for e in same:
        plain = table[e.labels["init_scheme"]]
        assert changed(e, {"clock.sessions": 6, "labels": plain.labels}) == plain
    other = next(
        e for e in PANELS["readings-partial-overlap-mnist"].experiments if e.labels["init_scheme"] == "previous"
    )
    assert (other.clock.start, other.clock.floor, other.problem.partition) == (CarriedPrevious(), 1.0, SharedWhole())
    assert same[0].problem.partition == PartialOverlap()


def test_readings_are_crossed_and_none_is_asked_twice() -> None:
    for data, rates in readings.RATES.items():
        texts = [str(r) for r in readings.crossed(data)]
        assert len(set(texts)) == len(texts) == len(rates) * 16 + 1
    every = [(e, s) for p in PANELS.values() for e in p.experiments for s in p.seeds]
    named = {(*sorted(e.labels.items()), s) for e, s in every}
    assert len(named) == len(every)


def curves(at: tuple[int, ...], **where: str) -> tuple[Histories, pd.DataFrame]:
    """A run each scheme whose first ten rounds of the sessions `at` are what is printed, and nothing like it else."""
    (panel,) = readings.readings("smoke")
    told = findings.printed("table9").query(" and ".join(f"{k} == '{v}'" for k, v in where.items()))
    experiments = [e for e in panel.experiments if all(e.labels[k] == v for k, v in where.items() if k != "dataset")][
        :3
    ]
    rows: list[dict[str, Any]] = []
    for e in experiments:
        mine = told[told["init_scheme"] == e.labels["init_scheme"]].set_index("transition")["paper"]
        values = {s: mine[t] for s, t in zip(at, findings.THREE, strict=True)}
        for r in range(10, 81):
            session, t = divmod(r - 1, 10)
            noise = t - 4.5 if session in values else 3.0 * session
            rows.append({**e.labels, "round": r, "seed": 0, "value": values.get(session, 40.0) + noise})
    frame = pd.DataFrame(rows).assign(time=np.nan, metric="accuracy", key="", status="ok")
    labels = list(experiments[0].labels)
    return Histories(frame[[*labels, *COLUMNS]], "smoke", experiments=tuple(experiments)), told


HALF = {"label_distribution": "half", "dataset": "mnist", "algorithm": "fedavg"}


@pytest.mark.parametrize("at", [(3, 4, 5), (4, 6, 7)])
def test_a_printed_number_is_compared_at_the_sessions_that_the_other_schemes_choose(at: tuple[int, ...]) -> None:
    found, told = curves(at, **HALF)
    cells = findings.readings(found)
    where = cells[cells["metric"] == "session"].pivot(index="init_scheme", columns="transition", values="value")
    assert {tuple(row) for row in where[list(findings.THREE)].to_numpy()} == {at}
    ours = cells[cells["metric"] != "session"].merge(told, on=[c for c in told if c != "paper"])
    assert len(ours) == 9
    np.testing.assert_allclose(ours["value"], ours["paper"])
    # Average so far off that it would turn a choice in which it had a say.
    frame = found.frame.copy()
    off = (frame["init_scheme"] == "average") & frame["round"].between(10 * at[0] + 1, 10 * at[0] + 10)
    frame.loc[off, "value"] -= 200
    again = findings.readings(replace(found, frame=frame))
    mine = again[(again["metric"] == "session") & (again["init_scheme"] == "average")].sort_values("transition")
    assert tuple(mine["value"]) == at


def test_what_print_alone_says() -> None:
    """Table 11 on both data sets: FedProx begins a session after FedAvg, MOON one after FedProx; of eight sessions
    that leaves one triple for each."""
    assert findings.one_sequence().endswith(
        "FedProx's begins one session after FedAvg's, MOON's begins one session after FedProx's (24 of 24 numbers are "
        "equal)."
    )
    rows = {key: findings.possible("table11", key) for key in findings.groups("table11")}
    alone = {a: {(n, n + 1, n + 2)} for n, a in enumerate(("fedavg", "fedprox", "moon"), 3)}
    assert {key: rows[key] for key in rows if key[3] != "scaffold"} == {
        ("partial_overlap", data, "100", a): triple for data in findings.DATA for a, triple in alone.items()
    }
    assert "11 of 12 places; the other schemes have in 2 of 24" in findings.one_average_of_two()
    assert "92.45 for Average at 6 of 9 transitions. Proposed has 92.56 to 96.06" in findings.one_average_of_three()
    assert findings.equal_rows().count(", and ") == 3
