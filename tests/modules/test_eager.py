"""A user's own module: traced and stacked, or by itself; its numbers are those of torch; what is wrong is one line."""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.fx.experimental.symbolic_shapes  # what examinations import, once for all
from own_kinds import KINDS
from own_modules import ALONE, DROPPED, REFUSED, TRACED
from runs import run
from torch import Tensor, nn

from benchmarks.graphs import SOURCES, networks
from reproduce.algorithms.base import FedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Fixed
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClientSplits
from reproduce.engine.evaluate import evaluate
from reproduce.engine.requests import Evaluate
from reproduce.errors import UserError
from reproduce.models.model import Model, graph_of, kept, translated
from reproduce.models.network import Network
from reproduce.partitions.labels import IID
from reproduce.problem import Classification
from reproduce.settings import settings
from reproduce.streams import globally, rng
from reproduce.systems import System
from reproduce.systems.work import Steps

CLIENTS = 4
ROUNDS, STEPS, RATE, SEED = 2, 2, 0.1, 5
LOOPS = ("anew", "copied", "reused")

pytestmark = pytest.mark.filterwarnings("ignore")  # what torch says of what it would have otherwise


@pytest.fixture(autouse=True)
def _undigested(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of modules is a long file, whose digest takes most of the time."""
    if "name" in request.fixturenames:
        monkeypatch.setattr(Network, "files", frozenset())


def network(name: str) -> Network:
    return Network("own_modules:make", (("name", name),))


def experiment(model: Model, momentum: float = 0.0) -> Experiment:
    problem = Classification("digits", model, IID(), CLIENTS, Fixed(1000), train_samples=42, test_samples=20)
    return Experiment({}, problem, System(Steps(STEPS)), FedAvg(RATE, momentum=momentum), Rounds(ROUNDS))


# FedAvg on a module as everybody writes it, by torch alone: one deep copy a client, one module for all, one made anew.
# The luck of a local run is that of the engine's stream; all else is torch's.


def vector(module: nn.Module) -> dict[str, Tensor]:
    """What clients send: parameters, and the buffers of floating point that the state holds."""
    stored, known = set(nn.Module.state_dict(module)), {}
    for name, t in [*module.named_parameters(), *module.named_buffers()]:
        if isinstance(t, nn.Parameter) or (name in stored and t.is_floating_point()):
            known[name] = t
    return known


@torch.no_grad()
def load(module: nn.Module, values: dict[str, Tensor]) -> nn.Module:
    for name, t in vector(module).items():
        if not torch.equal(t.to(values[name].dtype), values[name]):  # doubles stay what they are
            t.copy_(values[name])
    return module


def sent(module: nn.Module) -> dict[str, Tensor]:
    return {n: t.detach().float().clone() for n, t in vector(module).items()}


def plainly(
    loop: str, make: Callable[[], nn.Module], task: Any, momentum: float = 0.0
) -> tuple[dict[str, Tensor], float]:
    """The last model, and its loss on the test set."""
    loss, data = nn.functional.cross_entropy, task.device_data
    whole = make()
    x = sent(whole)

    def client(values: dict[str, Tensor]) -> nn.Module:
        mine = {"anew": make, "copied": lambda: copy.deepcopy(whole), "reused": lambda: whole}[loop]()
        return load(mine, values)

    for r in range(ROUNDS):
        ends = []
        for c, where in enumerate(task.indices):
            luck = int(rng("dropout", SEED, r, c).integers(2**62))
            mine = client(x)
            mine.train()
            optimiser = torch.optim.SGD(mine.parameters(), RATE, momentum=momentum)
            with globally("module", luck % 2**32, luck >> 32):
                for _ in range(STEPS):
                    optimiser.zero_grad()
                    out = mine(data.train_x[where].clone(memory_format=torch.contiguous_format))
                    loss(getattr(out, "logits", out), data.train_y[where]).backward()
                    optimiser.step()
            ends.append(sent(mine))
        weights = [float(w) for w in task.weights]
        for n in x:
            same = all(torch.equal(e[n], ends[0][n]) for e in ends)
            x[n] = ends[0][n] if same else sum(w * e[n] for w, e in zip(weights, ends, strict=True))  # type: ignore[assignment]
        load(whole, x)
    last = client(x)
    for grads in (False, True):
        last.eval()
        try:
            with globally("module", SEED), torch.set_grad_enabled(grads):
                out = last(data.test_x.clone(memory_format=torch.contiguous_format))
            break
        except RuntimeError:
            last = client(x)
    value = loss(getattr(out, "logits", out), data.test_y).item()
    last.train()
    return x, value


@pytest.mark.parametrize("name", [*TRACED, *DROPPED, *ALONE, *KINDS])
def test_it_trains_as_plain_torch_does(name: str) -> None:
    """As the loop that makes a module anew, and as one at least of those that copy it deeply or use it again."""
    momentum = 0.9 * (name in KINDS)
    tasks, e = ClientSplits(settings()), experiment(network(name), momentum)
    assert (e.problem.model.kind == "module") == (name in ALONE or name in KINDS)
    (played,) = run([e], (SEED,), tasks=tasks)
    assert played.state["status"] == "ok"
    task: Any = tasks.get(e.problem, SEED)
    if name in DROPPED:  # whose masks are the engine's own
        return
    judged = evaluate(task, [Evaluate(played.state["x"][None], "test")])[0].metrics["loss"][0]
    agree = []
    for loop in LOOPS:
        try:
            expected, loss = plainly(loop, lambda: e.problem.model.module(SEED), task, momentum)
        except RuntimeError:  # of what cannot be copied
            continue
        mine = [played.state["x"][task.blocks[n]].view_as(t) for n, t in expected.items()]
        close = map(partial(torch.allclose, rtol=1e-5, atol=3e-6, equal_nan=True), mine, expected.values())
        if all(close) and abs(judged - loss) < 1e-5:
            agree.append(loop)
    assert agree[0] == "anew"
    assert len(agree) > 1


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_said_in_one_line(name: str) -> None:
    with pytest.raises(UserError, match=REFUSED[name][1]) as told:
        experiment(network(name))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("name", ["two layers", "a random mask", "noise", "BN(4, momentum=None)"])
def test_a_seed_gives_the_same_numbers_alone_and_in_company(name: str) -> None:
    """Seed 1 by itself, and beside seed 0, of which the random constants are others."""
    e = experiment(network(name))
    (alone,), (first, both) = run([e], (1,)), run([e], (0, 1))
    torch.testing.assert_close(alone.state["x"], both.state["x"], rtol=1e-4, atol=1e-5)
    assert name == "two layers" or torch.equal(alone.state["x"], both.state["x"])
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
    """Else run `python -m benchmarks.graphs`, which writes networks.json."""
    assert set(kept()) == {said for said, model in DECLARED.items() if model.make.partition(":")[0] in SOURCES}


@pytest.mark.parametrize("said", DECLARED)
def test_kept_graphs_are_those_of_the_modules(said: str) -> None:
    assert graph_of(DECLARED[said]).to_json() == translated(DECLARED[said]).to_json()
