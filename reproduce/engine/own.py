"""An algorithm of a user's own in a run: the same bits, whatever else is trained and after a crash, or an error.

The algorithms of this package are functions of the run's state, and tests hold them to it. One that a user brings may

- draw from the global generators of torch, NumPy and `random`: each of its steps finds them seeded by what it decides
  (run seed, round, hook, turn), and leaves them as they were;
- change in place what a clock remembers or other runs share: it works on copies;
- remember something outside the run's state, on its object, its class or its module, which other seeds would see and a
  resumption would not: what it can reach is compared after every step and evaluation, and a change is an error;
- change the state before the last request of a round, which a resumption would do twice: an error too.

What is not seen here, the time or a generator without a seed, is seen when its first rounds are trained once more
(`play.match`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import pickle
import sys
import types
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from reproduce import inputs
from reproduce.engine.asked import check, checked_model
from reproduce.engine.requests import Evaluate, listed
from reproduce.errors import OwnCodeError
from reproduce.experiment import Experiment, own_files
from reproduce.streams import globally

if TYPE_CHECKING:
    from reproduce.engine.requests import Evaluated
    from reproduce.engine.task import Env

State = dict[str, Any]
CONTENTS = (Tensor, np.ndarray, dict, list, tuple, str, int, float, bool, np.generic, type(None))
"""What a state may hold: what a checkpoint can."""


def guarded(experiment: Experiment, seed: int) -> Any:
    """The algorithm of a run: as it is declared, or in an `Own` if a user's class is in it."""
    theirs = own_files(experiment)
    return Own(experiment.algorithm, seed, {str(file) for file in theirs}) if theirs else experiment.algorithm


class Own:
    """A run's own copy of an algorithm, which clocks use in its place. files: those of the user's code."""

    def __init__(self, algorithm: Any, seed: int, files: set[str]) -> None:
        self._algorithm, self._seed = deepcopy(algorithm), seed
        self._files = files
        self._modules = {n: m for n, m in list(sys.modules.items()) if str(getattr(m, "__file__", "")) in files}
        self._known = self._traces()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._algorithm, name)

    # --- hooks --------------------------------------------------------------------------------------------------------

    def setup(self, env: Env, state: State) -> None:
        state["x"] = state["x"].clone()
        self._called("setup", state, self._algorithm.setup, env, state)

    def fingerprinted(self, state: State, scratch: State) -> None:
        self._called("fingerprinted", state, self._algorithm.fingerprinted, state, scratch)

    def norms(self, steps: Any, lr: float) -> Any:
        return self._called("norms", {}, self._algorithm.norms, steps, lr)

    def round(self, env: Env, state: State, now: Any) -> Generator[Any, Any, None]:
        state["x"] = state["x"].clone()
        return self._played("round", env, state, self._algorithm.round(env, state, _copied(now)))

    def aggregation(self, env: Env, state: State, arrivals: Any) -> Generator[Any, Any, None]:
        state["x"] = state["x"].clone()
        return self._played("aggregation", env, state, self._algorithm.aggregation(env, state, _copied(arrivals)))

    def models(self, env: Env, state: State) -> Mapping[str, Any]:
        before = _contents(state)
        found = self._called("models", state, self._algorithm.models, env, state)
        if not isinstance(found, Mapping) or not found:
            raise OwnCodeError(f"`models` gives a mapping from keys to models [P], not {type(found).__name__}")
        self._unchanged(before, state, "models")
        for x in found.values():
            check(env.task, Evaluate(_model(x)[None]) if not isinstance(x, Evaluate) else x)
        return found

    def metrics(self, env: Env, state: State, answers: Mapping[str, Evaluated]) -> list[tuple[str, str, float]]:
        found = self._called("metrics", state, lambda: list(self._algorithm.metrics(env, state, answers)))
        self._pure(state)
        return found

    # --- around them --------------------------------------------------------------------------------------------------

    def _called(self, hook: str, state: State, function: Callable[..., Any], *arguments: Any) -> Any:
        with self._keyed(hook, state, 0):
            return function(*arguments)

    def _played(self, hook: str, env: Env, state: State, play: Generator[Any, Any, None]) -> Generator[Any, Any, None]:
        before, answer = _contents(state), None
        for turn in itertools.count():
            try:
                with self._keyed(hook, state, turn):
                    request = play.send(answer)
            except StopIteration:
                break
            self._unchanged(before, state, hook)
            for asked in listed(request):
                check(env.task, asked)
            answer = yield request
        state["x"] = checked_model(env.task, state["x"])
        self._pure(state)

    @contextmanager
    def _keyed(self, hook: str, state: State, turn: int) -> Iterator[None]:
        """Global generators seeded by what is decided, and as they were afterwards; notes what is read meanwhile."""
        key = "hook", hook, self._seed, state.get("round", 0), state.get("opened", 0) + 1, turn
        with globally(*key), inputs.watched(self._files):
            yield

    def _unchanged(self, before: str, state: State, hook: str) -> None:
        if _contents(state) != before:
            raise OwnCodeError(
                f"`{hook}` changes the state before its last request, which a resumption would do twice: only "
                "`aggregate`, after training, may change it"
            )

    def _pure(self, state: State) -> None:
        """Raises OwnCodeError if something outside the state has changed, or if the state holds what cannot be kept."""
        now = self._traces()
        if changed := sorted(name for name in self._known.keys() | now if self._known.get(name) != now.get(name)):
            raise OwnCodeError(
                f"it changes {' and '.join(changed)}, so that its numbers would depend on the other runs and on a "
                'resumption: what it remembers belongs into the state, `state["name"] = ...` in `setup`'
            )
        for name, value in state.items():
            if wrong := _foreign(value):
                kept = "tensors, arrays, numbers, words, and lists and dicts of them"
                raise OwnCodeError(f'state["{name}"] holds a {wrong}, which no checkpoint can keep: use {kept}')

    def _traces(self) -> dict[str, str]:
        """A digest of all that the code can remember by: fields of its object, names of its modules."""
        found = {}
        for name, value in vars(self._algorithm).items():
            if not _cached(self._algorithm, name):
                found[f"its own `{name}`"] = _digest(value, self._modules)
        for module in self._modules.values():
            for name, value in list(vars(module).items()):
                if not name.startswith("__"):
                    found[f"`{name}` of {module.__name__}.py"] = _digest(value, self._modules)
        return found


