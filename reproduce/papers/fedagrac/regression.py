"""The linear regression behind Fig. 1: y = a x + b with two clients whose data lie around different lines.

The paper draws a schematic and gives no numbers; data, step counts and rates are ours. One client with few steps
("slow") sees a wide range of x, one with many ("fast") a narrow one. F_i(a, b) = mean (a x + b - y)^2 is a quadratic
with the Hessian 2 mean [x, 1]'[x, 1], so the engine trains on quadratics and all gradients are exact.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from reproduce.problem import Quadratic

Floats = NDArray[np.float64]

SLOW, FAST = 0, 1
STEPS = (2, 40)
RATE = 0.01


@cache
def data() -> tuple[tuple[Floats, Floats], ...]:
    """x and y [100] of the slow and of the fast client."""
    noise = np.random.RandomState(0)
    slow, fast = np.linspace(-2.1, 2.1, 100), np.linspace(-0.55, 0.55, 100)
    return (
        (slow, 1.2 * slow + 2.6 + 0.1 * noise.standard_normal(100)),
        (fast, -2.9 * fast + 0.7 + 0.1 * noise.standard_normal(100)),
    )


@cache
def problem() -> Quadratic:
    """The clients' objectives as quadratics in (a, b), from the origin."""
    minimisers, hessians = [], []
    for x, y in data():
        rows = np.stack([x, np.ones_like(x)], axis=1)
        minimisers.append(tuple(np.linalg.lstsq(rows, y, rcond=None)[0].tolist()))
        hessians.append(tuple(map(tuple, (2 * rows.T @ rows / len(x)).tolist())))
    return Quadratic(2, 2, minimisers=tuple(minimisers), hessians=tuple(hessians), start=(0.0, 0.0))
