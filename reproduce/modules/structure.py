"""The structure of a user's module, which decides whether a graph may take its place; no trial can show it.

A graph computes layers of torch in an order that does not change. So classes may have a constructor and a forward pass
only, which assigns nothing and calls layers and a few functions. Nothing may be hooked, replaced or shared, and the
constructor may draw nothing but numbers for tensors.
"""

import dis
import types
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from reproduce.modules.translate import FUNCTIONS, NAMES

CALLED = {*FUNCTIONS, "dropout", "relu_", "add", "size", "shape", "dim", "len", "range", "enumerate", "zip", "int"}
"""Names that a forward pass may call besides layers."""
STORES = ("STORE_ATTR", "STORE_SUBSCR", "STORE_GLOBAL")
ODD = (*STORES, "DELETE", "IMPORT", "BEFORE_WITH", "SETUP", "MAKE_FUNCTION", "YIELD")
"""Instructions that it may not have: assignments to anything but its own variables, contexts, functions within."""


def obstacle(module: nn.Module) -> str:
    """The obstacle to a graph in its place, in a phrase; "" if nothing does."""
    return next(_obstacles(module), "")


def _obstacles(module: nn.Module) -> Iterator[str]:
    places = [vars(m) for m in (nn.modules.module, *module.modules())]
    if any(value for place in places for n, value in place.items() if n.endswith("hooks") and isinstance(value, dict)):
        yield "it has hooks"
    for name, m in module.named_modules():
        kind, of = type(m), f"{name or 'it'} ({type(m).__name__})"
        if replaced := [n for n in vars(m) if n == "parametrizations" or callable(getattr(kind, n, None))]:
            yield f"{of} has a {replaced[0]} of its own"
        for cls in kind.__mro__[: kind.__mro__.index(nn.Module)]:
            if not cls.__module__.startswith(("torch.nn.modules.", "torchvision.")):
                own = {n: v for n, v in vars(cls).items() if callable(v) or isinstance(v, property | classmethod)}
                yield from (f"{of} has a {n} of its own" for n in own if n not in ("__init__", "forward"))
                if "forward" in own and (line := _odd(m, own["forward"])):
                    yield f"the forward pass of {of} has {line}"
    known: dict[int, int] = {}
    for name, t in [*module.named_parameters(), *module.named_buffers()]:
        if t._backward_hooks or getattr(t, "_post_accumulate_grad_hooks", None):
            yield f"{name} has hooks"
        if type(t) not in (nn.Parameter, torch.Tensor) or known.setdefault(t.untyped_storage().data_ptr(), id(t)) != id(
            t
        ):
            yield f"{name} shares its memory, or is no plain tensor"


def _odd(m: nn.Module, forward: Any) -> str:
    """The first odd instruction or name of a forward pass; "" if nothing is."""
    code: Any = getattr(forward, "__code__", None)
    if not isinstance(forward, types.FunctionType) or code.co_freevars or forward.__defaults__ or code.co_flags & 0x2C:
        return "a wrapper or defaults"
    odd = [i.opname for i in dis.get_instructions(code) if i.opname.startswith(ODD)]
    return next(iter(odd + [n for n in code.co_names if not _plain(m, n, forward.__globals__.get(n))]), "")


def _plain(m: nn.Module, name: str, value: Any) -> bool:
    """Returns whether a name stands for a layer, a number, or a function with an operator."""
    if value is not None:
        return value in (torch, nn, nn.functional) or (callable(value) and value in NAMES)
    values = (getattr(inner, name, None) for inner in m.modules())
    return name in CALLED or name == "functional" or any(isinstance(v, nn.Module | bool | int | float) for v in values)


def built(module: nn.Module) -> list[Any]:
    """The work of a constructor besides tensors: layers by name, their kinds and their numbers."""
    plain = bool | int | float | str | tuple
    return [
        (name, type(m), {n: v for n, v in vars(m).items() if isinstance(v, plain)})
        for name, m in module.named_modules()
    ]
