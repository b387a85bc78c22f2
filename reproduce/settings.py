"""The settings of this run from the environment: folders, device and threads.

The workflow takes them from `config/config.yaml`; a user of the bare engine sets them by hand.

REPRODUCE_DATA      folder with the data sets (layout in docs/data.md); default: `data` in the working directory
REPRODUCE_STORE     decoded data, checkpoints and finished runs; default: `.reproduce` in the working directory
REPRODUCE_DEVICE    `cpu` (default) or `cuda`
REPRODUCE_PRECISION `float32` (default), `tf32` (CUDA only) or `bfloat16`: arithmetic of the local steps (`PRECISIONS`)
REPRODUCE_CHECKPOINT  seconds between two checkpoints of a job; default 20; 0: one in every round
REPRODUCE_TO_TARGET 1: runs that have a target end there, though figures show more; default 0
REPRODUCE_REUSE     1: results of own code are used again, and it goes on from checkpoints, if no file of it has changed
REPRODUCE_SAVE      folder that gets the trained models (`play --save`); default: they are not kept
REPRODUCE_THREADS   worker threads inside one job; default 1 (results do not depend on it)
REPRODUCE_SEEDS     seeds that replace those of every panel, such as `0,1`
REPRODUCE_BUDGET    hours that a job of the workflow may take
REPRODUCE_LONGEST   hours that a cluster lets a job run; longer trainings are cut into submissions
REPRODUCE_MEMORY    GB that it lets a job ask for
REPRODUCE_COMMIT    the commit of the code, where no repository is around it; goes into the provenance
"""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from reproduce.declare.values import Bounds, NonNegative, Positive, Seed, check
from reproduce.errors import UserError

PRECISIONS = ("float32", "tf32", "bfloat16")
"""float32: exact float32 everywhere. tf32: CUDA rounds the factors of all products and convolutions to 10 bits.
bfloat16: forward and backward passes by automatic differentiation (strategies `stacked` and `sequential`) run under
autocast. Parameters, updates, evaluation and aggregation are float32 in all of them."""


Threads = Annotated[int, Bounds(1, 1024)]

CONFIGURED: dict[str, str] = {}
"""Variables that a workflow's configuration sets; they count more than those of the environment."""


def configure(values: Mapping[str, str]) -> None:
    """Take these variables in the place of the environment's."""
    CONFIGURED.update(values)


def variable(name: str, default: Any = None) -> Any:
    """The text of a variable, or `default`."""
    return CONFIGURED.get(name, os.environ.get(name, default))


@dataclass(frozen=True)
class Settings:
    data: Path
    store: Path
    device: str
    threads: int
    precision: str = "float32"
    checkpoint: float = 20.0
    to_target: bool = False
    reuse: bool = False
    precision_asked: str | None = None
    """The precision, if somebody named one: results of another are then not read."""
    save: Path | None = None


def settings() -> Settings:
    """The settings in force; raises UserError for a value that makes no sense."""
    device = _word("REPRODUCE_DEVICE", "cpu", "cuda")
    precision = _word("REPRODUCE_PRECISION", *PRECISIONS)
    if precision == "tf32" and device != "cuda":
        raise UserError("REPRODUCE_PRECISION=tf32 is arithmetic of GPUs: set the device to cuda, or use bfloat16")
    threads = _number("REPRODUCE_THREADS", "1", int, Threads, "a whole number of threads, 1 to 1024")
    checkpoint = _number("REPRODUCE_CHECKPOINT", "20", float, NonNegative, "a number of seconds, such as 20")
    data, store = _folder("REPRODUCE_DATA", "data"), _folder("REPRODUCE_STORE", ".reproduce")
    to_target = _word("REPRODUCE_TO_TARGET", "0", "1") == "1"
    reuse = _word("REPRODUCE_REUSE", "0", "1") == "1"
    requested = variable("REPRODUCE_PRECISION")
    save = _folder("REPRODUCE_SAVE", "") if variable("REPRODUCE_SAVE") else None
    return Settings(data, store, device, threads, precision, checkpoint, to_target, reuse, requested, save)


def _word(name: str, *known: str) -> str:
    """The word of a variable, the first one by default."""
    value: str = variable(name, known[0])
    if value not in known:
        raise UserError(f"{name}={value}: use {', '.join(known[:-1])} or {known[-1]}")
    return value


def _number(name: str, default: str, of: Callable[[str], Any], kind: Any, form: str) -> Any:
    """The value of a variable; a UserError states the form if it is not of this kind."""
    text = variable(name, default)
    try:
        value = of(text)
        check(name, value, kind)
    except (UserError, ValueError) as error:
        raise UserError(f"{name}={text}: use {form}") from error
    return value


def seeds() -> tuple[int, ...] | None:
    """The seeds of `REPRODUCE_SEEDS` ("0,1"), which then replace those of every panel; None: as declared."""
    form = "different numbers, from 0 to 2^32 - 1, with commas between them, such as 0,1,2"
    text = variable("REPRODUCE_SEEDS")
    return None if text is None else _number("REPRODUCE_SEEDS", "", _different, tuple[Seed, ...], form)


def _different(text: str) -> tuple[int, ...]:
    numbers = tuple(map(int, text.split(",")))
    if len(set(numbers)) < len(numbers):
        raise ValueError("a seed occurs twice")
    return numbers


def budget() -> float | None:
    """`REPRODUCE_BUDGET`: hours that a job of the workflow may take; None: not said."""
    name = "REPRODUCE_BUDGET"
    return None if variable(name) is None else _number(name, "", float, NonNegative, "a number of hours, such as 0.5")


def limits() -> tuple[float, float]:
    """`REPRODUCE_LONGEST` and `REPRODUCE_MEMORY`: hours and GB of a job on a cluster; where they are not said, any."""
    form = "a positive number, such as 24"
    names = ("REPRODUCE_LONGEST", "REPRODUCE_MEMORY")
    hours, size = (math.inf if variable(n) is None else _number(n, "", float, Positive, form) for n in names)
    return hours, size


def in_place() -> bool:
    """Tells whether the working directory holds results or the project."""
    return Path("results").is_dir() or (Path("Snakefile").is_file() and Path("config/config.yaml").is_file())


def check_place() -> None:
    """Raises UserError where neither the project nor results are: all would be taken for not made there."""
    if in_place():
        return
    root = Path(__file__).parent.parent
    clone = root if (root / "Snakefile").is_file() else "your clone"
    raise UserError(f"{Path.cwd()} is not the folder of the project: run this where its results are (cd {clone})")


def _folder(name: str, default: str) -> Path:
    """The folder of a variable, which may not exist yet; UserError for what can never be one."""
    text = variable(name, default)
    path = Path(text)
    if not text or any(os.path.exists(p) and not os.path.isdir(p) for p in (path, *path.parents)):
        raise UserError(f"{name}={text}: not a folder; name one, or unset it (default: {default})")
    return path
