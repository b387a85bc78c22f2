"""Names and values of settings in print, and as texts that are equal where values are."""

import importlib
import math
import pkgutil
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from reproduce import algorithms
from reproduce.algorithms.base import FedAvg
from reproduce.declare.experiment import PACKAGE
from reproduce.declare.paper import papers
from reproduce.files import read_yaml

UNITS = (("_pct", " (%)"), ("_percent", " (%)"), ("_seconds", " (s)"), ("_s", " (s)"), ("_gb", " (GB)"))


def pretty(name: object, names: Mapping[str, str] | None = None) -> str:
    """A value of a setting, an algorithm or a metric as it is printed; `names` comes before the common spellings."""
    text = spelled(name) if isinstance(name, float) else str(name)
    if names and text in names:
        return names[text]
    if text in words():
        return words()[text]
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)+", text):
        return text
    for ending, unit in UNITS:
        if text.endswith(ending):
            text = text.removesuffix(ending) + unit
            break
    return text.replace("_", " ")


def heading(column: str, names: Mapping[str, str] | None = None) -> str:
    """The name of a column in print, with a capital if it is a word and not set in `names`."""
    text = pretty(column, names)
    return text[:1].upper() + text[1:] if len(text) > 1 and column not in (names or {}) else text


def registered() -> Iterator[tuple[str, type[FedAvg], Mapping[str, Any]]]:
    """Name, class and the fields that the name stands for: what `FedAvg.names` of a class says, or its name in small
    letters."""
    for module in pkgutil.iter_modules(algorithms.__path__, f"{algorithms.__name__}."):
        for cls in vars(importlib.import_module(module.name)).values():
            if isinstance(cls, type) and issubclass(cls, FedAvg) and cls.__module__ == module.name:
                names = vars(cls).get("names", {cls.__name__.lower(): {}})
                yield from ((name, cls, options) for name, options in names.items())


@cache
def words() -> Mapping[str, str]:
    """Words of settings -> in print: names of classes (fedprox is FedProx), common spellings, those of the papers."""
    spelled = {name: cls.__name__ for name, cls, _ in registered() if name == cls.__name__.lower()}
    spelled |= read_yaml(PACKAGE / "papers/names.yaml")
    for paper in papers().values():
        spelled |= {**paper.names, **{name: s.name for name, s in paper.series.items() if s.name}}
    return spelled


def spelled(value: object) -> str:
    """A value as text; whole floats without decimals, booleans as true and false, "" for no value."""
    if value is None or value != value:  # NaN is the value that differs from itself
        return ""
    text = format(value, ".10g") if isinstance(value, float) else str(value).strip()
    return text.lower() if text in ("True", "False") else text


def canonical(value: object) -> str:
    """One spelling per value, so that 0.3 meets "0.30" and 1 meets "1.0"; "" for no value."""
    text = spelled(value)
    try:
        number = float(text)
    except ValueError:
        return text
    return format(number, ".10g") if math.isfinite(number) else text
