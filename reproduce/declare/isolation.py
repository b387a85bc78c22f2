"""Isolation of a user's own code: processes in which it runs, the files that it is, what it changes for others.

A forked process starts from what this one has loaded, and whatever the code remembers, changes or exchanges there ends
with it. So a run depends on its declaration and its seed alone, as if nothing else were trained.
"""

import hashlib
import multiprocessing
import os
import pickle
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from reproduce.declare import closure
from reproduce.declare.values import words
from reproduce.errors import OwnCodeError, UserError

Tell = Callable[[Any], None]

# --- processes --------------------------------------------------------------------------------------------------------


def forked(
    functions: Sequence[Callable[[Tell], Any]],
    at_once: int = 1,
    received: Callable[[int, Any], None] = lambda i, message: None,
    idle: Callable[[], None] = lambda: None,
) -> list[Any]:
    """Returns what `functions` return, each called in a process of its own, `at_once` at a time.

    A function is given `tell`, which sends a message to `received`, with its number. `idle` is called meanwhile; an
    error that it raises ends the processes. An error of a function is an OwnCodeError, or the UserError that it is.
    Where CUDA has started, which no fork survives, they follow each other in this process.
    """
    if (torch := sys.modules.get("torch")) and torch.cuda.is_initialized():
        return [function(lambda message: idle()) for function in functions]
    context, parent = multiprocessing.get_context("fork"), multiprocessing.current_process()
    results: dict[int, Any] = {}
    working: dict[Connection, tuple[int, Any]] = {}  # pipe -> number of the function, process
    try:
        while len(results) < len(functions):
            for i in range(len(results) + len(working), min(len(functions), len(results) + at_once)):
                pipe, theirs = context.Pipe(duplex=False)
                child = context.Process(target=_call, args=(functions[i], theirs, os.getpid()))
                daemonic, parent.daemon = parent.daemon, False  # a pool's worker may have a child, which ends with it
                with warnings.catch_warnings(action="ignore"):  # this process's other threads hold nothing it needs
                    child.start()
                parent.daemon = daemonic
                theirs.close()
                working[pipe] = i, child
            ready: Any = wait([*working], 0.2)
            for pipe in ready:
                i, child = working[pipe]
                try:
                    kind, message = pickle.loads(pipe.recv_bytes())
                except EOFError as error:
                    child.join()
                    raise OwnCodeError(f"its process ended with status {child.exitcode}") from error
                if kind == "told":
                    received(i, message)
                    continue
                del working[pipe]
                child.join()  # it says itself what it has printed
                pipe.close()
                if kind != "returned":
                    text, trace = message
                    raised: UserError = kind(text)
                    raised.add_note(trace)
                    raise raised
                results[i] = message
            idle()
    finally:
        for pipe, (_, child) in working.items():
            child.kill()
            child.join()
            pipe.close()
    return [results[i] for i in range(len(functions))]


def _call(function: Callable[[Tell], Any], pipe: Connection, parent: int) -> None:
    """The work of a forked process, to its end."""

    def tell(message: Any, kind: Any = "told") -> None:
        if os.getppid() != parent:  # nobody waits for it
            os._exit(1)
        pipe.send_bytes(pickle.dumps((kind, message)))

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # which a terminal sends to all; the parent ends this process
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        tell(function(tell), "returned")
    except UserError as error:
        tell((str(error), traceback.format_exc()), OwnCodeError if isinstance(error, OwnCodeError) else UserError)
    except BaseException as error:  # a user's code raises whatever it likes
        tell((words(error), traceback.format_exc()), OwnCodeError)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


# --- the files that it is ---------------------------------------------------------------------------------------------

_SEEN: dict[tuple[Any, int], str] = {}


def sources() -> dict[str, str]:
    """The SHA-256 of every file from which this process has loaded a module, as it was when it was first asked for;
    without what is installed."""
    loaded = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        key = file, id(module)
        if file and key not in _SEEN:
            own = name != "__main__" and os.path.isfile(file) and not closure.installed(Path(file))
            _SEEN[key] = sha256(Path(file)) if own else ""
        if file and _SEEN[key]:
            loaded[os.path.relpath(file)] = _SEEN[key]
    return loaded


def unchanged(loaded: Mapping[str, str]) -> bool:
    """Returns whether these files still have these digests."""
    return all(Path(file).is_file() and sha256(Path(file)) == before for file, before in loaded.items())


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


# --- what it changes for others ---------------------------------------------------------------------------------------


@contextmanager
def settings_kept() -> Iterator[None]:
    """Context after which settings of torch, NumPy and Python are as before: types, threads, precision, warnings,
    folder."""
    import numpy as np
    import torch

    cuda, cudnn, cublas = torch.backends.cuda, torch.backends.cudnn, "CUBLAS_WORKSPACE_CONFIG"
    products: Any = (torch.backends.mkldnn.matmul, cuda.matmul, cudnn.conv)  # type: ignore[attr-defined]
    flags = ((cudnn, "deterministic"), (cudnn, "benchmark"), (cuda.matmul, "allow_bf16_reduced_precision_reduction"))
    pairs: Any = (
        (torch.get_default_dtype, torch.set_default_dtype),
        (torch.get_default_device, torch.set_default_device),
        (torch.is_grad_enabled, torch.set_grad_enabled),
        (torch.get_num_threads, torch.set_num_threads),
        (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
        (np.geterr, lambda value: np.seterr(**value)),
        (os.getcwd, os.chdir),
        *((partial(getattr, *flag), partial(setattr, *flag)) for flag in flags),
        (
            partial(os.environ.get, cublas),
            lambda value: os.environ.update({cublas: value}) if value else os.environ.pop(cublas),
        ),
    )
    before, precisions = [ask() for ask, _ in pairs], [p.fp32_precision for p in products]
    with warnings.catch_warnings():
        try:
            yield
        finally:
            for (ask, put), value in zip(pairs, before, strict=True):
                if ask() != value:
                    put(value)
            if precisions != [p.fp32_precision for p in products]:
                torch.set_float32_matmul_precision("highest")  # the older setting, which must agree with these
                for place, precision in zip(products, precisions, strict=True):
                    place.fp32_precision = precision