def _copied(record: Any) -> Any:
    """The record with arrays and tensors of its own."""
    values = {f.name: getattr(record, f.name) for f in dataclasses.fields(record)}
    return dataclasses.replace(
        record, **{n: deepcopy(v) for n, v in values.items() if isinstance(v, np.ndarray | Tensor)}
    )


def _model(x: Any) -> Tensor:
    if not isinstance(x, Tensor) or x.dim() != 1:
        raise OwnCodeError("`models` gives a vector [P], or an `Evaluate`, for each key")
    return x


def _contents(state: State) -> str:
    """A digest of a state: numbers, and of tensors which they are and how often they were written to."""
    told = hashlib.blake2b()

    def tell(value: Any) -> None:
        if isinstance(value, Tensor):
            told.update(f"{id(value)} {0 if value.is_inference() else value._version}".encode())
        elif isinstance(value, np.ndarray):
            told.update(np.ascontiguousarray(value).tobytes() if value.dtype != object else repr(value).encode())
        elif isinstance(value, dict):
            for key, inner in value.items():
                told.update(repr(key).encode())
                tell(inner)
        elif isinstance(value, list | tuple):
            for inner in value:
                tell(inner)
        else:
            told.update(repr(value).encode())

    tell({name: len(value) if name == "history" else value for name, value in state.items()})
    told.update(state["x"].detach().cpu().contiguous().numpy().tobytes())  # an array of it may be written to
    return told.hexdigest()


def _foreign(value: Any) -> str:
    """The type of what a state cannot hold; "" if there is none."""
    if not isinstance(value, CONTENTS) or (isinstance(value, np.ndarray) and value.dtype.kind not in "biuf"):
        return type(value).__name__
    inner = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return next(filter(None, map(_foreign, inner)), "")


