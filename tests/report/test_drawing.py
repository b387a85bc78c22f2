"""Pictures of one axes per combination of labels: places, titles, and which rows each axes is filled from."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from reproduce.algorithms.base import FedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.declare.artifact import Artifact, Curves, Filled, Printed
from reproduce.declare.experiment import Experiment, Panel
from reproduce.problem import Quadratic
from reproduce.report import captions, drawing, styles
from reproduce.report import printed_marks as paper
from reproduce.report.histories import Histories
from reproduce.systems import System

SETTINGS = (("lr", 0, None), ("lr", 1, None), ("cnn", 0, None), ("cnn", 1, None), ("lr", 0, "0.1"))


def experiment(model: str, asynchronous: int, point: str | None) -> Experiment:
    labels = {"model": model, "step_async": asynchronous, "algorithm": "fedavg", **({"point": point} if point else {})}
    return Experiment(labels, Quadratic(2, 2), System(), FedAvg(0.1), Rounds(10 if model == "lr" else 20))


PANELS = tuple(
    Panel(f"{m}-{a}{'-tuned' if p else ''}", (experiment(m, a, p),), (0, 1)) for m, a, p in SETTINGS
)  # fmt: skip


def histories(without: str = "") -> Histories:
    """Accuracies of 0, 1, ... percent in the rounds 0, 1, ..., 5; `without` a panel."""
    parts = [
        pd.DataFrame({"round": range(6), "value": np.arange(6.0)}).assign(
            **e.labels, seed=seed, time=0.0, metric="accuracy", key="", status="ok"
        )
        for panel in PANELS
        if panel.name != without
        for e in panel.experiments
        for seed in panel.seeds
    ]
    missing = ((without, "needs a9a"),) if without else ()
    every = tuple(e for p in PANELS for e in p.experiments)
    frame = pd.concat(parts, ignore_index=True)
    frame["point"] = frame["point"].astype(object).where(frame["point"].notna(), np.nan)  # as older files have it
    return Histories(frame, "paper", missing, experiments=every)


def artifact(picture: Any) -> Artifact:
    names = {"0": "equal", "1": "unequal"}
    return Artifact("fedagrac", "fig99", "", lambda scale: PANELS, (), picture, names=names)


def test_every_combination_of_labels_has_its_axes_its_title_and_its_rows() -> None:
    told: list[tuple[str, Histories, pd.DataFrame]] = []
    fill: Any = lambda ax, histories, cells: told.append((ax.get_title("left"), histories, cells))  # noqa: E731
    only = {"point": (None,)}
    picture = Filled(("model", "step_async"), "({letter}) {model}, {step_async}", fill=fill, only=only, across=2)
    found = histories("cnn-0")
    cells = found.frame[found.frame["round"] == 5]
    fig = drawing.draw(artifact(picture), found, cells)
    assert [ax.get_title("left") for ax in fig.axes if ax.get_visible()] == [t for t, _, _ in told]
    assert [title for title, _, _ in told] == ["(a) LR, equal", "(b) LR, unequal", "(d) CNN, unequal"]
    assert fig.get_suptitle() == "Paper scale. 2 seeds. 3 of 4 panels."
    assert captions.remarks(fig) == ["Not run, needs a9a: (c) CNN, equal."]
    for (_, here, row), (model, kind) in zip(told, (("lr", 0), ("lr", 1), ("cnn", 1)), strict=True):
        assert {(m, k) for m, k in zip(here.frame["model"], here.frame["step_async"], strict=True)} == {(model, kind)}
        assert here.frame["point"].isna().all(), "without the runs of the grid"
        assert here.experiments == (experiment(model, kind, None),)
        assert (len(here.frame), len(row)) == (12, 2)


def test_axes_are_in_the_order_that_is_listed() -> None:
    """If the values of all labels are listed; else as declared, where a label that is not may be the outer one."""
    fill: Any = lambda ax, histories, cells: None  # noqa: E731
    models, steps = {"point": (None,), "model": ("cnn", "lr")}, {"step_async": (1, 0)}
    for only, order in (
        (models | steps, ["CNN 1", "CNN 0", "LR 1", "LR 0"]),
        (models, ["LR 0", "LR 1", "CNN 0", "CNN 1"]),
    ):
        picture = Filled(("model", "step_async"), "{model} {step_async}", fill=fill, only=only)
        fig = drawing.draw(replace(artifact(picture), names={}), histories(), pd.DataFrame())
        assert [ax.get_title() for ax in fig.axes] == order


def test_an_axes_that_lacks_a_series_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one looks for it: in the order of the picture, in the legend because another axes has it, or because the
    paper's number is there."""
    others = tuple(
        Panel(panel.name, (*panel.experiments, replace(e, labels={**e.labels, "algorithm": "fednova"})), panel.seeds)
        for panel in PANELS
        for e in panel.experiments
    )
    found = histories()
    frame = found.frame[(found.frame["model"] == "cnn") | (found.frame["step_async"] == 1)]
    both = pd.concat([frame, frame[frame["model"] == "cnn"].assign(algorithm="fednova")])
    every = tuple(e for p in others for e in p.experiments)
    partial = replace(found, frame=both, experiments=every, missing=(("lr-1", "no results yet"), ("lr-0", "later")))
    picture = Curves(("model", "step_async"), "{model}, {step_async}", only={"point": (None,)})
    fig = drawing.draw(replace(artifact(picture), panels=lambda scale: others), partial, pd.DataFrame())
    assert captions.remarks(fig) == ["Not run, later: LR, equal. Not run: LR, unequal (FedNova)."]
    fig = drawing.draw(artifact(replace(picture, order=("fedavg",))), found, pd.DataFrame())
    assert captions.remarks(fig) == []
    nobody = replace(found, experiments=every, missing=(("cnn-0", "needs a9a"),))
    made = replace(artifact(picture), panels=lambda scale: others)
    assert captions.remarks(drawing.draw(made, nobody, pd.DataFrame())) == []
    marks = iter([paper.Mark("fednova", (1.0, 1.0), 1.0)])
    monkeypatch.setattr(paper, "of", lambda *_: marks)
    fig = drawing.draw(
        replace(made, draw=replace(picture, printed=(Printed("Table 1", "table1", "m"),))), nobody, pd.DataFrame()
    )
    assert "CNN, equal (FedNova)" in captions.remarks(fig)[0]
    entries = dict(zip([t.get_text() for t in fig.legends[0].get_texts()], fig.legends[0].legend_handles, strict=True))
    assert list(entries) == ["FedAvg", paper.KEY, "FedNova (printed)"]
    ring: Any = entries["FedNova (printed)"]
    assert (ring.get_color(), ring.get_markerfacecolor()) == (styles.known()["fednova"].color, "white")


