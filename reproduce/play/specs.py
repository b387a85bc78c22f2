"""An algorithm as it is written on the command line: `fedprox(mu=0.01)`, `my_module:FedSlow(lr=0.1)`."""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NoReturn, get_args, get_origin, get_type_hints

from reproduce.algorithms.base import FedAvg
from reproduce.declare import closure, inputs
from reproduce.errors import OwnCodeError, UserError, unknown
from reproduce.models.network import Network

LOADED: set[str] = set()
"""Modules of a user's own that were loaded; they are loaded again whenever they are named."""
Options = tuple[tuple[str, Any], ...]
FORM = "write NAME, NAME(number=0.1) or module:Class(number=0.1)"


@dataclass(frozen=True)
class Spec:
    """A name with the options that were given; cls: the user's own class, None for a name of this package."""

    name: str
    options: tuple[tuple[str, Any], ...] = ()
    cls: type[FedAvg] | None = None

    @property
    def text(self) -> str:
        """As it is written in tables: "fedprox(mu=0.01)"."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.options)
        return f"{self.name}({given})" if given else self.name


def parse(text: str) -> Spec:
    """The algorithm that `text` names; options are literals, and nothing is evaluated.

    Raises UserError for a text of another form, and for a class that is not there or no algorithm.
    """
    name, options = called(text, "algorithm", FORM)
    module, colon, cls = name.partition(":")
    with exits():
        return Spec(name, options, _own_class(module, cls) if colon else None)


def network(text: str) -> Network:
    """The network that `text` names, "my_file:Net(width=8)" or "torchvision.models:resnet18(num_classes=10)"."""
    name, options = called(text, "network", "write module:Class or module:function(number=1)")
    if ":" not in name:
        raise UserError(f"'{text}' names no network: write module:Class or module:function(number=1)")
    from reproduce import vision  # noqa: F401 (before torchvision, which a user's file may import)

    module = name.partition(":")[0]
    if _file(module).is_file():
        _load(module)
    with exits():
        return Network(name, options)


def called(text: str, kind: str, form: str, names: Sequence[str] = ()) -> tuple[str, Options]:
    """The name in "NAME(0.3, number=1)", and its options, which are literals; `names` are those without a name.

    Raises UserError that says the `form` for a text of another one.
    """
    if not text.isascii() and text.encode(errors="replace").decode() != text:
        raise UserError(f"'{text}' is not text in UTF-8")
    parts = re.fullmatch(r"\s*([\w.]+(?::\w+)?)\s*(\(.*\))?\s*", text, flags=re.S)
    if parts is None:
        raise UserError(f"'{text}' names no {kind}: {form}")
    return parts[1], _options(text, parts[2] or "()", names)


def _options(text: str, arguments: str, names: Sequence[str]) -> Options:
    try:
        call = ast.parse(f"f{arguments}", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or len(call.args) > len(names):
            raise ValueError
        found = [(name, ast.literal_eval(value)) for name, value in zip(names, call.args, strict=False)]
        found += [(str(k.arg or ""), ast.literal_eval(k.value)) for k in call.keywords]
        hash(tuple(found))  # lists are no plain values
    except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError) as error:
        raise UserError(f"'{text}': options are name=value, with plain numbers, words in quotes, True or False") from (
            error
        )
    given = [name for name, _ in found]
    if not all(given):
        raise UserError(f"'{text}': options are name=value")
    if twice := next((name for i, name in enumerate(given) if name in given[:i]), None):
        raise UserError(f"'{text}': {twice} is given twice")
    return tuple(found)


# --- a user's own class -----------------------------------------------------------------------------------------------


def _own_class(module: str, name: str) -> type[FedAvg]:
    """The class `name` of the file `module`.py in the working directory."""
    loaded = _load(module)
    known = [k for k, v in vars(loaded).items() if isinstance(v, type) and issubclass(v, FedAvg)]
    found = getattr(loaded, name, None)
    if found is None:
        raise unknown(f"algorithm of {module}.py", name, [k for k in known if k not in ("FedAvg", "Asynchronous")])
    if name not in known:
        raise UserError(f"{module}:{name} is no algorithm: it must inherit from reproduce.algorithms.base.FedAvg")
    if "__dataclass_fields__" not in vars(found) and vars(found).get("__annotations__"):
        raise UserError(f"{module}:{name} has numbers of its own and needs @dataclass(frozen=True) above it")
    return found  # type: ignore[no-any-return]


def _file(module: str) -> Path:
    return Path.cwd().joinpath(*module.split(".")).with_suffix(".py")


def _load(module: str) -> ModuleType:
    """The file as it is now, as a module; what it imports may lie beside it."""
    path = _file(module)
    if not path.is_file():
        near = [f.stem for f in Path.cwd().glob("*.py")]
        raise unknown("module", module, near) if near else UserError(f"there is no file {path.name} in this folder")
    from reproduce.engine import surroundings  # torch, which a package's algorithm by name does not need

    known = sys.modules.get(module)
    other = known is not None and getattr(known, "__file__", "") != str(path)  # a notebook may have imported the file
    if other and module not in LOADED:
        raise UserError(f"{path.name} has the name of a module that is in use: rename it")
    specification = importlib.util.spec_from_file_location(module, path)
    assert specification is not None
    assert specification.loader is not None
    loaded = importlib.util.module_from_spec(specification)
    sys.path.insert(0, str(Path.cwd()))
    try:
        theirs = closure.own(frozenset({path}))
        _forget(theirs)  # what they import may have changed, too
        sys.modules[module] = loaded
        LOADED.add(module)
        with surroundings.kept(), surroundings.unpatched(), inputs.watched(map(str, theirs), anew=True):
            specification.loader.exec_module(loaded)
    except OwnCodeError as error:
        raise UserError(f"{path.name} cannot be used: {error}") from error
    except (Exception, SystemExit) as error:
        sys.modules.pop(module, None)
        raise UserError(f"{path.name} cannot be imported: {words(error, path)}") from error
    finally:
        sys.path.remove(str(Path.cwd()))
    return loaded


def _forget(files: frozenset[Path]) -> None:
    """Let modules of these files be imported anew: what is computed must be what the digest of the code says."""
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")) in map(str, files):
            del sys.modules[name]


def words(error: BaseException, *files: Path) -> str:
    """An error of a user's code in one line, with the last place in one of their files."""
    said = f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename in map(str, files)]
    line = error.lineno if isinstance(error, SyntaxError) else frames[-1].lineno if frames else None
    if line is None or isinstance(error, SyntaxError):  # whose text has the place
        return said
    return f"{said} ({Path(frames[-1].filename).name}, line {line})"


