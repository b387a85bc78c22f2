"""Stored weights: where the files are. `engine.weights` reads them, nothing here downloads any.

Networks that were trained on ImageNet are torchvision's; a file's name ends in the first 8 digits of its SHA-256. Those
of the model hub (Hugging Face) are folders, which hold their tokenizers, too.
"""

from __future__ import annotations

import os
from pathlib import Path

from reproduce.settings import Settings

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


def find(name: str, settings: Settings) -> Path | None:
    """The file in the data folder (in `imagenet`, or in a folder of the name), or in the cache of torchvision or of the
    hub; None if it is nowhere.
    """
    if name in HUB:
        folder = hub_folder(name, settings.data, HUB_FILE)
        return folder / HUB_FILE if folder else None
    places = (settings.data / "imagenet" / FILES[name], _cache() / FILES[name])
    return next((path for path in places if path.is_file()), None)


def missing(name: str, settings: Settings) -> str:
    """What is not there and what to do."""
    if name in HUB:
        return missing_on_hub(name, settings.data, HUB_FILE, "or declare the model with init='random'")
    return (
        f"no ImageNet weights: {FILES[name]} is neither in {settings.data / 'imagenet'} nor in {_cache()}; fetch "
        f"{PAGE}/{FILES[name]} into one of them, or declare the model with init='random'"
    )


def hub_folder(name: str, data: Path, file: str) -> Path | None:
    """The folder `name` of the data folder, or of the hub's local cache, that has the file; None if there is none."""
    return next((folder for folder in (data / name, *_snapshots(name)) if (folder / file).is_file()), None)


def missing_on_hub(name: str, data: Path, file: str, otherwise: str) -> str:
    """What is not there and what to do."""
    return (
        f"no {file} of {name}: it is neither in {data / name} nor in {_hub_cache()}; fetch the files of "
        f"{HUB_PAGE}/{HUB[name]} into the former, {otherwise}"
    )


def _cache() -> Path:
    """Where torch.hub, and with it torchvision, keeps what it downloaded."""
    base = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return Path(os.environ.get("TORCH_HOME", f"{base}/torch")).expanduser() / "hub" / "checkpoints"


def _hub_cache() -> Path:
    """Where the hub's library keeps what it downloaded."""
    base = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    home = os.environ.get("HF_HOME", f"{base}/huggingface")
    return Path(os.environ.get("HF_HUB_CACHE", f"{home}/hub")).expanduser()


def _snapshots(name: str) -> list[Path]:
    """The versions of a model in the cache."""
    stems = (HUB[name].replace("/", "--"), name)
    return sorted(p for stem in stems for p in _hub_cache().glob(f"models--{stem}/snapshots/*"))
