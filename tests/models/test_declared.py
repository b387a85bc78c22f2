"""The models of dynamic_init: sizes, and training against PyTorch's own modules in float64."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from reproduce.data.batches import Shuffled
from reproduce.data.embedded import ImageBlobs, TopicTokens
from reproduce.engine.client_split import ClientSplits
from reproduce.engine.evaluate import evaluate
from reproduce.engine.requests import Evaluate, Gradient, Train
from reproduce.engine.rule import Rule
from reproduce.engine.trainer import Trainer
from reproduce.errors import UserError
from reproduce.models.declared import ConvNet, FastText, ImageNetResNet, NormConvNet, ProjectedConvNet, Softmax
from reproduce.models.model import Model
from reproduce.papers.dynamic_init.settings import CNN_SVHN, SVHN_CNN, SVHN_CONS
from reproduce.partitions.dirichlet import DirichletClass
from reproduce.problem import Classification
from reproduce.settings import Settings

TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}

COUNTS: list[tuple[Model, int]] = [
    (Softmax(784, 10), 7_850),
    (SVHN_CNN, 667_178),
    (ImageNetResNet(), 11_573_066),
    (ImageNetResNet(classes=100), 11_596_196),
    (ImageNetResNet(34, 200), 21_730_056),
    (FastText(), 9_157_804),
    (CNN_SVHN, 620_362),
    (SVHN_CONS, 142_254),
    (ImageNetResNet(projection=()), 11_181_642),
    (ImageNetResNet(classes=100, projection=()), 11_227_812),
    (ImageNetResNet(34, 200, ()), 21_387_272),
]


@pytest.mark.parametrize(("model", "count"), COUNTS)
def test_networks_have_as_many_parameters_as_the_specification_says(model: Model, count: int) -> None:
    assert model.parameters == count


SMALL: dict[str, Model] = {
    "norm": NormConvNet(3, 8, ((4, 3), (6,)), 5, 4, 0.0, "running"),
    "plain": NormConvNet(3, 8, ((4, 3), (6,)), 5, 4, 0.0, "none"),
    "projected": ProjectedConvNet(3, 20, (3, 4), (8, 7, 6), 5, 4, 0.0),
    "resnet18": ImageNetResNet(18, 4, (6, 5), width=4),
    "resnet34": ImageNetResNet(34, 4, (), width=3),
    "fasttext": FastText(50, 6, 4),
}
RULES = {"sgd": Rule(), "momentum": Rule(momentum=0.9), "proximal": Rule(mu=0.5, momentum=0.5, mean_gradient=True)}
C, STEPS, LR = 3, np.array([3, 5, 2]), 0.05


HERE = Settings(Path("no data is read"), Path("nothing is stored"), "cpu", 1)


def task_of(model: Model) -> Any:
    """Three clients of unequal size on images (texts) of the right shape, float64; batches of 7, the last one short."""
    if isinstance(model, FastText):
        problem = Classification(TopicTokens(4, 50, 12, 12, 6, 0), model, DirichletClass(5.0), C, Shuffled(7))
    else:
        data, grey = ImageBlobs(4, getattr(model, "size", 32), 12, 6, 30.0, 0, 3), (0.5, 0.5, 0.5)
        problem = Classification(data, model, DirichletClass(5.0), C, Shuffled(7), mean=grey, std=grey)
    return ClientSplits(HERE, torch.float64).get(replace(problem, partition_seed=1), 0)


def module_of(task: Any, x: Tensor) -> nn.Module:
    """The record's module with the weights and statistics x [P], which PyTorch itself runs."""
    module: nn.Module = task.problem.model.module().double()
    missing = module.load_state_dict(task.device_data.layout.named(x.clone()), strict=False)
    assert not missing.unexpected_keys
    assert all(key.endswith("num_batches_tracked") for key in missing.missing_keys)
    return module


def flat(task: Any, module: nn.Module) -> Tensor:
    state = module.state_dict()
    return torch.cat([state[name].flatten() for name in task.device_data.layout.names])


