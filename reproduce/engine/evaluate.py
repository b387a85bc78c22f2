"""Evaluation: the loss and accuracy of models on one view of the data, of many models at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reproduce.engine.client_split import ClassificationSplit, ClientSplit
from reproduce.engine.logits import taken
from reproduce.engine.objectives import QuadraticSplit
from reproduce.engine.order import ordered
from reproduce.engine.requests import Evaluate, Evaluated
from reproduce.engine.strategies import choose
from reproduce.engine.trainer import demand
from reproduce.problem import Score

ParallelMap = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""Maps a function over threads, as `map` does over a list."""
Metrics = tuple[dict[str, np.ndarray], np.ndarray | None]
"""Metric -> its values [M], and which samples each of the models got right, [M, n]."""


def batch_key(split: ClientSplit, request: Evaluate) -> Hashable:
    """The key of evaluations that are answered together: same data, same samples in the same order, same model."""
    model = request.model or split.problem.model
    by_seed = model is not None and model.kind == "module"  # a user's module, of which each seed has its own
    own = by_seed or split.test_indices is not None or request.view.startswith("held:")
    scores = getattr(split.problem, "scores", ())
    return id(split.device_data), id(split) if own else 0, request.view, request.model, scores


def evaluate(split: ClientSplit, requests: list[Evaluate], parallel: ParallelMap = map) -> list[Evaluated]:
    """Answers to evaluation requests with the same batch key; `parallel` maps a function over threads.

    The models that are evaluated together depend on the requests, not on their order.
    """
    order = ordered([(split, r) for r in requests])
    x = torch.cat([requests[i].x for i in order])  # [M, P]
    metrics, correct = (
        _distance(split, x) if isinstance(split, QuadraticSplit) else _classification(split, x, requests[0], parallel)
    )
    answers, at = {}, 0
    for i in order:
        end = at + len(requests[i].x)
        part = {name: values[at:end] for name, values in metrics.items()}
        answers[i] = Evaluated(part, None if correct is None else correct[at:end])
        at = end
    return [answers[i] for i in range(len(requests))]


def _distance(split: QuadraticSplit, x: Tensor) -> Metrics:
    """|x - X*| of each model."""
    return {"distance": (x - split.device_data.optimum).norm(dim=1).cpu().numpy().astype(float)}, None


def _classification(split: ClassificationSplit, x: Tensor, request: Evaluate, parallel: ParallelMap) -> Metrics:
    """Mean loss, accuracy and the problem's `scores` in percent."""
    device_data, view, model = split.device_data, request.view, (request.model or split.problem.model).of(split.seed)
    where = split.view(view)
    part = "train" if view.startswith("train") else "test"
    features, labels = getattr(device_data, f"{part}_x"), getattr(device_data, f"{part}_y")
    strategy = choose(demand(device_data, model))
    together, size = strategy.together(len(x), device_data.problem.evaluation_batch)
    losses = torch.zeros(len(x), dtype=torch.float64, device=x.device)
    correct = torch.empty((len(x), len(where)), dtype=torch.bool, device=x.device)
    wanted = split.problem.scores
    kept = torch.empty((*correct.shape, device_data.classes if wanted else 0), device=x.device)  # probabilities
    portions = [
        (slice(m, min(m + together, len(x))), slice(at, at + size))
        for at in range(0, len(where), size)
        for m in range(0, len(x), together)
    ]

    @torch.inference_mode()
    def evaluated(portion: tuple[slice, slice]) -> tuple[Tensor, Tensor]:
        models, samples = portion
        logits = strategy.forward(model, x[models], features, where[samples])  # [m, b, classes]
        y = taken(labels, where[samples])  # [b]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.repeat(len(logits)), reduction="none")
        # The largest of numbers that are none would be the first class; a loss is finite where all logits are.
        right = (logits.argmax(2) == y) & loss.view(len(logits), -1).isfinite()
        if wanted:
            kept[portion] = logits.softmax(2)[..., : device_data.classes].float()
        return loss.view(len(logits), -1).sum(1, dtype=torch.float64), right

    for (models, samples), (loss, right) in zip(portions, parallel(evaluated, portions), strict=True):
        losses[models] += loss
        correct[models, samples] = right
    hits = correct.cpu().numpy()  # a GPU is waited for here, and nowhere before
    metrics = {"loss": (losses.cpu() / len(where)).numpy(), "accuracy": 100 * hits.mean(1)}
    y = split.labels(view)
    return metrics | {s: np.array([100 * score(s, y, p) for p in kept.cpu().numpy()]) for s in wanted}, hits


def score(name: Score, y: np.ndarray, p: np.ndarray) -> float:
    """A score of probabilities [n, classes] for labels y [n]: "macro_f1", "balanced_accuracy", or "auc", the mean area
    under the curve of each class that there is against the rest. NaN where a model has overflown."""
    from sklearn.metrics import f1_score, recall_score, roc_auc_score

    there = np.unique(y)
    if not np.isfinite(p).all():
        return math.nan
    if name == "auc":
        return float(np.mean([roc_auc_score(y == label, p[:, label]) for label in there]))
    if name == "macro_f1":
        return float(f1_score(y, p.argmax(1), average="macro", zero_division=0))
    return float(recall_score(y, p.argmax(1), labels=there, average="macro", zero_division=0))
