"""What an algorithm of a user's own gives back, checked where clocks call it, before compiled code trusts it.

Its run has a process of its own (`Scheduler`, `declare.apart`); there its global generators start from the run's seed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import numpy as np
from torch import Tensor

from reproduce.declare.apart import settings_kept
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClientSplit, Env
from reproduce.engine.layout import layout_of
from reproduce.engine.requests import Evaluate, Gradient, Train, listed
from reproduce.errors import OwnCodeError

Play = Generator[Any, Any, None]
State = dict[str, Any]


class Own:
    """A run's own copy of an algorithm, which clocks use in its place. Raises OwnCodeError for what hooks may not
    give or change; the settings of libraries are put back after each."""

    def __init__(self, experiment: Experiment) -> None:
        self._algorithm = deepcopy(experiment.algorithm)
        self._clocks = ("status", "round", "done", *experiment.clock.memory)
        self._fit("choose", lambda given, now, probe=None: (given.weight, given.ids))
        self._fit("message_weights", lambda given, now, cohort: (given, cohort.ids))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._algorithm, name)

    def _fit(self, hook: str, pair: Callable[..., tuple[Any, Any]]) -> None:
        """Let weights that a hook gives be looked at: one for each client."""
        algorithm = getattr(self._algorithm, "algorithm", self._algorithm)  # of one in parts
        ask = getattr(algorithm, hook)

        def asked(env: Env, *others: Any, **named: Any) -> Any:
            given = ask(env, *others, **named)
            weights, clients = pair(given, *others, **named)
            if np.shape(weights) != np.shape(clients):
                said = f"{np.shape(weights)} weights for {np.shape(clients)} clients"
                raise OwnCodeError(f"`{hook}` gives {said}: one for each")
            return given

        object.__setattr__(algorithm, hook, asked)

    def setup(self, env: Env, state: State) -> None:
        with self._looked_at("setup", env, state):
            self._algorithm.setup(env, state)

    def fingerprinted(self, state: State, scratch: State) -> None:
        with settings_kept():
            self._algorithm.fingerprinted(state, scratch)

    def norms(self, steps: Any, lr: float) -> Any:
        with settings_kept():
            found = self._algorithm.norms(steps, lr)
        if np.shape(found) != np.shape(steps):
            raise OwnCodeError(f"`norms` gives {_shape(found)} for the steps {_shape(steps)}: one for each client")
        return found

    def round(self, env: Env, state: State, now: Any) -> Play:
        return self._played("round", env, state, now)

    def aggregation(self, env: Env, state: State, arrivals: Any) -> Play:
        return self._played("aggregation", env, state, arrivals)

    def _played(self, hook: str, env: Env, state: State, record: Any) -> Play:
        values = {f.name: getattr(record, f.name) for f in dataclasses.fields(record)}
        arrays = {n: deepcopy(v) for n, v in values.items() if isinstance(v, np.ndarray | Tensor)}
        state["x"] = state["x"].clone()  # a clock may remember the model that it was
        play, answer = getattr(self._algorithm, hook)(env, state, dataclasses.replace(record, **arrays)), None
        if not hasattr(play, "send"):
            raise OwnCodeError(f"`{hook}` is a generator of requests, not {_short(play)}")
        while True:
            with self._looked_at(hook, env, state):
                try:
                    request = play.send(answer)
                except StopIteration:
                    return
            for asked in listed(request):
                check(env.split, asked, distinct=hook == "round")
            answer = yield request

    def models(self, env: Env, state: State) -> Mapping[str, Any]:
        before = state["x"].clone()
        with self._looked_at("models", env, state):
            found = self._algorithm.models(env, state)
        if not before.equal(state["x"]):
            raise OwnCodeError("`models` changes the model, which is to be evaluated only")
        if not isinstance(found, Mapping) or not found or not all(isinstance(key, str) for key in found):
            raise OwnCodeError(f"`models` gives a mapping from words to models [P], not {_short(found)}")
        for x in found.values():
            if not isinstance(x, Evaluate) and not (isinstance(x, Tensor) and x.dim() == 1):
                raise OwnCodeError("`models` gives a vector [P], or an `Evaluate`, for each key")
            check(env.split, x if isinstance(x, Evaluate) else Evaluate(x[None]))
        return found

    def metrics(self, env: Env, state: State, answers: Mapping[str, Any]) -> list[tuple[str, str, float]]:
        with self._looked_at("metrics", env, state):
            found = list(self._algorithm.metrics(env, state, answers))
        finite = all(np.isfinite(values).all() for a in answers.values() for values in a.metrics.values())
        for row in found:
            if not isinstance(row, tuple) or [*map(type, row[:2])] != [str, str] or len(row) != 3:
                raise OwnCodeError(f"`metrics` gives (metric, key, value) with two words first, not {_short(row)}")
            if finite and not math.isfinite(row[2]):
                raise OwnCodeError(f"`metrics` gives {row[2]} for {row[0]}, though what the models say is finite")
        if not found or len({row[:2] for row in found}) < len(found):
            raise OwnCodeError("`metrics` gives nothing" if not found else "`metrics` gives a metric and key twice")
        return found

    @contextmanager
    def _looked_at(self, hook: str, env: Env, state: State) -> Iterator[None]:
        """Around a hook: it leaves a model [P], and the clock's entries and the rows of the history as they are."""
        clocks, history = {n: state[n] for n in self._clocks if n in state}, list(state["history"])
        with settings_kept():
            yield
        for name in self._clocks:
            if state.get(name) is not clocks.get(name):
                raise OwnCodeError(f'`{hook}` changes state["{name}"], which is the clock\'s: use another name')
        if state["history"][: len(history)] != history:
            raise OwnCodeError(f"`{hook}` changes the history, to which rows may be added only")
        _tensor(env.split, state.get("x"), f"the model that `{hook}` leaves", (env.split.parameters,))
        state["x"] = state["x"].contiguous()


