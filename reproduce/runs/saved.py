"""Trained models in files of safetensors, with the names of the module's `state_dict()`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce import files
from reproduce.declare.experiment import Experiment
from reproduce.partitions.heldout import JUDGE
from reproduce.runs.provenance import commit

if TYPE_CHECKING:
    from reproduce.engine.scheduler import Run


def path(folder: Path, experiment: Experiment, seed: int) -> Path:
    """The file of a run: benchmark and algorithm, a digest of the declaration, the seed."""
    labels = (str(experiment.labels.get(name, "")) for name in ("benchmark", "algorithm"))
    words = (re.sub("[^a-z0-9]+", "-", label.lower()).strip("-") for label in labels)
    return folder / "--".join([*filter(None, words), experiment.declaration[:8], f"seed{seed}.safetensors"])


def write(runs: Sequence[Run], folder: Path) -> None:
    """Write the model of each run, but of those that choose a rate, and of a quadratic, which has none.

    The metadata are JSON: experiment, seed, status, commit, the last value of each metric, mean and std of the data.
    """
    from safetensors.torch import save

    for run in runs:
        problem, model = run.experiment.problem, run.experiment.problem.model
        if model is None or JUDGE in run.experiment.labels:
            continue
        module: Any = model.module()
        module.load_state_dict(run.env.split.device_data.layout.named(run.state["x"]), strict=False)  # type: ignore[union-attr]
        state = {name: t.detach().cpu().clone().contiguous() for name, t in module.state_dict().items()}
        told = {"experiment": run.experiment.record(), "seed": run.seed, "status": run.state["status"],
                "metrics": {metric: value for _, _, metric, key, value in run.state["history"] if not key},
                "commit": commit(), "mean": problem.mean, "std": problem.std}  # fmt: skip
        content = save(state, {name: json.dumps(value) for name, value in told.items()})
        files.write(path(folder, run.experiment, run.seed), lambda file, content=content: file.write(content))  # type: ignore[misc]
