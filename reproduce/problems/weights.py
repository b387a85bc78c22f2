"""Stored weights of networks that were trained on ImageNet: where the files are. `engine.weights` reads them.

They are torchvision's, which nothing here downloads. A file's name ends in the first 8 digits of its SHA-256.
"""

from __future__ import annotations

import os
from pathlib import Path

from reproduce.settings import Settings

FILES = {"imagenet-resnet18": "resnet18-f37072fd.pth", "imagenet-resnet34": "resnet34-b627a593.pth"}
"""Name, as problems require it, and file."""
PAGE = "https://download.pytorch.org/models"


def find(name: str, settings: Settings) -> Path | None:
    """The file in the folder `imagenet` of the data folder, or in the cache of torchvision; None if it is nowhere."""
    places = (settings.data / "imagenet" / FILES[name], _cache() / FILES[name])
    return next((path for path in places if path.is_file()), None)


def missing(name: str, settings: Settings) -> str:
    """What is not there and what to do."""
    return (
        f"no ImageNet weights: {FILES[name]} is neither in {settings.data / 'imagenet'} nor in {_cache()}; fetch "
        f"{PAGE}/{FILES[name]} into one of them, or declare the model with init='random'"
    )


def _cache() -> Path:
    """Where torch.hub, and with it torchvision, keeps what it downloaded."""
    base = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return Path(os.environ.get("TORCH_HOME", f"{base}/torch")).expanduser() / "hub" / "checkpoints"
