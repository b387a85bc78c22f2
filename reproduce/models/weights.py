"""Stored weights: where the files are, and reading the tensors of a model that start from them. Nothing is downloaded.

Networks that were trained on ImageNet are torchvision's; a file's name ends in the first 8 digits of its SHA-256. Those
of the model hub (Hugging Face) are folders, which hold their tokenizers, too.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

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
    """Returns whether this is a name of stored weights."""
    return name in FILES or name in HUB


def find(name: str, data: Path, file: str = "") -> Path | None:
    """The weights, or another `file` of a model of the hub: in the data folder `data` (in `imagenet`, or in a folder of
    the name), or in the cache of torchvision or of the hub; None if it is nowhere.
    """
    file = file or FILES.get(name, HUB_FILE)
    return next((folder / file for folder in _places(name, data) if (folder / file).is_file()), None)


def missing(name: str, data: Path, file: str = "", otherwise: str = "declare the model with init='random'") -> str:
    """A line that says what is not there and what to do."""
    ours, *_, cache = _places(name, data)
    file = file or FILES.get(name, HUB_FILE)
    fetch = f"the files of {HUB_PAGE}/{HUB[name]}" if name in HUB else f"{PAGE}/{file}"
    return f"no {file} of {name}: it is neither in {ours} nor in {cache}; fetch {fetch} into the former, or {otherwise}"


def _places(name: str, data: Path) -> list[Path]:
    """Our folder, and those of the library that downloads such weights (torch.hub, the hub), its cache at the end."""
    base = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    if name not in HUB:
        home = os.environ.get("TORCH_HOME", f"{base}/torch")
        return [data / "imagenet", Path(home).expanduser() / "hub" / "checkpoints"]
    home = os.environ.get("HF_HOME", f"{base}/huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE", f"{home}/hub")).expanduser()
    versions = [p for stem in (HUB[name].replace("/", "--"), name) for p in cache.glob(f"models--{stem}/snapshots/*")]
    return [data / name, *sorted(versions), cache]


def stored(model: Model, settings: Settings) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The stored tensors of the model, and the SHA-256 of their file by the name of the weights; none for one that is
    all random.

    Raises MissingData without the file, UserError if it is damaged or holds another network.
    """
    name = model.pretrained
    if not name:
        return {}, {}
    path = find(name, settings.data)
    if path is None:
        raise MissingData(name, missing(name, settings.data))
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    if name in FILES and not sha256.startswith(FILES[name].split("-")[1].split(".")[0]):
        raise UserError(f"{path} is damaged: its SHA-256 is {sha256}; delete it and fetch it again")
    content, tensors = _content(path, name), {}
    for parameter in (n for n in model.shapes if not n.startswith(model.fresh)):
        tensor, shape = content.get(parameter), model.shapes[parameter]
        if tensor is None or tuple(tensor.shape) != shape:
            raise UserError(f"{path} holds no {parameter} of shape {shape}: it is not the network {name}")
        tensors[parameter] = tensor
    return tensors, {name: sha256}


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
