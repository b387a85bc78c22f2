"""A user's own module: traced and stacked, or by itself; its numbers are those of torch; what is wrong is one line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from reproduce.algorithms.base import FedAvg
from reproduce.algorithms.heterofl import HeteroFL
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Shuffled
from reproduce.declare.experiment import Experiment
from reproduce.engine.ops import One
from reproduce.engine.requests import Train
from reproduce.engine.rule import Rule
from reproduce.engine.task import Tasks
from reproduce.engine.trainer import Trainer
from reproduce.errors import UserError
from reproduce.models.graph import graph_of, kept
from reproduce.models.lower import lowered
from reproduce.models.model import Model
from reproduce.models.network import Network
from reproduce.partitions.dirichlet import DirichletClass
from reproduce.problem import Classification
from reproduce.runs.graphs import SOURCES, networks
from reproduce.settings import settings
from reproduce.systems import System
from reproduce.systems.capacity import SplitCapacity
from reproduce.systems.work import Steps
from tests import own_modules
from tests.runs import run

CLIENTS, STEPS, RATE = 3, np.array([3, 5, 2]), 0.05
TRACED = ("Plain", "Residual", "Modern", "Swapped", "Overwriting")
ALONE = (
    "Untraceable", "Odd", "Noisy", "Tied", "Frozen", "Counting", "ResidualUntraceable", "ModernUntraceable",
    "Strided", "TwoWays", "Scaling", "Dropping", "Still", "Slicing",
)  # fmt: skip


def network(name: str, **arguments: Any) -> Network:
    return Network(f"tests.own_modules:{name}", tuple(arguments.items()))


def problem(model: Model) -> Classification:
    return Classification("digits", model, DirichletClass(5.0), CLIENTS, Shuffled(8), partition_seed=1)


def task_of(name: str) -> Any:
    return Tasks(settings(), torch.float64).get(problem(network(name)), 0)


def update(task: Any, strategy: str, rule: Rule) -> torch.Tensor:
    request = Train(np.arange(CLIENTS), STEPS, task.initial(), RATE, 4, rule)
    return Trainer(strategy=strategy).train([(task, request)])[0].rows


def plainly(task: Any, client: int, rule: Rule) -> torch.Tensor:
    """A client's update by torch alone."""
    names, x = task.arena.layout.names, task.initial()
    module: nn.Module = task.problem.model.module().double()
    module.load_state_dict(task.arena.layout.named(x.clone()), strict=False)
    module = module.to(memory_format=torch.contiguous_format).train()
    trained = [p for p in module.parameters() if p.requires_grad]
    optimiser = torch.optim.SGD(trained, RATE, momentum=rule.momentum)
    for batch in task.plan(client, int(STEPS[client]), 4, 0):
        where = torch.from_numpy(batch[batch >= 0])
        optimiser.zero_grad()
        x_batch = task.arena.train_x[where].clone(memory_format=torch.contiguous_format)
        loss = nn.functional.cross_entropy(module(x_batch), task.arena.train_y[where])
        loss.backward()
        optimiser.step()
    state = module.state_dict()
    return torch.cat([state[name].flatten() for name in names]) - x


