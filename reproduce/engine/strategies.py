"""The ways to compute local training and evaluation, one record each, and the table from which `choose` takes.

Which is fastest, as measured (`python -m benchmarks choice` prints it again, for this machine and for lesser ones):

    quadratic    quadratics: elementwise on all clients at once
    sparse       embeddings: one client at a time, only the rows that its samples name
    kernel       softmax: a compiled loop
    module       a user's own module that has no graph: one client at a time, by the loop that everybody writes
    compiled     chains of layers up to 30 MMAC: compiled, a sample or a channel per vector lane
    stacked      networks up to 3.6 MMAC: stacks of 5 clients, grouped convolutions, channels-last
    sequential   larger networks: one client at a time; at the arithmetic peak already

`kernel` and `compiled` need a CPU and a C compiler; where there is none, the ones below them take over. On CUDA only
the size of a stack is another one (docs/gpu.md: what to measure there).

Nothing here imports torch, because the plan asks for `macs`; the functions are named and looked up when called.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from reproduce.declare.values import MOST
from reproduce.engine.kernels.chain import chain
from reproduce.engine.rule import SGD_TERMS
from reproduce.errors import UserError, unknown
from reproduce.models.model import Model

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from reproduce.engine.local import Rows
    from reproduce.engine.stacking import Chunk, Plans, Slot

STACK = {"cpu": 5, "cuda": 32}
"""Models per stack; never measured on CUDA."""
COMPILED = 30_000_000
"""Multiply-accumulates per sample up to which compiled layers are faster than torch's."""
QUICK = 200_000
"""The same up to which a call costs about as much as a client, so that a chunk has five at least."""
LARGE = 3_600_000
"""The same up to which a stack is faster than one model at a time."""

NEEDED = frozenset({"clients", "steps", "start", "lr", "round", "offset", "weights"})
SGD = SGD_TERMS | {"anchor", "correction"}
DISTILLATION = frozenset({"distill", "teacher"})
CONTRAST = frozenset({"contrast", "temperature", "previous"})
SECOND = frozenset({"second_pass"})
MASKS = frozenset({"mask", "amplify", "thresholds"})
ADAMW = frozenset({"betas"})
PARTS = frozenset({"model", "inner"})


@dataclass(frozen=True)
class Demand:
    """The properties of a piece of work that decide which strategy computes it.

    model: a `Model`, None for a quadratic; fields: of the request and its rule that are in use
    (`requests.used_fields`); sample: shape of one; device: "cpu" or "cuda"; compiled: whether there can be compiled
    code for this type of number.
    """

    model: Any
    fields: frozenset[str] = frozenset()
    sample: tuple[int, ...] = ()
    device: str = "cpu"
    compiled: bool = True


@cache
def macs(model: Model, sample: tuple[int, ...]) -> int:
    """Multiply-accumulates of one forward pass of a sample of this shape."""
    return model.cost(sample).macs


# --- the records ------------------------------------------------------------------------------------------------------


Key = Callable[["Slot"], Hashable]


@dataclass(frozen=True)
class Strategy:
    """One way to compute local training and evaluation.

    code: the function that trains a chunk, "module:name"; called with (chunk, device_data), with the precision if
        it may be "bfloat16".
    serves: the fields of `Train` and `Rule` that it knows; asked for another one it refuses.
    fits: can it compute the network, on the device? best: is it then faster than what follows in the table?
    size: models per chunk of the n slots there are.
    key: by what slots with equally many steps are sorted (None: by nothing); mixed: may a chunk hold several keys?
    single: fields of the request that must be the same for all slots of a chunk, so that requests with one of them stay
        apart.
    ahead: what is drawn for all slots before the first trains. Between two local runs of compiled code that takes four
        times as long, because Python's code has left the caches.
    precisions: reduced precisions that it applies.
    logits: the function that evaluates models, "module:name"; together: models, and samples, that it evaluates at a
        time, from the number of models and the problem's batch for evaluation.
    """

    name: str
    code: str
    serves: frozenset[str]
    fits: Callable[[Demand], bool]
    size: Callable[[Demand, int], int]
    best: Callable[[Demand], bool] = lambda work: True
    key: Callable[[Demand, Plans], Key | None] = lambda work, plans: None
    mixed: bool = True
    single: frozenset[str] = frozenset()
    precisions: frozenset[str] = frozenset()
    ahead: Callable[[Plans, Sequence[Slot]], object] = lambda plans, slots: None
    logits: str = "reproduce.engine.logits:network"
    together: Callable[[int, int], tuple[int, int]] = lambda models, batch: (1, batch)

    def obstacle(self, work: Demand) -> str:
        """The reason why it cannot compute `work`; "" if it can."""
        others = sorted(work.fields - self.serves)
        if others:
            return f"it does not serve {', '.join(others)}"
        what = "a quadratic" if work.model is None else type(work.model).__name__
        fits = self.name == "quadratic" if work.model is None else self.fits(work)
        return "" if fits else f"it does not compute {what} on {work.device}"

    def train(self, chunk: Chunk, device_data: Any, **options: Any) -> Rows:
        """Train a chunk on its data, all of whose slots `choose` gave to this strategy."""
        return _named(self.code)(chunk, device_data, **options)  # type: ignore[no-any-return]

    def forward(self, model: Any, x: Tensor, features: Tensor, where: np.ndarray) -> Tensor:
        """Logits [M, b, classes] of models x [M, P] on the samples `where` [b] of `features`."""
        return _named(self.logits)(model, x, features, where)  # type: ignore[no-any-return]


