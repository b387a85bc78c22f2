"""An algorithm of a user's own in a run: the same bits, whatever else is trained and after a crash, or an error.

The algorithms of this package are functions of the run's state, and tests hold them to it. One that a user brings may

- draw from the global generators of torch, NumPy and `random`: each of its steps finds them seeded by what it decides
  (run seed, round, hook, turn), and leaves them, and the libraries' settings, as they were;
- change in place what a clock remembers or other runs share: it works on copies, and what it can reach of the data, of
  the clock's entries in the state and of the history is compared before and after every hook;
- remember something outside the run's state, on its object, its class or its module, which other seeds would see and a
  resumption would not: what it can reach is compared likewise, and a change is an error; caches of functions and
  properties are emptied before every step;
- change the state before the last request of a round, which a resumption would do twice: an error too.

What is not seen here, the time or a generator without a seed, is seen when its first rounds are trained once more
(`play.match`).
"""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from types import ModuleType
from typing import Any

import numpy as np
from torch import Tensor

from reproduce.declare import inputs
from reproduce.declare.experiment import Experiment, own_files
from reproduce.engine import surroundings, traces
from reproduce.engine.asked import check, checked_hooks, checked_metrics, checked_model, checked_models, short
from reproduce.engine.kept import State, appended, contents, of_clock, rows, unkept
from reproduce.engine.requests import listed
from reproduce.engine.task import Env
from reproduce.errors import OwnCodeError
from reproduce.streams import globally

DATA = ("train_x", "train_y", "test_x", "test_y", "e", "h", "optimum")
"""The tensors of an arena that all runs share."""
Play = Generator[Any, Any, None]


class Loaded:
    """The modules that are loaded, by file. A process has thousands, and every hook asks: they are looked through only
    where `sys.modules` is another."""

    def __init__(self) -> None:
        self._seen, self._files = list[tuple[str, ModuleType]](), dict[str, list[tuple[str, ModuleType]]]()

    def by_file(self) -> Mapping[str, Sequence[tuple[str, ModuleType]]]:
        if (now := list(sys.modules.items())) != self._seen:
            self._seen, self._files = now, {}
            for name, module in now:  # no attribute is asked for: some modules load more to answer
                file = getattr(module, "__dict__", {}).get("__file__")
                self._files.setdefault(str(file), []).append((name, module))
        return self._files


LOADED = Loaded()


def guarded(experiment: Experiment, seed: int) -> Any:
    """The algorithm of a run: as it is declared, or in an `Own` if a user's class is in it."""
    theirs = own_files(experiment)
    return Own(experiment, seed, {str(file) for file in theirs}) if theirs else experiment.algorithm


