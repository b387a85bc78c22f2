"""Code of a user's own, kept apart: processes in which it runs, what it reads, what it changes for others.

A forked process starts from what this one has loaded, and whatever the code remembers, changes or exchanges there ends
with it. So a run depends on its declaration and its seed alone, as if nothing else were trained.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import pickle
import re
import signal
import sys
import sysconfig
import traceback
import types
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from reproduce.errors import OwnCodeError, UserError

Tell = Callable[[Any], None]
PACKAGE = Path(__file__).parents[1]

# --- processes --------------------------------------------------------------------------------------------------------


def forked(
    functions: Sequence[Callable[[Tell], Any]],
    at_once: int = 1,
    heard: Callable[[int, Any], None] = lambda i, said: None,
    idle: Callable[[], None] = lambda: None,
    files: Iterable[Path] = (),
) -> list[Any]:
    """What `functions` return, each called in a process of its own, `at_once` at a time.

    A function is given `tell`, which sends something to `heard`, with its number. `idle` is called meanwhile; what it
    raises ends the processes. What a function raises is an OwnCodeError, which names the place in `files`, or the
    UserError that it is.
    """
    context = multiprocessing.get_context("fork")
    found: dict[int, Any] = {}
    working: dict[Connection, tuple[int, Any]] = {}  # pipe -> number of the function, process
    try:
        while len(found) < len(functions):
            for i in range(len(found) + len(working), min(len(functions), len(found) + at_once)):
                pipe, theirs = context.Pipe(duplex=False)
                child = context.Process(target=_call, args=(functions[i], theirs, os.getpid(), files))
                with warnings.catch_warnings(action="ignore"):  # this process's other threads hold nothing it needs
                    child.start()
                theirs.close()
                working[pipe] = i, child
            ready: Any = wait([*working], 0.2)
            for pipe in ready:
                i, child = working[pipe]
                try:
                    kind, said = pickle.loads(pipe.recv_bytes())
                except EOFError as error:
                    child.join()
                    raise OwnCodeError(f"its process ended with status {child.exitcode}") from error
                if kind == "told":
                    heard(i, said)
                elif kind == "returned":
                    del working[pipe]
                    child.join()
                    pipe.close()
                    found[i], read = said
                    for file, what in read.items():
                        _read[file] |= what
                else:
                    text, trace = said
                    raised: UserError = kind(text)
                    raised.add_note(trace)
                    raise raised
            idle()
    finally:
        for pipe, (_, child) in working.items():
            child.kill()
            child.join()
            pipe.close()
    return [found[i] for i in range(len(functions))]


def _call(function: Callable[[Tell], Any], pipe: Connection, parent: int, files: Iterable[Path]) -> None:
    """What a forked process does, to its end."""

    def tell(said: Any, kind: Any = "told") -> None:
        if os.getppid() != parent:  # nobody waits for it
            os._exit(1)
        pipe.send_bytes(pickle.dumps((kind, said)))

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # which a terminal sends to all; the parent ends this process
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        tell((function(tell), dict(_read)), "returned")
    except UserError as error:
        tell((str(error), traceback.format_exc()), OwnCodeError if isinstance(error, OwnCodeError) else UserError)
    except BaseException as error:  # a user's code raises whatever it likes
        tell((words(error, *files), traceback.format_exc()), OwnCodeError)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def words(error: BaseException, *files: Path) -> str:
    """An error of a user's code in one line, with the last place in one of their files."""
    said = f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename in map(str, files)]
    if isinstance(error, SyntaxError) or not frames:  # whose text has the place
        return said
    return f"{said} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"


# --- what it reads ----------------------------------------------------------------------------------------------------

_LIBRARIES = tuple({*sysconfig.get_paths().values(), *map(os.path.realpath, sysconfig.get_paths().values()), "<"})
_LOOKS = ("os.listdir", "os.scandir")
_OUTSIDE = (*_LOOKS, "subprocess.Popen", "os.system", "os.posix_spawn", "socket.connect")
_read: defaultdict[str, set[str]] = defaultdict(set)
"""File of code -> what that code has read."""


