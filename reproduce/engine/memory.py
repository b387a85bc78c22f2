"""How many models a stack on a GPU may hold: bytes per model against the memory of the device.

The size of a stack decides how sums are rounded, so it follows from the device's whole memory and never from what
happens to be free, and it is one of a few fixed numbers. Every stack gets the same share, whatever the number of
threads: `FLIGHT` chunks may be computed at a time, and each of these lanes keeps `KEPT` captured steps, whose buffers
stay where they are.
"""

from __future__ import annotations

import math

from reproduce.engine.rule import Rule
from reproduce.models.model import Model

SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""What the number of models in a stack is rounded down to."""
FLIGHT = 4
"""Chunks that are computed at the same time, at most, each on a stream of its own."""
KEPT = 4
"""Captured steps that a lane keeps, the least recently used going first."""
SHARE = 0.6
"""Share of the device's memory that stacks may take; data, the runs' states and evaluation need the rest."""
ACTIVATION = 3
"""Arrays per layer output in a training step: the output, a copy in another layout or precision, and the gradient."""


def parameter_arrays(rule: Rule) -> int:
    """Arrays of P numbers that one model of a stack needs.

    Start, iterate, gradient, update and its flat copy, and the step's temporary; correction and anchor, which any
    request may bring; velocity or moments, gradient sums and models to be contrasted with where the rule asks for them.
    """
    sums = bool(rule.mean_gradient or rule.first_gradient) + bool(rule.first_gradient)
    return 6 + 2 + bool(rule.momentum) + 3 * bool(rule.betas) + 2 * sums + 2 * bool(rule.mask) + 3 * bool(rule.contrast)


def activations(model: Model, sample: tuple[int, ...]) -> int:
    """Numbers per sample that the layers of `model` put out, for samples of shape `sample` (channels, ...)."""
    return math.prod(sample) + sum(math.prod(shape) for _, _, shape, _ in model.cost(sample).layers)


def model_bytes(model: Model, sample: tuple[int, ...], batch: int, rule: Rule, itemsize: int = 4) -> int:
    """Bytes that one model of a stack takes during a local step on `batch` samples."""
    passes = 1 + rule.second_pass
    numbers = parameter_arrays(rule) * model.parameters + passes * ACTIVATION * batch * activations(model, sample)
    return itemsize * numbers


def stack_size(per_model: int, total: int) -> int:
    """The largest of `SIZES` whose models, `per_model` bytes each, fit into one stack's share of `total` bytes.

    At least 1: a model that does not even fit alone is tried, and torch says by how much it failed.
    """
    budget = SHARE * total / (FLIGHT * (KEPT + 1))
    return max((size for size in SIZES if size * per_model <= budget), default=1)
