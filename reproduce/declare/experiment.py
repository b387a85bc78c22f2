"""Runs: the records that declare them, and the digests that name them.

    Experiment = Problem x System x Algorithm x Clock, all numbers fixed;  Run = Experiment + seed.
    Panel      = experiments with their seeds that are trained together (a column of a table, an axes of a figure).

Everything here is a frozen value and imports neither torch nor pandas, so that listing, planning and every start of
Snakemake stay fast.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from reproduce.declare import closure
from reproduce.declare.closure import PACKAGE as PACKAGE
from reproduce.declare.values import check_values, foreign, records
from reproduce.errors import UserError

SCALES = ("smoke", "reduced", "paper")
PARTS = ("problem", "system", "algorithm", "clock")

COLUMNS = ("seed", "round", "time", "metric", "key", "value", "status")
"""Of every results file; whatever else a file has are the labels of its experiments."""

Label = str | int | float | bool


@dataclass(frozen=True)
class Experiment:
    """One line of a figure or one cell of a table: the four parts of a run with all numbers fixed.

    `labels` are the columns that tell this experiment from its neighbours in the results (algorithm, dataset, ...);
    they do not enter the digest, so the same training under two names is trained once.

    Raises UserError if the parts do not go together: the clock asks the other parts (`check`), and each says itself
    what it cannot do. Also for a value that is not what its field's annotation says, and a label that is the name of a
    column of all results.
    """

    labels: Mapping[str, Label]
    problem: Any
    system: Any
    algorithm: Any
    clock: Any

    def __post_init__(self) -> None:
        try:
            if taken := sorted(set(self.labels) & set(COLUMNS)):
                raise ValueError(f"'{taken[0]}' is a column of all results and cannot be a label")
            for part in PARTS[1:]:  # problems, which others are made of, check themselves
                check_values(getattr(self, part))
            self.clock.check(self)
        except (UserError, ValueError) as error:
            name = ", ".join(f"{key} {value}" for key, value in self.labels.items())
            raise UserError(f"this experiment cannot be run ({name}): {error}") from error

    def __hash__(self) -> int:
        return hash(self.declaration)

    @cached_property
    def declaration(self) -> str:
        """SHA-256 (16 hex digits) of the four parts with all their numbers."""
        parts = [*self.parts.values()]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    @cached_property
    def parts(self) -> Mapping[str, Any]:
        """The four parts as JSON-ready data."""
        return {name: canonical(getattr(self, name)) for name in PARTS}

    @cached_property
    def classes(self) -> frozenset[type]:
        """The classes of its records, and their bases."""
        parts = tuple(getattr(self, name) for name in PARTS)
        return frozenset(base for record in records(parts) for base in inspect.getmro(type(record)))

    @cached_property
    def foreign(self) -> bool:
        """True if its algorithm, its system or its clock is a user's own code, or a record in them."""
        return foreign((self.system, self.algorithm, self.clock))

    @property
    def to_target(self) -> Experiment:
        """This experiment without what its runs do after they have reached their target; itself if that is nothing."""
        if getattr(self.clock, "until", None) is None or not getattr(self.clock, "least", 0):
            return self
        return dataclasses.replace(self, clock=dataclasses.replace(self.clock, least=0.0))

    @property
    def digest(self) -> str:
        """SHA-256 (16 hex digits) of the declaration and of the source code that gives it its meaning."""
        return hashlib.sha256(f"{self.declaration}\n{code([self])}".encode()).hexdigest()[:16]

    def record(self) -> dict[str, Any]:
        """Labels and parts as JSON-ready data, as they stand in the provenance of a result."""
        return {"labels": dict(self.labels), **self.parts}


@dataclass(frozen=True)
class Panel:
    """Experiments that are trained together, and the seeds of each.

    `name` is unique within paper and scale and makes file names. `substitute` names what replaces the paper's
    setting at a smaller scale, in phrases parted by "; ": what stands before a colon is in every figure and caption,
    the settings behind it in tables and notes. Artifacts that share runs name the same.
    """

    name: str
    experiments: tuple[Experiment, ...]
    seeds: tuple[int, ...]
    substitute: str = ""

    def __post_init__(self) -> None:
        if not self.seeds:
            raise ValueError(f"panel '{self.name}' has an empty list of seeds")
        if len({tuple(sorted(map(str, e.labels.items()))) for e in self.experiments}) < len(self.experiments):
            raise ValueError(f"panel '{self.name}': nothing tells two experiments apart, their labels are the same")

    @property
    def requires(self) -> tuple[str, ...]:
        """Data sets that any of the experiments needs."""
        return tuple(sorted({name for e in self.experiments for name in e.problem.requires}))


