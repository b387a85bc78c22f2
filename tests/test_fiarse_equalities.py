"""All methods of the paper: if everybody holds everything they are FedAvg; shards; sets of weights against Python's."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from runs import run
from torch import Tensor

from reproduce.algorithms.base import DistinctClients, FedAvg, Participants, observe
from reproduce.algorithms.fiarse import FIARSE, group, held, maskable, thresholds
from reproduce.algorithms.narrower import HeteroFL, ScaleFL, positions
from reproduce.algorithms.submodels import size_key
from reproduce.clocks.rounds import Rounds
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClientSplits
from reproduce.engine.requests import Train, Trained
from reproduce.engine.rule import Rule
from reproduce.engine.scheduler import Run
from reproduce.engine.trainer import Trainer
from reproduce.papers.fiarse import runs
from reproduce.papers.fiarse import settings as scales
from reproduce.papers.fiarse.variants import SteppedHeteroFL
from reproduce.problem import Classification
from reproduce.settings import settings
from reproduce.streams import rng
from reproduce.systems import Epochs, System
from reproduce.systems.capacity import SplitCapacity

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


# --- everybody holds everything ---------------------------------------------------------------------------------------


def counted_by_mask(algorithm: FedAvg) -> FedAvg:
    return replace(algorithm, count="mask") if isinstance(algorithm, FIARSE) else algorithm


@pytest.mark.parametrize("name", METHODS)
def test_if_all_sizes_are_1_a_method_is_federated_averaging(tasks: ClientSplits, name: str) -> None:
    """Four participants: halving is exact, so that the bits are the same; FjORD adds a gradient that is 0 but for
    rounding, its client's network learning from itself."""
    algorithm = counted_by_mask(METHODS[name])
    if isinstance(algorithm, SteppedHeteroFL):
        algorithm = replace(algorithm, falls=())
    if isinstance(algorithm, ScaleFL):  # all that it needs of its network is the last exit
        algorithm = replace(algorithm, levels=((1.0, 1, 1.0),))
        network = replace(runs.network(SMOKE, name).model, exits=(2,))  # type: ignore[type-var]
        found = finished(tasks, algorithm, (1.0,), replace(SMOKE.problem, model=network))
    else:
        found = finished(tasks, algorithm, (1.0,))
    expected = finished(tasks, FedAvg(0.1, DistinctClients(4, average=True)), (1.0,)).state["x"]
    close = 1e-12 if name == "fjord" else 0
    torch.testing.assert_close(found.state["x"], expected, rtol=0, atol=close)
    assert (expected - found.env.initial()).abs().max() > 0.01


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


# --- shards -----------------------------------------------------------------------------------------------------------


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


# --- sets of weights --------------------------------------------------------------------------------------------------


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


# --- small networks and masks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1 / 4, 1 / 16])
def test_training_a_small_network_is_training_the_whole_one_behind_a_mask(tasks: ClientSplits, size: float) -> None:
    """Width methods train dense networks: the same update as that of the whole with zeros elsewhere, held at zero."""
    before = finished(tasks, METHODS["heterofl"], SIZES)
    env, x = before.env, before.state["x"]
    part = SMOKE.problem.model.narrowed(math.sqrt(size), scale=False)
    at = positions(SMOKE.problem.model.shapes, part.shapes)
    hidden = torch.zeros_like(x)
    hidden[at] = x[at]
    plain = Train(np.arange(8), np.full(8, 3), x[at], 0.1, 5, model=part)
    any_size = torch.full((8, len(env.blocks)), 1e-300, dtype=torch.float64)
    masked = replace(plain, start=hidden, model=None, rule=Rule(mask="frozen"), thresholds=any_size)
    small, whole = (Trainer().train([(env.split, request)])[0].rows for request in (plain, masked))
    torch.testing.assert_close(whole[:, at], small, rtol=0, atol=1e-10)
    whole[:, at] = 0
    assert not whole.any()
    assert small.abs().max() > 1e-3
