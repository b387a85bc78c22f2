"""The compiled strategies at every instruction set that this machine can execute, against the reference, in float64."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from reproduce.data.batches import Batches, Shuffled
from reproduce.data.embedded import GaussianClasses
from reproduce.engine.client_split import ClassificationSplit, ClientSplits
from reproduce.engine.kernels import compiled, library
from reproduce.engine.requests import Train
from reproduce.engine.rule import Rule
from reproduce.engine.trainer import Trainer
from reproduce.models.declared import MLP, ConvNet, Softmax
from reproduce.models.model import Model
from reproduce.modules.ops import One
from reproduce.partitions.labels import IID
from reproduce.problem import Classification
from reproduce.settings import settings

FULL = Rule(mu=0.3, momentum=0.5, decay=0.01, mean_gradient=True, first_gradient="pass_mean")
RULES = (FULL, Rule(decay=0.1), Rule(first_gradient="single"))
STEPS = np.array([3, 6, 1, 0, 4])
MODELS = {
    "narrow filters": ConvNet(1, 8, (3, 5), (12,), kernel=3, padding=1, dropout=0.3, channel_dropout=0.2),
    "wide filters": ConvNet(1, 8, (16, 8), (20,), kernel=3, padding=1, dropout=0.3, channel_dropout=0.2),
    "filters without padding": ConvNet(1, 8, (8, 16), (11,), kernel=2, dropout=0.3, dropout_at="last"),
    "large filters": ConvNet(1, 8, (8, 24), (), kernel=7, padding=4),
    "filters alone": ConvNet(1, 8, (13, 9), (), kernel=5, padding=3),
    "two layers": MLP(64, 21, 10),
    "narrow layers": MLP(64, 5, 10),
    "softmax": Softmax(64, 10),
    "two classes": Softmax(64, 2),
}


@pytest.fixture(params=library.levels()[-2:] or ["none"])
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "none" or library.compiler() is None:
        pytest.skip("no compiled code on this machine: no C compiler, or an unknown processor")
    monkeypatch.setenv("REPRODUCE_ISA", request.param)
    return str(request.param)


def task_of(model: Model, batches: Batches) -> ClassificationSplit:
    data = GaussianClasses(2, 64, 330, 20, 1.0, 0) if getattr(model, "classes", 10) == 2 else "digits"
    problem = Classification(data, model, IID(), clients=5, batches=batches, train_samples=313)
    task = ClientSplits(settings(), torch.float64).get(problem, 3)
    assert isinstance(task, ClassificationSplit)
    return task


def request(task: ClassificationSplit, rule: Rule) -> Train:
    g = torch.Generator().manual_seed(5)
    noise, push = torch.randn((2, 5, task.parameters), generator=g, dtype=torch.float64)
    return Train(
        clients=np.arange(5),
        steps=STEPS,
        start=task.initial() + 0.01 * noise,
        lr=0.05,
        round=4,
        rule=rule,
        offset=np.array([0, 3, 4, 6, 8]),
        correction=0.1 * push if rule.mu else None,
        anchor=task.initial() if rule.mu else None,
    )


@pytest.mark.parametrize("layout", ["samples", "channels"])
@pytest.mark.parametrize("batch", [1, 25, 40])
@pytest.mark.parametrize("name", MODELS)
def test_compiled_equals_reference(
    isa: str, name: str, batch: int, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both layouts; batches below, across and beyond a piece, the last of a pass a short one; each pair with a rule."""
    model, rule = MODELS[name], RULES[(list(MODELS).index(name) + batch) % len(RULES)]
    kernel = isinstance(model, Softmax)
    if layout == "channels" and (kernel or not _wide(model)):
        pytest.skip("channels that do not fill vectors, or no layers")
    monkeypatch.setattr(compiled.Program, "by_channel", lambda self, batch: layout == "channels")
    job = [(task := task_of(model, Shuffled(batch)), request(task, rule))]
    expected = Trainer(strategy="reference").train(job)[0]
    actual = Trainer(strategy="kernel" if kernel else "compiled").train(job)[0]
    for field in ("rows", "mean_gradient", "first_gradient"):
        a, b = getattr(actual, field), getattr(expected, field)
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a, b, rtol=0, atol=1e-10)
    assert expected.rows[0].abs().max() > 1e-4


