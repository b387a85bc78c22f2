"""Initial models of the sessions of a changing federation (Chang et al., arXiv 2410.05662, Sec. 4).

Clients come and go between sessions; within one they stay. The server keeps the models w_z with which the sessions
ended. Session s starts from a mixture of them, sum_z alpha(s, z) w_z; the schemes differ in alpha. `clocks.sessions`
drives them: it trains the pilot sessions, asks for fingerprints, and keeps models and fingerprints in the run's state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from reproduce.algorithms.base import Tensor
from reproduce.declare.values import Count, Floats, NonNegative, Whole

TINY = 1e-12
"""A gradient with a smaller norm has no direction: its unit vector is zero."""


class Start:
    """A scheme.

    pilot: "" (the scheme needs no pilot model), "trained" (the mean of the models that ended the pilot sessions), or a
    model that never trained, so that the pilot sessions are skipped: "factory" (an initial model) or "fully_random".
    rounds: rounds of training from the pilot model that make a session's fingerprint.
    session_p_start, save_point, trigger: as in `Proposed`.
    """

    pilot: Any = ""  # Any: a word or a number; some schemes say them by properties
    rounds: Any = 0
    session_p_start: Any = "random"
    save_point: Any = "last"
    trigger: Any = "once"

    def distances(self, fingerprints: Sequence[Tensor], blocks: Mapping[str, slice]) -> Floats:
        """d(s, z) of the newest fingerprint to each earlier one; empty if the scheme has none."""
        return np.empty(0)

    def weights(self, stored: int, distances: Floats) -> Floats:
        """alpha(s, z) [stored] of the models that ended the earlier sessions, oldest first."""
        raise NotImplementedError


@dataclass(frozen=True)
class Previous(Start):
    """The session goes on from the model with which the last one ended."""

    def weights(self, stored: int, distances: Floats) -> Floats:
        return (np.arange(stored) == stored - 1).astype(float)


@dataclass(frozen=True)
class Average(Start):
    """The plain mean of all stored models."""

    def weights(self, stored: int, distances: Floats) -> Floats:
        return np.full(stored, 1 / stored)


@dataclass(frozen=True)
class Proposed(Start):
    """alpha(s, z) ~ exp(-R d(s, z)): models of sessions with similar data weigh more (Algorithm 1, eqs. 3-5).

    The fingerprint of a session is the displacement G_s that `rounds` (V) rounds of its clients cause at the pilot
    model. distance: "per_tensor_unit", the mean over weight tensors of the distance between unit vectors (as in the
    authors' code; App. B.1), or "global_l2", the plain norm of the difference (eq. 5 as printed).
    gradient_index: "V", or "V-1" for eq. (4) as printed, which stops one round early and is zero for V = 1.
    session_p_start: the first session after the pilot sessions starts from the "random" model, as the authors' code, or
        goes on from their last one ("carry").
    history: how many of the latest sessions are mixed (App. C.4), 0 = all.
    save_point: a session is remembered by the model after its "last" round, or by the one before that ("before_last",
        as eq. 3 is printed).
    trigger: the pilot model is made "once", after the pilot sessions; "every_time" is line 13 as printed: whenever P
        models are stored, which are then dropped. With P = 1 no model is left to mix, and sessions carry on.
    """

    R: NonNegative = 10.0
    V: Count = 1
    distance: Literal["per_tensor_unit", "global_l2"] = "per_tensor_unit"
    gradient_index: Literal["V", "V-1"] = "V"
    session_p_start: Literal["random", "carry"] = "random"
    history: Whole = 0
    save_point: Literal["last", "before_last"] = "last"
    trigger: Literal["once", "every_time"] = "once"

    pilot = "trained"

    @property
    def rounds(self) -> int:
        return self.V - (self.gradient_index == "V-1")

    def distances(self, fingerprints: Sequence[Tensor], blocks: Mapping[str, slice]) -> Floats:
        *earlier, newest = fingerprints
        return np.array([self._distance(newest, other, blocks) for other in earlier])

    def weights(self, stored: int, distances: Floats) -> Floats:
        first = max(0, stored - self.history) if self.history else 0
        d = distances[len(distances) - stored + first :]
        with np.errstate(over="ignore"):  # exp(-inf) = 0 is what a huge R means
            # The nearest counts as distance 0, so that at least one exponential is not zero (R is 800 for texts).
            weight = np.exp(-self.R * (d - d.min()))
        return np.concatenate([np.zeros(first), weight / weight.sum()])

    def _distance(self, a: Tensor, b: Tensor, blocks: Mapping[str, slice]) -> float:
        if self.distance == "global_l2":
            return float((a - b).norm())
        tensors = [where for name, where in blocks.items() if "bias" not in name]
        return float(np.mean([float((_unit(a[where]) - _unit(b[where])).norm()) for where in tensors]))


@dataclass(frozen=True)
class RandomPilot(Proposed):
    """`Proposed` with a model that never trained as pilot (Table 14).

    model: another initial model of the "factory", that is with stored weights where the problem's model starts from
    some, or a "fully_random" one.
    """

    model: Literal["factory", "fully_random"] = "factory"

    @property
    def pilot(self) -> str:  # type: ignore[override]
        return self.model


def _unit(vector: Tensor) -> Tensor:
    norm = vector.norm()
    return vector / norm if float(norm) > TINY else vector * 0