# --- options ----------------------------------------------------------------------------------------------------------


Fits = Callable[[Any], bool]
MOST = 10**9
"""Rounds, samples or clients beyond which a number is a slip."""


POSITIVE: tuple[str, Fits] = ("a positive number", lambda x: x > 0)
NOT_NEGATIVE: tuple[str, Fits] = ("a number from 0 on", lambda x: x >= 0)
BELOW_ONE: tuple[str, Fits] = ("a number from 0 to below 1", lambda x: 0 <= x < 1)
COUNT: tuple[str, Fits] = (f"a whole number from 1 to {MOST:,}", lambda x: 1 <= x <= MOST)
COUNT_OR_NONE: tuple[str, Fits] = (f"a whole number from 0 to {MOST:,}", lambda x: 0 <= x <= MOST)
RANGES: Mapping[str, tuple[str, Fits]] = {
    **dict.fromkeys(("lr", "server_lr", "temperature"), POSITIVE),
    **dict.fromkeys(("mu", "lam", "beta", "kappa", "staleness_power", "distill", "wait"), NOT_NEGATIVE),
    **dict.fromkeys(("momentum", "decay"), BELOW_ONE),
    **dict.fromkeys(("cutoff", "expected"), COUNT),
    **dict.fromkeys(("probe_batch", "from_round"), COUNT_OR_NONE),
}
"""What the numbers of this package's algorithms and policies may be, by their names; a user's class that inherits a
field inherits its range. Words have theirs in their types."""


def checked(owner: type, options: Mapping[str, Any], of: str) -> dict[str, Any]:
    """The options, if the record `owner` has fields of these names that take values of these types.

    Raises UserError that names the field; `of` is what the options are said to be of.
    """
    return {name: _value(owner, name, value, of) for name, value in options.items()}


def fields(owner: type) -> dict[str, dataclasses.Field[Any]]:
    """The fields of a record by name."""
    return {f.name: f for f in dataclasses.fields(owner)}


def _value(owner: type, name: str, value: Any, of: str) -> Any:
    if name not in fields(owner):
        raise unknown(f"option of {of}", name, fields(owner))
    try:
        hint = get_type_hints(owner)[name]
    except (NameError, AttributeError, TypeError, SyntaxError):  # a type that is there for checkers only, or for nobody
        hint = type(fields(owner)[name].default)
    wanted = _wanted(hint, value)
    if wanted:
        raise UserError(f"{of}: {name} is {wanted}, not {value!r}")
    declared = next(cls for cls in owner.__mro__ if name in vars(cls).get("__annotations__", {}))
    if declared.__module__.partition(".")[0] == closure.PACKAGE.name:  # a user's own field may mean something else
        ranged(name, value, of)
    return float(value) if hint is float else value


def ranged(name: str, value: Any, of: str) -> None:
    """Raises UserError if a number of an algorithm or a policy lies where it has no meaning."""
    wanted, fits = RANGES.get(name, ("", lambda _: True))
    if not fits(value):
        raise UserError(f"{of}: {name} is {wanted}, not {value!r}")


def _wanted(hint: Any, value: Any) -> str:
    """What a field of this type takes, if `value` is not that; else ""."""
    if get_origin(hint) is Literal:
        known = get_args(hint)
        return "" if value in known else f"one of {', '.join(map(repr, known))}"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if hint is float:
        return "" if number and abs(value) <= sys.float_info.max else "a number"
    if hint is int:
        return "" if number and isinstance(value, int) else "a whole number"
    if hint is bool:
        return "" if isinstance(value, bool) else "True or False"
    if hint is str:
        return "" if isinstance(value, str) else "a word in quotes"
    known = (float, int, bool, str, type(None))
    plain = all(get_origin(kind) in (Literal, tuple) or kind in known for kind in get_args(hint))
    return "" if get_args(hint) and plain else "a record, which only Python can give"


@contextmanager
def exits() -> Iterator[None]:
    """Around code that may be a user's: `os._exit` is SystemExit there, which ends in one line.

    Else a command that has done nothing would end in silence, as if all were well. Other processes end as they do.
    """
    leave, here = os._exit, os.getpid()

    def said(status: int) -> NoReturn:
        if os.getpid() != here:
            leave(status)
        raise SystemExit(f"os._exit({status})")

    os._exit = said
    try:
        yield
    finally:
        os._exit = leave


@contextmanager
def owned(of: str) -> Iterator[None]:
    """Around code that may be a user's: whatever it raises ends in one line."""
    try:
        yield
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(f"{of}: {error if isinstance(error, ValueError) else words(error)}") from error