@pytest.mark.parametrize("strategy", ["reference", "stacked", "sequential"])
@pytest.mark.parametrize(
    "name",
    [*TRACED, *(n for n in ALONE if n not in ("Odd", "Noisy", "Counting", "Dropping"))],  # which draw or count
)
def test_local_training_is_that_of_torch(name: str, strategy: str) -> None:
    task, rule = task_of(name), Rule(momentum=0.9)
    if strategy == "stacked" and task.problem.model.kind == "alone":
        with pytest.raises(UserError, match="does not compute Network"):
            update(task, strategy, rule)
        return
    rows = update(task, strategy, rule)
    for client in range(CLIENTS):
        torch.testing.assert_close(rows[client], plainly(task, client, rule), rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", [*TRACED, *(n for n in ALONE if n not in ("Counting", "Dropping"))])
def test_evaluation_is_that_of_torch(name: str) -> None:
    task = task_of(name)
    p, x = task.arena.layout.named(task.initial()), task.arena.test_x[:7]
    module = task.problem.model.module().double()
    module.load_state_dict({n: v.clone() for n, v in p.items()}, strict=False)
    module = module.to(memory_format=torch.contiguous_format).train(False)
    ours = task.problem.model.forward(One(), p, One().images(x))
    torch.testing.assert_close(ours, module(x.clone(memory_format=torch.contiguous_format)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", TRACED)
def test_what_is_traced_is_known_to_the_stacks(name: str) -> None:
    model = network(name)
    assert not model.graph.alone
    assert model.kind == "layers"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Untraceable", "cannot trace"), ("Tied", "share weights"), ("Frozen", "conv1.weight is not trained"),
        ("Noisy", "randn_like"), ("Odd", "norm"), ("Counting", "cannot trace"), ("Slicing", "takes something else"),
        ("TwoWays", "something else in evaluation"), ("Scaling", "something else in evaluation"),
        ("Dropping", "drops in evaluation"),
        ("Still", "mode of the network"), ("Pair", "several outputs"),
    ],
)  # fmt: skip
def test_what_runs_by_itself_says_why(name: str, why: str) -> None:
    assert why in network(name).graph.alone


def experiment(model: Model) -> Experiment:
    return Experiment({}, problem(model), System(Steps(2)), FedAvg(0.1), Rounds(3))


@pytest.mark.parametrize("name", [*TRACED, *ALONE])
def test_any_module_gives_the_same_numbers_alone_and_in_company(name: str) -> None:
    """Seed 1 by itself, and beside seed 0; threads and order do not matter."""
    (alone,) = run([experiment(network(name))], (1,))
    both = run([experiment(network(name))], (0, 1))
    assert alone.state["status"] == "ok"
    np.testing.assert_allclose(
        [row[-1] for row in alone.state["history"]], [row[-1] for row in both[1].state["history"]], rtol=1e-2, atol=1.0
    )
    if name in ALONE:
        assert alone.state["history"] == both[1].state["history"]
    assert both[0].state["history"] != both[1].state["history"]


def test_counters_start_anew_in_every_call() -> None:
    """So that a client's numbers do not depend on who trained before it."""
    task = task_of("Counting")
    rows, again = (update(task, "sequential", Rule()) for _ in range(2))
    assert torch.equal(rows, again)


def test_two_linear_layers_need_not_be_defined_in_order_of_use() -> None:
    assert network("Swapped").kind == "layers"


def test_a_narrower_one_is_the_module_with_fewer_channels() -> None:
    """Its outputs are those of the module that is written so; HeteroFL plays it; what has no such form says so."""
    whole, x = network("Residual"), torch.randn(7, 1, 8, 8)
    narrow, module = whole.narrowed(0.5, scale=False), network("Residual", width=3).module().eval()
    named = {n: v for n, v in module.state_dict().items() if n in narrow.shapes}
    assert {n: tuple(v.shape) for n, v in named.items()} == narrow.shapes
    torch.testing.assert_close(narrow.forward(One(), named, One().images(x)), module(x), rtol=1e-5, atol=1e-5)
    few = replace(
        experiment(whole), system=System(Steps(2), capacity=SplitCapacity((1.0, 0.25))), algorithm=HeteroFL(lr=0.1)
    )
    (played,) = run([few])
    assert played.state["status"] == "ok"
    for name, why in (("Plain", "flattens images"), ("Modern", "groups of channels"), ("Untraceable", "cannot trace")):
        with pytest.raises(ValueError, match=f"no narrower form: .*{why}|{why} has no narrower form"):
            network(name).narrowed(0.5)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        ("tests.own_modules:Absent", "no network 'tests.own_modules:Absent'"),
        ("no_such_file:Net", "no network 'no_such_file:Net'"),
        ("tests.own_modules:number", "gives a int and no torch.nn.Module"),
        ("tests.own_modules:Unfinished", "missing 1 required positional argument: 'width'"),
        ("tests.own_modules:Narrow", "has 3 outputs for the 10 classes"),
        ("tests.own_modules:Misfit", "fc1 takes 99 features but gets"),
        ("tests.own_modules:MisfitUntraceable", "fails at fc1"),
        ("tests.own_modules:Images", r"makes no logits \[batch, classes\]"),
        ("tests.own_modules:Pair", r"makes no logits \[batch, classes\]"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(make: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as told:
        problem(Network(make))
    assert "\n" not in str(told.value)


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


def test_the_tests_of_own_modules_leave_none_out() -> None:
    names = {n for n, v in vars(own_modules).items() if isinstance(v, type) and v.__module__ == own_modules.__name__}
    wrong = {"Narrow", "Misfit", "MisfitUntraceable", "Images", "Pair", "Unfinished"}
    assert names == {*TRACED, *ALONE} | wrong
