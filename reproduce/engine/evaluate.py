"""Loss and accuracy of many models on one view of the data, and distances on quadratics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reproduce.engine.ops import One, Stacked
from reproduce.engine.requests import Evaluate, Evaluated
from reproduce.engine.task import Arena, ClassificationTask, QuadraticTask, Task
from reproduce.engine.trainer import compiled_form, forward_macs, layout_of
from reproduce.problems.models import Model, Softmax

Spread = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]

TOGETHER = 8
"""Models per evaluation stack: enough to fill the caches of one core."""


def evaluate(task: Task, requests: list[Evaluate], spread: Spread = map) -> list[Evaluated]:
    """Answers to evaluation requests that share task, view and model; `spread` maps a function over threads."""
    x = torch.cat([r.x for r in requests])
    if isinstance(task, QuadraticTask):
        distance = (x - task.optimum).norm(dim=1)
        metrics, correct = {"distance": distance.cpu().numpy().astype(float)}, None
    else:
        metrics, correct = _classification(task, x, requests[0].view, requests[0].model, spread)
    answers, at = [], 0
    for r in requests:
        end = at + len(r.x)
        part = {name: values[at:end] for name, values in metrics.items()}
        answers.append(Evaluated(part, None if correct is None else correct[at:end]))
        at = end
    return answers


def _classification(
    task: ClassificationTask, x: Tensor, view: str, submodel: Model | None, spread: Spread
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Mean loss and accuracy in percent, [M] each, and which samples each model got right, [M, n]."""
    arena = task.arena
    model = submodel or task.problem.model
    where = task.view(view)
    features, labels = (arena.train_x, arena.train_y) if view.startswith("train") else (arena.test_x, arena.test_y)
    together, size = _portion(arena, model, len(x))
    losses = torch.zeros(len(x), dtype=torch.float64)
    correct = np.empty((len(x), len(where)), dtype=bool)
    portions = [
        (slice(m, min(m + together, len(x))), slice(at, at + size))
        for at in range(0, len(where), size)
        for m in range(0, len(x), together)
    ]

    @torch.inference_mode()
    def judge(portion: tuple[slice, slice]) -> tuple[Tensor, np.ndarray]:
        models, samples = portion
        logits = _logits(arena, model, x[models], features, where[samples])
        y = _taken(labels, where[samples])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.repeat(len(logits)), reduction="none")
        return loss.view(len(logits), -1).sum(1, dtype=torch.float64).cpu(), (logits.argmax(2) == y).cpu().numpy()

    for (models, samples), (loss, right) in zip(portions, spread(judge, portions), strict=True):
        losses[models] += loss
        correct[models, samples] = right
    return {"loss": (losses / len(where)).numpy(), "accuracy": 100 * correct.mean(1)}, correct


def _portion(arena: Arena, model: Model, models: int) -> tuple[int, int]:
    """How many models and how many samples are evaluated at a time, by one thread."""
    if isinstance(model, Softmax):
        return models, max(arena.problem.evaluation_batch, 2000)
    if compiled_form(arena, model):
        return 1, 1000
    return (TOGETHER if forward_macs(model) < 3_000_000 else 1), arena.problem.evaluation_batch


def _taken(values: Tensor, where: np.ndarray) -> Tensor:
    if where[-1] - where[0] == len(where) - 1:  # consecutive samples need no copy
        return values[int(where[0]) : int(where[-1]) + 1]
    return values[torch.from_numpy(where).to(values.device)]


def _logits(arena: Arena, model: Model, x: Tensor, features: Tensor, where: np.ndarray) -> Tensor:
    """[M, b, classes] of models x [M, P] on the samples `where` [b] of `features`."""
    layout = layout_of(model)
    if compiled := compiled_form(arena, model):
        return torch.stack([compiled.logits(row.contiguous(), features, where) for row in x])
    batch = _taken(features, where)
    if isinstance(model, Softmax):
        weight, bias = x.split(layout.sizes, dim=1)
        flat = batch.flatten(1)
        z = torch.addmm(bias.reshape(-1), flat, weight.reshape(-1, model.features).t())
        return z.view(len(flat), len(x), -1).transpose(0, 1)
    if len(x) == 1:
        ops = One()
        return model.forward(ops, layout.named(x[0]), ops.images(batch)).unsqueeze(0)
    stacked = Stacked(len(x))
    p = dict(zip(layout.names, layout.blocks(x), strict=True))
    return model.forward(stacked, p, stacked.images(batch.unsqueeze(0).expand(len(x), *batch.shape)))
