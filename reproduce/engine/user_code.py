"""A user's own algorithm: its process, and checks of its requests, before compiled code trusts them.

Its run has a process of its own (`Scheduler`, `declare.isolation`), where global generators start from the run's seed.
"""

import dataclasses
import math
from collections.abc import Generator, Sequence
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor

from reproduce.declare.isolation import Tell, forked, settings_kept, sources
from reproduce.engine.client_split import ClientSplit
from reproduce.engine.layout import layout_of
from reproduce.engine.requests import Evaluate, Gradient, Train, listed
from reproduce.engine.trainer import Trainer
from reproduce.errors import OwnCodeError
from reproduce.settings import settings
from reproduce.streams import globally

Play = Generator[Any, Any, None]
State = dict[str, Any]


def run_isolated(scheduler: Any, own: Sequence[int], names: Sequence[str]) -> None:
    """Runs of a user's own code, each in its own process; of their states the entries `names` come back.

    On a GPU, where they share this process, a repetition in another order (`play.match`) shows whether they are
    independent.
    """
    runs, trainer, whole = scheduler.runs, scheduler.trainer, settings().reuse
    threads = max(1, trainer.threads // max(1, len(own)))

    def play(i: int, tell: Tell) -> tuple[Any, ...]:
        run = runs[i]
        inner = Trainer(threads, trainer.forced, trainer.arithmetic)  # the first: one thread for OpenMP

        def tick() -> None:  # a state from which the run may go on, and of which files; or how far it is
            tell((dict(run.state), sources()) if whole else ({"round": run.state["round"]}, {}))

        single = type(scheduler)([run], inner, tick)
        single.enough = scheduler.enough
        with globally("run", run.seed), settings_kept():
            single.run_together([0])
        inner.close()
        kept = {name: run.state[name] for name in names if name in run.state}
        return (kept, sources()), single.cpu[0], single.shared, dict(single.seconds), inner.used

    def received(i: int, message: tuple[State, dict[str, str]]) -> None:
        runs[own[i]].state.update(message[0])
        scheduler.sources |= message[1]

    outcomes = forked([partial(play, i) for i in own], trainer.threads, received, scheduler.tick or (lambda: None))
    for k, (message, scheduler.cpu[own[k]], shared, seconds, used) in enumerate(outcomes):
        received(k, message)
        trainer.used |= used
        for ours, theirs in ((scheduler.shared, shared), (scheduler.seconds, seconds)):
            for name, value in theirs.items():
                ours[name] += value


def checked(split: ClientSplit, play: Play) -> Play:
    """The requests of a run, of which each is checked."""
    answer = None
    while True:
        try:
            request = play.send(answer)
        except StopIteration:
            return
        for each in listed(request):
            check(split, each)
        answer = yield request


def check(split: ClientSplit, request: Any) -> None:
    """Raises OwnCodeError unless tensors and arrays are of the types and shapes that the request's class says.

    Contents of tensors are not read: what is not finite ends in a recorded divergence.
    """
    if not isinstance(request, Train | Gradient | Evaluate):
        raise OwnCodeError(f"it asks for {_short(request)}, which is no Train, Gradient or Evaluate")
    if isinstance(request, Evaluate) and request.view not in ("test", "train"):
        split.problem.check_view(request.view)
    p = split.parameters if request.model is None else layout_of(request.model).total
    c = None if isinstance(request, Evaluate) else np.size(request.clients)
    rows, one = [(p,), (c, p)], [(p,)]
    models: dict[str, Any] = {"start": rows, "correction": rows, "anchor": rows, "previous": rows, "teacher": one}
    models |= {"x": [(c, p)] if isinstance(request, Evaluate) else one}
    models |= {"weights": [(None, c)], "thresholds": [(c, len(split.blocks))]}
    numbers = {"clients": split.clients, "steps": 2**32, "offset": 2**32, "round": 2**32, "lr": math.inf}
    for f in dataclasses.fields(request):
        value, what = getattr(request, f.name), f"`{f.name}` of {type(request).__name__}"
        if value is None and f.default is None:
            continue
        if f.name in numbers:
            _check_numbers(value, what, c, numbers[f.name], single=f.name in ("round", "lr"), whole=f.name != "lr")
        elif f.name in models:
            _check_tensor(split, value, what, *models[f.name])
            setattr(request, f.name, value.contiguous())


def _check_numbers(value: Any, what: str, count: int | None, end: float, single: bool, whole: bool) -> None:
    """Numbers [C] from 0 to below `end`, or one of them where a `single` one will do."""
    array, shape = (np.asarray(value), ()) if single and np.ndim(value) == 0 else (value, (count,))
    fits = isinstance(array, np.ndarray) and array.shape == shape and array.size
    if not fits or array.dtype.kind not in ("iu" if whole else "iuf"):
        raise OwnCodeError(f"{what} are {'whole ' * whole}numbers in an array [{count}], not {_short(value)}")
    if whole and (array.min() < 0 or array.max() >= end):
        raise OwnCodeError(f"{what} lie in 0 .. {end - 1}, not in {array.min()} .. {array.max()}")


def _check_tensor(split: ClientSplit, value: Any, what: str, *shapes: tuple[int | None, ...]) -> None:
    """A tensor of the split's type in one of these shapes, in which None is any number but 0."""
    if not isinstance(value, Tensor):
        raise OwnCodeError(f"{what} is a {type(value).__name__}, not a tensor")
    if value.dtype != split.dtype or value.device.type != split.device.type or value.requires_grad:
        wrong = "has gradients (detach it)" if value.requires_grad else f"is {value.dtype} on {value.device}"
        raise OwnCodeError(f"{what} {wrong}; here models are {split.dtype} on {split.device}")
    for shape in shapes:
        if len(shape) == value.dim() and all(n == (m or max(n, 1)) for n, m in zip(value.shape, shape, strict=True)):
            return
    wanted = " or ".join(f"[{', '.join('M' if n is None else str(n) for n in shape)}]" for shape in shapes)
    raise OwnCodeError(f"{what} has shape {list(value.shape)}, not {wanted}")


def _short(value: Any) -> str:
    text = f"{value.dtype} {list(value.shape)}" if hasattr(value, "dtype") else f"{type(value).__name__} {value!r}"
    return text if len(text) <= 60 else f"{text[:57]}..."
