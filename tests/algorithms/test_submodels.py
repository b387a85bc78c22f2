"""Parts of a model: shards, masks, windows and slices; recorded sets of weights against Python's."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from runs import run
from torch import Tensor

from reproduce.algorithms.base import DistinctClients, FedAvg, Participants, observe
from reproduce.algorithms.fiarse import FIARSE, group, held, maskable, thresholds
from reproduce.algorithms.narrower import HeteroFL, positions
from reproduce.algorithms.submodels import partial_average, size_key
from reproduce.clocks.rounds import Rounds
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClientSplits
from reproduce.engine.layout import layout_of
from reproduce.engine.requests import Trained
from reproduce.engine.scheduler import Run
from reproduce.models.declared import ResNet
from reproduce.modules.ops import One
from reproduce.papers.fiarse import runs
from reproduce.papers.fiarse import settings as scales
from reproduce.problem import Classification
from reproduce.settings import settings
from reproduce.streams import rng
from reproduce.systems import Epochs, System
from reproduce.systems.clients import SplitCapacity

SMOKE = scales.IMAGE_BLOBS
METHODS = runs.algorithms(SMOKE, "four", participants=4)
SIZES = runs.SIZES["four"]


@pytest.fixture(scope="module")
def tasks() -> ClientSplits:
    return ClientSplits(settings(), torch.float64)


def finished(
    tasks: ClientSplits,
    algorithm: FedAvg,
    sizes: tuple[float, ...],
    problem: Classification = SMOKE.problem,
    rounds: int = 3,
) -> Run:
    system = System(Epochs(1), capacity=SplitCapacity(sizes))
    return run([Experiment({"algorithm": "a"}, problem, system, algorithm, Rounds(rounds))], tasks=tasks)[0]


def test_counting_who_moved_is_another_average_where_somebody_did_not(tasks: ClientSplits) -> None:
    """A unit that is dead in a local run has the update 0: the released code leaves its client out of the average."""
    env = finished(tasks, METHODS["fiarse"], (1.0,), rounds=0).env
    updates = torch.ones(4, env.parameters, dtype=torch.float64)
    updates[0, :7] = 0
    now = observe(env, METHODS["fiarse"], 0, np.zeros(8, dtype=np.int64))
    cohort = Participants(np.arange(4), np.full(4, 1 / 4))
    for name, share in (("fiarse", 3 / 3), ("fiarse_held", 3 / 4)):
        state = {"x": torch.zeros(env.parameters, dtype=torch.float64)}
        METHODS[name].aggregate(env, state, now, cohort, Trained(updates))
        assert set(state["x"][:7].tolist()) == {share}
        assert set(state["x"][7:].tolist()) == {1.0}


def test_a_shard_has_one_threshold(tasks: ClientSplits) -> None:
    """Its k-th largest magnitude, k = floor(size d) of the d weights in it."""
    scope = (("conv1", "layer1"), ("fc", "layer2"))
    env = finished(tasks, FIARSE(0.1, scope=scope), SIZES, rounds=0).env
    x, theta = env.initial(), thresholds(env, env.initial(), [1 / 4], scope)[0]
    found: dict[str, list[Tensor]] = {}
    for name, where in maskable(env).items():
        found.setdefault(group(name, scope), []).append(x[where].abs())
    assert list(found) == ["conv1", "fc"]
    column = {name: i for i, name in enumerate(env.blocks)}
    for shard, parts in found.items():
        sizes = torch.cat(parts).sort(descending=True).values
        members = [n for n in maskable(env) if group(n, scope) == shard]
        assert {float(theta[column[n]]) for n in members} == {float(sizes[int(len(sizes) / 4) - 1])}
    whole = replace(METHODS["fiarse"], scope=(("conv1", "layer1", "layer2", "fc"),))  # type: ignore[type-var]
    one, same = (finished(tasks, algorithm, SIZES) for algorithm in (whole, METHODS["fiarse"]))
    assert torch.equal(one.state["x"], same.state["x"])


def sets_of(tasks: ClientSplits, rounds: int) -> tuple[list[dict[float, set[int]]], Run]:
    """size -> coordinates of its submodel, before each round, from runs of 0, 1, ... rounds."""
    found = []
    for t in range(rounds):
        before = finished(tasks, METHODS["fiarse"], SIZES, rounds=t)
        env, x = before.env, before.state["x"]
        free = [i for n, w in env.blocks.items() if n not in maskable(env) for i in range(w.start, w.stop)]
        masks = [held(env, x, theta) for theta in thresholds(env, x, SIZES)]
        found.append(
            {g: set(mask.nonzero().flatten().tolist()) - set(free) for g, mask in zip(SIZES, masks, strict=True)}
        )
    return found, finished(tasks, replace(METHODS["fiarse"], explore="shares"), SIZES, rounds=rounds)  # type: ignore[type-var]


def test_recorded_sets_are_those_of_the_models(tasks: ClientSplits) -> None:
    """And recording changes no bit of the training."""
    rounds = 4
    sets, watched = sets_of(tasks, rounds)
    assert torch.equal(watched.state["x"], finished(tasks, METHODS["fiarse"], SIZES, rounds=rounds).state["x"])
    rows = {(metric, key, t): value for t, _, metric, key, value in watched.state["history"]}
    d = len(sets[0][1.0])
    capacities = SplitCapacity(SIZES).capacities(8)
    trained: set[int] = set()
    for t in range(rounds):
        for i, g in enumerate(SIZES):
            key = size_key(g)
            now, union = sets[t][g], set().union(*(s[g] for s in sets[: t + 1]))
            assert rows["explored", key, t] == pytest.approx(len(union) / d)
            assert rows["held", key, t] == len(now)
            if t:
                assert rows["replaced", key, t] == pytest.approx(1 - len(now & sets[t - 1][g]) / len(now))
            if i:
                assert rows["unnested", key, t] == len(now - sets[t][SIZES[i - 1]]) == 0
        ids = rng("sampling", 0, t).choice(np.arange(8), size=4, replace=False)
        for client in ids:
            trained |= sets[t][float(capacities[client])]
        for g in SIZES:
            assert rows["holders", size_key(g), t] == sum(capacities[c] >= g for c in ids)
        assert rows["untrained", "", t] == pytest.approx(1 - len(trained) / d)
    assert rows["explored", size_key(1 / 4), rounds - 1] > rows["explored", size_key(1 / 4), 0]
    assert ("replaced", "1", 0) not in rows


def test_the_window_of_fedrolex_is_not_nested_between_rounds(tasks: ClientSplits) -> None:
    """The same sets for networks that are narrower: HeteroFL replaces nothing, FedRolex something in every round."""
    for rolling in (False, True):
        algorithm = HeteroFL(0.1, DistinctClients(4, average=True), rolling=rolling, explore="shares")
        rows = finished(tasks, algorithm, SIZES).state["history"]
        replaced = [value for _, _, metric, key, value in rows if metric == "replaced" and key != "1"]
        assert len(replaced) == 2 * 3
        assert all(value > 0 for value in replaced) if rolling else not any(replaced)
        assert not any(value for _, _, metric, _, value in rows if metric == "unnested")


MODEL = SMOKE.problem.model


def forward(model: ResNet, flat: Tensor, x: Tensor) -> Tensor:
    return model.forward(One(), layout_of(model).named(flat), x)


def normalises(name: str) -> bool:
    return "bn" in name or ".downsample.1." in name


@pytest.mark.parametrize("scope", ["model", "stage", "layer"])
def test_masks_have_the_right_size_and_are_nested(tasks: ClientSplits, scope: Any) -> None:
    env = finished(tasks, FIARSE(0.1, DistinctClients(4)), SIZES, rounds=0).env
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
    env = finished(tasks, FIARSE(0.1, DistinctClients(4)), SIZES, rounds=0).env
    weight = torch.cat([torch.full((w.stop - w.start,), not normalises(n)) for n, w in env.blocks.items()])
    d = int(weight.sum())
    below = [k for k in range(1, d) if int(k / d * d) < k]
    assert below
    for k, theta in zip(below[:20], thresholds(env, env.initial(), [k / d for k in below[:20]]), strict=True):
        assert (held(env, env.initial(), theta) & weight).sum() == k


def test_partial_average_leaves_the_rest_untouched() -> None:
    x = torch.tensor([1.0, -0.0, 3.0, 4.0])
    total, count = torch.tensor([3.0, 0.0, -2.0, 0.0]), torch.tensor([2, 0, 1, 0])
    new = partial_average(x, total, count, 0.5)
    assert torch.equal(new, torch.tensor([1.75, -0.0, 2.0, 4.0]))
    assert torch.signbit(new).tolist() == [False, True, False, False]
    assert (
        partial_average(x, torch.tensor([float("nan"), 0, 0, 0]), count, 1.0).isnan().tolist() == [True] + [False] * 3
    )


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
    run = finished(tasks, HeteroFL(0.1, DistinctClients(4, average=True)), SIZES, rounds=2)
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
    run = finished(tasks, HeteroFL(0.1, DistinctClients(4, average=True), rolling=True), SIZES, rounds=3)
    request: Any = run.experiment.algorithm.extract(run.env, run.state, [1 / 16])[0]
    model = replace(MODEL, width=0.25)
    assert request.model == model
    assert torch.equal(request.x[0], run.state["x"][positions(MODEL.shapes, model.shapes, 2)])
