"""Loss and accuracy of many models on one view of the data, and distances on quadratics."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from reproduce.engine.layout import Layout
from reproduce.engine.ops import One, Stacked
from reproduce.engine.requests import Evaluate, Evaluated
from reproduce.engine.task import Arena, ClassificationTask, QuadraticTask, Task
from reproduce.engine.trainer import forward_macs, layout_of
from reproduce.problems.models import Model, Softmax

TOGETHER = 8
"""Models per evaluation stack: enough to fill the caches of one core."""


def evaluate(task: Task, requests: list[Evaluate]) -> list[Evaluated]:
    """Answers to evaluation requests that share task, view and model."""
    x = torch.cat([r.x for r in requests])
    if isinstance(task, QuadraticTask):
        distance = (x - task.optimum).norm(dim=1)
        metrics, correct = {"distance": distance.numpy().astype(float)}, None
    else:
        metrics, correct = _classification(task, x, requests[0].view, requests[0].model)
    answers, at = [], 0
    for r in requests:
        end = at + len(r.x)
        part = {name: values[at:end] for name, values in metrics.items()}
        answers.append(Evaluated(part, None if correct is None else correct[at:end]))
        at = end
    return answers


def _classification(
    task: ClassificationTask, x: Tensor, view: str, submodel: Model | None
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Mean loss and accuracy in percent, [M] each, and which samples each model got right, [M, n]."""
    arena = task.arena
    model = submodel or task.problem.model
    layout = layout_of(model)
    where = task.view(view)
    features, labels = (arena.train_x, arena.train_y) if view.startswith("train") else (arena.test_x, arena.test_y)
    losses = torch.zeros(len(x), dtype=torch.float64)
    correct = np.empty((len(x), len(where)), dtype=bool)
    together = len(x) if isinstance(model, Softmax) else (TOGETHER if forward_macs(model) < 3_000_000 else 1)
    size = max(arena.problem.evaluation_batch, 2000) if isinstance(model, Softmax) else arena.problem.evaluation_batch
    with torch.inference_mode():
        for at in range(0, len(where), size):
            batch, y = _batch(arena, features, labels, where, at, size)
            for m in range(0, len(x), together):
                part = x[m : m + together]
                logits = _logits(model, layout, part, batch)
                loss = torch.nn.functional.cross_entropy(
                    logits.flatten(0, 1), y.repeat(len(part)), reduction="none"
                ).view(len(part), -1)
                losses[m : m + together] += loss.sum(1, dtype=torch.float64).cpu()
                right = logits.argmax(2) == y
                correct[m : m + together, at : at + size] = right.cpu().numpy()
    loss_mean = (losses / len(where)).numpy()
    return {"loss": loss_mean, "accuracy": 100 * correct.mean(1)}, correct


def _batch(
    arena: Arena, features: Tensor, labels: Tensor, where: np.ndarray, at: int, size: int
) -> tuple[Tensor, Tensor]:
    part = where[at : at + size]
    if part[-1] - part[0] == len(part) - 1:  # consecutive samples need no copy
        here = slice(int(part[0]), int(part[-1]) + 1)
        return features[here], labels[here]
    index = torch.from_numpy(part).to(arena.device)
    return features[index], labels[index]


def _logits(model: Model, layout: Layout, x: Tensor, batch: Tensor) -> Tensor:
    """[M, b, classes] of models x [M, P] on one batch."""
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
