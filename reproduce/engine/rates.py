"""How fast a machine trains and evaluates, as plans use it."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Anchor:
    """Samples per second that one core trains and evaluates with a model of `macs` multiply-accumulates per sample."""

    macs: float
    train: float
    evaluate: float


@dataclass(frozen=True)
class Rates:
    """What jobs take on one core.

    kinds: strategy -> anchors, smallest model first. start: seconds until a job trains; run: per run; round: per round
    of a run with a network, beside its samples; quadratic: per round of a run on a quadratic. source: where the
    numbers come from, for people.
    """

    kinds: Mapping[str, tuple[Anchor, ...]]
    start: float
    run: float
    round: float
    quadratic: float
    source: str
    measured: bool = True

    def __post_init__(self) -> None:
        """ValueError for numbers that cannot be a machine's."""
        numbers = [self.start, self.run, self.round, self.quadratic]
        numbers += [x for anchors in self.kinds.values() for a in anchors for x in (a.macs, a.train, a.evaluate)]
        if not all(math.isfinite(x) and x > 0 for x in numbers):
            raise ValueError("a rate is not a positive number")
        if not all(anchors for anchors in self.kinds.values()):
            raise ValueError("a kind of model has no rate")

    def train(self, kind: str, macs: float) -> float:
        """Training samples per second on one core."""
        return _between([(a.macs, a.train * a.macs) for a in self.kinds[kind]], macs) / macs

    def evaluate(self, kind: str, macs: float) -> float:
        """Evaluated samples per second on one core."""
        return _between([(a.macs, a.evaluate * a.macs) for a in self.kinds[kind]], macs) / macs


def _between(points: list[tuple[float, float]], x: float) -> float:
    """Arithmetic per second at size x: linear in the logarithms between the sizes measured, constant beyond them."""
    sizes = [size for size, _ in points]
    i = bisect(sizes, x)
    if i in (0, len(points)):
        return points[min(i, len(points) - 1)][1]
    (x0, y0), (x1, y1) = points[i - 1], points[i]
    share = math.log(x / x0) / math.log(x1 / x0)
    return y0 * (y1 / y0) ** share


ASSUMED = Rates(
    {
        "kernel": (
            Anchor(80, 18_000_000, 7_200_000),
            Anchor(246, 36_000_000, 8_500_000),
            Anchor(7_840, 1_500_000, 2_800_000),
        ),
        "compiled": (
            Anchor(2_368, 1_800_000, 3_000_000),
            Anchor(7_344, 690_000, 3_100_000),
            Anchor(50_816, 280_000, 480_000),
            Anchor(480_500, 70_000, 150_000),
            Anchor(549_184, 36_000, 130_000),
            Anchor(3_785_344, 5_000, 20_000),
            Anchor(7_825_920, 2_900, 10_000),
        ),
        "stacked": (
            Anchor(1_662_144, 3_000, 11_000),
            Anchor(3_470_144, 2_300, 12_000),
        ),
        "sparse": (
            Anchor(2_176, 60_000, 160_000),
            Anchor(20_400, 18_000, 19_000),
        ),
        "sequential": (
            Anchor(19_693_568, 510, 3_200),
            Anchor(555_422_720, 44, 150),
        ),
    },
    start=2.0,
    run=0.01,
    round=6e-4,
    quadratic=2e-4,
    source="assumed: a core with AVX-512 (AMD Zen 5); this machine was not measured (plan --calibrate)",
    measured=False,
)
"""For a machine that was not measured; `python -m reproduce.runs.speed.measure` prints such numbers. Those of the
networks that most jobs train follow from the processor time of results made on such a core."""
