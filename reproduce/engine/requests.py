"""Requests of a run to the engine, and their answers.

Runs are generators that yield requests (`rounds.py`, `sessions.py`, `events.py`); the scheduler collects the requests
of all runs, executes equal ones together and sends the answers back. C is the number of clients in a request, P the
number of parameters.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduce.declare.values import Floats, Ints
from reproduce.engine.rule import Rule
from reproduce.models.model import Model

if TYPE_CHECKING:
    from torch import Tensor

PLAIN = Rule()


@dataclass
class Train:
    """Local training of C clients.

    clients [C]: whose data; steps [C]: local SGD steps (a client with 0 steps returns its start);
    start [P] or [C, P]; lr: step size, one number or [C]; round: which round's batches (the job index for
    asynchronous clients), one number or [C]; offset [C]: batches done in earlier rounds;
    correction [P] or [C, P]: added to every gradient;
    anchor [P] or [C, P]: centre of the proximal pull, None = start; thresholds [C, T]: mask threshold per client and
    parameter tensor (0 keeps everything); teacher [P]: model to distil from; previous [P] or [C, P]: model whose
    features the client's are held away from;
    model: submodel to train instead of the split's; weights [M, C]: return M weighted sums of the updates instead of
    the updates themselves (saves memory for large models).
    """

    clients: Ints
    steps: Ints
    start: Tensor
    lr: float | Floats
    round: int | Ints
    rule: Rule = PLAIN
    offset: Ints | None = None
    correction: Tensor | None = None
    anchor: Tensor | None = None
    thresholds: Tensor | None = None
    teacher: Tensor | None = None
    previous: Tensor | None = None
    model: Model | None = None
    weights: Tensor | None = None


NEEDS = {"mask": "thresholds", "distill": "teacher", "contrast": "previous"}
"""Fields of the rule, and what a request must bring with them."""
IDLE = {
    **{"amplify": "mask", "anchor": "mu", "thresholds": "mask", "teacher": "distill"},
    **{"previous": "contrast", "temperature": "contrast", "second_pass": "contrast"},
}
"""Fields that have no effect unless the rule has another one."""


def used_fields(request: Train) -> frozenset[str]:
    """The fields of the request and of its rule that are not at their defaults and have an effect.

    Raises ValueError if the rule has a field without which the request cannot be computed.
    """
    return _used_fields(
        request.rule, tuple([name for name, default in _OPTIONAL if getattr(request, name) is not default])
    )


_REQUIRED = frozenset(f.name for f in fields(Train) if f.default is MISSING)
_OPTIONAL = tuple((f.name, f.default) for f in fields(Train) if f.default is not MISSING and f.name != "rule")


@cache
def _used_fields(rule: Rule, brought: tuple[str, ...]) -> frozenset[str]:
    terms = {f.name for f in fields(Rule) if getattr(rule, f.name) != f.default}
    for name in sorted(terms & NEEDS.keys()):
        if NEEDS[name] not in brought:
            raise ValueError(f"a rule with `{name}` needs `{NEEDS[name]}` in the request")
    return _REQUIRED | {name for name in terms.union(brought) if name not in IDLE or IDLE[name] in terms}


@dataclass
class Trained:
    """The answer to local training: `updates`, or their weighted `sums` if the request had weights.

    rows: the one of both that there is; summed: which. mean and first gradients [C, P] if the rule asks; statistics
    [C, B]: the running statistics of a whole network that has some (`Layout.statistics`), at the end.
    took: seconds of processor time that it took, its share of what was computed together. sent: which of the clients
    send their update [C], where the algorithm lets only some do so.
    """

    rows: Tensor
    mean_gradient: Tensor | None = None
    first_gradient: Tensor | None = None
    took: float = 0.0
    summed: bool = False
    statistics: Tensor | None = None
    sent: NDArray[np.bool_] | None = None

    @property
    def updates(self) -> Tensor:
        """end - start of each client [C, P]. Raises ValueError if only their sums are there."""
        if self.summed:
            raise ValueError("the updates were added up: `reduction` must return None if each client's is needed")
        return self.rows

    @property
    def sums(self) -> Tensor:
        """The weighted sums [M, P] of the updates. Raises ValueError if nothing was added up."""
        if not self.summed:
            raise ValueError("nothing was added up: `reduction` returned None, use `updates`")
        return self.rows


@dataclass
class Gradient:
    """Mean loss gradients [C, P] of clients at x [P], evaluation mode: full data, or one batch (`batch` > 0).

    model: submodel that x belongs to, instead of the split's.
    """

    clients: Ints
    x: Tensor
    round: int
    batch: int = 0
    model: Model | None = None


@dataclass
class Evaluate:
    """Test metrics of M models x [M, P] on a view of the test data ("test", "train", or a label group's name)."""

    x: Tensor
    view: str = "test"
    model: Model | None = None


@dataclass
class Evaluated:
    """metrics: name -> [M] (loss, accuracy in percent; distance for quadratics); correct [M, n] per sample if known.

    took: as in `Trained`.
    """

    metrics: dict[str, Floats] = field(default_factory=dict)
    correct: NDArray[np.bool_] | None = None
    took: float = 0.0


Request = Train | Gradient | Evaluate


def listed(value: Any) -> list[Any]:
    """Requests or answers that come one by one or as a list."""
    return value if isinstance(value, list) else [value]
