"""Clients that attack: what the server gets of them, in every algorithm; what they train on; what stands it."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from runs import run

from reproduce.algorithms.scaffold import Scaffold
from reproduce.clocks.attacks import FlippedLabels, Noise, Scaled
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Cyclic
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClientSplits
from reproduce.engine.requests import Gradient, Train
from reproduce.errors import UserError
from reproduce.models.declared import Softmax
from reproduce.partitions.dirichlet import CappedDirichlet, DirichletClass
from reproduce.partitions.heldout import validated
from reproduce.play import play
from reproduce.play.benchmarks import Refused, find
from reproduce.play.specs import NAMES, Spec
from reproduce.problem import Classification, Quadratic
from reproduce.settings import settings
from reproduce.systems import System
from reproduce.systems.work import PerClient, Steps
from tests.data.test_userfiles import folder

__all__ = ["folder"]


def test_scaffold_gets_what_a_plain_loop_gives_it() -> None:
    """Both the updates and the control variates of attackers are scaled."""
    problem, steps, lr, attack = Quadratic(clients=5, dim=3), (1, 4, 2, 3, 2), 0.1, Scaled(0.4, factor=-2.0)
    toy = Experiment({"algorithm": "scaffold"}, problem, System(work=PerClient(steps)), Scaffold(lr), Rounds(4))
    (played,) = run([attack.put(toy)], seeds=(3,), dtype=torch.float64)
    factor, x, c = np.ones(5), np.zeros(3), np.zeros((5, 3))
    factor[attack.attackers(3, 5)] = -2
    assert (factor < 0).sum() == 2
    for _ in range(4):
        updates, gradients = np.zeros((5, 3)), np.zeros((5, 3))
        for m, minimiser in enumerate(problem.minima()):
            y = x.copy()
            for _ in range(steps[m]):
                gradients[m] += (y - minimiser) / steps[m]
                y -= lr * (y - minimiser + c.mean(0) - c[m])
            updates[m] = y - x
        x, c = x + (factor[:, None] * updates).mean(0), factor[:, None] * gradients
    np.testing.assert_allclose(played.state["x"], x, rtol=1e-12)


@pytest.mark.parametrize(
    ("place", "names"),
    [
        ("fedacs/image-blobs-dynamic-alpha035@3", NAMES),
        ("sessions-proposed", ("fedavg", "scaffold", "moon", "fedlin")),
        ("virtual-time", NAMES),
        ("capacities", NAMES),
    ],
)
def test_who_sends_what_they_should_is_no_attacker(place: str, names: Iterable[str]) -> None:
    """Of every algorithm and every clock, with all that it asks for."""
    benchmark, found = find(place, "smoke"), []
    for name in names:
        try:
            found.append(benchmark.experiment(Spec(name)))
        except Refused:
            continue
    attacked = [Scaled(0.5, factor=1.0).put(e) for e in found]
    runs = run([*found, *attacked], dtype=torch.float64)
    for honest, same in zip(runs[: len(found)], runs[len(found) :], strict=True):
        (ours, theirs) = (np.array([row[4] for row in r.state["history"]]) for r in (honest, same))
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9, err_msg=str(honest.experiment.labels))


def test_noise_has_the_length_that_it_says_and_is_of_one_message() -> None:
    env: Any = SimpleNamespace(seed=0, clients=4, statistics=torch.tensor([5]))
    vectors, attack = torch.arange(1, 4)[:, None] * torch.ones(3, 4000, dtype=torch.float64), Noise(0.75, factor=3.0)
    clients, firsts = np.setdiff1d(np.arange(4), attack.attackers(0, 4)[:1]), []
    bad = np.isin(clients, attack.attackers(0, 4))
    assert bad.sum() == 2
    for what in ("rows", "mean_gradient"):
        for request in (Train(clients, clients, vectors[0], 0.1, 7), Gradient(clients, vectors[0], 8)):
            found = attack.vectors(env, request, vectors, what)
            assert torch.equal(found[~bad], vectors[~bad])
            assert torch.equal(found[:, 5], vectors[:, 5])
            noise = np.delete((found[bad] / (3 * vectors[bad])).numpy(), 5, axis=1)
            assert np.abs(noise.mean(1)).max() < 4 / 4000**0.5
            assert np.abs(noise.var(1) - 1).max() < 4 * (2 / 4000) ** 0.5
            firsts += noise[:, 0].round(9).tolist()
    assert len({*firsts}) == 2 * 2 * 2


def test_an_evaluation_is_of_what_clients_have() -> None:
    """All attack and send nothing, so that the server stays; a local epoch of each goes on from there."""
    problem = Classification("digits", Softmax(64, 10), DirichletClass(0.5), 4, Cyclic(8), train_samples=200)
    e = find("fedagrac-steps", "smoke").template
    toy = replace(e, problem=problem, system=System(work=Steps(3)), clock=Rounds(2, by_client=True))
    (played,) = run([Scaled(1.0, factor=0.0).put(toy)])
    assert torch.equal(played.state["x"], played.env.initial())
    last = {row[2]: row[4] for row in played.state["history"] if row[0] == 2}
    assert last["per_client_tuned"] > last["per_client"] + 10


@pytest.mark.parametrize("tested", [False, True])
def test_attackers_alone_train_on_flipped_labels(tested: bool) -> None:
    split: Any = CappedDirichlet(1.0, data_seed=None) if tested else DirichletClass(0.5)
    plain = Classification(
        "digits", Softmax(64, 10), split, 8, Cyclic(8), mean=(0.3,), std=(0.4,), test_partition=tested
    )
    plain = replace(plain, train_samples=320, test_samples=80)
    toy = replace(find("fedagrac-steps", "smoke").template, problem=plain, system=System(work=Steps(3)))
    attack = FlippedLabels(0.25)
    flipped = attack.put(toy).problem
    for seed in (0, 1):
        one, other = (ClientSplits(settings()).get(p, seed) for p in (plain, flipped))
        assert [len(replace(attack, share=s).attackers(seed, 8)) for s in (0.25, 0.01)] == [2, 1]
        for m, (a, b) in enumerate(zip(one.indices, other.indices, strict=True)):  # type: ignore[union-attr]
            assert torch.equal(one.device_data.train_x[a], other.device_data.train_x[b])  # type: ignore[union-attr]
            y = one.device_data.labels[a]  # type: ignore[union-attr]
            wanted = 9 - y if m in attack.attackers(seed, 8) else y
            assert other.device_data.labels[b].tolist() == wanted.tolist()  # type: ignore[union-attr]
        assert torch.equal(one.device_data.test_x, other.device_data.test_x)  # type: ignore[union-attr]
        assert np.array_equal(one.view("test"), other.view("test"))
    with pytest.raises(UserError, match="--tune holds out"):
        validated(flipped)


def test_with_a_fifth_of_scaled_updates_fedavg_falls_and_robust_rules_stand(folder: Path) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    x = (rng.normal(0, 1, (3, 8))[y] + 0.5 * rng.standard_normal((600, 8))).astype(np.float32)
    options: dict[str, Any] = {"data": (x, y), "clients": 10, "scale": "smoke", "seeds": [0, 1]}
    rules = ["fedavg", "median", "trimmed_mean", "krum", "multi_krum"]
    calm, attacked = (
        play(rules, **options, attack=a).fillna({"value": 0}).groupby("algorithm")["value"].min()
        for a in (None, "Scaled(0.2)")
    )
    assert calm.min() > 90
    assert attacked["fedavg"] < 50
    assert attacked.drop("fedavg").min() > 90
