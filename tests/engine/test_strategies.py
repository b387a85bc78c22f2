"""Every execution strategy against the reference loop, in float64."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from reproduce.data.batches import Cyclic, Shuffled, WithReplacement
from reproduce.engine import local
from reproduce.engine.client_split import ClassificationSplit, ClientSplits
from reproduce.engine.kernels.chain import CONV as CONVOLUTION
from reproduce.engine.kernels.chain import Trace, Unsupported, chain
from reproduce.engine.kernels.compiled import Program
from reproduce.engine.layout import Layout
from reproduce.engine.requests import Train
from reproduce.engine.rule import Rule
from reproduce.engine.trainer import Trainer
from reproduce.models.declared import MLP, ConvNet, ResNet, Softmax
from reproduce.models.model import Model
from reproduce.partitions.labels import IID
from reproduce.problem import Classification
from reproduce.settings import Settings, settings

STEPS = np.array([3, 7, 1, 0, 5])


def task_of(model: Model, batches: object) -> ClassificationSplit:
    problem = Classification("digits", model, IID(), clients=5, batches=batches, train_samples=233)
    task = ClientSplits(settings(), torch.float64).get(problem, 3)
    assert isinstance(task, ClassificationSplit)
    return task


def request(task: ClassificationSplit, rule: Rule, **changes: object) -> Train:
    g = torch.Generator().manual_seed(5)
    start = task.initial()
    shape = (5, task.parameters)
    fields: dict[str, object] = {
        "clients": np.arange(5),
        "steps": STEPS,
        "start": start + 0.01 * torch.randn(shape, generator=g, dtype=torch.float64),
        "lr": 0.05,
        "round": 4,
        "rule": rule,
        "offset": np.array([0, 3, 4, 6, 8]),
        "correction": 0.1 * torch.randn(shape, generator=g, dtype=torch.float64),
    }
    return Train(**{**fields, **changes})  # type: ignore[arg-type]


FULL = Rule(mu=0.3, momentum=0.5, decay=0.01, mean_gradient=True, first_gradient="pass_mean")
CONV = ConvNet(1, 8, (4, 6), (12,), kernel=3, padding=1, dropout=0.3, channel_dropout=0.2)
CASES = [
    (CONV, "compiled", FULL),
    (Softmax(64, 10), "kernel", FULL),
    (MLP(64, 12, 10), "stacked", Rule(decay=0.1)),
    (CONV, "stacked", FULL),
    (CONV, "sequential", FULL),
]


@pytest.mark.parametrize(("model", "strategy", "rule"), CASES)
@pytest.mark.parametrize("batches", [Shuffled(10), Cyclic(10), WithReplacement(10)])
def test_strategy_equals_reference(model: Model, strategy: str, rule: Rule, batches: object) -> None:
    """Unequal numbers of steps, short batches, all terms of the rule."""
    task = task_of(model, batches)
    changes = {} if rule.mu else {"correction": None}
    expected = Trainer(strategy="reference").train([(task, request(task, rule, **changes))])[0]
    actual = Trainer(strategy=strategy).train([(task, request(task, rule, **changes))])[0]
    for name in ("rows", "mean_gradient", "first_gradient"):
        a, b = getattr(actual, name), getattr(expected, name)
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a, b, rtol=0, atol=1e-10)
    assert expected.rows[0].abs().max() > 1e-4


def test_large_batches_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of ten as pieces of three, the last one short, gives the gradient of the whole."""
    monkeypatch.setattr(local, "PIECE", 3)
    task = task_of(ConvNet(1, 8, (4, 6), (12,), kernel=3, padding=1), Shuffled(10))
    expected = Trainer(strategy="reference").train([(task, request(task, FULL))])[0]
    actual = Trainer(strategy="sequential").train([(task, request(task, FULL))])[0]
    torch.testing.assert_close(actual.rows, expected.rows, rtol=0, atol=1e-10)


@pytest.mark.parametrize("rule", [Rule(mask="dynamic", amplify=True), Rule()])
@pytest.mark.parametrize("strategy", ["stacked", "sequential"])
def test_residual_network_with_masks(rule: Rule, strategy: str) -> None:
    """Static batch normalisation forbids padding: clients with unequal batches must not meet in a stack."""
    model = ResNet(1, 10, (4, 6), (1, 1), stem_stride=2)
    task = task_of(model, Shuffled(10))
    tensors = len(model.shapes)
    thresholds = torch.full((5, tensors), 0.05, dtype=torch.float64)
    thresholds[:, 1::3] = 0
    changes = {"thresholds": thresholds} if rule.mask else {}
    expected = Trainer(strategy="reference").train([(task, request(task, rule, **changes))])[0]
    actual = Trainer(strategy=strategy).train([(task, request(task, rule, **changes))])[0]
    torch.testing.assert_close(actual.rows, expected.rows, rtol=0, atol=1e-10)


@pytest.mark.parametrize("model", [Softmax(64, 10), CONV, MLP(64, 12, 10)])
def test_runs_of_several_seeds_and_rates_share_a_stack(model: Model) -> None:
    """Rows of different requests (seeds, learning rates, proximal strengths) come out as if trained alone."""
    tasks = ClientSplits(Settings(settings().data, settings().store, "cpu", 1), torch.float64)
    problem = Classification("digits", model, IID(), clients=5, batches=Shuffled(10), train_samples=233)
    jobs = []
    for seed, lr, mu in ((0, 0.05, 0.0), (1, 0.05, 0.2), (1, 0.1, 0.5)):
        task = tasks.get(problem, seed)
        assert isinstance(task, ClassificationSplit)
        jobs.append((task, request(task, Rule(mu=mu, momentum=0.4), lr=lr)))
    together = Trainer().train(jobs)
    for job, answer in zip(jobs, together, strict=True):
        alone = Trainer(strategy="reference").train([job])[0]
        torch.testing.assert_close(answer.rows, alone.rows, rtol=0, atol=1e-10)


