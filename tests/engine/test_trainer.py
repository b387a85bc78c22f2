"""The order in which requests come changes the order of the answers and nothing else, to the bit, in float32."""

from copy import deepcopy
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import torch

from reproduce.data.batches import Cyclic, Shuffled
from reproduce.data.embedded import TopicTokens
from reproduce.engine.client_split import ClientSplit, ClientSplits
from reproduce.engine.layout import layout_of
from reproduce.engine.requests import Evaluate, Gradient, Request, Train
from reproduce.engine.rule import Rule
from reproduce.engine.scheduler import Scheduler
from reproduce.engine.strategies import NAMED, choose
from reproduce.engine.trainer import Trainer, demand_of
from reproduce.models.declared import MLP, ConvNet, FastText, ResNet, Softmax
from reproduce.models.model import Model
from reproduce.partitions.labels import IID
from reproduce.problem import Classification, Quadratic
from reproduce.settings import settings

CONV = ConvNet(1, 8, (3, 4), (5,), kernel=3, padding=1, dropout=0.3, channel_dropout=0.2)
RESNET = ResNet(1, 10, (4, 6), (1, 1))
SOFTMAX = Softmax(64, 10)
WORDS = FastText(40, 3, 4)
C = 5
TASKS = ClientSplits(settings())


def task_of(model: Model | None, seed: int) -> ClientSplit:
    if model is None:
        return TASKS.get(Quadratic(C, 3), seed)
    data = TopicTokens(4, 40, 12, 60, 5, 0) if model.embedding else "digits"
    return TASKS.get(Classification(data, model, IID(), clients=C, batches=Shuffled(10), train_samples=233), seed)


