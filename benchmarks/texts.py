"""What masks cost, and what a small client saves, for texts and for images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.measure import Ratio, compare, seconds
from reproduce.algorithms.fiarse import thresholds
from reproduce.data.batches import Fixed
from reproduce.data.embedded import ImageBlobs, TopicTokens
from reproduce.engine.client_split import ClientSplits, Env
from reproduce.engine.requests import Train
from reproduce.engine.rule import Rule
from reproduce.engine.trainer import Trainer
from reproduce.models.declared import ResNet
from reproduce.models.model import Model
from reproduce.papers.fiarse import settings as scales
from reproduce.partitions.labels import IID
from reproduce.problem import Classification
from reproduce.settings import settings

CLIENTS, STEPS, BATCH, LENGTH, BETAS = 5, 4, 20, 64, (0.9, 0.95)
SMALL: Any = replace(scales.SMALL_NEWS.problem.model, padding=0)


def problem(model: Model) -> Classification:
    """Generated samples of the model's kind, `STEPS` batches of them for each client."""
    each = CLIENTS * STEPS * BATCH // 4
    channels = getattr(model, "channels", 1)
    data: Any = TopicTokens(4, 4000, LENGTH, each, 20, 0)
    if not model.tokens:
        data = ImageBlobs(4, 28 if channels == 1 else 32, each, 20, 30.0, 0, channels)
    return Classification(data, model, IID(), CLIENTS, Fixed(BATCH))


def engine(model: Model, rule: Rule, clients: int = CLIENTS, gamma: float = 0.0) -> Callable[[], object]:
    """A round of `clients` clients on one thread, with masks of size `gamma` if it is not 0."""
    split: Any = ClientSplits(settings()).get(problem(model), 0)
    env, trainer, x = Env(split, None, 0), Trainer(1), split.initial()
    held = thresholds(env, x, [gamma] * clients) if gamma else None

    def call() -> None:
        trainer.train([(split, Train(np.arange(clients), np.full(clients, STEPS), x, 1e-3, 0, rule, thresholds=held))])

    return call


def ratio_text(r: Ratio) -> str:
    return f"{r.median:.2f} (range {r.low:.2f}-{r.high:.2f})"


def texts() -> None:
    """Masks against none, HeteroFL at 1/64 against all; one thread."""
    adamw = Rule(betas=BETAS)
    torch.set_num_threads(1)
    print("| model | step with masks of size 1/4, of that without | step of size 1, of that of 1/64 | thresholds, s |")
    print("| --- | --- | --- | --- |")
    works: tuple[tuple[str, Model, Rule, int], ...] = (
        ("small RoBERTa", SMALL, adamw, CLIENTS),
        ("resnet10n", scales.RESNET10N, Rule(), CLIENTS),
        ("ResNet-18", ResNet(), Rule(), 1),
    )
    for name, model, rule, clients in works:
        plain = engine(model, rule, clients)
        masked = compare(engine(model, replace(rule, mask="dynamic", amplify=True), clients, 1 / 4), plain, 3)
        small = compare(plain, engine(model.narrowed(1 / 8), rule, clients), 3)
        env = Env(ClientSplits(settings()).get(problem(model), 0), None, 0)
        once = seconds(partial(thresholds, env, env.initial(), [1 / 4, 1 / 16, 1 / 64]))
        print(f"| {name} | {ratio_text(masked)} | {ratio_text(small)} | {once:.3f} |", flush=True)
