"""What a user's algorithm asks for and gives back, checked before compiled code trusts it; OwnCodeError otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import numpy as np
from torch import Tensor

from reproduce.engine.layout import layout_of
from reproduce.engine.requests import Evaluate, Gradient, Train
from reproduce.engine.task import Task
from reproduce.errors import OwnCodeError

PER_CLIENT = ("steps", "offset", "round", "lr")
"""Fields of `Train` that have one number for each client; the last two may have one for all."""
MODELS = {Train: ("start", "correction", "anchor", "previous", "teacher"), Gradient: ("x",), Evaluate: ("x",)}
"""Fields that hold models [P] or several of them [C, P]."""


def check(task: Task, request: Any, distinct: bool = False) -> None:
    """Are tensors and arrays what the request's type says? Contents are not read: a step size that is not finite ends
    in a recorded divergence. distinct: may no client occur twice, as in a round?
    """
    if type(request) not in MODELS:
        raise OwnCodeError(f"a hook asks for {type(request).__name__}, which is no Train, Gradient or Evaluate")
    what = type(request).__name__
    count = task.parameters if request.model is None else layout_of(request.model).total
    clients = None if isinstance(request, Evaluate) else _clients(task, request, what)
    for name in MODELS[type(request)]:
        if (value := getattr(request, name)) is not None:
            one = () if clients is None else ((count,),)
            several = () if name in ("teacher", "x") and clients is not None else ((clients, count),)
            _tensor(task, value, f"`{name}` of {what}", (*one, *several), f", and the model has {count} numbers")
    if isinstance(request, Evaluate) and request.view not in ("test", "train"):
        try:
            task.problem.check_view(request.view)
        except (ValueError, TypeError) as error:
            raise OwnCodeError(str(error)) from error
    if not isinstance(request, Train):
        return
    for name in PER_CLIENT:
        _numbers(name, getattr(request, name), request.clients)
    if distinct and len(np.unique(request.clients)) < len(request.clients):
        raise OwnCodeError(f"`clients` of {what} has a client twice; those of a round are distinct, with weights")
    if request.weights is not None:
        name = f"`weights` of {what}, which `reduction` gives, are [M, {clients}] or None: it"
        _tensor(task, request.weights, name, ((None, clients),))
    if request.thresholds is not None:
        _tensor(task, request.thresholds, f"`thresholds` of {what}", ((clients, len(task.blocks)),))


def _clients(task: Task, request: Train | Gradient, what: str) -> int:
    """How many clients a request has."""
    ids = request.clients
    if not isinstance(ids, np.ndarray) or ids.ndim != 1 or ids.dtype.kind not in "iu" or not len(ids):
        raise OwnCodeError(f"`clients` of {what} are whole numbers in an array [C], not {_said(ids)}")
    if ids.min() < 0 or ids.max() >= task.clients:
        raise OwnCodeError(f"`clients` of {what} lie in 0 .. {task.clients - 1}, not in {ids.min()} .. {ids.max()}")
    return len(ids)


def _numbers(name: str, value: Any, clients: np.ndarray) -> None:
    """One of `PER_CLIENT`."""
    if name == "round" and isinstance(value, int | np.integer) and 0 <= value < 2**32:
        return
    if (name == "lr" and np.ndim(value) == 0) or (name == "offset" and value is None):
        return
    kinds = "iuf" if name == "lr" else "iu"
    if not isinstance(value, np.ndarray) or value.shape != clients.shape or value.dtype.kind not in kinds:
        raise OwnCodeError(f"`{name}` of Train has one number for each client, [{len(clients)}], not {_said(value)}")
    if name in ("steps", "offset") and (value < 0).any():
        raise OwnCodeError(f"`{name}` of Train are negative for some client")


def _tensor(task: Task, value: Any, what: str, shapes: tuple[tuple[int | None, ...], ...], more: str = "") -> None:
    """A tensor of the task's type in one of these shapes, in which None is any number but 0."""
    if not isinstance(value, Tensor):
        raise OwnCodeError(f"{what} is a {type(value).__name__}, not a tensor")
    if value.dtype != task.dtype or value.device.type != task.device.type or value.requires_grad:
        wrong = "has gradients (detach it)" if value.requires_grad else f"is {value.dtype} on {value.device}"
        raise OwnCodeError(f"{what} {wrong}; here models are {task.dtype} on {task.device}")
    if not any(
        len(shape) == value.dim() and all(n == m or (m is None and n) for n, m in zip(value.shape, shape, strict=True))
        for shape in shapes
    ):
        wanted = more or f", not {' or '.join(str(list(shape)) for shape in shapes)}"
        raise OwnCodeError(f"{what} has shape {_said(value)}{wanted}")


