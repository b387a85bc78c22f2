"""The one door to torchvision: importable where its own operators do not load, and nothing changed elsewhere.

torchvision registers two operators in C++ and then describes them in Python. Beside another build of torch (a CPU
torch, and PyPI's torchvision, which is for CUDA) the C++ does not load, and `import torchvision` fails on the
description; so does transformers, which imports it. Operators of that name without a kernel are enough: they find
overlapping boxes, which nothing here does. `from reproduce.vision import torchvision`, also before transformers.
"""

from __future__ import annotations

import sys

import torch

LIBRARY: torch.library.Library | None = None
"""The operators live as long as this does; None: torchvision needs no help."""

try:
    import torchvision
except RuntimeError:  # anything else that is wrong is raised again below
    LIBRARY = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        LIBRARY.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    for name in [n for n in sys.modules if n.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    import torchvision

__all__ = ["LIBRARY", "torchvision"]