@pytest.mark.parametrize("model", [Softmax(64, 10), CONV, MLP(64, 12, 10)])
def test_bits_do_not_depend_on_threads_or_repetition(model: Model) -> None:
    task = task_of(model, Shuffled(10))
    weights = torch.tensor([[0.1, 0.2, 0.3, 0.1, 0.3], [1.0, 0, 0, 0, 1.0]], dtype=torch.float64)
    for changes in ({}, {"weights": weights}):
        results = []
        for threads in (1, 2, 3, 1):
            trainer = Trainer(threads)
            results.append(trainer.train([(task, request(task, FULL, **changes))])[0].rows)
            trainer.close()
        assert all(torch.equal(results[0], r) for r in results)


@pytest.mark.parametrize("kept", [0, 1 << 24], ids=["added up as they come", "kept"])
def test_weighted_sums_equal_the_weighted_updates(monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    """Also where the updates are too many to be kept, as with most networks of the papers."""
    monkeypatch.setattr("reproduce.engine.trainer.KEEP", kept)
    task = task_of(CONV, Shuffled(10))
    weights = torch.tensor([[0.1, 0.2, 0.3, 0.1, 0.3], [1.0, 0, 0, 0, 1.0]], dtype=torch.float64)
    rows = Trainer().train([(task, request(task, FULL))])[0].rows
    sums = Trainer().train([(task, request(task, FULL, weights=weights))])[0].rows
    torch.testing.assert_close(sums, weights @ rows, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kept", [0, 1 << 24], ids=["added up as they come", "kept"])
def test_a_diverged_client_that_does_not_count_spoils_no_sum(monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    monkeypatch.setattr("reproduce.engine.trainer.KEEP", kept)
    task = task_of(CONV, Shuffled(10))
    weights = torch.tensor([[0.1, 0.0, 0.3, 0.1, 0.3], [1.0, 0.5, 0, 0, 1.0]], dtype=torch.float64)
    start = task.initial().repeat(5, 1)
    clean = Trainer().train([(task, request(task, Rule(), start=start, weights=weights))])[0].rows
    start[1] = float("nan")
    dirty = Trainer().train([(task, request(task, Rule(), start=start, weights=weights))])[0].rows
    assert torch.equal(dirty[0], clean[0])
    assert not dirty[1].isfinite().any(), "where it counts it is seen"
    start = task.initial().repeat(5, 1)
    clean = Trainer().train([(task, request(task, Rule(), start=start))])[0].rows
    start[1] = float("nan")
    dirty = Trainer().train([(task, request(task, Rule(), start=start))])[0].rows
    assert not dirty[1].isfinite().all()
    others = [0, 2, 3, 4]
    assert torch.equal(clean[others], dirty[others])


@pytest.mark.parametrize("model", [Softmax(64, 10), MLP(64, 12, 10), CONV])
def test_without_a_compiler_other_strategies_take_over(monkeypatch: pytest.MonkeyPatch, model: Model) -> None:
    """The answers agree and the trainer says what computed them."""
    monkeypatch.setenv("CC", "none")
    jobs = [(task := task_of(model, Shuffled(10)), request(task, FULL))]
    trainer = Trainer()
    actual = trainer.train(jobs)[0].rows
    assert trainer.used & {"kernel", "compiled", "stacked"} == {"stacked"}
    torch.testing.assert_close(actual, Trainer(strategy="reference").train(jobs)[0].rows, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "forward",
    [
        lambda ops, p, x: ops.relu(ops.linear(x, p, "a")),
        lambda ops, p, x: min(x, ops.linear(x, p, "a")),
        lambda ops, p, x: ops.linear(x, p, "a") + 0 * ops.linear(x, p, "a"),
    ],
    ids=["ends in relu", "returns its input", "is no chain"],
)
def test_only_a_chain_that_ends_in_a_linear_layer_is_compiled(forward: Any) -> None:
    model: Any = SimpleNamespace(shapes={"a.weight": (3, 3), "a.bias": (3,)}, forward=forward)
    with pytest.raises(Unsupported):
        Trace(model, (3,))


def test_each_convolution_has_two_copies_of_its_filter() -> None:
    """In the order in which a program lays out their memory; a number beyond them would be a write past it."""
    trace = chain(ConvNet(1, 8, (4, 6), (12,), kernel=3, padding=1), (1, 8, 8))
    assert trace is not None
    assert [(s.packed, s.packed_back) for s in trace.layers if s.kind == CONVOLUTION] == [(0, 1), (2, 3)]


@pytest.mark.parametrize(("filters", "wide"), [((16, 16), True), ((16, 20), False)])
def test_channels_fill_the_lanes_where_every_layer_has_whole_vectors_of_them(filters: Any, wide: bool) -> None:
    model = ConvNet(1, 8, filters, (), kernel=3, padding=1)
    trace = chain(model, (1, 8, 8))
    assert trace is not None
    program = Program(trace, Layout(model), torch.float32, 16)
    assert (program.by_channel(1), program.by_channel(32)) == (wide, False)
