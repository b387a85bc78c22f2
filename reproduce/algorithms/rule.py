"""The local rule: what one client does with a gradient, as data, so that every execution strategy can run it.

    y <- start;  for k = 0..K-1:  d = g(y) + correction + mu * (y - anchor);  v = momentum * v + d;
                                  y <- y - lr * (1 - decay)^k * v
"""

from __future__ import annotations

from dataclasses import dataclass


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
    """

    mu: float = 0.0
    momentum: float = 0.0
    decay: float = 0.0
    mean_gradient: bool = False
    first_gradient: str = ""
    mask: str = ""
    amplify: bool = False
    distill: float = 0.0
