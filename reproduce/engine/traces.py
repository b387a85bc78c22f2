"""What Python code can remember by: a digest of an object and of whatever can be reached from it.

It is the digest of a pickle that nobody reads. pickle knows containers, attributes, slots and cycles; what it would
refuse, or would only name, is said here: a user's classes and functions, generators, tensors, locks.
"""

from __future__ import annotations

import copyreg
import hashlib
import pickle
import types
import zlib
from collections.abc import Mapping
from contextvars import ContextVar
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

Modules = Mapping[str, types.ModuleType]
"""Those whose code is looked into, by name."""
HOLDERS = types.FunctionType | types.BuiltinFunctionType | type | staticmethod | classmethod | property


def digest(value: Any, modules: Modules) -> str:
    """Of what `value` is, whatever can be reached from it included; of others' code and types only the name."""
    told = hashlib.blake2b()
    _Told(modules, told).dump(value)
    return told.hexdigest()


def of_module(module: types.ModuleType, modules: Modules) -> dict[str, str]:
    """Name -> digest of what a module holds."""
    held = {n: v for n, v in list(vars(module).items()) if not (n.startswith("__") and n.endswith("__"))}
    return {f"`{name}` of {module.__name__}.py": digest(value, modules) for name, value in held.items()}


def crc(numbers: Tensor | np.ndarray) -> int | str:
    """A checksum of the numbers of a tensor or an array; of a sparse tensor what it prints."""
    if isinstance(numbers, Tensor):
        if numbers.layout is not torch.strided:
            return repr(numbers)
        numbers = numbers.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
    return zlib.crc32(np.ascontiguousarray(numbers).tobytes()) if numbers.size else 0


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


def _object() -> None:
    """What a pickle here says that an object is made by, whose parts follow."""


class _Told(pickle.Pickler):
    """Objects as (what makes them, arguments, state); the state may lead back to the object."""

    def __init__(self, modules: Modules, told: Any) -> None:
        super().__init__(SimpleNamespace(write=told.update), protocol=5)
        self.modules = modules

    def reducer_override(self, value: Any) -> Any:
        if value is _object:
            return NotImplemented
        parts = self._parts(value)
        return self._reduced(value) if parts is None else (_object, (), (type(value).__qualname__, *parts))

    def _parts(self, value: Any) -> tuple[Any, ...] | None:
        """What makes up an object that pickle does not know as it is meant here; None for one that it knows."""
        if isinstance(value, HOLDERS):  # first, as nearly all are
            return self._code(value)
        if isinstance(value, Tensor):
            grad = value.grad if value.is_leaf else None
            return str(value.dtype), tuple(value.shape), crc(value), grad, dict(getattr(value, "__dict__", {}))
        if isinstance(value, torch.Generator):
            return (value.get_state().numpy().tobytes(),)
        if isinstance(value, types.GeneratorType):
            frame = value.gi_frame
            return (frame.f_lasti, dict(frame.f_locals)) if frame else ("ended",)
        if isinstance(value, types.ModuleType):
            return (value.__name__,)
        if isinstance(value, ContextVar):
            return (value.get(None),)
        return (repr(value),) if type(value).__module__ == "itertools" else None

    def _code(self, value: Any) -> tuple[Any, ...]:
        """Functions and classes: of a user's own all that they hold, of others the name."""
        if isinstance(value, staticmethod | classmethod):
            return (value.__func__,)
        if isinstance(value, property):
            return value.fget, value.fset
        name = f"{value.__module__}.{value.__qualname__}"
        if value.__module__ not in self.modules:
            owner = getattr(value, "__self__", None)
            return name, None if isinstance(owner, types.ModuleType) else owner
        if isinstance(value, type):
            return name, {n: v for n, v in vars(value).items() if not n.startswith("__") or callable(v)}
        cells = [c.cell_contents for c in value.__closure__ or () if _filled(c)]
        return name, value.__code__.co_code, value.__defaults__, value.__kwdefaults__, cells, vars(value)

    def _reduced(self, value: Any) -> Any:
        """What pickle would say, without values of a user's cached properties; of what it refuses the attributes."""
        kind = type(value)
        try:
            known = copyreg.dispatch_table.get(kind)
            found: Any = known(value) if known else value.__reduce_ex__(5)
        except Exception:  # whatever another package's object raises
            return _object, (), (kind.__qualname__, dict(getattr(value, "__dict__", {})))
        if isinstance(found, str):  # the name of a constant
            return _object, (), (kind.__qualname__, found)
        if kind.__module__ in self.modules and len(found) > 2 and isinstance(found[2], dict):
            state = {n: v for n, v in found[2].items() if not cached(value, n)}
            return (*found[:2], state, *found[3:])
        return found


def _filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