def changed(record: Any, changes: Mapping[str, Any]) -> Any:
    """`record` with some fields changed, which their path names ("clock.policy.contact"): to a value, or to what a
    function makes of the old one."""
    for path, new in changes.items():
        name, _, rest = path.partition(".")
        old = getattr(record, name)
        new = changed(old, {rest: new}) if rest else new(old) if callable(new) else new
        record = dataclasses.replace(record, **{name: new})
    return record


def canonical(value: Any) -> Any:
    """`value` as JSON-ready data: dataclasses become {"type": name, field: ...}, mappings sorted, tuples lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: canonical(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"type": kind(type(value)), **fields}
    if isinstance(value, Mapping):
        return {str(k): canonical(v) for k, v in sorted(value.items())}
    if isinstance(value, list | tuple):
        return [canonical(v) for v in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"{value!r} cannot be part of an experiment: use numbers, strings, tuples and frozen dataclasses")


def kind(record: type) -> str:
    """The name of a record; of a user's own with its module, lest it be taken for one of this package."""
    return record.__name__ if record.__module__.startswith("reproduce.") else f"{record.__module__}:{record.__name__}"


def same(stored: Any, declared: Any) -> bool:
    """Returns whether `stored`, which `canonical` made and JSON has carried, is the declaration `declared`.

    A field that the record did not have when it was stored must have its default now: that is how records grow.
    """
    if dataclasses.is_dataclass(declared) and not isinstance(declared, type):
        fields = {f.name: f for f in dataclasses.fields(declared)}
        if not isinstance(stored, Mapping) or stored.get("type") != kind(type(declared)):
            return False
        if not set(stored) <= {"type", *fields}:
            return False
        old = (same(stored[name], getattr(declared, name)) for name in fields if name in stored)
        return all(old) and all(is_default(f, declared) for name, f in fields.items() if name not in stored)
    if isinstance(declared, list | tuple):
        pairs = isinstance(stored, list) and len(stored) == len(declared) and zip(stored, declared, strict=True)
        return bool(pairs is not False and all(same(old, new) for old, new in pairs))
    return bool(stored == canonical(declared))


def recorded(stored: Mapping[str, Any], experiment: Experiment) -> bool:
    """Returns whether the parts of this entry of a provenance declare `experiment`, whatever its labels are."""
    now = experiment.parts  # equal data are the usual case, and far cheaper to see
    return all(stored[name] == now[name] or same(stored[name], getattr(experiment, name)) for name in PARTS)


def declares(stored: Mapping[str, Any], experiment: Experiment) -> bool:
    """Returns whether a run with this entry was declared as the experiment, or as it would be to its target."""
    return recorded(stored, experiment) or recorded(stored, experiment.to_target)


def is_default(f: dataclasses.Field[Any], value: Any) -> bool:
    """Returns whether the record `value` has the default of its field `f`."""
    default = f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default
    return bool(getattr(value, f.name) == default)


def code(experiments: Iterable[Experiment]) -> str:
    """Digest of the source files that can change a number of the experiments (`closure`), own ones included.

    Raises UserError for a record that was not defined in a file.
    """
    classes = {c for e in experiments for c in e.classes}
    ours = frozenset(c.__module__ for c in classes if c.__module__.startswith("reproduce."))
    own = _own(classes)
    theirs = closure.packaged(own) | closure.OWN if own else frozenset()
    return closure.with_own(closure.digest(closure.files(ours | theirs)), own)


def own_code(experiment: Experiment) -> bool:
    """Tells whether a record or the network of the experiment is a user's own code."""
    return bool(_own(experiment.classes) or getattr(getattr(experiment.problem, "model", None), "code", ""))


def _own(classes: Iterable[type]) -> frozenset[Path]:
    theirs = {c.__module__: c for c in classes if c.__module__.partition(".")[0] not in _KNOWN}
    try:
        return frozenset(Path(inspect.getfile(c)) for c in theirs.values())
    except (OSError, TypeError) as error:
        raise UserError(
            f"the code of {', '.join(theirs)} is in no file: put the class into one, and name it"
        ) from error


_KNOWN = {"reproduce", *sys.stdlib_module_names}
