"""Every measure that is a value against a plain computation, on random curves; lines of a toy history; doubts."""

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from reproduce.algorithms.base import FedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.clocks.sessions import Sessions
from reproduce.data.batches import Walk
from reproduce.declare.artifact import Artifact, Curves, Doubt, Last, Measure, Reach, Window, no_panels
from reproduce.declare.experiment import Experiment, Panel
from reproduce.declare.paper import Paper
from reproduce.errors import UserError
from reproduce.models.declared import Softmax
from reproduce.papers.fedacs import pictures
from reproduce.partitions.labels import IID
from reproduce.problem import Classification, Quadratic
from reproduce.report import drawing, entries, formats, metrics, tables
from reproduce.report.histories import Histories
from reproduce.systems import Steps, System
from reproduce.systems.clients import Alternating, Rotation

Run = tuple[str, int]
Curve = list[float]


def experiment(name: str, groups: int, rounds: int, target: float) -> Experiment:
    members = Alternating(2, 2) if groups == 2 else Rotation((1, 1, 2))
    problem = Classification("gaussian", Softmax(20, 10), IID(), 4, Walk(8))
    labels = {"algorithm": name, "target_accuracy": target, "over": rounds % 3 + 1}
    return Experiment(labels, problem, System(work=Steps(1)), FedAvg(0.1), Sessions(groups + 4, rounds, members))


EXPERIMENTS = experiment("two", 2, 4, 60.0), experiment("three", 3, 5, 95.0)


def curves(seed: int) -> dict[Run, Curve]:
    """Accuracy after every round, from 0 on, of both experiments with three seeds."""
    stream = np.random.default_rng(seed)
    return {
        (str(e.labels["algorithm"]), s): stream.uniform(0, 100, e.clock.sessions * e.clock.rounds + 1).tolist()
        for e in EXPERIMENTS
        for s in range(3)
    }


def histories(found: dict[Run, Curve], diverged: Run | None = None) -> Histories:
    """`diverged`: the run whose last evaluation has no finite value."""
    rows = []
    for e in EXPERIMENTS:
        for seed in range(3):
            run = str(e.labels["algorithm"]), seed
            for r, value in enumerate(found[run]):
                bad = run == diverged and r == len(found[run]) - 1
                row = {**e.labels, "seed": seed, "round": r, "time": 2.5 * r, "key": ""}
                number = {"value": math.nan, "status": "diverged"} if bad else {"value": value, "status": "ok"}
                rows += [{**row, "metric": "accuracy", **number}]
                rows += [
                    {**row, "metric": "part", "key": k, "value": value / n, "status": "ok"}
                    for k, n in (("a", 2), ("", 1))
                ]
    shuffled = pd.DataFrame(rows).sample(frac=1, random_state=0)  # the order of rows tells nothing
    return Histories(shuffled, "smoke", experiments=EXPERIMENTS)


def measured(m: Measure, found: dict[Run, Curve], column: str = "", diverged: Run | None = None) -> dict[Any, float]:
    artifact = Artifact("fedacs", "fig1", "T", no_panels, (m,))
    cells = metrics.cells(artifact, histories(found, diverged))
    names = ["algorithm", "seed", *([column] if column else [])]
    assert not cells.duplicated(names).any()
    return {tuple(row[c] for c in names): row["value"] for row in cells.to_dict("records")}


SHAPE = {"two": (2, 4), "three": (3, 5)}  # groups, rounds
TARGET = {"two": 60.0, "three": 95.0}
OVER = {"two": 2, "three": 3}


def trailing(curve: Curve, n: int) -> Curve:
    return [sum(curve[max(0, i - n + 1) : i + 1]) / len(curve[max(0, i - n + 1) : i + 1]) for i in range(len(curve))]


def first(curve: Curve, target: float, end: int) -> float:
    return next((float(i) for i, v in enumerate(curve) if v >= target and i <= end), float(end))


