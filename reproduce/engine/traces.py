"""What Python code can remember by: a digest of an object and of whatever can be reached from it."""

from __future__ import annotations

import hashlib
import itertools
import pickle
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

Modules = Mapping[str, types.ModuleType]
"""Those whose code is looked into, by name."""


def digest(value: Any, modules: Modules) -> str:
    """Of what `value` is, whatever can be reached from it included; of others' code and types only the name."""
    told = hashlib.blake2b()
    _tell(value, told.update, modules, {})
    return told.hexdigest()


def of_module(module: types.ModuleType, modules: Modules) -> dict[str, str]:
    """Name -> digest of what a module holds."""
    held = {n: v for n, v in list(vars(module).items()) if not (n.startswith("__") and n.endswith("__"))}
    return {f"`{name}` of {module.__name__}.py": digest(value, modules) for name, value in held.items()}


def cached(owner: Any, name: str) -> bool:
    """Is it the value of a `cached_property`?"""
    return any(isinstance(vars(c).get(name), cached_property) for c in type(owner).__mro__)


def clear(value: Any, modules: Modules) -> None:
    """Empty the caches of an object and of modules: what somebody changed in them is gone, functions say it again."""
    for name in [n for n in vars(value) if cached(value, n)]:
        del vars(value)[name]
    for module in modules.values():
        for held in list(vars(module).values()):
            own = vars(held).values() if isinstance(held, type) and held.__module__ in modules else ()
            for function in (held, *own):
                if hasattr(function, "cache_clear") and hasattr(function, "__wrapped__"):
                    function.cache_clear()


def _tell(value: Any, say: Callable[[bytes], object], modules: Modules, seen: dict[int, tuple[int, Any]]) -> None:
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
    say(text.encode("utf-8", "surrogatepass"))


def _parts(value: Any, modules: Modules) -> Iterator[Any]:
    """What makes up an object: bytes, or other objects."""
    if isinstance(value, Tensor):
        yield from (str((value.dtype, value.shape)).encode(), _numbers(value), value.grad if value.is_leaf else None)
        yield dict(getattr(value, "__dict__", {}))
    elif isinstance(value, torch.Generator):
        yield value.get_state().numpy().tobytes()
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield from (str((value.dtype, value.shape)).encode(), np.ascontiguousarray(value).tobytes())
    elif isinstance(value, set | frozenset):
        yield from sorted(digest(v, modules).encode() for v in value)
    elif isinstance(value, types.ModuleType):
        yield value.__name__.encode()
    elif isinstance(value, type | types.FunctionType | types.MethodType | staticmethod | classmethod | property):
        yield from _code(value, modules)
    elif isinstance(value, partial):
        yield from (value.func, value.args, value.keywords, vars(value))
    elif isinstance(value, types.GeneratorType):
        frame = value.gi_frame
        yield from (str(frame.f_lasti).encode(), dict(frame.f_locals)) if frame else (b"ended",)
    elif type(value).__module__ == "itertools":
        yield repr(value).encode()
    elif isinstance(value, ContextVar):
        yield value.get(None)
    else:
        yield from _instance(value, modules)


def _code(value: Any, modules: Modules) -> Iterator[Any]:
    """Functions and classes: of a user's own all that they hold, of others the name."""
    if isinstance(value, types.MethodType | staticmethod | classmethod):
        yield from (getattr(value, "__self__", None), value.__func__)
    elif isinstance(value, property):
        yield from (value.fget, value.fset)
    else:
        yield value.__qualname__.encode()
        mine = value.__module__ in modules
        if mine and isinstance(value, type):
            yield from (v for n, v in vars(value).items() if not n.startswith("__") or callable(v))
        elif mine:
            cells = [c.cell_contents for c in value.__closure__ or () if _filled(c)]
            yield from (value.__code__.co_code, value.__defaults__, value.__kwdefaults__, cells, vars(value))


def _instance(value: Any, modules: Modules) -> Iterator[Any]:
    """Other objects: what containers hold, attributes and slots, what iterators go on with, else what is pickled."""
    kind, known = type(value), False
    if isinstance(value, Mapping):
        yield from itertools.chain.from_iterable(value.items())
        known = True
    elif isinstance(value, list | tuple | np.ndarray):
        yield from value
        known = True
    if kind.__module__ in modules:
        yield from (
            ((n, v) for n, v in vars(value).items() if not cached(value, n)) if hasattr(value, "__dict__") else ()
        )
        for c in kind.__mro__:
            names = vars(c).get("__slots__", ())
            for name in (names,) if isinstance(names, str) else names:
                private = name.startswith("__") and not name.endswith("__")
                real = f"_{c.__name__.lstrip('_')}{name}" if private else name
                if not real.startswith("__"):
                    yield real, getattr(value, real, None)
    elif not known:
        packed = _pickled(value)
        yield packed or kind.__qualname__.encode()
        if packed is None:
            yield dict(getattr(value, "__dict__", {}))
            if hasattr(value, "__next__"):
                yield from _left(value)


def _left(iterator: Any) -> Iterator[Any]:
    """What an iterator that cannot be pickled as a whole (`map` of a lambda) is made of."""
    try:
        with warnings.catch_warnings(action="ignore"):
            yield from iterator.__reduce__()[1]
    except TypeError:
        return


def _numbers(tensor: Tensor) -> bytes:
    tensor = tensor.detach().cpu()
    if tensor.layout is not torch.strided:
        return repr(tensor).encode()
    return tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


def _filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _pickled(value: Any) -> bytes | None:
    """Another package's object as bytes; None if it cannot be."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return pickle.dumps(value, protocol=5)
    except Exception:  # whatever another package's object raises
        return None