@pytest.mark.parametrize("name", ["softmax", "two classes"])
def test_logits_beyond_the_range_of_the_exponential(isa: str, name: str) -> None:
    task = task_of(MODELS[name], Shuffled(10))
    job = [(task, replace(request(task, Rule()), start=1e5 * request(task, Rule()).start))]
    answers = [Trainer(strategy=strategy).train(job)[0].rows for strategy in ("kernel", "reference")]
    torch.testing.assert_close(*answers, rtol=0, atol=1e-9)


@pytest.mark.parametrize("layout", ["samples", "channels"])
def test_a_filter_that_is_no_number_is_seen_behind_its_relu(
    isa: str, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last bias moves by the logits alone."""
    monkeypatch.setattr(compiled.Program, "by_channel", lambda self, batch: layout == "channels")
    task = task_of(replace(MODELS["wide filters"], dropout=0.0, channel_dropout=0.0), Shuffled(10))
    start = task.initial()
    start[0] = torch.nan
    rows = Trainer(strategy="compiled").train([(task, replace(request(task, Rule()), start=start))])[0].rows
    assert rows[STEPS > 0, -1].isnan().all()


@pytest.mark.parametrize("batch", [1, 7, 16, 33])
@pytest.mark.parametrize(("size", "kernel", "padding"), [(13, 3, 0), (9, 3, 2), (17, 5, 0), (12, 5, 2)])
def test_rows_of_samples_end_anywhere(isa: str, size: int, kernel: int, padding: int, batch: int) -> None:
    """Rows that are no multiple of a vector: gradients and logits as torch's, and nothing is left of what went before.

    The last batch is short, and the one before it diverges. Last bits are those of whole vectors of samples.
    """
    model = ConvNet(2, size, (3, 14), (6,), kernel=kernel, padding=padding)
    code = compiled.program(model, (2, size, size), torch.float64)
    g = torch.Generator().manual_seed(1)
    x = torch.randn((batch, 2, size, size), generator=g, dtype=torch.float64)
    labels = torch.randint(0, 10, (batch,), generator=g)
    start = 0.1 * torch.randn(code.layout.total, generator=g, dtype=torch.float64)

    def gradient(y: torch.Tensor, index: np.ndarray) -> torch.Tensor:
        run, end = library.Descent(1.0, 0, 0, 0, len(y), 1), y.clone()
        code.steps(run, end, (x, labels, index[None], len(index)), torch.empty((1, 0), dtype=x.dtype), 0, False)
        return y - end

    whole, short = np.arange(batch), np.append(np.arange(batch - 1), -1) if batch > 1 else np.arange(1)
    for index in (whole, short):
        here, y = index[index >= 0], start.clone().requires_grad_()
        logits = model.forward(One(), code.layout.named(y), x[here])
        torch.nn.functional.cross_entropy(logits, labels[here]).backward()
        torch.testing.assert_close(gradient(start, index), y.grad, rtol=0, atol=1e-12)
        torch.testing.assert_close(code.logits(start, x, here), logits.detach(), rtol=0, atol=1e-12)
        assert gradient(torch.full_like(start, torch.nan), whole).isnan().any()
    padded = np.append(short, np.full(max(0, 32 - batch), -1))
    assert batch > 32 or torch.equal(gradient(start, short), gradient(start, padded))


def _wide(model: Model) -> bool:
    return compiled.program(model, (64,) if isinstance(model, MLP) else (1, 8, 8), torch.float64).wide


def test_single_precision_is_as_near_as_torch(isa: str) -> None:
    """float32 has its own lanes, shuffles and exponential: as near to float64 as the reference in float32.

    Of most clients, that is: now and then rounding decides which of two pixels is the larger one.
    """
    for name, model in MODELS.items():
        exact = _update(model, torch.float64, "reference")
        plain = _update(model, torch.float32, "reference")
        fast = _update(model, torch.float32, "kernel" if isinstance(model, Softmax) else "compiled")
        allowed, found = ((x - exact).abs().amax(1).median() for x in (plain, fast))
        assert float(found) < 4 * float(allowed) + 1e-7, name


def _update(model: Model, dtype: torch.dtype, strategy: str) -> torch.Tensor:
    problem = task_of(model, Shuffled(10)).problem
    task = ClientSplits(settings(), dtype).get(problem, 3)
    assert isinstance(task, ClassificationSplit)
    start = task.initial().to(torch.float32).to(dtype)
    job = (task, Train(np.arange(5), np.full(5, 4), start, 0.05, 4, Rule(momentum=0.5)))
    return Trainer(strategy=strategy).train([job])[0].rows.double()
