"""The peers benchmark without peers: which Python runs what, and torchvision beside another torch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

TORCHVISION = """
import torch
import torchvision.extension
torchvision.extension.LOADED
if {broken}:
    @torch.library.register_fake("torchvision::nms")
    def nms(dets, scores, iou_threshold):
        return dets
from torchvision import datasets
"""
IMPORT = """
import torchvision.datasets
print("no")
"""
HELPED = """
from reproduce import vision
import torchvision.datasets
print(vision.LIBRARY is not None)
"""


def fake_torchvision(folder: Path, source: str) -> None:
    package = folder / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text(source)
    (package / "datasets.py").write_text("")
    (package / "extension.py").write_text("LOADED = True")


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120)


@pytest.mark.parametrize("broken", [True, False])
def test_torchvision_is_importable_whether_or_not_its_operators_load(broken: bool, tmp_path: Path) -> None:
    fake_torchvision(tmp_path, TORCHVISION.format(broken=broken))
    assert (python(IMPORT, tmp_path).returncode == 0) is not broken
    helped = python(HELPED, tmp_path)
    assert helped.stdout.strip() == str(broken), helped.stderr


def test_another_defect_of_torchvision_is_not_hidden(tmp_path: Path) -> None:
    fake_torchvision(tmp_path, "raise RuntimeError('no disk')")
    assert "no disk" in python(HELPED, tmp_path).stderr
