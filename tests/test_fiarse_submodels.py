"""Masks, slices and windows of residual networks: sizes, nesting, equalities between methods (float64)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from runs import run as play_all
from torch import Tensor

from reproduce.algorithms.base import DistinctClients, FedAvg
from reproduce.algorithms.fiarse import FIARSE, held, thresholds
from reproduce.algorithms.narrower import HeteroFL, positions
from reproduce.algorithms.submodels import partial_average
from reproduce.clocks.rounds import Rounds
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClientSplits
from reproduce.engine.layout import layout_of
from reproduce.engine.scheduler import Run
from reproduce.models.declared import ResNet
from reproduce.models.ops import One
from reproduce.papers.fiarse import runs
from reproduce.papers.fiarse import settings as scales
from reproduce.settings import settings
from reproduce.systems import Epochs, System
from reproduce.systems.capacity import SplitCapacity

SMOKE = scales.IMAGE_BLOBS.problem
FOUR = SplitCapacity(runs.SIZES["four"])
MODEL = SMOKE.model


@pytest.fixture(scope="module")
def tasks() -> ClientSplits:
    return ClientSplits(settings(), torch.float64)


def finished(
    tasks: ClientSplits,
    algorithm: FedAvg,
    capacity: SplitCapacity,
    rounds: int = 3,
    problem: Any = SMOKE,
    seed: int = 0,
) -> Run:
    experiment = Experiment({}, problem, System(Epochs(1), capacity=capacity), algorithm, Rounds(rounds))
    (run,) = play_all([experiment], [seed], tasks=tasks)
    return run


def forward(model: ResNet, flat: Tensor, x: Tensor) -> Tensor:
    return model.forward(One(), layout_of(model).named(flat), x)


# --- masks ------------------------------------------------------------------------------------------------------------


def normalises(name: str) -> bool:
    return "bn" in name or ".downsample.1." in name


@pytest.mark.parametrize("scope", ["model", "stage", "layer"])
def test_masks_have_the_right_size_and_are_nested(tasks: ClientSplits, scope: Any) -> None:
    env = finished(tasks, FIARSE(0.1, DistinctClients(4)), FOUR, rounds=0).env
    x = env.initial()
    d = 72 + 72 * 8 + 8 * 16 * 9 + 16 * 16 * 9 + 8 * 16 + 72 * 8 + 16 * 4 + 4
    free = MODEL.parameters - d
    assert free == 2 * (8 * 3 + 16 * 3)
    masks = [held(env, x, t) for t in thresholds(env, x, runs.SWEEP, scope)]
    for size, mask in zip(runs.SWEEP, masks, strict=True):
        assert mask.sum() - free == (d if size == 1 else pytest.approx(int(size * d), abs=8 if scope != "model" else 0))
    assert all(not (a & ~b).any() for a, b in pairwise(masks))
    assert masks[-1].all()
    normalisation = torch.cat([torch.full((w.stop - w.start,), normalises(n)) for n, w in env.blocks.items()])
    assert normalisation.sum() == free
    assert all(m[normalisation].all() for m in masks)


def test_a_share_of_a_whole_number_of_weights_keeps_as_many(tasks: ClientSplits) -> None:
    """Also where the product of share and weights is rounded to a little less."""
    env = finished(tasks, FIARSE(0.1, DistinctClients(4)), FOUR, rounds=0).env
    weight = torch.cat([torch.full((w.stop - w.start,), not normalises(n)) for n, w in env.blocks.items()])
    d = int(weight.sum())
    below = [k for k in range(1, d) if int(k / d * d) < k]
    assert below
    for k, theta in zip(below[:20], thresholds(env, env.initial(), [k / d for k in below[:20]]), strict=True):
        assert (held(env, env.initial(), theta) & weight).sum() == k


# --- the server step --------------------------------------------------------------------------------------------------


def test_partial_average_leaves_the_rest_untouched() -> None:
    x = torch.tensor([1.0, -0.0, 3.0, 4.0])
    total, count = torch.tensor([3.0, 0.0, -2.0, 0.0]), torch.tensor([2, 0, 1, 0])
    new = partial_average(x, total, count, 0.5)
    assert torch.equal(new, torch.tensor([1.75, -0.0, 2.0, 4.0]))
    assert torch.signbit(new).tolist() == [False, True, False, False]
    assert (
        partial_average(x, torch.tensor([float("nan"), 0, 0, 0]), count, 1.0).isnan().tolist() == [True] + [False] * 3
    )


# --- equalities between methods ---------------------------------------------------------------------------------------


def test_fedrolex_keeps_every_channel_equally_often() -> None:
    """In c rounds a window of k of c channels has every channel k times; both ends of a layer move together."""
    whole, part = MODEL.shapes, replace(MODEL, width=0.25).shapes
    name = "layer2.0.conv2.weight"
    start = sum(int(np.prod(s)) for n, s in list(whole.items())[: list(whole).index(name)])
    first = sum(int(np.prod(s)) for n, s in list(part.items())[: list(part).index(name)])
    size = int(np.prod(part[name]))
    times = np.zeros((2, 16), dtype=int)
    for t in range(16):
        at = positions(whole, part, t)[first : first + size] - start
        outputs, inputs = np.unique(at // 144), np.unique(at % 144 // 9)
        assert set(outputs) == set(inputs) == {(t + s) % 16 for s in range(4)}
        times[0, outputs] += 1
        times[1, inputs] += 1
    assert (times == 4).all()
    assert sorted(positions(whole, whole, 3)) == list(range(MODEL.parameters))


@pytest.mark.parametrize("offset", [0, 3, 13])
@pytest.mark.parametrize("width", [0.125, 0.5, 0.6])
def test_a_slice_is_the_whole_model_with_zeros(tasks: ClientSplits, offset: int, width: float) -> None:
    """Channels and their normalisation set to 0 outside the slice: the same logits, without and with the scaler."""
    run = finished(tasks, HeteroFL(0.1, DistinctClients(4, average=True)), FOUR, rounds=2)
    x, images = run.state["x"], run.env.split.device_data.test_x[:20]
    model = replace(MODEL, width=width)
    plain = replace(MODEL, widths=tuple(map(model.kept_channels, MODEL.widths)))
    assert plain.shapes == model.shapes
    at = positions(MODEL.shapes, model.shapes, offset)
    assert len(set(at.tolist())) == model.parameters
    masked = torch.zeros_like(x)
    masked[at] = x[at]
    expected = forward(MODEL, masked, images)
    torch.testing.assert_close(forward(plain, x[at], images), expected, rtol=0, atol=1e-10)
    difference = (forward(model, x[at], images) - expected).abs().max()
    assert 0 < difference < 1e-3


def test_fedrolex_is_evaluated_in_the_window_of_the_last_round(tasks: ClientSplits) -> None:
    run = finished(tasks, HeteroFL(0.1, DistinctClients(4, average=True), rolling=True), FOUR, rounds=3)
    request: Any = run.experiment.algorithm.extract(run.env, run.state, [1 / 16])[0]
    model = replace(MODEL, width=0.25)
    assert request.model == model
    assert torch.equal(request.x[0], run.state["x"][positions(MODEL.shapes, model.shapes, 2)])
