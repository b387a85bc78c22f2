"""Every strategy is asked for every field of `Train` and `Rule`: what it claims to serve it does, the rest it refuses.

The fields come from the dataclasses: one that is added is refused by all until a strategy claims it and an example here
shows it.
"""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import torch

from reproduce.data.batches import Cyclic
from reproduce.data.embedded import TopicTokens
from reproduce.engine import strategies
from reproduce.engine.client_split import ClientSplit, ClientSplits, QuadraticSplit
from reproduce.engine.layout import layout_of
from reproduce.engine.requests import PLAIN, Train, used_fields
from reproduce.engine.rule import Exits, OrderedDropout, Rule
from reproduce.engine.strategies import NAMED, TABLE, Demand
from reproduce.engine.trainer import Trainer, demand_of
from reproduce.errors import UserError
from reproduce.models.declared import MLP, ConvNet, EarlyExits, FastText, ResNet, Softmax
from reproduce.models.model import Model
from reproduce.models.network import Network
from reproduce.partitions.labels import IID
from reproduce.problem import Classification, Quadratic
from reproduce.settings import settings

CONV = ConvNet(1, 8, (3, 4), (5,), kernel=3, padding=1, dropout=0.3, channel_dropout=0.2)
TWIN, TWIN_OF = Network("own_kinds:Twin"), MLP(64, 7, 10)
MODELS: dict[str, tuple[Model | None, Model | None]] = {
    "quadratic": (None, Softmax(64, 10)),
    "sparse": (FastText(40, 3, 4), FastText(40, 5, 4)),
    "kernel": (Softmax(64, 10), Softmax(64, 10)),
    "compiled": (CONV, MLP(64, 7, 10)),
    "module": (TWIN, TWIN),
    "stacked": (CONV, ResNet(1, 10, (4, 6), (1, 1), stem_stride=2)),
    "sequential": (CONV, ResNet(1, 10, (4, 6), (1, 1), stem_stride=2)),
}
"""Strategy -> a task's model, and a model to train in the place of another task's."""
FIELDS = [f.name for kind in (Train, Rule) for f in fields(kind) if f.name != "rule"]
C = 5
EXITS = EarlyExits(1, 10, (4, 6), (1, 2), stem_stride=2, exits=(1, 2, 3))
NARROW = OrderedDropout(tuple(ResNet(1, 10, widths, (1, 1), stem_stride=2) for widths in ((1, 2), (2, 3), (4, 6))))


def task_of(model: Model | None) -> ClientSplit:
    if model is None:
        hessians = tuple(((1.0 + 0.1 * m, 0.2), (0.2, 2.0)) for m in range(C))
        return ClientSplits(settings()).get(Quadratic(C, 2, hessians=hessians, start=(1.0, -2.0)), 3)
    data = TopicTokens(4, 40, 12, 60, 5, 0) if model.embedding else "digits"
    problem = Classification(data, model, IID(), clients=C, batches=Cyclic(10), train_samples=233)
    return ClientSplits(settings(), torch.float64).get(problem, 3)


def random(*shape: int) -> torch.Tensor:
    return 0.3 * torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)


