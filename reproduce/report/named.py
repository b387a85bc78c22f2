"""The algorithms of this package by name: found in `reproduce.algorithms`, where each class says its names itself."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from reproduce import algorithms
from reproduce.algorithms.base import FedAvg


def found() -> Iterator[tuple[str, type[FedAvg], Mapping[str, Any]]]:
    """Name, class and the fields that the name stands for: what `FedAvg.names` of a class says, or its name in small
    letters."""
    for module in pkgutil.iter_modules(algorithms.__path__, f"{algorithms.__name__}."):
        for cls in vars(importlib.import_module(module.name)).values():
            if isinstance(cls, type) and issubclass(cls, FedAvg) and cls.__module__ == module.name:
                names = vars(cls).get("names", {cls.__name__.lower(): {}})
                yield from ((name, cls, options) for name, options in names.items())


@cache
def titles() -> Mapping[str, str]:
    """Names as they are printed, where they are those of classes: fedprox is FedProx."""
    return {name: cls.__name__ for name, cls, _ in found() if name == cls.__name__.lower()}
