"""The local step on fixed buffers, uncaptured, against the reference in float64; the capture itself where CUDA is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from test_strategies import CONV, STEPS, request, task_of

from reproduce.data.batches import Cyclic, Shuffled
from reproduce.engine import graphs
from reproduce.engine.rule import Rule
from reproduce.engine.task import Arena, ClassificationTask, Tasks
from reproduce.engine.trainer import Trainer
from reproduce.models.declared import MLP, ResNet, Softmax
from reproduce.models.model import Model
from reproduce.settings import settings

FULL = Rule(mu=0.3, momentum=0.5, decay=0.01, mean_gradient=True)
UNIFORM = np.full(5, 6)
CASES = [
    (MLP(64, 12, 10), "dense"),
    (MLP(64, 12, 10), "stacked"),
    (Softmax(64, 10), "stacked"),
    (CONV, "stacked"),
    (CONV, "sequential"),
]


@pytest.mark.parametrize(("model", "strategy"), CASES)
@pytest.mark.parametrize("rule", [FULL, Rule(), Rule(decay=0.1, mean_gradient=True)])
@pytest.mark.parametrize("batches", [Shuffled(10), Cyclic(10)])
@pytest.mark.parametrize("steps", [STEPS, UNIFORM])
def test_step_equals_reference(model: Model, strategy: str, rule: Rule, batches: object, steps: np.ndarray) -> None:
    """Unequal K, short batches, dropout, corrections, momentum, proximal pull, mean gradients."""
    task = task_of(model, batches)
    changes = {} if rule.mu else {"correction": None}
    jobs = [(task, request(task, rule, steps, **changes))]
    expected = Trainer(strategy="reference").train(jobs)[0]
    trainer = Trainer(strategy=strategy, graphs=True)
    actual = trainer.train(jobs)[0]
    assert trainer.used - {"onednn-products"} == {f"{strategy}+graph"}
    torch.testing.assert_close(actual.rows, expected.rows, rtol=0, atol=1e-10)
    assert (actual.mean_gradient is None) == (expected.mean_gradient is None)
    if expected.mean_gradient is not None:
        torch.testing.assert_close(actual.mean_gradient, expected.mean_gradient, rtol=0, atol=1e-10)
    assert expected.rows[0].abs().max() > 1e-4


@pytest.mark.parametrize("batches", [Cyclic(10), Shuffled(10)])
def test_batch_statistics_run_as_graphs_only_on_full_batches(batches: object) -> None:
    """46 or 47 samples a client: the fifth batch is short, and statistics over padding would be others."""
    model = ResNet(1, 10, (4, 6), (1, 1), stem_stride=2)
    task = task_of(model, batches)
    for steps, how in ((np.array([4, 2, 4, 0, 3]), "graph"), (STEPS, "no graph: short batches with batch statistics")):
        jobs = [(task, request(task, FULL, steps, offset=np.zeros(5, dtype=np.int64)))]
        trainer = Trainer(strategy="stacked", graphs=True)
        actual = trainer.train(jobs)[0].rows
        assert f"stacked+{how}" in trainer.used
        torch.testing.assert_close(actual, Trainer(strategy="reference").train(jobs)[0].rows, rtol=0, atol=1e-10)


def test_kept_steps_serve_other_chunks() -> None:
    """One trainer, one request after the other with other clients, rates, anchors and lengths; none is forgotten."""
    task = task_of(CONV, Shuffled(10))
    trainer = Trainer(strategy="stacked", graphs=True)
    for i, steps in enumerate((STEPS, STEPS[::-1].copy(), UNIFORM, np.array([5, 8, 6, 6, 7]), UNIFORM, STEPS)):
        rates = 0.01 * (1 + np.arange(5) + i)
        anchor = task.initial() * (1 + i)
        jobs = [(task, request(task, FULL, steps, lr=rates, round=i, anchor=anchor))]
        alone = [
            (task, request(task, FULL, np.where(np.arange(5) == c, steps, 0), lr=float(r), round=i, anchor=anchor))
            for c, r in enumerate(rates)
        ]
        expected = sum(answer.rows for answer in Trainer(strategy="reference").train(alone))
        torch.testing.assert_close(trainer.train(jobs)[0].rows, expected, rtol=0, atol=1e-10)
    lane = trainer.lanes(task.device).free.queue[-1]
    assert 1 < len(lane.steps) <= graphs.KEPT


@pytest.mark.parametrize(
    ("rule", "changes", "reason"),
    [
        (Rule(mask="frozen"), {"thresholds": torch.full((5, 8), 0.05, dtype=torch.float64)}, "mask"),
        (Rule(distill=0.7), {"teacher": None}, "distill"),
        (Rule(first_gradient="single"), {}, "first_gradient"),
    ],
)
def test_what_a_graph_cannot_do_runs_without_and_says_so(rule: Rule, changes: dict, reason: str) -> None:
    task = task_of(CONV, Shuffled(10))
    if "thresholds" in changes:
        changes = {"thresholds": changes["thresholds"][:, : len(CONV.shapes)]}
    if "teacher" in changes:
        changes = {"teacher": task.initial() * 2}
    jobs = [(task, request(task, rule, **changes))]
    trainer = Trainer(strategy="stacked", graphs=True)
    actual = trainer.train(jobs)[0].rows
    assert f"stacked+no graph: {reason}" in trainer.used
    torch.testing.assert_close(actual, Trainer(strategy="reference").train(jobs)[0].rows, rtol=0, atol=1e-10)


def test_a_finished_client_is_not_touched_even_if_it_would_overflow_now() -> None:
    """One step at a rate of 1e160 ends at finite numbers whose products are not; 0 times its gradient would be NaN."""
    task = task_of(CONV, Shuffled(10))
    rates = np.array([0.05, 0.05, 1e160, 0.05, 0.05])
    jobs = [(task, request(task, Rule(), lr=rates))]
    actual = Trainer(strategy="stacked", graphs=True).train(jobs)[0].rows
    expected = Trainer(strategy="reference").train(jobs)[0].rows
    assert actual[2].abs().max() > 1e150
    torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-10)


def test_a_diverged_client_does_not_poison_its_neighbours() -> None:
    task = task_of(CONV, Shuffled(10))
    start = task.initial().repeat(5, 1)
    clean = Trainer(strategy="stacked", graphs=True).train([(task, request(task, FULL, start=start))])[0].rows
    start[0] = float("nan")
    dirty = Trainer(strategy="stacked", graphs=True).train([(task, request(task, FULL, start=start))])[0].rows
    assert not dirty[0].isfinite().all()
    assert torch.equal(clean[1:], dirty[1:])


def test_bits_do_not_depend_on_threads_or_on_what_ran_before() -> None:
    task = task_of(CONV, Shuffled(10))
    results = []
    for threads in (1, 2, 3):
        trainer = Trainer(threads, "sequential", graphs=True)
        results += [trainer.train([(task, request(task, FULL))])[0].rows for _ in range(2)]
        trainer.close()
    assert all(torch.equal(results[0], r) for r in results)


@pytest.mark.gpu
@pytest.mark.parametrize(("model", "strategy"), CASES)
@pytest.mark.parametrize("graph", [True, False])
@pytest.mark.parametrize("threads", [1, 3])
def test_capture_equals_reference_on_cuda(model: Model, strategy: str, graph: bool, threads: int) -> None:
    """The first round captures, the second replays what is kept; clients of unequal K, several lanes."""
    task = _on_cuda(model)
    trainer = Trainer(threads, strategy, graphs=graph)
    for round in (4, 5):
        jobs = [(task, replace(_moved(request(task_of(model, Shuffled(10)), FULL)), round=round))]
        expected = Trainer(strategy="reference").train(jobs)[0].rows
        torch.testing.assert_close(trainer.train(jobs)[0].rows, expected, rtol=0, atol=1e-10)
        again = trainer.train(jobs)[0].rows
        assert torch.equal(again, trainer.train(jobs)[0].rows)
    assert any("+graph" in how for how in trainer.used) == graph
    trainer.close()


def _on_cuda(model: Model) -> ClassificationTask:
    problem = task_of(model, Shuffled(10)).problem
    task = Tasks(replace(settings(), device="cuda"), torch.float64).get(problem, 3)
    assert isinstance(task, ClassificationTask)
    assert isinstance(task.arena, Arena)
    return task


def _moved(r):  # type: ignore[no-untyped-def]
    return replace(r, start=r.start.cuda(), correction=r.correction.cuda())
