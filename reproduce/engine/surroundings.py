"""What code of a user's own may change for everything that runs after it: settings of the libraries, this package."""

from __future__ import annotations

import os
import sys
import types
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import torch

from reproduce.errors import OwnCodeError

PACKAGE = "reproduce"
_SETTINGS: Any = (
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.get_default_device, torch.set_default_device),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
)
"""How settings of torch are asked for and made."""
_PRODUCTS: Any = (torch.backends.mkldnn.matmul, torch.backends.cuda.matmul)  # type: ignore[attr-defined]
"""Where the precision of matrix products is set, which `machine.fast_products` does."""


@contextmanager
def kept() -> Iterator[None]:
    """Settings of torch, NumPy and Python are afterwards as they were: types, threads, warnings, the folder."""
    before, errors, folder = [ask() for ask, _ in _SETTINGS], np.geterr(), os.getcwd()
    products = [p.fp32_precision for p in _PRODUCTS]  # the older function that asks cannot be used beside these
    with warnings.catch_warnings():
        try:
            yield
        finally:
            for (ask, put), value in zip(_SETTINGS, before, strict=True):
                if ask() != value:
                    put(value)
            if products != [p.fp32_precision for p in _PRODUCTS]:
                torch.set_float32_matmul_precision("highest")
                for place, precision in zip(_PRODUCTS, products, strict=True):
                    place.fp32_precision = precision
            torch.set_flush_denormal(False)
            np.seterr(**errors)
            with suppress(OSError):  # a folder that is gone
                os.chdir(folder)


@contextmanager
def unpatched() -> Iterator[None]:
    """Raises OwnCodeError if functions, classes or constants of this package were exchanged, and puts them back.

    What is trained next, and kept, would be another algorithm under the same name."""
    before = {(id(owner), name): (owner, name, value) for owner, name, value in _held()}
    try:
        yield
    finally:
        changed = []
        for owner, name, value in before.values():
            if vars(owner).get(name) is not value:
                setattr(owner, name, value)
                changed.append(f"{owner.__name__}.{name}")
    if changed:
        raise OwnCodeError(
            f"it exchanges {' and '.join(sorted(changed))} of this package: inherit and override instead"
        )


def _held() -> Iterator[tuple[Any, str, Any]]:
    """(module or class, name, value) of all that the loaded modules of this package define."""
    for module in [m for n, m in list(sys.modules.items()) if n.partition(".")[0] == PACKAGE]:
        for name, value in list(vars(module).items()):
            if name.startswith("__") or isinstance(value, types.ModuleType):
                continue
            yield module, name, value
            if isinstance(value, type) and value.__module__ == module.__name__:
                yield from ((value, n, v) for n, v in list(vars(value).items()) if callable(v) or not n.startswith("_"))
