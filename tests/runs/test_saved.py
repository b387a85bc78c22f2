"""Saved models: what a user's own module makes of the file is what the run measured."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from runs import DIGITS, experiment, run
from safetensors import safe_open
from safetensors.torch import load_file

from reproduce.models.declared import MLP
from reproduce.models.model import Model
from reproduce.models.network import Network
from reproduce.partitions.heldout import judged
from reproduce.runs import saved


@pytest.mark.parametrize("model", [MLP(64, 12, 10), Network("own_modules:make", (("name", "BN(4)"),))])
def test_a_module_loads_the_file_and_has_the_accuracy_of_the_run(tmp_path: Path, model: Model) -> None:
    e = replace(experiment(2), problem=replace(DIGITS, model=model))
    done = run([e, judged(e)])
    saved.write(done, tmp_path)
    (file,) = tmp_path.iterdir()
    assert file == saved.path(tmp_path, e, 0)
    module = model.module()
    module.load_state_dict(load_file(file))
    data = done[0].env.split.device_data  # type: ignore[union-attr]
    with torch.inference_mode():
        out = module.eval()(data.test_x)
    logits = out[1][-1] if isinstance(out, tuple) else out
    accuracy = 100 * (logits.argmax(1) == data.test_y).float().mean().item()
    with safe_open(file, "pt") as stored:
        told = {name: json.loads(text) for name, text in stored.metadata().items()}
    assert told["metrics"]["accuracy"] == pytest.approx(accuracy)
    assert (told["seed"], told["status"], told["mean"]) == (0, "ok", [])
    assert told["experiment"] == json.loads(json.dumps(e.record()))