def plain(task: Any, x: Tensor, client: int, steps: int, rule: Rule) -> Tensor:
    """The end of a client's local run, by PyTorch's modules and optimiser."""
    module, arena = module_of(task, x).train(), task.device_data
    optimiser = torch.optim.SGD(module.parameters(), lr=LR, momentum=rule.momentum)
    anchor = [p.detach().clone() for p in module.parameters()]
    for batch in task.plan(client, steps, 4, 0):
        where = torch.from_numpy(batch[batch >= 0])
        loss = nn.functional.cross_entropy(module(arena.train_x[where]), arena.train_y[where])
        loss = loss + rule.mu / 2 * sum(((p - a) ** 2).sum() for p, a in zip(module.parameters(), anchor, strict=True))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return flat(task, module)


@pytest.mark.parametrize("strategy", ["reference", "stacked", "sequential"])
@pytest.mark.parametrize(("name", "rule"), [(n, r) for n in SMALL for r in ("sgd", "proximal")])
def test_training_equals_pytorchs_modules(name: str, rule: str, strategy: str) -> None:
    """Weights and running statistics after several steps, clients of different lengths and short batches."""
    task = task_of(SMALL[name])
    x = task.initial()
    request = Train(np.arange(C), STEPS, x, LR, 4, RULES[rule])
    update = Trainer(strategy=strategy).train([(task, request)])[0].rows
    for client in range(C):
        end = plain(task, x, client, int(STEPS[client]), RULES[rule])
        torch.testing.assert_close(x + update[client], end, **TOLERANCE)


@pytest.mark.parametrize("name", list(SMALL))
def test_logits_losses_and_gradients_equal_pytorchs_modules(name: str) -> None:
    """Evaluation uses running statistics, for one model and for a stack; gradients outside the local loop, too."""
    task = task_of(SMALL[name])
    arena, start = task.device_data, task.initial()
    x = torch.stack([plain(task, start, client, 2, RULES["sgd"]) for client in range(C)])
    answers = evaluate(task, [Evaluate(x)])[0]
    alone = evaluate(task, [Evaluate(x[1:2])])[0]
    for i in range(C):
        module = module_of(task, x[i]).eval()
        logits = module(arena.test_x)
        loss = nn.functional.cross_entropy(logits, arena.test_y).item()
        assert answers.metrics["loss"][i] == pytest.approx(loss, rel=1e-10)
        assert answers.metrics["accuracy"][i] == pytest.approx(100 * (logits.argmax(1) == arena.test_y).double().mean())
        if i == 1:
            assert alone.metrics["loss"][0] == pytest.approx(loss, rel=1e-10)
    module = module_of(task, x[0]).eval()
    where = torch.from_numpy(task.indices[2])
    nn.functional.cross_entropy(module(arena.train_x[where]), arena.train_y[where]).backward()
    wanted = {n: p.grad for n, p in module.named_parameters()}
    found = arena.layout.named(task.gradients(Gradient(np.array([2]), x[0], 0))[0])
    for key, value in found.items():
        expected = wanted.get(key)
        torch.testing.assert_close(value, torch.zeros_like(value) if expected is None else expected, **TOLERANCE)


