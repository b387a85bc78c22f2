"""Stored weights: where the files are. `engine.weights` reads them, nothing here downloads any.

Networks that were trained on ImageNet are torchvision's; a file's name ends in the first 8 digits of its SHA-256. Those
of the model hub (Hugging Face) are folders, which hold their tokenizers, too.
"""

from __future__ import annotations

import os
from pathlib import Path

FILES = {"imagenet-resnet18": "resnet18-f37072fd.pth", "imagenet-resnet34": "resnet34-b627a593.pth"}
"""Name, as problems require it, and file."""
PAGE = "https://download.pytorch.org/models"
HUB = {"roberta-base": "FacebookAI/roberta-base"}
"""Name, as problems require it, and where it is on the hub."""
HUB_PAGE = "https://huggingface.co"
HUB_FILE = "model.safetensors"


def known(name: str) -> bool:
    """Is this a name of stored weights?"""
    return name in FILES or name in HUB


def find(name: str, data: Path, file: str = "") -> Path | None:
    """The weights, or another `file` of a model of the hub: in the data folder `data` (in `imagenet`, or in a folder of
    the name), or in the cache of torchvision or of the hub; None if it is nowhere.
    """
    ours, cache = _places(name, data)
    stems = [HUB[name].replace("/", "--"), name] if name in HUB else []
    versions = sorted(p for stem in stems for p in cache.glob(f"models--{stem}/snapshots/*"))
    file = file or FILES.get(name, HUB_FILE)
    return next((folder / file for folder in (ours, *versions, cache) if (folder / file).is_file()), None)


def missing(name: str, data: Path, file: str = "", otherwise: str = "declare the model with init='random'") -> str:
    """What is not there and what to do."""
    ours, cache = _places(name, data)
    file = file or FILES.get(name, HUB_FILE)
    fetch = f"the files of {HUB_PAGE}/{HUB[name]}" if name in HUB else f"{PAGE}/{file}"
    return f"no {file} of {name}: it is neither in {ours} nor in {cache}; fetch {fetch} into the former, or {otherwise}"


def _places(name: str, data: Path) -> tuple[Path, Path]:
    """The folder of the data folder, and the cache of the library that downloads such weights (torch.hub, the hub)."""
    base = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    if name in HUB:
        home = os.environ.get("HF_HOME", f"{base}/huggingface")
        return data / name, Path(os.environ.get("HF_HUB_CACHE", f"{home}/hub")).expanduser()
    home = os.environ.get("TORCH_HOME", f"{base}/torch")
    return data / "imagenet", Path(home).expanduser() / "hub" / "checkpoints"
