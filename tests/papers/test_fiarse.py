"""FIARSE: cells from histories made by hand; sizes and thresholds of ResNet-18 that follow from Section 6.1 and from
PyTorch's initialisation; clients whose test sets have other mixes of labels."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from runs import run

from reproduce.algorithms.base import DistinctClients
from reproduce.algorithms.fiarse import group, maskable
from reproduce.algorithms.narrower import HeteroFL
from reproduce.algorithms.submodels import size_key
from reproduce.clocks.rounds import Rounds
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import Env
from reproduce.engine.layout import layout_of
from reproduce.models.declared import ResNet
from reproduce.papers.fiarse import measures, runs
from reproduce.papers.fiarse.settings import RESNET10N
from reproduce.papers.fiarse.variants import FirstWindow, FreshTests, SteppedHeteroFL, cropped
from reproduce.partitions.dirichlet import BalancedDirichlet
from reproduce.report.histories import Histories
from reproduce.systems import Epochs, System
from reproduce.systems.clients import SplitCapacity

SIZES = ("1", "0.25", "0.0625", "0.015625")


def histories(panel: Any, rows: list[tuple[int, str, str, float]], seeds: tuple[int, ...] = (0,)) -> Histories:
    (e,) = panel.experiments
    frame = pd.DataFrame(
        [
            {**e.labels, "seed": s, "round": t, "time": math.nan, "metric": m, "key": k, "value": v, "status": "ok"}
            for s in seeds
            for t, m, k, v in rows
        ]
    )
    return Histories(frame, "smoke", experiments=panel.experiments)


def value(cells: pd.DataFrame, metric: str, **where: Any) -> float:
    found = cells[(cells["metric"] == metric) & (cells["seed"] == 0)]
    for column, wanted in where.items():
        found = found[found[column] == wanted]
    assert len(found) == 1, (metric, where)
    return float(found["value"].iloc[0])


def test_early_and_late_growth() -> None:
    """Eleven rounds: E grows by 0.05, 0.04, then 0.01 a round; of the ten steps the first and the last two count."""
    explored = [0.1, 0.15, 0.19, *(0.19 + 0.01 * t for t in range(1, 9))]
    replaced = [0.5, 0.3, *(0.2 for _ in range(6)), 0.1, 0.06]
    rows = [(t, "explored", "0.25", e) for t, e in enumerate(explored)]
    rows += [(t, "replaced", "0.25", d) for t, d in enumerate(replaced, start=1)]
    rows += [(t, name, "1", 1.0) for t in range(11) for name in ("explored", "replaced")]
    rows += [(t, "untrained", "", 1 - t / 10) for t in range(11)]
    (panel,) = runs.panels("fig7", "smoke")
    found = measures.exploration(histories(panel, rows, (0, 1)))
    assert set(found["model_size"]) == {"1/4"}
    assert set(found["seed"]) == {0, 1}
    assert value(found, "exploration_rate_min_increment") == pytest.approx(0.01)
    assert value(found, "exploration_increment_first_fifth") == pytest.approx(0.045)
    assert value(found, "exploration_increment_last_fifth") == pytest.approx(0.01)
    assert value(found, "model_difference_first_fifth") == pytest.approx(0.4)
    assert value(found, "model_difference_last_fifth") == pytest.approx(0.08)
    assert value(measures.untrained(histories(panel, rows)), "untrained_fraction") == 0


def test_slices_and_their_holders() -> None:
    held, holders = dict(zip(SIZES, (100, 25, 6, 1), strict=True)), dict(zip(SIZES, (1, 2, 2, 4), strict=True))
    rows = [(t, "held", k, n + 5 * t) for t in (0, 1) for k, n in held.items()]
    rows += [(t, "holders", k, n + t) for t in (0, 1) for k, n in holders.items()]
    rows += [(t, "unnested", k, float(t + (k == "0.25"))) for t in (0, 1) for k in SIZES[1:]]
    (panel,) = runs.panels("table2", "smoke")
    found = measures.slices(histories(panel, rows))
    for size, coordinates, clients, here in (
        ("1.0", 75, 2, 1),
        ("1/4", 19, 4, 2),
        ("1/16", 5, 6, 2),
        ("1/64", 1, 8, 4),
    ):
        assert value(found, "slice_coordinates", model_size=size) == coordinates
        assert value(found, "slice_clients", model_size=size) == clients
        assert value(found, "slice_participants", model_size=size) == here
    assert value(found, "mask_nesting_violations", model_size="all") == 1 + 4


def test_a_run_that_diverged_misses_the_target_by_the_end_of_its_own_data_set() -> None:
    """Not by that of the rounds it made, nor by that of a data set with more."""
    (panel,) = runs.panels("fig7", "smoke")
    base, frames, declared = panel.experiments[0], [], []
    labels = {"size_set": "four", "participation": 0.1, "target_accuracy": 70.0, "algorithm": "fiarse"}
    for dataset, end, made in (("short", 5, 2), ("long", 9, 9)):
        declared.append(replace(base, labels={"dataset": dataset, **labels}, clock=Rounds(end)))
        rows = {"round": range(made + 1), "value": 50.0, "status": "ok" if made == end else "diverged"}
        frames.append(pd.DataFrame(rows).assign(**declared[-1].labels))
    key = size_key(base.system.capacity.sizes[0])  # type: ignore[attr-defined]
    frame = pd.concat(frames, ignore_index=True).assign(seed=0, time=math.nan, metric="accuracy", key=key)
    cells = measures.curves(Histories(frame, "smoke", experiments=tuple(declared)), ("fiarse",))
    assert value(cells, "rounds_to_target", dataset="short") == 5
    assert value(cells, "rounds_to_target", dataset="long") == 9
    assert cells.loc[cells["metric"] == "rounds_to_target", "censored"].all()


def recorded() -> pd.DataFrame:
    (panel,) = runs.patterns()
    played = run(panel.experiments)
    parts = [
        pd.DataFrame(r.state["history"], columns=["round", "time", "metric", "key", "value"]).assign(
            algorithm=r.experiment.labels["algorithm"], seed=0, status="ok"
        )
        for r in played
    ]
    return pd.concat(parts, ignore_index=True)


def test_patterns_of_extraction() -> None:
    """As the paper draws them; a mask that is changed by hand is noticed."""
    (panel,) = runs.patterns()
    frame = recorded()
    found = measures.patterns(Histories(frame, "smoke", experiments=panel.experiments))
    assert dict(zip(found["metric"], found["value"], strict=True)) == {
        "mask_changes": 0, "window_shift": 1, "mask_topk_mismatches": 0,
    }  # fmt: skip
    for algorithm, metric in (("heterofl", "mask_changes"), ("fiarse", "mask_topk_mismatches")):
        mine = (frame["algorithm"] == algorithm) & (frame["metric"] == "mask") & (frame["round"] == 1)
        part = frame[mine & frame["key"].str.startswith("0.25:")]
        one, other = part[part["value"] == 1].index[0], part[part["value"] == 0].index[0]
        wrong = frame.copy()
        wrong.loc[[one, other], "value"] = [0.0, 1.0]
        cells = measures.patterns(Histories(wrong, "smoke", experiments=panel.experiments))
        assert float(cells.loc[cells["metric"] == metric, "value"].iloc[0]) > 0


class Bare:
    """A task of which only the model exists."""

    def __init__(self, model: ResNet) -> None:
        self.problem = type("Problem", (), {"model": model})()
        layout = layout_of(model)
        self.blocks = {n: slice(o, o + s) for (n, o), s in zip(layout.offsets.items(), layout.sizes, strict=True)}
        self.dtype, self.device, self.parameters = torch.float32, torch.device("cpu"), layout.total
        self.clients, self.trained, self.statistics = 1, self.blocks, torch.empty(0, dtype=torch.int64)
        self.initial = self.random = self.processed = None


def env_of(model: ResNet) -> Env:
    task: Any = Bare(model)
    return Env(task, None, 0)


def budget(model: ResNet) -> int:
    return sum(w.stop - w.start for w in maskable(env_of(model)).values())


def test_parameters() -> None:
    assert ResNet().parameters == 11_173_962
    assert ResNet(classes=100).parameters == 11_220_132
    assert budget(ResNet()) == 11_164_362
    assert budget(ResNet(classes=100)) == 11_210_532
    assert RESNET10N.parameters == 307_098 + 1_440
    assert budget(RESNET10N) == 307_098


def test_groups_of_the_layerwise_variant() -> None:
    sizes: dict[str, int] = {}
    for name, where in maskable(env_of(ResNet())).items():
        sizes[group(name, "stage")] = sizes.get(group(name, "stage"), 0) + where.stop - where.start
    assert sizes == {
        "conv1": 1_728, "layer1": 147_456, "layer2": 524_288, "layer3": 2_097_152, "layer4": 8_388_608, "fc": 5_130,
    }  # fmt: skip
    layers = {group(name, "layer") for name in maskable(env_of(ResNet()))}
    assert len(layers) == 21
    assert {group(name, "model") for name in maskable(env_of(ResNet()))} == {""}


SYSTEM = System(Epochs(1), capacity=SplitCapacity((1.0, 1 / 4)))
rng = np.random.default_rng(0)
TRAIN, TEST = rng.integers(0, 10, 4000), rng.integers(0, 10, 2000)


def mixes(labels: np.ndarray, parts: list[np.ndarray]) -> np.ndarray:
    return np.array([np.bincount(labels[part], minlength=10) / len(part) for part in parts])


def agreement(partition: object) -> float:
    """The correlation of what clients have of the classes in training and in tests."""
    train = partition.split(TRAIN, 20, 5)  # type: ignore[attr-defined]
    test = partition.split_test(TRAIN, TEST, 20, 5)  # type: ignore[attr-defined]
    return float(np.corrcoef(mixes(TRAIN, train).ravel(), mixes(TEST, test).ravel())[0, 1])


@pytest.mark.parametrize(("fixed", "following"), [(0, 1), (None, 6)])
def test_clients_train_on_the_same_and_are_tested_on_something_else(fixed: int | None, following: int) -> None:
    base = BalancedDirichlet(0.3, fixed)
    fresh = FreshTests(base)
    for ours, theirs in zip(fresh.split(TRAIN, 20, 5), base.split(TRAIN, 20, 5), strict=True):
        assert np.array_equal(ours, theirs)
    other = BalancedDirichlet(0.3, data_seed=following).split_test(TRAIN, TEST, 20, 5)
    for ours, theirs in zip(fresh.split_test(TRAIN, TEST, 20, 5), other, strict=True):
        assert np.array_equal(ours, theirs)
    assert agreement(base) > 0.9
    assert abs(agreement(fresh)) < 0.3


def test_the_window_is_the_first_one_and_the_rate_falls_twice() -> None:
    common = {"lr": 0.5, "participation": DistinctClients(2, average=True)}
    last, first = (
        Experiment({"algorithm": "a"}, runs.PATTERNS, SYSTEM, made(rolling=True, **common), Rounds(8))
        for made in (HeteroFL, FirstWindow)
    )
    found = run([last, first], range(4))
    small = []
    for a, b in zip(found[:4], found[4:], strict=True):
        assert (a.state["x"] == b.state["x"]).all()
        mine, other = ([v for *_, m, k, v in x.state["history"] if (m, k) == ("accuracy", "0.25")] for x in (a, b))
        assert mine[:2] == other[:2]
        small.append(mine != other)
    assert any(small)
    falling = SteppedHeteroFL(lr=1.0, falls=(2, 4))
    rates = [falling.learning_rate(None, SimpleNamespace(round=r, lr=None)) for r in range(6)]  # type: ignore[arg-type]
    assert rates == pytest.approx([1, 1, 0.1, 0.1, 0.01, 0.01])


def test_test_images_are_cropped_and_mirrored_each_by_itself() -> None:
    """Every image is one of the 162 versions of itself, and few are as they were."""
    images = np.random.default_rng(1).integers(1, 255, (50, 6, 6, 1), dtype=np.uint8)
    wide = np.pad(images, ((0, 0), (4, 4), (4, 4), (0, 0)))
    for image, made in zip(wide, cropped(images), strict=True):
        versions = [image[t : t + 6, left : left + 6] for t in range(9) for left in range(9)]
        assert any((made == v).all() or (made == v[:, ::-1]).all() for v in versions)
    assert np.mean([(a == b).all() for a, b in zip(images, cropped(images), strict=True)]) < 0.1