@cache
def watch() -> None:
    """From now on, note what code that is neither this package's nor a library's reads, through whatever library."""
    sys.addaudithook(_noted)


def reads(files: Iterable[Path]) -> str:
    """What code in these files has read besides them, in words; "" for nothing. A result of such code is not used
    again: what was read may have changed.

    Not seen are the time, compiled code's own reading, and names of variables that are put together.
    """
    own = {str(file) for file in files}
    found = {what for file in own for what in _read.get(file, ()) if what not in own}
    if any(_asks(file, os.stat(file).st_mtime_ns) for file in own):
        found.add("the environment")
    return ascii(", ".join(sorted(found)))[1:-1][:1000]


@cache
def _asks(file: str, modified: int) -> bool:
    """Does it name the environment?"""
    return bool(re.search(r"\b(environ|getenv)", Path(file).read_text("utf-8")))


def _noted(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        path, _, flags = arguments
        if (flags or 0) & os.O_WRONLY or not isinstance(path, str | bytes | os.PathLike):
            return
        what = os.path.abspath(os.fsdecode(path))
        with suppress(ValueError):  # of compiled Python the file that it was made of
            what = importlib.util.source_from_cache(what) if what.endswith(".pyc") else what
        if what.startswith((*_LIBRARIES, "/proc/", "/sys/", "/dev/", str(PACKAGE))):
            return
    elif event in _OUTSIDE:
        what = event if isinstance(arguments[0], int) else f"{event} {arguments[0]}"
    else:
        return
    frame: types.FrameType | None = sys._getframe(1)
    if event in _LOOKS and frame is not None and frame.f_code.co_filename.startswith("<frozen"):
        return  # an import only looks around
    while frame is not None and not (file := frame.f_code.co_filename).startswith(str(PACKAGE)):
        if not file.startswith(_LIBRARIES):
            _read[file].add(what)
        frame = frame.f_back


# --- what it changes for others ---------------------------------------------------------------------------------------


@contextmanager
def settings_kept() -> Iterator[None]:
    """Settings of torch, NumPy and Python are afterwards as they were: types, threads, precision, warnings, folder."""
    import numpy as np
    import torch

    products: Any = (torch.backends.mkldnn.matmul, torch.backends.cuda.matmul)  # type: ignore[attr-defined]
    pairs: Any = (
        (torch.get_default_dtype, torch.set_default_dtype),
        (torch.get_default_device, torch.set_default_device),
        (torch.is_grad_enabled, torch.set_grad_enabled),
        (torch.get_num_threads, torch.set_num_threads),
        (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
        (np.geterr, lambda value: np.seterr(**value)),
        (os.getcwd, os.chdir),
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


@contextmanager
def unpatched() -> Iterator[None]:
    """Raises OwnCodeError if functions, classes or constants of this package were exchanged, and puts them back: what
    is trained next, and kept, would be another algorithm under the same name."""
    modules = [m for n, m in list(sys.modules.items()) if n.partition(".")[0] == PACKAGE.name]
    classes = [v for m in modules for v in vars(m).values() if isinstance(v, type) and v.__module__ == m.__name__]
    owners: list[Any] = [*modules, *classes]
    before = [(owner, n, v) for owner in owners for n, v in vars(owner).items() if not n.startswith("_")]
    try:
        yield
    finally:
        changed = [(owner, name, value) for owner, name, value in before if vars(owner).get(name) is not value]
        for owner, name, value in changed:
            setattr(owner, name, value)
    if changed:
        names = sorted({f"{owner.__name__}.{name}" for owner, name, _ in changed})
        raise OwnCodeError(f"it exchanges {' and '.join(names)} of this package: inherit and override instead")