def test_curves_are_smoothed_before_their_interval() -> None:
    found = histories()
    swing = np.where(found.frame["round"] % 2 == found.frame["seed"], 8.0, 4.0)  # two seeds in turns
    picture = Curves(("model",), "{model}", only={"step_async": (1,)}, smooth=5, spread="band")
    moved = replace(found, frame=found.frame.assign(value=swing))
    ax = drawing.draw(artifact(picture), moved, pd.DataFrame()).axes[0]
    assert dict(zip(*ax.lines[0].get_data(), strict=True)) == {4: 6.0, 5: 6.0}, "where a mean has five evaluations"
    edge = ax.collections[0].get_paths()[0].vertices
    assert [edge[:, 1].min(), edge[:, 1].max()] == pytest.approx([6 - 0.4 * 12.706205, 6 + 0.4 * 12.706205])


def test_axes_that_are_compared_get_common_limits() -> None:
    """Those of the means, which are drawn, not of single seeds."""
    told: dict[str, tuple[float, float]] = {}
    fill: Any = lambda ax, histories, cells, limits: told.update({ax.get_title(): limits})  # noqa: E731
    picture = Filled(("model", "step_async"), "{model}, {step_async}", fill=fill, alike=("model",))
    places = [(m, k) for m in ("lr", "cnn") for k in (0, 1)]
    rows = [(m, k, s, 10.0 * i + 100 * s - 50) for i, (m, k) in enumerate(places) for s in (0, 1)]
    cells = pd.DataFrame(rows, columns=["model", "step_async", "seed", "value"])
    drawing.draw(artifact(picture), histories(), cells)
    low, high = (0.0, 10.0), (20.0, 30.0)
    assert told == {"LR, equal": low, "LR, unequal": low, "CNN, equal": high, "CNN, unequal": high}