class Own:
    """A run's own copy of an algorithm, which clocks use in its place. files: those of the user's code."""

    def __init__(self, experiment: Experiment, seed: int, files: set[str]) -> None:
        self._algorithm, self._seed, self._files = deepcopy(experiment.algorithm), seed, files
        self._clocks = {"status", "round", "done", *experiment.clock.memory}
        self._hooks = checked_hooks(getattr(self._algorithm, "algorithm", self._algorithm))  # of one in parts
        self._loaded = self._modules()
        self._known, self._data = self._traces(self._loaded), dict[str, Any]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._algorithm, name)

    # --- hooks --------------------------------------------------------------------------------------------------------

    def setup(self, env: Env, state: State) -> None:
        state["x"] = state["x"].clone()
        self._called("setup", env, state, env, state)

    def fingerprinted(self, state: State, scratch: State) -> None:
        self._called("fingerprinted", None, state, state, scratch)

    def norms(self, steps: Any, lr: float) -> Any:
        return self._called("norms", None, {}, steps, lr)

    def round(self, env: Env, state: State, now: Any) -> Play:
        state["x"] = state["x"].clone()
        return self._played("round", env, state, self._algorithm.round(env, state, _copied(now)))

    def aggregation(self, env: Env, state: State, arrivals: Any) -> Play:
        state["x"] = state["x"].clone()
        return self._played("aggregation", env, state, self._algorithm.aggregation(env, state, _copied(arrivals)))

    def models(self, env: Env, state: State) -> Mapping[str, Any]:
        before = contents(state)
        found = self._called("models", env, state, env, state)
        self._unchanged(before, state, "models")
        return checked_models(env.task, found)

    def metrics(self, env: Env, state: State, answers: Mapping[str, Any]) -> list[tuple[str, str, float]]:
        found = self._called("metrics", env, state, env, state, answers, whole=True)
        return checked_metrics(found, all(np.isfinite(v).all() for a in answers.values() for v in a.metrics.values()))

    # --- around them --------------------------------------------------------------------------------------------------

    def _called(self, hook: str, env: Env | None, state: State, *arguments: Any, whole: bool = False) -> Any:
        with self._watched(hook, env, state, whole), self._keyed(hook, state, 0):
            found = getattr(self._algorithm, hook)(*arguments)
            return list(found) if isinstance(found, Iterator) else found

    def _played(self, hook: str, env: Env, state: State, play: Play) -> Play:
        if not hasattr(play, "send"):
            raise OwnCodeError(f"`{hook}` is a generator of requests, not {short(play)}")
        with self._watched(hook, env, state):
            before, answer = contents(state), None
            for turn in itertools.count():
                try:
                    with self._keyed(hook, state, turn):
                        request = play.send(answer)
                except StopIteration:
                    break
                self._unchanged(before, state, hook)
                for asked in listed(request):
                    check(env.task, asked, distinct=hook == "round")
                answer = yield request
        state["x"] = checked_model(env.task, state["x"])

    @contextmanager
    def _watched(self, hook: str, env: Env | None, state: State, whole: bool = False) -> Iterator[None]:
        """Raises OwnCodeError for what a hook leaves otherwise than it may; whole: look at all numbers of the data."""
        self._look(env)
        clocks, history = of_clock(state, self._clocks), rows(state.get("history", []))
        yield
        after = of_clock(state, self._clocks)
        if changed := sorted(name for name in clocks.keys() | after if clocks.get(name) != after.get(name)):
            raise OwnCodeError(f'`{hook}` changes state["{changed[0]}"], which is the clock\'s: use another name')
        if state and not appended(history, state.get("history", [])):
            raise OwnCodeError(f"`{hook}` changes the history, to which rows may be added only")
        for name in ("x", "work") if state else ():
            if name not in state:
                raise OwnCodeError(f'`{hook}` removes state["{name}"]')
        if wrong := unkept({n: value for n, value in state.items() if n not in {"history", *self._clocks}}):
            raise OwnCodeError(wrong)
        self._look(env, whole)

    @contextmanager
    def _keyed(self, hook: str, state: State, turn: int) -> Iterator[None]:
        """Global generators seeded by what is decided, caches empty, settings as they were; notes what is read."""
        traces.clear(self._algorithm, self._modules())
        key = "hook", hook, self._seed, state.get("round", 0), state.get("opened", 0) + 1, turn
        with surroundings.kept(), globally(*key), inputs.watched(self._files):
            yield

    def _unchanged(self, before: str, state: State, hook: str) -> None:
        if contents(state) != before:
            raise OwnCodeError(
                f"`{hook}` changes the state before its last request, which a resumption would do twice: only "
                "`aggregate`, after training, may change it"
            )

    # --- what it can reach --------------------------------------------------------------------------------------------

    def _modules(self) -> traces.Modules:
        """The user's modules that are loaded now."""
        loaded = LOADED.by_file()
        return {name: module for file in self._files for name, module in loaded.get(file, ())}

    def _traces(self, modules: traces.Modules) -> dict[str, str]:
        """A digest of each thing that the code can remember by: fields of its object, names of its modules."""
        mine = {n: v for n, v in vars(self._algorithm).items() if n not in self._hooks}
        mine = {n: v for n, v in mine.items() if not traces.cached(self._algorithm, n)}
        found = {f"its own `{name}`": traces.digest(value, modules) for name, value in mine.items()}
        for module in modules.values():
            found |= traces.of_module(module, modules)
        return found

    def _look(self, env: Env | None = None, whole: bool = False) -> None:
        """Raises OwnCodeError if something outside the state is not what it was; whole: of data all numbers."""
        modules = self._modules()
        now = self._traces(modules)
        for name in modules.keys() - self._loaded.keys():  # of what it has loaded since, from here on
            self._known |= traces.of_module(modules[name], modules)
        self._loaded = modules
        changed = sorted(name for name in self._known.keys() | now if self._known.get(name) != now.get(name))
        shared = {} if env is None else _shared(env, whole)
        changed += [name for name, value in shared.items() if self._data.setdefault(name, value) != value]
        if changed:
            raise OwnCodeError(
                f"it changes {' and '.join(changed)}, so that its numbers would depend on the other runs and on a "
                'resumption: what it remembers belongs into the state, `state["name"] = ...` in `setup`'
            )


def _shared(env: Env, whole: bool) -> dict[str, Any]:
    """What runs share that a hook can reach through `env`, by name."""
    task, arena = env.task, env.task.arena
    found: dict[str, Any] = {
        f"attributes of {kind}": sorted(n for n in vars(owner) if not traces.cached(owner, n))
        for kind, owner in (("env", env), ("env.task", task), ("env.task.arena", arena))
    }
    arrays = [task.weights, task.samples, *getattr(task, "indices", ())]
    found["env.task's weights, samples or indices"] = [traces.crc(a) for a in arrays]
    for name in DATA:
        if isinstance(value := getattr(arena, name, None), Tensor):
            found[f"env.task.arena.{name}"] = id(value), value._version
            if whole:
                found[f"numbers of env.task.arena.{name}"] = traces.crc(value)
    return found


def _copied(record: Any) -> Any:
    """The record with arrays and tensors of its own."""
    values = {f.name: getattr(record, f.name) for f in dataclasses.fields(record)}
    own = {n: deepcopy(v) for n, v in values.items() if isinstance(v, np.ndarray | Tensor)}
    return dataclasses.replace(record, **own)
