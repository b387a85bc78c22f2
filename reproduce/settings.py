"""Where things are: folders, device and threads of this run, from the environment.

The workflow sets these variables from `config/config.yaml`; a user of the bare engine sets them by hand.

REPRODUCE_DATA      folder with the data sets (layout in docs/data.md); default: `data` in the working directory
REPRODUCE_STORE     decoded data, checkpoints and finished runs; default: `.reproduce` in the working directory
REPRODUCE_DEVICE    `cpu` (default) or `cuda`
REPRODUCE_THREADS   worker threads inside one job; default 1 (results do not depend on it)
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from reproduce.errors import UserError


@dataclass(frozen=True)
class Settings:
    data: Path
    store: Path
    device: str
    threads: int


def settings() -> Settings:
    """The settings in force; raises UserError for a value that makes no sense."""
    env = os.environ.get
    device = env("REPRODUCE_DEVICE", "cpu")
    if device not in ("cpu", "cuda"):
        raise UserError(f"REPRODUCE_DEVICE={device}: use cpu or cuda")
    try:
        threads = int(env("REPRODUCE_THREADS", "1"))
    except ValueError as error:
        raise UserError(f"REPRODUCE_THREADS={env('REPRODUCE_THREADS')}: use a whole number of threads") from error
    if threads < 1:
        raise UserError(f"REPRODUCE_THREADS={threads}: use at least 1")
    return Settings(Path(env("REPRODUCE_DATA", "data")), Path(env("REPRODUCE_STORE", ".reproduce")), device, threads)
