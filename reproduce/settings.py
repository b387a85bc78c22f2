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

import math
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
    env = os.environ.get
    device = env("REPRODUCE_DEVICE", "cpu")
    if device not in ("cpu", "cuda"):
        raise UserError(f"REPRODUCE_DEVICE={device}: use cpu or cuda")
    precision = env("REPRODUCE_PRECISION", "float32")
    if precision not in PRECISIONS:
        raise UserError(f"REPRODUCE_PRECISION={precision}: use {', '.join(PRECISIONS[:-1])} or {PRECISIONS[-1]}")
    if precision == "tf32" and device != "cuda":
        raise UserError("REPRODUCE_PRECISION=tf32 is arithmetic of GPUs: set the device to cuda, or use bfloat16")
    text = env("REPRODUCE_THREADS", "1")
    if not re.fullmatch(r"-?[0-9]{1,30}", text):  # int() takes 1_0 and the digits of other scripts
        raise UserError(f"REPRODUCE_THREADS={text}: use a whole number of threads")
    threads = int(text)
    if not 1 <= threads <= MOST:
        raise UserError(f"REPRODUCE_THREADS={threads}: use 1 to {MOST}")
    checkpoint = _seconds(env("REPRODUCE_CHECKPOINT", "20"))
    data, store = _folder("REPRODUCE_DATA", "data"), _folder("REPRODUCE_STORE", ".reproduce")
    to_target = env("REPRODUCE_TO_TARGET", "0")
    if to_target not in ("0", "1"):
        raise UserError(f"REPRODUCE_TO_TARGET={to_target}: use 0 or 1")
    return Settings(data, store, device, threads, precision, checkpoint, to_target == "1")


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


def _seconds(text: str) -> float:
    """`REPRODUCE_CHECKPOINT` as a number."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise UserError(f"REPRODUCE_CHECKPOINT={text}: use a number of seconds, such as 20")
    return seconds