@pytest.mark.parametrize("rule", [*RULES, "distilling", "contrasting", "averaging"])
def test_training_the_rows_that_are_read_equals_training_all(rule: str) -> None:
    """In float64: to PyTorch's dense modules, and to the dense reference for what those do not know."""
    task = task_of(FastText(500, 6, 4))
    x, past = task.initial(), torch.stack([task.initial("past", client) for client in range(C)])
    rules: dict[str, Rule] = RULES | {
        "distilling": Rule(distill=0.7),
        "averaging": Rule(momentum=0.9, first_gradient="pass_mean"),
    }
    rules["contrasting"] = Rule(momentum=0.9, contrast=0.5)
    more = {"distilling": {"teacher": task.initial("teacher")}, "contrasting": {"previous": past}}.get(rule, {})
    request = Train(np.arange(C), STEPS, x, LR, 4, rules[rule], **more)
    trainer = Trainer()
    sparse, dense = trainer.train([(task, request)])[0], Trainer(strategy="reference").train([(task, request)])[0]
    assert trainer.used - {"onednn-products"} == {"sparse"}
    for name in ("rows", "mean_gradient", "first_gradient"):
        if getattr(dense, name) is not None:
            torch.testing.assert_close(getattr(sparse, name), getattr(dense, name), **TOLERANCE)
    for client in range(C):
        if rule in RULES:
            end = plain(task, x, client, int(STEPS[client]), rules[rule])
            torch.testing.assert_close(x + sparse.rows[client], end, **TOLERANCE)
        plan = task.plan(client, int(STEPS[client]), 4, 0)
        read = set(task.device_data.train_x[torch.from_numpy(plan[plan >= 0])].flatten().tolist()) - {0}
        moved = sparse.rows[client][task.blocks["embedding.weight"]].view(500, 6).any(1).nonzero().flatten()
        assert set(moved.tolist()) == read, "the padding row stays"


def test_terms_that_move_rows_that_are_not_read_are_trained_densely() -> None:
    task = task_of(SMALL["fasttext"])
    x = task.initial()
    for name, terms in (("correction", {}), ("anchor", {"rule": Rule(mu=0.5)})):
        request = Train(np.arange(C), STEPS, x, LR, 4, **{name: task.initial(name)}, **terms)
        trainer = Trainer()
        update = trainer.train([(task, request)])[0].rows
        assert trainer.used - {"onednn-products"} == {"stacked"}
        expected = Trainer(strategy="reference").train([(task, request)])[0].rows
        torch.testing.assert_close(update, expected, **TOLERANCE)
        with pytest.raises(UserError, match=f"'sparse' cannot compute this: it does not serve {name}"):
            Trainer(strategy="sparse").train([(task, request)])


@pytest.mark.parametrize(
    ("model", "sample", "size"),
    [
        (Softmax(12, 3), (12,), 3),
        (ConvNet(1, 28, (2, 3), (7,), dropout=0.5), (1, 28, 28), 7),
        (SVHN_CNN, (3, 32, 32), 256),
        (ImageNetResNet(projection=()), (3, 32, 32), 512),
        (FastText(), (64,), 300),
    ],
)
def test_representations_are_what_the_last_layer_gets(model: Model, sample: tuple[int, ...], size: int) -> None:
    """Sizes of `encode`, MOON's features."""
    count = model.cost(sample)
    names = {name: name for name in model.shapes}
    assert model.both(count, names, sample) == ((size,), (model.classes,))  # type: ignore[attr-defined]


def test_initial_weights() -> None:
    """PyTorch's defaults; Kaiming by fan-out and zero last scales for residual networks; a zero padding row."""
    layout: Any = task_of(ImageNetResNet(classes=4)).device_data.layout
    x = layout.named(layout.initial(3))
    assert (x["layer1.0.bn2.weight"] == 0).all()
    assert (x["layer2.0.downsample.1.weight"] == 1).all()
    assert (x["bn1.running_mean"] == 0).all()
    assert (x["bn1.running_var"] == 1).all()
    assert x["layer3.1.conv1.weight"].std().item() == pytest.approx((2 / (9 * 256)) ** 0.5, rel=0.02)
    assert x["fc.0.weight"].abs().max().item() == pytest.approx(512**-0.5, rel=0.01)
    words = task_of(replace(SMALL["fasttext"], vocabulary=3000)).device_data.layout
    table = words.named(words.initial(3))["embedding.weight"]
    assert (table[0] == 0).all()
    assert table[1:].std().item() == pytest.approx(1, rel=0.05)


def test_images_that_are_smaller_than_a_window_are_refused() -> None:
    with pytest.raises(ValueError, match=r"conv2 moves a window of 5 x 5 over images of 3 x 3"):
        ConvNet(1, 11, (2, 3), ()).cost((1, 11, 11))
    with pytest.raises(ValueError, match=r"pooling moves a window of 2 x 2 over images of 1 x 1"):
        ConvNet(1, 5, (2, 3), ()).cost((1, 5, 5))
