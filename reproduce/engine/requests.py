"""What a run asks of the engine, what it gets back, and an order of requests that follows from their contents alone.

Runs are generators that yield requests (`rounds.py`, `sessions.py`, `events.py`); the scheduler collects the requests
of all runs, executes equal ones together and sends the answers back. C is the number of clients in a request, P the
number of parameters.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduce.engine.rule import Rule
from reproduce.models.model import Model

if TYPE_CHECKING:
    from torch import Tensor

    from reproduce.engine.client_split import ClientSplit

Ints = NDArray[np.int64]
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
    lr: float | NDArray[np.float64]
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


def asked(request: Train) -> frozenset[str]:
    """The fields of the request and of its rule that are not at their defaults and have an effect.

    Raises ValueError if the rule has a field without which the request cannot be computed.
    """
    return _asked(request.rule, tuple([name for name, default in _OPTIONAL if getattr(request, name) is not default]))


_REQUIRED = frozenset(f.name for f in fields(Train) if f.default is MISSING)
_OPTIONAL = tuple((f.name, f.default) for f in fields(Train) if f.default is not MISSING and f.name != "rule")


@cache
def _asked(rule: Rule, brought: tuple[str, ...]) -> frozenset[str]:
    terms = {f.name for f in fields(Rule) if getattr(rule, f.name) != f.default}
    for name in sorted(terms & NEEDS.keys()):
        if NEEDS[name] not in brought:
            raise ValueError(f"a rule with `{name}` needs `{NEEDS[name]}` in the request")
    return _REQUIRED | {name for name in terms.union(brought) if name not in IDLE or IDLE[name] in terms}


@dataclass
class Trained:
    """What local training gives: `updates`, or their weighted `sums` if the request had weights.

    rows: the one of both that there is; summed: which. mean and first gradients [C, P] if the rule asks; statistics
    [C, B]: the running statistics of a whole network that has some (`Layout.statistics`), at the end.
    took: seconds of processor time that it took, its share of what was computed together.
    """

    rows: Tensor
    mean_gradient: Tensor | None = None
    first_gradient: Tensor | None = None
    took: float = 0.0
    summed: bool = False
    statistics: Tensor | None = None

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

    metrics: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    correct: NDArray[np.bool_] | None = None
    took: float = 0.0


Request = Train | Gradient | Evaluate


def listed(value: Any) -> list[Any]:
    """Requests or answers that come one by one or as a list."""
    return value if isinstance(value, list) else [value]


# --- their order ------------------------------------------------------------------------------------------------------
#
# Sums and stacks round differently in another order. So requests are not computed in the order in which runs happened
# to ask, which a resumption may change.

Contents = tuple[bytes, ...]
"""Kind of request, split, its fields in their order, and, where that is not enough, digests of its tensors."""


def ordered(jobs: Sequence[tuple[ClientSplit, Request]]) -> list[int]:
    """The positions of the requests, sorted by their contents; only equal ones stay in the order in which they come."""
    keys = contents(jobs)
    return sorted(range(len(jobs)), key=keys.__getitem__)


def contents(jobs: Sequence[tuple[ClientSplit, Request]]) -> list[Contents]:
    """What each request asks: equal contents mean the same split, the same numbers, and the same tensors to the bit.

    Tensors are read only where everything else is equal.
    """
    keys: list[Contents] = [
        (_NAMES[type(r)], split.name, *[_field(getattr(r, name)) for name in _FIELDS[type(r)]]) for split, r in jobs
    ]
    alike: dict[Contents, list[int]] = defaultdict(list)
    for i, content in enumerate(keys):
        alike[content].append(i)
    for same in alike.values():
        if len(same) > 1:
            for i in same:
                keys[i] += _digests(jobs[i][1])
    return keys


_FIELDS = {kind: tuple(f.name for f in fields(kind)) for kind in (Train, Gradient, Evaluate)}
_NAMES = {kind: kind.__name__.encode() for kind in _FIELDS}


def _field(value: Any) -> bytes:
    """A field of a request; of a tensor the shape."""
    if value is None:
        return b""
    if hasattr(value, "detach"):
        return repr(value.shape).encode()
    if isinstance(value, np.ndarray):  # [C]
        return value.dtype.char.encode() + value.tobytes()
    return _declared(value) if isinstance(value, Rule | Model) else repr(value).encode()


@cache
def _declared(value: Rule | Model) -> bytes:
    return repr(value).encode()


def _digests(request: Request) -> Contents:
    """The bits of the request's tensors, each tensor as a short digest."""
    values = (getattr(request, name) for name in _FIELDS[type(request)])
    tensors = [value.detach().cpu().contiguous() for value in values if hasattr(value, "detach")]
    return tuple([hashlib.sha256(tensor.numpy().data).digest() for tensor in tensors])