def _cached(owner: Any, name: str) -> bool:
    """Is it the value of a `cached_property`, which follows from the fields?"""
    return any(isinstance(vars(c).get(name), cached_property) for c in type(owner).__mro__)


# --- what code can remember by ----------------------------------------------------------------------------------------


def _digest(value: Any, modules: Mapping[str, types.ModuleType]) -> str:
    told = hashlib.blake2b()
    _tell(value, told.update, modules, {})
    return told.hexdigest()


def _tell(value: Any, say: Callable[[bytes], object], modules: Mapping[str, Any], seen: dict[int, Any]) -> None:
    """Say what `value` is, whatever can be reached from it included; of others' code and types only the name.

    Caches of `functools.cache` and `cached_property` are taken for functions of what they are asked.
    """
    say(f"\0{type(value).__qualname__}\0".encode())
    if value is None or isinstance(value, str | bytes | int | float | complex | np.generic):
        return _say(repr(value), say)
    if id(value) in seen:
        return _say(str(seen[id(value)][0]), say)
    seen[id(value)] = len(seen), value
    for inner in _parts(value, modules):
        if isinstance(inner, bytes):
            say(inner)
        else:
            _tell(inner, say, modules, seen)


def _say(text: str, say: Callable[[bytes], object]) -> None:
    say(text.encode())


def _parts(value: Any, modules: Mapping[str, Any]) -> Iterator[Any]:
    """What makes up an object: bytes, or other objects."""
    mine = getattr(value, "__module__", None) in modules or getattr(type(value), "__module__", None) in modules
    if isinstance(value, Tensor):
        yield from (str((value.dtype, value.shape)).encode(), value.detach().cpu().contiguous().numpy().tobytes())
    elif isinstance(value, torch.Generator):
        yield value.get_state().numpy().tobytes()
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield from (str((value.dtype, value.shape)).encode(), np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Mapping):
        yield from itertools.chain.from_iterable(value.items())
    elif isinstance(value, set | frozenset):
        yield from sorted(_digest(v, modules).encode() for v in value)
    elif isinstance(value, list | tuple | np.ndarray):
        yield from value
    elif isinstance(value, types.ModuleType):
        yield value.__name__.encode()
    elif isinstance(value, type):
        yield value.__qualname__.encode()
        if mine:
            yield from (v for n, v in vars(value).items() if not n.startswith("__") or callable(v))
    elif isinstance(value, types.FunctionType):
        yield value.__qualname__.encode()
        if mine:
            cells = [c.cell_contents for c in value.__closure__ or () if _filled(c)]
            yield from (value.__code__.co_code, value.__defaults__, value.__kwdefaults__, cells, vars(value))
    elif isinstance(value, types.MethodType | staticmethod | classmethod):
        yield from (getattr(value, "__self__", None), value.__func__)
    elif isinstance(value, property):
        yield from (value.fget, value.fset)
    elif isinstance(value, partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, types.GeneratorType):
        frame = value.gi_frame
        yield from (str(frame.f_lasti).encode(), dict(frame.f_locals)) if frame else (b"ended",)
    elif type(value).__module__ == "itertools":
        yield repr(value).encode()
    elif isinstance(value, ContextVar):
        yield value.get(None)
    elif mine and (hasattr(value, "__dict__") or hasattr(value, "__slots__")):
        slots = [s for c in type(value).__mro__ for s in getattr(c, "__slots__", ()) if hasattr(value, s)]
        yield from ((n, v) for n, v in getattr(value, "__dict__", {}).items() if not _cached(value, n))
        yield from ((s, getattr(value, s)) for s in slots if not s.startswith("__"))
        yield from ((value,) if isinstance(value, list | tuple | dict) else ())
    else:
        yield _pickled(value)


def _filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _pickled(value: Any) -> bytes:
    """Another package's object as bytes; only its type if that cannot be."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return pickle.dumps(value, protocol=5)
    except Exception:
        return type(value).__qualname__.encode()
