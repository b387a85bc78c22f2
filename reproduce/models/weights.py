"""Stored weights: where the files are, and reading the tensors of a model that start from them. Nothing is downloaded.

Networks that were trained on ImageNet are torchvision's; a file's name ends in the first 8 digits of its SHA-256. Those
of the model hub (Hugging Face) are folders, which hold their tokenizers, too.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from reproduce.errors import MissingData, UserError
from reproduce.models.model import Model
from reproduce.settings import Settings

if TYPE_CHECKING:
    from torch import Tensor

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


class Stored(NamedTuple):
    """tensors: those of the model that are stored; checksums: name of the weights -> SHA-256 of their file."""

    tensors: dict[str, Tensor]
    checksums: dict[str, str]


def stored(model: Model, settings: Settings) -> Stored:
    """The stored tensors of the model; none for one that is all random.

    Raises MissingData without the file, UserError if it is damaged or holds another network.
    """
    name = model.pretrained
    if not name:
        return Stored({}, {})
    path = find(name, settings)
    if path is None:
        raise MissingData(name, missing(name, settings))
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    if name in FILES and not sha256.startswith(FILES[name].split("-")[1].split(".")[0]):
        raise UserError(f"{path} is damaged: its SHA-256 is {sha256}; delete it and fetch it again")
    content, tensors = _content(path, name), {}
    for parameter in filter(model.is_stored, model.shapes):
        found, shape = content.get(parameter), model.stored_shape(parameter)
        if found is None or tuple(found.shape) != shape:
            raise UserError(f"{path} holds no {parameter} of shape {shape}: it is not the network {name}")
        tensors[parameter] = found
    return Stored(tensors, {name: sha256})


def _content(path: Path, name: str) -> dict[str, Tensor]:
    """All tensors of a file; of the hub's by the names of its encoder's, before which heads put the model's family."""
    if name not in HUB:
        import torch

        return torch.load(path, map_location="cpu", weights_only=True)  # type: ignore[no-any-return]
    from safetensors.torch import load_file

    try:
        content = load_file(path)
    except Exception as error:  # the library raises its own
        raise UserError(f"{path} is damaged ({error}); delete it and fetch it again") from error
    return {key.removeprefix(f"{name.split('-')[0]}."): value for key, value in content.items()}