def examples(name: str, parameters: int, tensors: int, submodel: Model | None) -> list[tuple[dict, dict]]:
    """Requests for a field: changes of the rule, and of the request. A new field needs an example here."""
    mask, far = {"thresholds": random(C, tensors).abs()}, {"previous": random(C, parameters)}
    found: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {
        "clients": [({}, {"clients": np.array([4, 2, 0, 1, 3])})],
        "steps": [({}, {"steps": np.full(C, 6)}), ({}, {"steps": np.array([0, 1, 9, 0, 2])})],
        "start": [({}, {"start": random(C, parameters)})],
        "lr": [({}, {"lr": np.array([0.05, 0.02, 0.1, 0.3, 0.01])})],
        "round": [({}, {"round": np.array([3, 1, 4, 1, 5])})],
        "offset": [({}, {"offset": np.array([0, 3, 4, 6, 8])})],
        "weights": [({}, {"weights": random(2, C)})],
        "model": [({}, {"model": submodel, "start": random(layout_of(submodel).total)})] if submodel else [],
        "correction": [({}, {"correction": random(parameters)}), ({}, {"correction": random(C, parameters)})],
        "anchor": [({"mu": 0.4}, {"anchor": random(parameters)}), ({"mu": 0.4}, {"anchor": random(C, parameters)})],
        "thresholds": [({"mask": "frozen"}, mask)],
        "teacher": [({"distill": 0.7}, {"teacher": random(parameters)})],
        "previous": [({"contrast": 0.8}, {"previous": random(parameters)}), ({"contrast": 0.8}, far)],
        "mu": [({"mu": 0.4}, {})],
        "momentum": [({"momentum": 0.6}, {})],
        "betas": [({"betas": (0.9, 0.95)}, {}), ({"betas": (0.8, 0.9), "mu": 0.4, "decay": 0.1}, {})],
        "decay": [({"decay": 0.1}, {})],
        "mean_gradient": [({"mean_gradient": True}, {})],
        "first_gradient": [({"first_gradient": how}, {}) for how in ("single", "pass_mean")],
        "mask": [({"mask": how}, mask) for how in ("dynamic", "frozen")],
        "amplify": [({"mask": how, "amplify": True}, mask) for how in ("dynamic", "frozen")],
        "distill": [({"distill": 0.7}, {"teacher": random(parameters)})],
        "inner": [
            ({"inner": Exits(0.6, 2.0)}, {"model": EXITS, "start": random(EXITS.parameters)}),
            ({"inner": NARROW}, {"model": NARROW.models[-1], "start": random(NARROW.models[-1].parameters)}),
        ],
        "contrast": [({"contrast": 0.8}, far)],
        "temperature": [({"contrast": 0.8, "temperature": 0.3}, far)],
        "second_pass": [({"contrast": 0.8, "second_pass": True}, far)],
    }
    return found[name]


def requests(strategy: str, name: str) -> list[tuple[ClientSplit, Train]]:
    model, submodel = MODELS[strategy]
    other = FastText(40, 9, 4) if strategy == "sparse" else MLP(64, 9, 10)
    task = task_of(other if name == "model" and model else model)
    plain = Train(np.arange(C), np.array([3, 7, 1, 0, 5]), task.initial(), 0.05, 4)
    tensors = 1 if model is None else len(model.shapes)
    return [
        (task, replace(plain, rule=replace(PLAIN, **rule), **request))
        for rule, request in examples(name, task.parameters, tensors, submodel)
    ]


def plain_loop(task: QuadraticSplit, r: Train) -> list[np.ndarray]:
    """Updates, mean and first gradients of local runs on quadratics, client by client, in NumPy."""
    rule, parts = r.rule, []
    for row, client in enumerate(r.clients):

        def own(value: Any, row: int = row) -> Any:
            return value[row] if np.ndim(value) > (isinstance(value, torch.Tensor)) else value

        e, h = task.device_data.e[client].numpy(), np.array(task.problem.hessians[client])
        start = own(r.start).numpy()
        anchor = start if r.anchor is None else own(r.anchor).numpy()
        correction = 0 if r.correction is None else own(r.correction).numpy()
        y, v, raw = start, 0, []
        for k in range(r.steps[row]):
            raw.append(h @ (y - e))
            v = rule.momentum * v + raw[-1] + correction + rule.mu * (y - anchor)
            y = y - own(r.lr) * (1 - rule.decay) ** k * v
        parts.append((y - start, np.mean(raw, 0) if raw else 0 * y, raw[0] if raw else 0 * y))
    update, mean, first = (np.array(part) for part in zip(*parts, strict=True))
    return [update if r.weights is None else r.weights.numpy() @ update, mean, first]


def expected(task: ClientSplit, request: Train) -> list[Any]:
    if isinstance(task, QuadraticSplit):
        return [torch.from_numpy(part) for part in plain_loop(task, request)]
    task = task_of(TWIN_OF) if task.problem.model.foreign else task  # type: ignore[union-attr]
    answer = Trainer(strategy="reference").train([(task, request)])[0]
    return [answer.rows, answer.mean_gradient, answer.first_gradient]


SERVED = [(s.name, name) for s in TABLE for name in FIELDS if name in s.serves]
REFUSED = [(s.name, name) for s in TABLE for name in FIELDS if name not in s.serves]


def test_every_field_is_one_or_the_other_and_the_reference_serves_all() -> None:
    assert set(MODELS) == {s.name for s in TABLE}
    assert all(strategy.serves <= set(FIELDS) for strategy in TABLE)
    assert NAMED["reference"].serves == set(FIELDS)
    assert len(SERVED) + len(REFUSED) == len(FIELDS) * len(TABLE)


