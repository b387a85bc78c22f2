"""The functions that artifacts name: looked up in the paper's folder when something is rendered."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

from reproduce.declare.artifact import Code


def function(paper: str, code: Code | Callable[..., Any]) -> Callable[..., Any]:
    """The function that `code` names in reproduce/papers/<paper>, or is; TypeError if there is none."""
    if not isinstance(code, Code):
        return code
    module, _, name = code.where.partition(":")
    found = getattr(importlib.import_module(f"reproduce.papers.{paper}.{module}"), name, None)
    if found is None:
        raise TypeError(f"reproduce/papers/{paper}/{module}.py has no function '{name}', which an artifact names")
    return partial(found, **code.options) if code.options else found
