"""What a user's algorithm asks for and leaves, checked before compiled code trusts it."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from reproduce.engine.requests import Evaluate, Gradient, Train
from reproduce.errors import OwnCodeError

if TYPE_CHECKING:
    from torch import Tensor

    from reproduce.engine.task import Task

PER_CLIENT = ("steps", "offset", "round", "lr")
"""Fields of `Train` that have one number for each client; the last two may have one for all."""
MODELS = {Train: ("start", "correction", "anchor", "previous", "teacher"), Gradient: ("x",), Evaluate: ("x",)}
"""Fields that hold models [P] or several of them [C, P]."""


def check(task: Task, request: Any, distinct: bool = False) -> None:
    """Raises OwnCodeError for a request whose tensors and arrays are not what its type says: compiled code trusts them.

    Contents are not read: a step size that is not finite ends in a recorded divergence. distinct: may no client occur
    twice, as in a round?
    """
    if type(request) not in MODELS:
        raise OwnCodeError(f"a hook asks for {type(request).__name__}, which is no Train, Gradient or Evaluate")
    what, model = type(request).__name__, request.model
    count = task.parameters if model is None else sum(map(prod, model.shapes.values()))
    clients = None if isinstance(request, Evaluate) else _clients(task, request, what)
    for name in MODELS[type(request)]:
        if (value := getattr(request, name)) is not None:
            _models(task, value, count, clients, f"`{name}` of {what}")
    if isinstance(request, Evaluate) and request.view not in ("test", "train"):
        try:
            task.problem.check_view(request.view)
        except (ValueError, TypeError) as error:
            raise OwnCodeError(str(error)) from error
    if not isinstance(request, Train):
        return
    for name in PER_CLIENT:
        value = getattr(request, name)
        if name == "round" and isinstance(value, int | np.integer) and 0 <= value < 2**32:
            continue
        if (name == "lr" and np.ndim(value) == 0) or (name == "offset" and value is None):
            continue
        kinds = "iuf" if name == "lr" else "iu"
        if not isinstance(value, np.ndarray) or value.shape != request.clients.shape or value.dtype.kind not in kinds:
            raise OwnCodeError(f"`{name}` of {what} has one number for each client, [{clients}], not {_said(value)}")
    for name in ("steps", "offset"):
        if (value := getattr(request, name)) is not None and (value < 0).any():
            raise OwnCodeError(f"`{name}` of {what} are negative for some client")
    if distinct and len(np.unique(request.clients)) < len(request.clients):
        raise OwnCodeError(f"`clients` of {what} has a client twice; those of a round are distinct, with weights")
    if request.weights is not None:
        _tensor(task, request.weights, f"`weights` of {what}, which `reduction` gives,")
        if request.weights.dim() != 2 or request.weights.shape[1] != clients:
            said = _said(request.weights)
            raise OwnCodeError(f"`weights` of {what}, which `reduction` gives, are [M, {clients}] or None, not {said}")
    if request.thresholds is not None:
        _tensor(task, request.thresholds, f"`thresholds` of {what}")
        if request.thresholds.shape != (shape := (clients, len(task.blocks))):
            raise OwnCodeError(f"`thresholds` of {what} are {list(shape)}, not {_said(request.thresholds)}")


def checked_cohort(cohort: Any, *_: Any) -> Any:
    """Who takes part, as `choose` gives it. Raises OwnCodeError for what is none."""
    ids, weight = getattr(cohort, "ids", None), getattr(cohort, "weight", None)
    if ids is None or weight is None:
        raise OwnCodeError(f"`choose` gives Participants, not {type(cohort).__name__}")
    if np.shape(weight) != np.shape(ids):
        raise OwnCodeError(f"`choose` gives {np.shape(ids)} clients and {np.shape(weight)} weights: one for each")
    return cohort


def checked_weights(weights: Any, cohort: Any) -> Any:
    """The weights [C] that `message_weights` gives. Raises OwnCodeError for another number of them."""
    if np.shape(weights) != np.shape(cohort.ids):
        raise OwnCodeError(f"`message_weights` gives {np.shape(weights)} for {np.shape(cohort.ids)} clients")
    return weights


def checked_model(task: Task, x: Any) -> Tensor:
    """The model [P] that a server step leaves, as one block. Raises OwnCodeError for anything else."""
    _tensor(task, x, "the model that the server step leaves")
    if x.shape != (task.parameters,):
        raise OwnCodeError(f"the model that the server step leaves has shape {_said(x)}, not [{task.parameters}]")
    return x.contiguous()


def _clients(task: Task, request: Train | Gradient, what: str) -> int:
    """How many clients a request has."""
    ids = request.clients
    if not isinstance(ids, np.ndarray) or ids.ndim != 1 or ids.dtype.kind not in "iu" or not len(ids):
        raise OwnCodeError(f"`clients` of {what} are whole numbers in an array [C], not {_said(ids)}")
    if ids.min() < 0 or ids.max() >= task.clients:
        raise OwnCodeError(f"`clients` of {what} lie in 0 .. {task.clients - 1}, not in {ids.min()} .. {ids.max()}")
    return len(ids)


def _models(task: Task, value: Any, parameters: int, clients: int | None, what: str) -> None:
    _tensor(task, value, what)
    rows = (clients, parameters)
    if clients is None:
        fits = value.dim() == 2 and value.shape[1] == parameters and len(value)
    else:
        fits = value.shape == (parameters,) or (value.shape == rows and not what.startswith(("`teacher`", "`x`")))
    if not fits:
        raise OwnCodeError(f"{what} has shape {_said(value)}, and the model has {parameters} numbers")


def _tensor(task: Task, value: Any, what: str) -> None:
    if not isinstance(value, torch.Tensor):
        raise OwnCodeError(f"{what} is a {type(value).__name__}, not a tensor")
    if value.dtype != task.dtype or value.device.type != task.device.type or value.requires_grad:
        wrong = "has gradients (detach it)" if value.requires_grad else f"is {value.dtype} on {value.device}"
        raise OwnCodeError(f"{what} {wrong}; here models are {task.dtype} on {task.device}")


def _said(value: Any) -> str:
    """The shape of a tensor or an array, the type of anything else."""
    return str(list(value.shape)) if hasattr(value, "shape") else type(value).__name__
