"""An algorithm as it is written on the command line: `fedprox(mu=0.01)`, `my_module:FedSlow(lr=0.1)`; those that have
names, on event clocks with the policy that the name stands for; seeds and grids."""

import ast
import dataclasses
import importlib.util
import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

from reproduce.algorithms.base import FedAvg
from reproduce.declare import closure
from reproduce.declare.isolation import settings_kept
from reproduce.declare.values import check, kinds, literal, words
from reproduce.errors import UserError, unknown
from reproduce.models.network import Network
from reproduce.report.names import registered as declared
from reproduce.systems.policies import POLICIES
from reproduce.systems.schedule import Policy


@dataclass(frozen=True)
class Named:
    """A named algorithm. options: fields that the name stands for. policy: without one the algorithm has rounds."""

    cls: type[FedAvg]
    options: Mapping[str, Any] = field(default_factory=dict)
    policy: type[Policy] | None = None


_named = {name: Named(cls, options, POLICIES.get(name)) for name, cls, options in declared()}
NAMES: Mapping[str, Named] = {n: _named[n] for n in sorted(_named, key=lambda n: (n != "fedavg", n))}
"""All classes of `reproduce.algorithms` that are algorithms by themselves; FedAvg is the first in tables."""
OTHERS = ("reproduce.algorithms.server_optimizers", "reproduce.algorithms.robust")
ALL = [name for name, named in NAMES.items() if named.cls.__module__ not in OTHERS]
"""Those of the papers, which `--all` takes; the others are asked for by name."""

LOADED: set[str] = set()
"""Modules of a user's own that were loaded; they are loaded again whenever they are named."""
Options = tuple[tuple[str, Any], ...]
FORM = "write NAME, NAME(number=0.1) or module:Class(number=0.1)"


@dataclass(frozen=True)
class Spec:
    """A name with the options that were given; cls: the user's own class, None for a name of this package."""

    name: str
    options: Options = ()
    cls: type[FedAvg] | None = None

    @property
    def text(self) -> str:
        """The algorithm as it is written in tables: "fedprox(mu=0.01)"."""
        options = ", ".join(f"{name}={value!r}" for name, value in self.options)
        return f"{self.name}({options})" if options else self.name


def parse(text: str) -> Spec:
    """The algorithm that `text` names; options are literals, and nothing is evaluated.

    Raises UserError for a text of another form, and for a class that is not there or no algorithm.
    """
    name, options = called(text, "algorithm", FORM)
    module, colon, cls = name.partition(":")
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
    return Network(name, options)


def called(text: str, kind: str, form: str, names: Sequence[str] = ()) -> tuple[str, Options]:
    """The name in "NAME(0.3, number=1)", and its options, which are literals; `names` are those without a name.

    Raises UserError that says the `form` for a text of another one.
    """
    parts = re.fullmatch(r"\s*([\w.]+(?::\w+)?)\s*(\(.*\))?\s*", text, flags=re.S)
    if parts is None:
        raise UserError(f"'{text}' names no {kind}: {form}")
    return parts[1], _options(text, parts[2] or "()", names)


def _options(text: str, arguments: str, names: Sequence[str]) -> Options:
    try:
        call: Any = ast.parse(f"f{arguments}", mode="eval").body
        pairs = [*zip(names, call.args, strict=False), *((k.arg, k.value) for k in call.keywords)]
        options = tuple((name, ast.literal_eval(value)) for name, value in pairs)
        hash(options)  # lists are no plain values
        if len(call.args) > len(names) or not all(name for name, _ in options):
            raise ValueError
    except (SyntaxError, AttributeError, TypeError, ValueError, RecursionError, MemoryError) as error:
        raise UserError(f"'{text}': options are name=value, with plain numbers, words in quotes, True or False") from (
            error
        )
    if twice := [name for name, times in Counter(name for name, _ in options).items() if times > 1]:
        raise UserError(f"'{text}': {twice[0]} is given twice")
    return options


# --- a user's own class -----------------------------------------------------------------------------------------------


def _own_class(module: str, name: str) -> type[FedAvg]:
    """The class `name` of the file `module`.py in the working directory."""
    loaded = _load(module)
    known = [k for k, v in vars(loaded).items() if isinstance(v, type) and issubclass(v, FedAvg)]
    cls = getattr(loaded, name, None)
    if cls is None:
        raise unknown(f"algorithm of {module}.py", name, [k for k in known if k not in ("FedAvg", "Asynchronous")])
    if name not in known:
        raise UserError(f"{module}:{name} is no algorithm: it must inherit from reproduce.algorithms.base.FedAvg")
    if "__dataclass_fields__" not in vars(cls) and vars(cls).get("__annotations__"):
        raise UserError(f"{module}:{name} has numbers of its own and needs @dataclass(frozen=True) above it")
    return cls  # type: ignore[no-any-return]


