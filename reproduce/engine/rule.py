"""The local rule: what one client does with a gradient, as data, so that every execution strategy can run it.

y <- start;  for k = 0..K-1:  d = g(y) + correction + mu * (y - anchor);  v = momentum * v + d;
                              y <- y - lr * (1 - decay)^k * v

With `betas` (b, c) it is AdamW without weight decay, whose v is, from m = n = 0 on,
    m = b m + (1 - b) d;  n = c n + (1 - c) d^2;  v = m / (1 - b^(k+1)) / (sqrt(n / (1 - c^(k+1))) + EPSILON)
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

import numpy as np

from reproduce.declare.values import Floats, Ints

SGD_TERMS = frozenset({"mu", "momentum", "decay", "mean_gradient", "first_gradient"})
"""Fields of the rule that make sense for any function, a quadratic included."""
EPSILON = 1e-8
"""Of AdamW."""


@dataclass(frozen=True)
class Exits:
    """All exits 1, ..., m of the model are trained together, exit j with weight j / (1 + ... + m) (scalefl).

    distill: besides, each exit but the last gets distill * temperature^2 / classes times KL(last || exit) of the
        softmax at that temperature; the last exit gets the gradient of this, too, as in the published code.
    """

    distill: float = 0.0
    temperature: float = 3.0


@dataclass(frozen=True)
class OrderedDropout:
    """In each step a client also trains a narrower network inside its own, on the outputs of its own (fjord).

    models: the narrower networks; one is drawn per client and step, uniformly. Their parameters are the first along
        every axis of the trained model's. Added is their cross-entropy with the trained model's softmax, which gets no
        gradient from it.
    """

    models: tuple[Any, ...]


@dataclass(frozen=True)
class Rule:
    """The numbers of the local loop above, equal for all clients of a request.

    mu: strength of the proximal pull towards the anchor.
    momentum: heavy ball, buffer zero at the start of every local run.
    decay: the step shrinks by the factor 1 - decay after every local step.
    mean_gradient: also return the mean of the raw gradients.
    first_gradient: "" | "single" (the first mini-batch gradient) | "pass_mean" (see Batches.first_pass).
    mask: "" | "dynamic" (recomputed from the current weights at every step) | "frozen" (from the start).
    amplify: multiply masked gradients by 1 + 2|y|t/(|y|+t)^2 (fiarse eq. 3).
    distill: weight of KL(teacher || student) in the loss.
    contrast: weight of -log(e^(a/t) / (e^(a/t) + e^(b/t))) in the loss; a and b are the cosines between a sample's
        representation and those in the start and in the request's `previous` model, t is the `temperature` (moon).
    second_pass: the representation is that of a second forward pass of the client's model, in training mode: dropout
        is drawn again, and running statistics move twice a step (the published code of dynamic_init).
    inner: what else of the model is trained in every step; not together with `distill` or `contrast`.
    betas: of AdamW, fresh in every local run; () is SGD. Not together with `momentum`. A coordinate whose gradients are
        all zero does not move.
    """

    mu: float = 0.0
    momentum: float = 0.0
    decay: float = 0.0
    mean_gradient: bool = False
    first_gradient: str = ""
    mask: str = ""
    amplify: bool = False
    distill: float = 0.0
    contrast: float = 0.0
    temperature: float = 1.0
    second_pass: bool = False
    inner: Exits | OrderedDropout | None = None
    betas: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.betas and (self.momentum or len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas)):
            raise ValueError(f"AdamW has two betas in [0, 1), not {self.betas}, and no momentum")
        if self.inner is not None and (self.distill or self.contrast):
            raise ValueError("a model that is trained with its parts has no other term in its loss")

    @property
    def network_terms(self) -> tuple[str, ...]:
        """The terms in use that act on a network: all but those of plain SGD (`SGD_TERMS`)."""
        used = (f.name for f in fields(self) if getattr(self, f.name) != f.default)
        return tuple(name for name in used if name not in SGD_TERMS)

    def norms(self, steps: Ints, lr: float) -> Floats:
        """Accumulation norms A_m = ||a_m||_1 of local runs of `steps` [N] at rate `lr` (FedNova, Sec. 4).

        A run's update is -lr * sum_t a_t g_t; a proximal pull can make some a_t negative.
        """
        if not (self.mu or self.momentum or self.decay):
            return steps.astype(np.float64)
        most = int(steps.max(initial=0))
        moved, velocity, norms = np.zeros(most), np.zeros(most), np.zeros(most + 1)  # of each gradient g_t its share
        for t in range(most):
            velocity *= self.momentum
            velocity[t] += 1
            velocity -= lr * self.mu * moved
            moved += (1 - self.decay) ** t * velocity
            norms[t + 1] = np.abs(moved).sum()
        return norms[steps]


@cache
def shared(rule: Rule) -> Rule:
    """The part of a rule that all slots of a chunk must share; `mu` may differ from client to client."""
    return replace(rule, mu=0.0)