@pytest.mark.parametrize(("strategy", "name"), SERVED)
def test_what_a_strategy_claims_to_serve_equals_the_reference(strategy: str, name: str) -> None:
    jobs = requests(strategy, name)
    assert jobs
    for task, request in jobs:
        assert name in used_fields(request)
        answer = Trainer(strategy=strategy).train([(task, request)])[0]
        update, mean, first = expected(task, request)
        torch.testing.assert_close(answer.rows, update, rtol=0, atol=1e-10)
        assert answer.rows.abs().max() > 1e-4
        assert (answer.mean_gradient is None) == (not (request.rule.mean_gradient or request.rule.first_gradient))
        assert (answer.first_gradient is None) == (not request.rule.first_gradient)
        for found, wanted in ((answer.mean_gradient, mean), (answer.first_gradient, first)):
            if found is not None:
                torch.testing.assert_close(found, wanted, rtol=0, atol=1e-10)


def test_narrower_networks_in_a_stack_are_those_of_each_client() -> None:
    """Of clients with equal batches: others do not meet in one, where layers normalise over a batch. The narrowest has
    layers of one channel, whose weights lie apart in the stack."""
    problem = Classification("digits", NARROW.models[-1], IID(), C, Cyclic(10), train_samples=40 * C)
    task = ClientSplits(settings(), torch.float64).get(problem, 3)
    request = Train(np.arange(C), np.full(C, 4), task.initial(), 0.05, 4, Rule(inner=NARROW))
    rows = [Trainer(strategy=name).train([(task, request)])[0].rows for name in ("stacked", "reference")]
    torch.testing.assert_close(*rows, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("strategy", "name"), REFUSED)
def test_what_a_strategy_does_not_serve_it_refuses(strategy: str, name: str) -> None:
    for task, request in requests(strategy, name):
        with pytest.raises(UserError, match=rf"does not serve .*\b{name}\b"):
            Trainer(strategy=strategy).train([(task, request)])


@pytest.mark.parametrize("strategy", ["kernel", "compiled"])
def test_a_model_that_a_strategy_does_not_compute_is_refused(strategy: str) -> None:
    task = task_of(ResNet(1, 10, (4, 6), (1, 1), stem_stride=2))
    with pytest.raises(UserError, match="does not compute ResNet on cpu"):
        Trainer(strategy=strategy).train([(task, Train(np.arange(C), np.full(C, 2), task.initial(), 0.05, 4))])


@pytest.mark.parametrize("rule", [Rule(distill=0.5), Rule(mask="frozen")])
def test_a_rule_without_what_it_needs_is_an_error(rule: Rule) -> None:
    task = task_of(CONV)
    with pytest.raises(ValueError, match=r"needs `(teacher|thresholds)` in the request"):
        Trainer().train([(task, Train(np.arange(C), np.full(C, 2), task.initial(), 0.05, 4, rule))])


def test_the_choice_is_a_function_of_the_request_alone() -> None:
    """Each strategy of the table is chosen for something; a teacher that is not used changes nothing."""
    small, images = Softmax(64, 10), (1, 8, 8)
    without = {"sample": images, "compiled": False}
    distils = frozenset({"distill", "teacher"})
    for work, name in (
        (Demand(None), "quadratic"),
        (Demand(small, sample=images), "kernel"),
        (Demand(small, fields=distils, sample=images), "stacked"),
        (Demand(small, fields=strategies.MASKS, sample=images), "stacked"),
        (Demand(small, **without), "stacked"),
        (Demand(TWIN, sample=images), "module"),
        (Demand(CONV, sample=images), "compiled"),
        (Demand(CONV, fields=distils, sample=images), "stacked"),
        (Demand(CONV, sample=images, device="cuda"), "stacked"),
        (Demand(MLP(64, 6, 10), **without), "stacked"),
        (Demand(ResNet(), sample=(3, 32, 32)), "sequential"),
    ):
        assert strategies.choose(work).name == name
    task = task_of(small)
    request = Train(np.arange(C), np.full(C, 2), task.initial(), 0.05, 4, teacher=task.initial())
    assert (
        strategies.choose(demand_of(task, request)).name
        == strategies.choose(demand_of(task, replace(request, teacher=None))).name
    )
