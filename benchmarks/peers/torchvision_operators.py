"""Importing this makes torchvision importable where its own operators do not load, and changes nothing elsewhere.

torchvision registers two operators in C++ and then describes them in Python. Beside another build of torch (a CPU
torch, and PyPI's torchvision, which is for CUDA) the C++ does not load, and `import torchvision` fails on the
description. Operators of that name without a kernel are enough: no peer calls them.
"""

from __future__ import annotations

import sys

import torch

LIBRARY: torch.library.Library | None = None
"""The operators live as long as this does; None: torchvision needs no help, or is not there."""

try:
    import torchvision
except ModuleNotFoundError:
    pass
except RuntimeError:  # anything else that is wrong is raised again below
    LIBRARY = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        LIBRARY.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    for name in [n for n in sys.modules if n.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    import torchvision  # noqa: F401