@pytest.mark.parametrize(
    ("m", "plain"),
    [
        (Last("accuracy"), lambda name, c: c[-1]),
        (Last("accuracy", 3), lambda name, c: sum(c[-3:]) / 3),
        (Last("accuracy", "over"), lambda name, c: sum(c[-OVER[name] :]) / OVER[name]),
        (Last("accuracy", "clock.rounds"), lambda name, c: sum(c[-SHAPE[name][1] :]) / SHAPE[name][1]),
        (Reach(), lambda name, c: first(c, TARGET[name], len(c) - 1)),
        (Reach(target=80.0, horizon=4), lambda name, c: first(c, 80.0, 4)),
        (Reach(target=90.0, horizon="clock.rounds"), lambda name, c: first(c, 90.0, SHAPE[name][1])),
    ],
    ids=lambda value: "" if callable(value) else repr(value),
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_measure_is_what_a_loop_computes(m: Measure, plain: Callable[[str, Curve], float], seed: int) -> None:
    found = curves(seed)
    assert measured(m, found) == pytest.approx({run: plain(run[0], c) for run, c in found.items()})


@pytest.mark.parametrize("origin", ["", "clock.returns"])
def test_windows_of_sessions(origin: str) -> None:
    """Clients return for the first time in session 1 + number of groups; the window of five fits in one run only."""
    found, sessions = curves(3), {"x": 2, "y": 3} if not origin else {"x": 0, "y": 1}
    for last in (4, 5):
        expected = {}
        for (name, seed), c in found.items():
            groups, rounds = SHAPE[name]
            for label, session in sessions.items():
                start = (session + (1 + groups if origin else 0)) * rounds
                if last <= rounds:
                    expected[name, seed, label] = sum(c[start + 1 : start + last + 1]) / last
        m = Window("accuracy", 1, last, sessions, origin=origin)
        assert measured(m, found, "transition") == pytest.approx(expected)


def test_a_window_longer_than_every_session_gives_no_cells() -> None:
    assert measured(Window("accuracy", 1, 9, {"x": 2}), curves(0), "transition") == {}


def test_keys_become_a_column() -> None:
    halves = {(*run, k): [v / n for v in c] for run, c in curves(4).items() for k, n in (("a", 2), ("", 1))}
    expected = {run: first(c, 40.0, len(c) - 1) for run, c in halves.items()}
    assert measured(Reach("part", 40.0, by_key=True), curves(4), "key") == expected


def test_a_diverged_run_has_no_number_and_reaches_nothing() -> None:
    found = {run: [1.0] * len(c) for run, c in curves(0).items()}
    values = measured(Last("accuracy"), found, diverged=("two", 1))
    assert math.isnan(values.pop(("two", 1)))
    assert set(values.values()) == {1.0}
    reached = measured(Reach(target=1.0), found, diverged=("two", 1))
    assert set(reached.values()) == {0.0}


def test_what_one_experiment_has_no_label_for_it_has_no_number_of_and_labels_may_be_dropped() -> None:
    """The label is missing from one of two, so that pandas makes floats of it."""
    problem = Quadratic(2, 2)
    short, long = (
        Experiment({"algorithm": a, **more}, problem, System(), FedAvg(0.1), Rounds(5))
        for a, more in (("short", {"tail": 2}), ("long", {}))
    )
    said = {"seed": 0, "time": math.nan, "metric": "accuracy", "key": "", "status": "ok"}
    rows = [{**e.labels, **said, "round": r, "value": r + 1.0} for e in (short, long) for r in range(6)]
    found = Histories(pd.DataFrame(rows), "paper", experiments=(short, long))
    artifact = Artifact("fedacs", "fig1", "T", no_panels, (Last("accuracy", "tail"),))
    kept, dropped = (metrics.cells(replace(artifact, drop=drop), found) for drop in ((), ("tail",)))
    assert kept[["algorithm", "tail", "value"]].to_numpy().tolist() == [["short", 2, 5.5]]
    assert list(dropped.columns) == ["algorithm", "seed", "metric", "value"]


def drawn(picture: Curves, found: dict[Run, Curve]) -> Any:
    panels = (Panel("p", EXPERIMENTS, (0, 1, 2)),)
    artifact = Artifact("fedacs", "fig1", "T", lambda scale: panels, (), picture)
    return drawing.draw(artifact, histories(found), pd.DataFrame({"algorithm": []}))


def test_curves_are_means_over_seeds_with_the_target() -> None:
    found = curves(5)
    figure = drawn(Curves(("algorithm",), "{algorithm}", target="target_accuracy"), found)
    assert [ax.get_title() for ax in figure.axes] == ["two", "three"]
    for ax, name in zip(figure.axes, ("two", "three"), strict=True):
        mean = np.mean([found[name, s] for s in range(3)], axis=0)
        line, dotted = ax.lines[0], ax.lines[-1]
        assert line.get_ydata() == pytest.approx(mean)
        assert set(dotted.get_ydata()) == {TARGET[name]}
    figure = drawn(Curves((), "all", smooth=2, only={"algorithm": ("three",)}), found)
    (ax,) = figure.axes
    smoothed = np.mean([trailing(found["three", s], 2) for s in range(3)], axis=0)
    assert ax.lines[0].get_ydata() == pytest.approx(smoothed[1:])
    figure = drawn(Curves((), "all", every=3, also=pictures.log_distance), found)
    assert list(figure.axes[0].lines[0].get_xdata()) == [*range(0, 36, 3)]
    assert figure.axes[0].get_yscale() == "log", "what `also` names was called with the axes"


def test_doubted_numbers_are_marked_and_not_compared() -> None:
    """Table 10 of dynamic_init: its second row is another table's."""
    paper = tables.reported("dynamic_init", "table10")
    assert paper is not None
    cells = paper.drop(columns=["paper", "paper_std", "paper_text", "paper_censored"])
    cells = cells.assign(value=paper["paper"] + 1, seed=0)
    why = "the numbers of another table."
    doubts = (Doubt({"label_distribution": ("partial_overlap",)}, why),)
    layout = {"rows": ("label_distribution",), "columns": ("transition", "init_scheme")}
    artifact = Artifact("dynamic_init", "table10", "T", no_panels, (), doubts=doubts, **layout)  # type: ignore[arg-type]
    table = tables.build(artifact, cells, paper, "paper")
    marked = {
        row: {e["paper"].text.endswith(entries.DOUBTED) for (i, _), e in table.body.items() if i == row}
        for row in (0, 1)
    }
    assert marked == {0: {False}, 1: {True}}
    assert f"{entries.DOUBTED} {why}" in table.notes
    assert "‡" in formats.markdown(table)


def test_words_and_layout_of_an_artifact_may_stand_beside_its_code(tmp_path, monkeypatch):
    """They are fields of it, lists as tuples; those of nobody, and a field that there is not, are named."""
    monkeypatch.setitem(sys.modules, "own.artifacts", SimpleNamespace(ARTIFACTS=(Artifact("own", "table1"),)))

    def found(text: str) -> Artifact:
        (tmp_path / "artifacts.yaml").write_text(text)
        (artifact,) = Paper(tmp_path, "own", "Own", "A", "T", "2501.00001").artifacts
        return artifact

    doubts = "doubts: [{cells: {algorithm: [fedavg]}, why: copied}]"
    got = found(f"table1: {{title: T, rows: [n, algorithm], decimals: {{loss: 3}}, notes: [one], {doubts}}}")
    layout = {"rows": ("n", "algorithm"), "decimals": {"loss": 3}, "notes": ("one",)}
    doubt = Doubt({"algorithm": ("fedavg",)}, "copied")
    assert got == Artifact("own", "table1", "T", doubts=(doubt,), **layout)
    with pytest.raises(UserError, match=r"artifacts.py has no 'table2'"):
        found("table1: {title: T}\ntable2: {title: T}")
    with pytest.raises(UserError, match="'row' was unexpected"):
        found("table1: {title: T, row: [n]}")