_named = cache(pkgutil.resolve_name)


_STACKED = Strategy(
    name="stacked",
    code="reproduce.engine.local:autograd_run",
    serves=NEEDED | PARTS | SGD | ADAMW | DISTILLATION | CONTRAST | SECOND | MASKS,
    fits=lambda work: work.model.kind not in ("eager", "module"),
    best=lambda work: macs(work.model, work.sample) <= LARGE,
    size=lambda work, slots: STACK[work.device],
    # Batch statistics forbid padding: only clients with equal batches meet.
    key=lambda work, plans: plans.lengths if work.model.batch_statistics else None,
    mixed=False,
    single=frozenset({"teacher"}),
    precisions=frozenset({"tf32", "bfloat16"}),
    together=lambda models, batch: (8, batch),  # enough to fill the caches of one core
)

TABLE = (
    Strategy(
        name="quadratic",
        code="reproduce.engine.local:quadratic_run",
        serves=NEEDED | SGD,
        fits=lambda work: False,
        size=lambda work, slots: slots,
    ),
    Strategy(
        name="sparse",
        code="reproduce.engine.sparse:sparse_run",
        # Not with an anchor or a correction, which move rows that no sample names.
        serves=NEEDED | {"model"} | SGD - {"anchor", "correction"} | DISTILLATION | CONTRAST,
        fits=lambda work: bool(work.model.embedding),
        size=lambda work, slots: 1,
        precisions=frozenset({"tf32", "bfloat16"}),
    ),
    Strategy(
        name="kernel",
        code="reproduce.engine.kernels.compiled:kernel_run",
        serves=NEEDED | {"model"} | SGD,
        fits=lambda work: work.model.kind == "softmax" and work.device == "cpu" and work.compiled,
        size=lambda work, slots: max(10, min(40, slots // 8)),
        key=lambda work, plans: plans.numbering(),
        ahead=lambda plans, slots: plans.all(slots),
        logits="reproduce.engine.logits:linear",
        together=lambda models, batch: (models, max(batch, 2000)),
    ),
    Strategy(
        name="compiled",
        code="reproduce.engine.kernels.compiled:compiled_run",
        serves=NEEDED | {"model"} | SGD,
        fits=lambda work: work.device == "cpu" and work.compiled and chain(work.model, work.sample) is not None,
        best=lambda work: macs(work.model, work.sample) <= COMPILED,
        size=lambda work, slots: max(5 if macs(work.model, work.sample) <= QUICK else 1, slots // 16),
        ahead=lambda plans, slots: (plans.all(slots), plans.dropout(slots)),
        logits="reproduce.engine.logits:chains",
        together=lambda models, batch: (1, 1000),
    ),
    Strategy(
        name="module",
        code="reproduce.engine.local:module_run",
        serves=NEEDED | SGD | ADAMW | DISTILLATION | CONTRAST | SECOND | MASKS,
        fits=lambda work: work.model.kind == "module",
        size=lambda work, slots: 1,
        precisions=frozenset({"tf32", "bfloat16"}),
        logits="reproduce.engine.logits:module",
        together=lambda models, batch: (1, MOST),
    ),
    _STACKED,
    replace(
        _STACKED,
        name="sequential",
        fits=lambda work: work.model.kind != "module",
        best=lambda work: True,
        size=lambda work, slots: 1,
        key=lambda work, plans: None,
        together=lambda models, batch: (1, batch),
    ),
)
"""Best first: where several can compute something, `choose` takes the first that says it is the best."""

NAMED = {strategy.name: strategy for strategy in TABLE}


# --- the choice -------------------------------------------------------------------------------------------------------


def choose(work: Demand, forced: str = "auto") -> Strategy:
    """The way to compute `work`: the first of `TABLE` that can and is the best, or the one that is `forced`.

    Quadratics have one way. Raises UserError if none can, or if the forced one cannot.
    """
    if forced != "auto" and work.model is not None:
        if reason := NAMED[forced].obstacle(work):
            raise UserError(f"strategy '{forced}' cannot compute this: {reason}")
        return NAMED[forced]
    for strategy in TABLE:
        if not strategy.obstacle(work) and strategy.best(work):
            return strategy
    last = TABLE[0] if work.model is None else NAMED["module" if work.model.kind == "module" else "sequential"]
    raise UserError(f"nothing can compute this: the last resort is '{last.name}', and {last.obstacle(work)}")


def check(name: str) -> str:
    """`name` itself if it is "auto" or a strategy's; UserError otherwise."""
    if name != "auto" and name not in NAMED:
        raise unknown("strategy", name, ("auto", *NAMED))
    return name
