"""Reads stored weights (`models.weights`) for the tensors of a model that start from them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from reproduce.engine.layout import Layout
from reproduce.errors import MissingData, UserError
from reproduce.models.weights import FILES, HUB, find, missing
from reproduce.settings import Settings


class Stored(NamedTuple):
    """tensors: those of the model that are stored; checksums: name of the weights -> SHA-256 of their file."""

    tensors: dict[str, Tensor]
    checksums: dict[str, str]


def stored(layout: Layout, settings: Settings) -> Stored:
    """The stored tensors of the layout's model; none for a model that is all random.

    Raises MissingData without the file, UserError if it is damaged or holds another network.
    """
    name = layout.model.pretrained
    if not name:
        return Stored({}, {})
    path = find(name, settings.data)
    if path is None:
        raise MissingData(name, missing(name, settings.data))
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    if name in FILES and not sha256.startswith(FILES[name].split("-")[1].split(".")[0]):
        raise UserError(f"{path} is damaged: its SHA-256 is {sha256}; delete it and fetch it again")
    content = _hub_tensors(path, name) if name in HUB else torch.load(path, map_location="cpu", weights_only=True)
    tensors = {}
    for parameter in layout.names:
        if layout.model.is_stored(parameter):
            found, shape = content.get(parameter), layout.model.stored_shape(parameter)
            if found is None or tuple(found.shape) != shape:
                raise UserError(f"{path} holds no {parameter} of shape {shape}: it is not the network {name}")
            tensors[parameter] = found
    return Stored(tensors, {name: sha256})


def _hub_tensors(path: Path, name: str) -> dict[str, Tensor]:
    """A file of the hub by the names of its encoder's tensors, before which heads put the model's family."""
    from safetensors.torch import load_file

    try:
        content = load_file(path)
    except Exception as error:  # the library raises its own
        raise UserError(f"{path} is damaged ({error}); delete it and fetch it again") from error
    return {key.removeprefix(f"{name.split('-')[0]}."): value for key, value in content.items()}