def checked_model(task: Task, x: Any) -> Tensor:
    """The model [P] that a server step leaves, as one block."""
    _tensor(task, x, "the model that the server step leaves", ((task.parameters,),))
    return x.contiguous()  # type: ignore[no-any-return]


def checked_hooks(algorithm: Any) -> set[str]:
    """Let the answers of an algorithm's `choose` and `message_weights` be checked; their names."""

    def cohort(given: Any, *_: Any) -> None:
        ids, weight = getattr(given, "ids", None), getattr(given, "weight", None)
        if ids is None or weight is None:
            raise OwnCodeError(f"`choose` gives Participants, not {type(given).__name__}")
        if np.shape(weight) != np.shape(ids):
            raise OwnCodeError(f"`choose` gives {np.shape(ids)} clients and {np.shape(weight)} weights: one for each")

    def weights(given: Any, chosen: Any) -> None:
        if np.shape(given) != np.shape(chosen.ids):
            raise OwnCodeError(f"`message_weights` gives {np.shape(given)} for {np.shape(chosen.ids)} clients")

    def looked_at(hook: Callable[..., Any], look: Callable[..., None]) -> Callable[..., Any]:
        @wraps(hook)
        def called(env: Any, now: Any, *rest: Any, **named: Any) -> Any:
            look(given := hook(env, now, *rest, **named), *rest, *named.values())
            return given

        return called

    hooks = {"choose": cohort, "message_weights": weights}
    for name, look in hooks.items():
        object.__setattr__(algorithm, name, looked_at(getattr(algorithm, name), look))
    return set(hooks)


def checked_models(task: Task, found: Any) -> Mapping[str, Any]:
    """What is to be evaluated: key -> model [P], or a request."""
    if not isinstance(found, Mapping) or not found or not all(isinstance(key, str) for key in found):
        raise OwnCodeError(f"`models` gives a mapping from words to models [P], not {short(found)}")
    for x in found.values():
        if not isinstance(x, Evaluate) and not (isinstance(x, Tensor) and x.dim() == 1):
            raise OwnCodeError("`models` gives a vector [P], or an `Evaluate`, for each key")
        check(task, x if isinstance(x, Evaluate) else Evaluate(x[None]))
    return found


def checked_metrics(found: Any, finite: bool) -> list[tuple[str, str, float]]:
    """What is recorded: (metric, key, value), each once; finite: are the models' answers finite?"""
    names = []
    for row in found:
        try:
            metric, key, value = row
            number = float(value)
        except (TypeError, ValueError) as error:
            raise OwnCodeError(f"`metrics` gives (metric, key, value), not {short(row)}") from error
        if not isinstance(metric, str) or not isinstance(key, str):
            raise OwnCodeError(f"`metrics` gives (metric, key, value) with two words first, not {short(row)}")
        if finite and not math.isfinite(number):
            raise OwnCodeError(f"`metrics` gives {number} for {metric}, though what the models say is finite")
        names.append((metric, key))
    if not names or len(set(names)) < len(names):
        raise OwnCodeError("`metrics` gives nothing" if not names else "`metrics` gives a metric and key twice")
    return found  # type: ignore[no-any-return]


def _said(value: Any) -> str:
    """The shape of a tensor or an array, the type of anything else."""
    return str(list(value.shape)) if hasattr(value, "shape") else type(value).__name__


def short(value: Any) -> str:
    text = f"{type(value).__name__} {value!r}"
    return text if len(text) <= 60 else f"{text[:57]}..."
