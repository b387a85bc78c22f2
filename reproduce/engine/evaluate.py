"""What is evaluated together, and loss and accuracy of many models on one view of the data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from reproduce.engine import strategies
from reproduce.engine.logits import taken
from reproduce.engine.requests import Evaluate, Evaluated
from reproduce.engine.words import ordered
from reproduce.models.model import Model

if TYPE_CHECKING:
    from reproduce.engine.task import ClassificationTask, Task

Spread = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]


def evaluate(task: Task, requests: list[Evaluate], spread: Spread = map) -> list[Evaluated]:
    """Answers to evaluation requests that share task, view and model; `spread` maps a function over threads.

    Which models are judged together depends on what is asked, not on the order of the requests.
    """
    order = ordered([(task, r) for r in requests])
    x = torch.cat([requests[i].x for i in order])
    metrics, correct = task.evaluate(x, requests[0], spread)
    answers, at = {}, 0
    for i in order:
        end = at + len(requests[i].x)
        part = {name: values[at:end] for name, values in metrics.items()}
        answers[i] = Evaluated(part, None if correct is None else correct[at:end])
        at = end
    return [answers[i] for i in range(len(requests))]


def loss_and_accuracy(
    task: ClassificationTask, x: Tensor, view: str, model: Model, spread: Spread
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Mean loss and accuracy in percent, [M] each, and which samples each model got right, [M, n]."""
    arena = task.arena
    where = task.view(view)
    features, labels = (arena.train_x, arena.train_y) if view.startswith("train") else (arena.test_x, arena.test_y)
    strategy = strategies.choose(arena.demand(model))
    together, size = strategy.together(len(x), arena.problem.evaluation_batch)
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
        logits = strategy.forward(model, x[models], features, where[samples])
        y = taken(labels, where[samples])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.repeat(len(logits)), reduction="none")
        # The largest of numbers that are none would be the first class; a loss is finite where all logits are.
        right = (logits.argmax(2) == y) & loss.view(len(logits), -1).isfinite()
        return loss.view(len(logits), -1).sum(1, dtype=torch.float64).cpu(), right.cpu().numpy()

    for (models, samples), (loss, right) in zip(portions, spread(judge, portions), strict=True):
        losses[models] += loss
        correct[models, samples] = right
    return {"loss": (losses / len(where)).numpy(), "accuracy": 100 * correct.mean(1)}, correct
