"""FIARSE and its rivals on texts: shards of thresholds, AdamW under masks, levels, and what cannot be run."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from runs import run
from torch.nn.functional import cross_entropy

from reproduce.algorithms.base import DistinctClients, FedAvg
from reproduce.algorithms.fiarse import FIARSE, group, held, maskable, thresholds
from reproduce.algorithms.narrower import HeteroFL, ScaleFL
from reproduce.clocks.rounds import Rounds
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClientSplits, Env
from reproduce.engine.layout import layout_of
from reproduce.engine.scheduler import Run
from reproduce.errors import UserError
from reproduce.papers.fiarse import runs
from reproduce.papers.fiarse import settings as scales
from reproduce.settings import settings
from reproduce.streams import rng
from reproduce.systems import Epochs, System
from reproduce.systems.clients import SplitCapacity
from tests.models.test_roberta import answer, library, slopes

SETTING = scales.TOPICS
STILL = replace(SETTING.problem, model=replace(SETTING.problem.model, dropout=0.0))
"""Without dropout, whose masks the library would draw otherwise."""
FOUR = runs.SIZES["four"]
LR, BETAS = 0.01, (0.9, 0.95)


def finished(algorithm: FedAvg, problem: Any = STILL, sizes: tuple[float, ...] = FOUR, rounds: int = 2) -> Run:
    system = System(Epochs(1), capacity=SplitCapacity(sizes))
    return run(
        [Experiment({"algorithm": "a"}, problem, system, algorithm, Rounds(rounds, rounds))], [1], torch.float64
    )[0]


def test_each_shard_has_a_threshold_of_its_own() -> None:
    """The k-th largest magnitude of the shard; what no shard has is held by all."""
    env = Env(ClientSplits(settings(), torch.float64).get(STILL, 0), None, 0)
    x, where = env.initial(), maskable(env)
    for gamma, theta in zip(FOUR, thresholds(env, x, FOUR, scales.TEXT_SHARDS), strict=True):
        mask, free = held(env, x, theta), torch.ones(env.parameters, dtype=torch.bool)
        for (begin,) in scales.TEXT_SHARDS:
            mine = torch.cat([mask[where[n]] for n in where if n.startswith(begin)])
            values = torch.cat([x[where[n]].abs() for n in where if n.startswith(begin)])
            kept = len(mine) if gamma == 1 else max(1, math.floor(gamma * len(mine)))
            least = values.topk(kept).values[-1]
            assert torch.equal(mine, values >= (0 if gamma == 1 else least))
            assert mine.sum() == kept or least == 0, "biases start at zero, all alike"
        for name in where:
            free[where[name]] = False
        assert mask[free].all()
        assert {n.split(".")[0] for n, w in env.blocks.items() if free[w].all()} == {
            "embeddings",
            "encoder",
            "classifier",
        }
    assert group("embeddings.word_embeddings.weight", scales.TEXT_SHARDS) == "embeddings.word"
    assert {group(name, runs.SHARDS) for name in scales.RESNET10N.maskable} == {"conv1", "layer3", "layer4"}


@pytest.mark.parametrize("amplify", [True, False])
def test_runs_equal_the_librarys_model_and_optimiser(amplify: bool) -> None:
    """Two rounds: masks at every step, eq. 3, `torch.optim.AdamW` of each client, the mean over who moved."""
    algorithm = FIARSE(LR, DistinctClients(5, average=True), betas=BETAS, scope=scales.TEXT_SHARDS, amplify=amplify)
    found = finished(algorithm)
    env, task = found.env, found.env.split
    arena: Any = task.device_data  # type: ignore[union-attr]
    model, x = STILL.model, env.initial()
    sizes = {n: w.stop - w.start for n, w in env.blocks.items()}
    for t in range(2):
        updates = []
        for i in rng("sampling", found.seed, t).choice(8, size=5, replace=False):
            theta = thresholds(env, x, [FOUR[i // 2]], scales.TEXT_SHARDS)[0]
            every = torch.cat([v.expand(size) for v, size in zip(theta, sizes.values(), strict=True)])
            y = x.clone().requires_grad_()
            optimiser = torch.optim.AdamW([y], lr=LR, betas=BETAS, eps=1e-8, weight_decay=0.0)
            mine = task.indices[i]  # type: ignore[union-attr]
            for batch in (mine[b : b + 10] for b in range(0, len(mine), 10)):
                mask = (y.detach().abs() >= every).double()
                network = library(model, y.detach() * mask)
                logits = answer(network, arena.train_x[torch.from_numpy(batch)], model.padding)
                g = slopes(model, network, cross_entropy(logits, arena.train_y[torch.from_numpy(batch)])) * mask
                size = y.detach().abs()
                factor = torch.where(every > 0, 2 * size * every / (size + every) ** 2, 0.0)
                y.grad = g * (1 + factor) if amplify else g
                optimiser.step()
            updates.append(y.detach() - x)
        moved = torch.stack(updates)
        count = (moved != 0).sum(0)
        x = torch.where(count > 0, x + moved.sum(0) / count.clamp(min=1), x)
    torch.testing.assert_close(found.state["x"], x, rtol=0, atol=1e-8)
    assert (x - env.initial()).abs().max() > 0.01
    words = layout_of(model).named(x - env.initial())["embeddings.word_embeddings.weight"]
    assert not words[0].any(), "padding"


def test_where_all_hold_everything_the_methods_are_one() -> None:
    common: dict[str, Any] = {"lr": LR, "participation": DistinctClients(5, average=True), "betas": BETAS}
    methods = {
        "heterofl": HeteroFL(**common),
        "fedrolex": HeteroFL(rolling=True, **common),
        "scalefl": ScaleFL(levels=((1.0, 1, 1.0),), **common),
        "fiarse": FIARSE(count="mask", scope=scales.TEXT_SHARDS, **common),
        "pruning_greedy": FIARSE(count="mask", mask="frozen", amplify=False, **common),
    }
    ends = {}
    for name, method in methods.items():
        problem = SETTING.problem
        if name == "scalefl":
            problem = replace(problem, model=problem.model.with_exits((2,)))
        ends[name] = finished(method, problem, (1.0,)).state["x"]
    for end in ends.values():
        torch.testing.assert_close(end, ends["heterofl"], rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("algorithm", "problem", "said"),
    [
        (FedAvg(), replace(STILL, model=STILL.model.with_exits((1, 2))), "FedAvg trains one classifier, .* 2 exits"),
        (HeteroFL(), replace(STILL, model=STILL.model.with_exits((1, 2))), "HeteroFL trains one classifier"),
        (FIARSE(), runs.network(scales.IMAGE_BLOBS, "scalefl"), "FIARSE trains one classifier"),
        (ScaleFL(levels=((1.0, 1, 1.0),)), STILL, "a RoBERTa has none"),
        (FIARSE(scope=scales.TEXT_SHARDS[1:]), STILL, "no shard of the thresholds has the stage 'embeddings.position"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_said_in_one_line(algorithm: Any, problem: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        finished(algorithm, problem, (1.0,))