def _file(module: str) -> Path:
    return Path.cwd().joinpath(*module.split(".")).with_suffix(".py")


def _load(module: str) -> ModuleType:
    """The file as it is now, as a module; what it imports may lie beside it."""
    path = _file(module)
    if not path.is_file():
        near = [f.stem for f in Path.cwd().glob("*.py")]
        raise unknown("module", module, near) if near else UserError(f"there is no file {path.name} in this folder")
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
        _forget()  # what it imports may have changed, too
        sys.modules[module] = loaded
        LOADED.add(module)
        with settings_kept():
            specification.loader.exec_module(loaded)
    except (Exception, SystemExit) as error:
        sys.modules.pop(module, None)
        raise UserError(f"{path.name} cannot be imported: {words(error)}") from error
    finally:
        sys.path.remove(str(Path.cwd()))
    return loaded


def _forget() -> None:
    """Let modules of this folder be imported anew, but for those that are named themselves: what is computed must be
    what their digests say."""
    for name, module in list(sys.modules.items()):
        file = Path(getattr(module, "__file__", None) or "/")
        if name not in {"__main__", *LOADED} and file.is_relative_to(Path.cwd()) and not closure.installed(file):
            del sys.modules[name]


def fields(owner: type) -> dict[str, dataclasses.Field[Any]]:
    """The fields of a record by name."""
    return {f.name: f for f in dataclasses.fields(owner)}


def checked(owner: type, options: Mapping[str, Any], of: str) -> dict[str, Any]:
    """The options, if the record `owner` has fields of these names that take these values.

    Raises UserError that names the field; `of` is what the options are said to be of.
    """
    if unasked := [name for name in options if name not in fields(owner)]:
        raise unknown(f"option of {of}", unasked[0], fields(owner))
    return {name: typed(kinds(owner)[name], name, value, of) for name, value in options.items()}


def typed(kind: Any, name: str, value: Any, of: str) -> Any:
    """The value of a field of this kind; a whole number where a number is wanted becomes one. Raises UserError."""
    if not literal(kind):
        raise UserError(f"{of}: {name} is a record, which only Python can give, not {value!r}")
    check(f"{of}: {name}", value, kind)
    return float(value) if type(value) is int and float in (kind, *get_args(kind)) else value


P = ParamSpec("P")
R = TypeVar("R")


def strict(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which raises UserError for arguments of other names or kinds than its own. Checked are those that
    are numbers or words, or iterables of them, which it gets as tuples."""
    signature, kinds = inspect.signature(function), get_type_hints(function, include_extras=True)
    for name, kind in kinds.items():
        if get_origin(kind) in (Iterable, Sequence):
            kinds[name] = tuple[*get_args(kind), ...]  # type: ignore[misc]

    @wraps(function)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        if "own" not in signature.parameters and (unasked := [n for n in options if n not in signature.parameters]):
            raise unknown("option of play", unasked[0], signature.parameters)
        bound = signature.bind(*args, **options)
        for name, value in bound.arguments.items():
            if not literal(kinds[name]):
                continue
            if isinstance(value, Iterable) and not isinstance(value, str):
                bound.arguments[name] = value = tuple(value.tolist() if hasattr(value, "tolist") else value)
            check(name, value, kinds[name])
        return function(*bound.args, **bound.kwargs)

    return checked


@contextmanager
def owned(of: str) -> Iterator[None]:
    """Context around code that may be a user's: whatever it raises ends in one line."""
    try:
        yield
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(f"{of}: {words(error)}") from error


def seeds(text: str) -> tuple[int, ...]:
    """The seeds of "0-4" or "0,2,7-9"; UserError for what is none."""
    numbers: list[int] = []
    for part in text.split(","):
        ends = re.fullmatch(r"\s*(\d{1,10})(?:-(\d{1,10}))?\s*", part)
        if ends is None:
            raise UserError(f"seeds '{text}': use whole numbers and ranges, such as 0-4 or 0,2,7")
        numbers += range(int(ends[1]), int(ends[2] or ends[1]) + 1)
    if not numbers or len(set(numbers)) < len(numbers) or max(numbers) >= 2**32:
        raise UserError(f"seeds '{text}': use different numbers, from 0 to 2^32 - 1")
    return tuple(numbers)


def grid(text: str) -> tuple[float, ...]:
    """The numbers of "0.1,1,10"; UserError for what is none."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UserError(f"grid '{text}': use numbers and commas, such as 0.1,1,10") from None