MODELS = {Train: ("start", "correction", "anchor", "previous", "teacher"), Gradient: ("x",), Evaluate: ("x",)}
"""Fields that hold models [P] or several of them [C, P]."""


def check(split: ClientSplit, request: Any, distinct: bool = False) -> None:
    """Are tensors and arrays what the request's type says? Contents are not read: a step size that is not finite ends
    in a recorded divergence. distinct: may no client occur twice, as in a round?
    """
    what = type(request).__name__
    if type(request) not in MODELS:
        raise OwnCodeError(f"a hook asks for {what}, which is no Train, Gradient or Evaluate")
    count = split.parameters if request.model is None else layout_of(request.model).total
    clients = 0 if isinstance(request, Evaluate) else _clients(split, request, distinct)
    for name in MODELS[type(request)]:
        if (value := getattr(request, name)) is not None:
            one = [] if isinstance(request, Evaluate) else [(count,)]
            several = [] if name == "teacher" or isinstance(request, Gradient) else [(clients or None, count)]
            _tensor(split, value, f"`{name}` of {what}", *one, *several)
    if isinstance(request, Evaluate) and request.view not in ("test", "train"):
        split.problem.check_view(request.view)
    if not isinstance(request, Train):
        return
    numbers = {"steps": "iu", "offset": "iu", "round": "iu", "lr": "iuf"}
    for name, kinds in numbers.items():
        value = getattr(request, name)
        single = np.ndim(value) == 0 and (name == "lr" or (name == "round" and 0 <= value < 2**32))
        if single or (name == "offset" and value is None):
            continue
        if not isinstance(value, np.ndarray) or value.shape != (clients,) or value.dtype.kind not in kinds:
            kind = "number" if name == "lr" else "whole number"
            raise OwnCodeError(f"`{name}` of Train has one {kind} for each client, [{clients}], not {_typed(value)}")
        if name != "lr" and (value < 0).any():
            raise OwnCodeError(f"`{name}` of Train are negative for some client")
    if request.weights is not None:
        _tensor(split, request.weights, "`weights` of Train, which `reduction` gives,", (None, clients))
    if request.thresholds is not None:
        _tensor(split, request.thresholds, "`thresholds` of Train", (clients, len(split.blocks)))


def _clients(split: ClientSplit, request: Train | Gradient, distinct: bool) -> int:
    """How many clients a request has."""
    ids, name = request.clients, f"`clients` of {type(request).__name__}"
    if not isinstance(ids, np.ndarray) or ids.ndim != 1 or ids.dtype.kind not in "iu" or not len(ids):
        raise OwnCodeError(f"{name} are whole numbers in an array [C], not {_typed(ids)}")
    if ids.min() < 0 or ids.max() >= split.clients:
        raise OwnCodeError(f"{name} lie in 0 .. {split.clients - 1}, not in {ids.min()} .. {ids.max()}")
    if distinct and isinstance(request, Train) and len(np.unique(ids)) < len(ids):
        raise OwnCodeError(f"{name} has a client twice; those of a round are distinct, with weights")
    return len(ids)


def _tensor(split: ClientSplit, value: Any, what: str, *shapes: tuple[int | None, ...]) -> None:
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
    raise OwnCodeError(f"{what} has shape {_shape(value)}, not {wanted}")


def _shape(value: Any) -> str:
    """The shape of a tensor or an array, the type of anything else."""
    return str(list(value.shape)) if hasattr(value, "shape") else type(value).__name__


def _typed(value: Any) -> str:
    return f"{value.dtype} {_shape(value)}" if hasattr(value, "dtype") else _shape(value)


def _short(value: Any) -> str:
    text = f"{type(value).__name__} {value!r}"
    return text if len(text) <= 60 else f"{text[:57]}..."
