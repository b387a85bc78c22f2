"""Where things are: folders, device and threads of this run, from the environment.

The workflow sets these variables from `config/config.yaml`; a user of the bare engine sets them by hand.

REPRODUCE_DATA      folder with the data sets (layout in docs/data.md); default: `data` in the working directory
REPRODUCE_STORE     decoded data, checkpoints and finished runs; default: `.reproduce` in the working directory
REPRODUCE_DEVICE    `cpu` (default) or `cuda`
REPRODUCE_PRECISION `float32` (default), `tf32` (CUDA only) or `bfloat16`: arithmetic of the local steps (`PRECISIONS`)
REPRODUCE_CHECKPOINT  seconds between two checkpoints of a job; default 20; 0: one in every round
REPRODUCE_TO_TARGET 1: runs that have a target end there, though figures show more; default 0
REPRODUCE_THREADS   worker threads inside one job; default 1 (results do not depend on it)
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from reproduce.errors import UserError

PRECISIONS = ("float32", "tf32", "bfloat16")
"""float32: exact float32 everywhere. tf32: CUDA rounds the factors of all products and convolutions to 10 bits.
bfloat16: forward and backward passes by automatic differentiation (strategies `stacked` and `sequential`) run under
autocast. Parameters, updates, evaluation and aggregation are float32 in all of them."""


MOST = 1024
"""Threads beyond which a number is a slip."""


@dataclass(frozen=True)
class Settings:
    data: Path
    store: Path
    device: str
    threads: int
    precision: str = "float32"
    checkpoint: float = 20.0
    to_target: bool = False


def settings() -> Settings:
    """The settings in force; raises UserError for a value that makes no sense."""
    device = _word("REPRODUCE_DEVICE", "cpu", "cuda")
    precision = _word("REPRODUCE_PRECISION", *PRECISIONS)
    if precision == "tf32" and device != "cuda":
        raise UserError("REPRODUCE_PRECISION=tf32 is arithmetic of GPUs: set the device to cuda, or use bfloat16")
    threads = os.environ.get("REPRODUCE_THREADS", "1")
    if not re.fullmatch(r"[0-9]{1,5}", threads) or not 1 <= int(threads) <= MOST:
        raise UserError(f"REPRODUCE_THREADS={threads}: use a whole number of threads, 1 to {MOST}")
    checkpoint = os.environ.get("REPRODUCE_CHECKPOINT", "20")
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]*)?(e-?[0-9]{1,2})?", checkpoint):
        raise UserError(f"REPRODUCE_CHECKPOINT={checkpoint}: use a number of seconds, such as 20")
    data, store = _folder("REPRODUCE_DATA", "data"), _folder("REPRODUCE_STORE", ".reproduce")
    to_target = _word("REPRODUCE_TO_TARGET", "0", "1") == "1"
    return Settings(data, store, device, int(threads), precision, float(checkpoint), to_target)


def _word(name: str, *known: str) -> str:
    """The word of a variable, the first one by default."""
    value = os.environ.get(name, known[0])
    if value not in known:
        raise UserError(f"{name}={value}: use {', '.join(known[:-1])} or {known[-1]}")
    return value


def check_place() -> None:
    """Raises UserError where neither the project nor results are: all would be taken for not made there."""
    if Path("results").is_dir() or (Path("Snakefile").is_file() and Path("config/config.yaml").is_file()):
        return
    root = Path(__file__).parent.parent
    clone = root if (root / "Snakefile").is_file() else "your clone"
    raise UserError(f"{Path.cwd()} is not the folder of the project: run this where its results are (cd {clone})")


def _folder(name: str, default: str) -> Path:
    """The folder of a variable, which may not exist yet; UserError for what can never be one."""
    text = os.environ.get(name, default)
    path = Path(text)
    try:
        there = path.stat()
    except (FileNotFoundError, PermissionError):
        there = None
    except (OSError, ValueError) as error:  # a loop of links, a name that is too long, a file on the way
        raise UserError(f"{name}={text}: {getattr(error, 'strerror', None) or error}; name a folder") from error
    if not text or (there is not None and not stat.S_ISDIR(there.st_mode)):
        raise UserError(f"{name}={text}: not a folder; name one, or unset it (default: {default})")
    return path