def requests(model: Model | None, *rules: Rule) -> list[tuple[ClientSplit, Train]]:
    """What a tick may hold for a model: two seeds, rates and starts that differ, all of `rules`; unequal steps."""
    found = []
    g = torch.Generator().manual_seed(1)
    for i, (seed, rule) in enumerate((seed, rule) for seed in (0, 1) for rule in rules for _ in range(2)):
        task = task_of(model, seed)
        start = task.initial() + 0.1 * torch.randn(task.parameters, generator=g).to(task.dtype)
        steps = np.random.default_rng(i // 2).permutation([4, 2, 5, 0, 5])
        request = Train(np.arange(C), steps, start, 0.05 if i % 4 else 0.1, 7, rule, offset=np.arange(C))
        if rule.distill:
            request = replace(request, teacher=task_of(model, 0).initial())
        if rule.mask:
            request = replace(request, thresholds=torch.full((C, len(model.shapes)), 0.03))  # type: ignore[union-attr]
        if i % 3 == 0:
            request = replace(request, weights=torch.rand(1, C, generator=g).to(task.dtype))
        found.append((task, request))
    return found


PLAIN, HEAVY = Rule(), Rule(mu=0.2, momentum=0.5, mean_gradient=True, first_gradient="single")
DISTILLED, MASKED = Rule(distill=0.7), Rule(mask="dynamic", amplify=True)
EVERYTHING = [
    *requests(None, PLAIN, HEAVY),
    *requests(SOFTMAX, PLAIN, HEAVY, DISTILLED, Rule(momentum=0.5, distill=0.2), MASKED),
    *requests(CONV, PLAIN, HEAVY, DISTILLED, MASKED),
    *requests(MLP(64, 6, 10), PLAIN, DISTILLED),
    *requests(RESNET, PLAIN, MASKED),
    *requests(WORDS, PLAIN, HEAVY, DISTILLED),
]
SUBMODEL = replace(RESNET, width=0.5)
EVERYTHING += [
    (task, replace(request, model=SUBMODEL, start=layout_of(SUBMODEL).initial(i)))
    for i, (task, request) in enumerate(requests(RESNET, PLAIN))
]
SERVED = {
    "reference": [job for job in EVERYTHING if not isinstance(job[0].problem, Quadratic)][::4],
    "kernel": requests(SOFTMAX, PLAIN, HEAVY),
    "compiled": requests(CONV, PLAIN, HEAVY),
    "stacked": requests(CONV, PLAIN, HEAVY, DISTILLED, MASKED) + requests(RESNET, PLAIN, MASKED),
    "sequential": requests(CONV, PLAIN, DISTILLED) + requests(RESNET, PLAIN, MASKED),
    "sparse": requests(WORDS, PLAIN, HEAVY, DISTILLED),
    "quadratic": requests(None, PLAIN, HEAVY),
}


@pytest.mark.parametrize("strategy", ["auto", *(name for name in NAMED if name != "module")])
def test_permuted_requests_give_permuted_answers(strategy: str) -> None:
    jobs = EVERYTHING if strategy == "auto" else SERVED[strategy]
    if strategy == "auto":
        assert {choose(demand_of(*job)).name for job in jobs} >= {"quadratic", "stacked"}
    trainer = Trainer(strategy="auto" if strategy == "quadratic" else strategy)
    check(trainer.train, jobs)
    trainer.close()


def test_permuted_requests_of_a_cohort_and_requests_that_are_equal() -> None:
    """Training, gradients and evaluations in one turn; some are asked for twice, in tensors of their own."""
    jobs: list[tuple[ClientSplit, Request]] = list(EVERYTHING[::3])
    for model in (None, SOFTMAX, CONV, RESNET):
        tasks = [task_of(model, seed) for seed in (0, 1)]
        jobs += [(task, Gradient(np.arange(C), task.initial(), 3)) for task in tasks]
        points = [scale * task.initial()[None] for task in tasks for scale in (1, 2, 0.5, -1, 3)]
        # Nine models: a stack of eight, and one that is judged alone.
        jobs += [(tasks[0], Evaluate(torch.cat(points[i : i + 1 + i // 7]))) for i in range(8)]
    jobs += [(task, deepcopy(request)) for task, request in jobs[::4]]
    check(Scheduler([], Trainer()).execute, jobs)


def test_whether_two_teachers_are_one_tensor_does_not_matter() -> None:
    """After a resumption a tensor that two runs shared is two equal ones."""
    for model in (SOFTMAX, CONV):
        shared = task_of(model, 0).initial()
        jobs = [(t, replace(r, teacher=shared)) for t, r in requests(model, DISTILLED, Rule(distill=0.2))]
        apart = [(t, replace(r, teacher=shared.clone())) for t, r in jobs]
        same(Trainer().train(jobs), Trainer().train(apart))


def check(answer: Any, jobs: list[tuple[ClientSplit, Any]]) -> None:
    straight = answer(jobs)
    stream = np.random.default_rng(3)
    for order in [np.arange(len(jobs))[::-1], *(stream.permutation(len(jobs)) for _ in range(3))]:
        same([straight[i] for i in order], answer([jobs[i] for i in order]))


def same(a: list[Any], b: list[Any]) -> None:
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        if isinstance(x, torch.Tensor):
            assert torch.equal(x, y), i
            continue
        for f in (f for f in fields(x) if f.name != "took"):
            one, other = getattr(x, f.name), getattr(y, f.name)
            if isinstance(one, torch.Tensor):
                assert torch.equal(one, other), (i, f.name)
            elif isinstance(one, dict):
                assert {k: v.tobytes() for k, v in one.items()} == {k: v.tobytes() for k, v in other.items()}, i
            else:
                np.testing.assert_array_equal(one, other)


def test_without_an_offset_a_client_begins_with_its_first_batch() -> None:
    task = TASKS.get(Classification("digits", SOFTMAX, IID(), C, Cyclic(10), train_samples=233), 0)
    plain = Train(np.arange(C), np.full(C, 2), task.initial(), 0.1, 0)
    end, first, second = (
        Trainer().train([(task, replace(plain, offset=at))])[0].rows for at in (None, np.zeros(C, int), np.ones(C, int))
    )
    assert torch.equal(end, first)
    assert not torch.equal(end, second)
