"""A user's own module: traced and stacked, or by itself; its numbers are those of torch; what is wrong is one line."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from own_modules import ALONE, DROPPED, REFUSED, TRACED
from runs import run
from torch import nn

from reproduce.algorithms.base import FedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Fixed
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClientSplits
from reproduce.engine.evaluate import evaluate
from reproduce.engine.requests import Evaluate
from reproduce.errors import UserError
from reproduce.models.lower import lowered
from reproduce.models.model import Model, graph_of, kept
from reproduce.models.network import Network
from reproduce.partitions.labels import IID
from reproduce.problem import Classification
from reproduce.runs.graphs import SOURCES, networks
from reproduce.settings import settings
from reproduce.streams import globally, rng
from reproduce.systems import System
from reproduce.systems.work import Steps

CLIENTS, STEPS, ROUNDS, RATE, SEED = 4, 2, 2, 0.1, 5

pytestmark = pytest.mark.filterwarnings("ignore")  # what torch says of what it would have otherwise


@pytest.fixture(autouse=True)
def _undigested(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of modules is a long file, whose digest takes most of the time."""
    if "name" in request.fixturenames:
        monkeypatch.setattr(Network, "files", frozenset())


def network(name: str) -> Network:
    return Network("own_modules:make", (("name", name),))


def experiment(model: Model) -> Experiment:
    problem = Classification("digits", model, IID(), CLIENTS, Fixed(1000), train_samples=42, test_samples=20)
    return Experiment({}, problem, System(Steps(STEPS)), FedAvg(RATE), Rounds(ROUNDS))


def plainly(task: Any, asks: bool) -> tuple[nn.Module, float]:
    """FedAvg by torch alone, with the luck of the engine's streams: the last model, and its loss on the test set.

    asks: does it ask for gradients in evaluation?
    """
    loss, arena = nn.functional.cross_entropy, task.device_data
    whole: nn.Module = task.problem.model.module(SEED)
    whole = whole.float()._apply(lambda t: t.double() if t.is_floating_point() else t)
    for r in range(ROUNDS):
        clients = []
        for c, where in enumerate(task.indices):
            mine = copy.deepcopy(whole).train()
            optimiser = torch.optim.SGD(mine.parameters(), RATE)
            stream = torch.Generator().manual_seed(int(rng("dropout", SEED, r, c).integers(2**62)))
            for _ in range(STEPS):
                optimiser.zero_grad()
                luck = int(torch.randint(2**62, (), generator=stream))
                with globally("module", luck % 2**32, luck >> 32):
                    out = mine(arena.train_x[where].clone(memory_format=torch.contiguous_format))
                loss(getattr(out, "logits", out), arena.train_y[where]).backward()
                optimiser.step()
            clients.append(vector(mine))
        with torch.no_grad():
            for name, t in vector(whole).items():
                t.copy_(sum(w * client[name] for w, client in zip(task.weights, clients, strict=True)))
    with globally("module", 0, 0), torch.set_grad_enabled(asks):
        out = copy.deepcopy(whole).eval()(arena.test_x.clone(memory_format=torch.contiguous_format))
    return whole, loss(getattr(out, "logits", out), arena.test_y).item()


def vector(module: nn.Module) -> dict[str, torch.Tensor]:
    """What clients send: parameters, and the buffers of floating point that the state holds."""
    stored = set(nn.Module.state_dict(module))
    buffers = {n: b for n, b in module.named_buffers() if n in stored and b.is_floating_point()}
    return dict(module.named_parameters()) | buffers


@pytest.mark.parametrize("name", [*TRACED, *DROPPED, *ALONE])
def test_it_trains_as_plain_torch_does(name: str) -> None:
    tasks, e = ClientSplits(settings(), torch.float64), experiment(network(name))
    assert (e.problem.model.kind == "alone") == (name in ALONE)
    (played,) = run([e], (SEED,), torch.float64, tasks=tasks)
    assert played.state["status"] == "ok"
    task: Any = tasks.get(e.problem, SEED)
    if name in DROPPED:  # whose masks are the engine's own
        return
    expected, loss = plainly(task, name == "gradients within")
    for entry, t in vector(expected).items():
        mine = played.state["x"][task.blocks[entry]].view_as(t)
        torch.testing.assert_close(mine, t, rtol=0, atol=1e-9, msg=entry)
    judged = evaluate(task, [Evaluate(played.state["x"][None], "test")])[0]
    assert judged.metrics["loss"][0] == pytest.approx(loss, abs=1e-9)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_said_in_one_line(name: str) -> None:
    with pytest.raises(UserError, match=REFUSED[name][1]) as told:
        experiment(network(name))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("name", ["residual", "a random mask", "noise", "BN(4, momentum=None)"])
def test_a_seed_gives_the_same_numbers_alone_and_in_company(name: str) -> None:
    """Seed 1 by itself, and beside seed 0, of which the random constants are others."""
    e = experiment(network(name))
    (alone,), (first, both) = run([e], (1,)), run([e], (0, 1))
    torch.testing.assert_close(alone.state["x"], both.state["x"], rtol=1e-4, atol=1e-5)
    assert name == "residual" or torch.equal(alone.state["x"], both.state["x"])
    assert not torch.equal(first.state["x"], both.state["x"])


def test_another_file_is_another_declaration(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    text = "from torch import nn\n\ndef net():\n    return nn.Sequential(nn.Flatten(), nn.Linear(64, {}))\n"
    found = []
    for width in (10, 12):
        (tmp_path / "changing_net.py").write_text(text.format(width))
        monkeypatch.delitem(__import__("sys").modules, "changing_net", raising=False)
        __import__("importlib").invalidate_caches()
        found.append(Network("changing_net:net"))
        assert found[-1].shapes["1.weight"] == (width, 64)
    assert found[0] != found[1]


DECLARED: dict[str, Model] = networks()


def test_planning_knows_every_declared_network() -> None:
    """Else run `python -m reproduce.runs.graphs`, which writes networks.json."""
    assert set(kept()) == {said for said, model in DECLARED.items() if model.make.partition(":")[0] in SOURCES}


@pytest.mark.parametrize("said", DECLARED)
def test_kept_graphs_are_those_of_the_modules(said: str) -> None:
    assert graph_of(DECLARED[said]).said() == lowered(DECLARED[said]).said()
