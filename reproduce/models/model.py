"""Networks as records, each of which names a module of torch.

A record is a frozen value that needs no torch. The module is traced once and becomes a graph (`graph.py`), which serves
one client, a stack of clients, compiled code, and the counting of parameters and multiplications.

The vector of a model holds the module's parameters and its stored buffers of floating point, by the names and in the
order of its state. Buffers (running means and variances) are left alone by steps of SGD, moved by forward passes in
training, and averaged by servers; counters are no part of it.
"""

from __future__ import annotations

import hashlib
import json
import math
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from reproduce.declare.values import Sample
from reproduce.files import read_source, write_text
from reproduce.modules.graph import Count, Graph, Shapes

PACKAGE = Path(__file__).parents[1]
KEPT = PACKAGE / "models/networks.json"


@dataclass(frozen=True)
class Initial:
    """The law of one tensor's start: `kind` uniform, normal or constant, `scale` = half-width, deviation or value.

    "rows" is normal with a first row of zeros (embeddings, whose row 0 is the padding).
    """

    kind: str
    scale: float


@dataclass(frozen=True)
class Model:
    """A network. `make` names the callable that makes its module of this record, "module:name"."""

    make: ClassVar[str] = ""
    foreign: ClassVar[bool] = False
    """True of a user's own, whose module initialises itself and may run eagerly."""
    embedding: ClassVar[str] = ""
    """The tensor of which a batch reads, and a step moves, only the rows that its samples name; "" if none."""
    pretrained: ClassVar[str] = ""
    """The stored weights (weights.py) that the initial model takes; "" if all of it is random."""
    fresh: ClassVar[tuple[str, ...]] = ()
    """Prefixes of the tensors that are random all the same."""
    tokens: ClassVar[int] = 0
    """The number of token ids that it knows, from 0 on; 0 if its samples are not texts."""
    longest: ClassVar[int] = 0
    """Tokens in the longest text that it reads; 0 if there is no such limit."""
    untraced: ClassVar[str] = ""
    """The reason why its module, which gives the representation and the logits of all exits, has no graph; "" if it has
    one."""

    def module(self) -> Any:
        """The module of torch, as its own code initialises it; `initial` is the law of experiments."""
        return pkgutil.resolve_name(self.make)(self)

    def on(self, sample: Sample, batch: int, evaluation: int) -> Model:
        """The network as it is for these samples, so many in a batch of training and of evaluation."""
        return self

    def of(self, seed: int) -> Model:
        """The network as runs with this seed compute it."""
        return self

    @property
    def graph(self) -> Graph:
        """The module as data."""
        return graph_of(self)

    @property
    def parts(self) -> tuple[Model, ...]:
        """The networks whose modules are traced for this one: itself."""
        return (self,)

    @property
    def shapes(self) -> Shapes:
        """Name -> shape of the entries of the vector, in order."""
        return self.graph.shapes

    @property
    def axes(self) -> Shapes:
        """`shapes` with axes split where a narrower form keeps the first indices of each part."""
        return self.shapes

    @property
    def kind(self) -> str:
        """The kind of network: "softmax" (one linear layer), "dense" (two, with ReLU between), "eager" (a module
        without a graph), "module" (a user's own likewise), or "layers"."""
        if self.graph.untraced:
            return "eager"
        if self.graph.ordered("linear"):
            return "softmax"
        return "dense" if self.graph.ordered("linear", "relu", "linear") else "layers"

    def forward(self, ops: Any, p: Mapping[str, Any], x: Any) -> Any:
        """Logits of a batch: ops-specific activations in, [batch, classes] (or [clients, batch, classes]) out."""
        return self._run(ops, p, x, self.graph.outputs[-1:])[0]

    def encode(self, ops: Any, p: Mapping[str, Any], x: Any) -> Any:
        """The representation [batch, F] (or [clients, batch, F]) of a batch, which contrastive terms compare."""
        return self._run(ops, p, x, [self.graph.features])[0]

    def both(self, ops: Any, p: Mapping[str, Any], x: Any) -> tuple[Any, Any]:
        """Representation and logits of a batch."""
        z, logits = self._run(ops, p, x, [self.graph.features, self.graph.outputs[-1]])
        return z, logits

    def exit_logits(self, ops: Any, p: Mapping[str, Any], x: Any) -> list[Any]:
        """Logits of all exits, the first exit's first."""
        return self._run(ops, p, x, self.graph.outputs)

    def _run(self, ops: Any, p: Mapping[str, Any], x: Any, wanted: Sequence[int]) -> list[Any]:
        """The `wanted` values of the graph; of a module without one the value 1 is the representation, and the next
        are the logits of its exits."""
        if not self.graph.untraced:
            return self.graph.run(ops, p, x, wanted)
        values = x, *self._called(ops, p, x)
        return [values[i] for i in wanted]

    def _called(self, ops: Any, p: Mapping[str, Any], x: Any) -> tuple[Any, ...]:
        """Representation and logits of all exits by the module itself."""
        from reproduce.modules.eager import called

        return called(self, ops, p, x)

    @property
    def batch_statistics(self) -> bool:
        """True if the output for one sample depends on its whole batch, which may then be neither padded nor cut."""
        return "norm" in self.graph.kinds or bool(self.graph.untraced)

    def needs_batch(self, sample: tuple[int, ...]) -> str:
        """The first layer with batch normalisation over one number per sample and channel, which no batch of a single
        sample can go through in training; "" if there is none."""
        return next((name for name, x in self.cost(sample).normed.items() if math.prod(x[1:]) == 1), "")

    @property
    def separable(self) -> bool:
        """True if a batch may be cut into pieces: not if samples see each other or share a stream of dropout masks."""
        return not (self.batch_statistics or self.embedding or any("dropout" in kind for kind in self.graph.kinds))

    def initial(self, name: str) -> Initial:
        """PyTorch's default: weights and biases uniform in +-1/sqrt(fan_in); normalisation scale 1, shift 0."""
        shape = self.shapes[name]
        if name in self.buffers:
            return Initial("constant", float(name.endswith("running_var")))
        if len(shape) == 1 and name.endswith("weight"):
            return Initial("constant", 1.0)
        if name.endswith("bias"):
            weight = self.shapes[name.removesuffix("bias") + "weight"]
            if len(weight) == 1:
                return Initial("constant", 0.0)
            return Initial("uniform", 1 / math.sqrt(math.prod(weight[1:])))
        return Initial("uniform", 1 / math.sqrt(math.prod(shape[1:])))

    def narrowed(self, width: float, scale: bool = True) -> Model:
        """The network with the first share `width` of every layer's channels; ValueError if it has no such form.

        scale: the outputs of convolutions are divided by `width` (of texts: of all layers that are cut).
        """
        raise ValueError(f"a {type(self).__name__} has no narrower form")

    @property
    def exits(self) -> tuple[int, ...]:
        """The numbers of parts after which there is a classifier; empty if there is only one."""
        return ()

    def with_exits(self, exits: tuple[int, ...]) -> Model:
        """The same network with classifiers after these parts; ValueError if there is no such form of it."""
        raise ValueError(f"there is no form of a {type(self).__name__} with exits")

    def cut(self, exits: int, width: float) -> Model:
        """The network up to exit number `exits`, with the first share `width` of every layer's channels."""
        raise ValueError(f"this needs a network with exits, and a {type(self).__name__} has none")

    @property
    def maskable(self) -> tuple[str, ...]:
        """The parameters that magnitude masks may leave out: weights of two axes and more, and biases beside them."""
        shapes = self.shapes
        return tuple(n for n in shapes if len(shapes.get(f"{n.rpartition('.')[0]}.weight", ())) > 1)

    @property
    def buffers(self) -> frozenset[str]:
        """The entries of the vector that are not trained: running means and variances."""
        return self.graph.buffers

    @property
    def parameters(self) -> int:
        """The count of numbers that are trained."""
        return sum(math.prod(s) for n, s in self.shapes.items() if n not in self.buffers)

    def cost(self, sample: tuple[int, ...]) -> Count:
        """The count of a forward pass on one sample of shape (channels, ...).

        ValueError names the layer that such a sample does not fit.
        """
        count = Count(dict(self.shapes))
        count.outputs = self.forward(count, {}, sample)
        return count


# --- the graphs of the declared networks, kept in a file so that planning needs no torch ------------------------------


def sources() -> str:
    """A digest of the sources that kept graphs follow from, beside the record: with others they do not count."""
    names = "models/small.py", "models/library.py", "modules/translate.py", "modules/graph.py"
    return hashlib.sha256(b"\0".join(read_source(PACKAGE / name) for name in names)).hexdigest()[:16]


@cache
def kept() -> dict[str, Any]:
    """The graphs that are kept, by the words of their records; none if they were made by other sources."""
    content = json.loads(KEPT.read_bytes()) if KEPT.is_file() else {}
    graphs: dict[str, Any] = content.get("networks", {}) if content.get("sources") == sources() else {}
    return graphs


def keep(graphs: Mapping[str, Graph]) -> None:
    """Writes the graphs by the words of their records; a full disk is an error, and nothing is half-written."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(graph.to_json())}" for name, graph in sorted(graphs.items()))
    write_text(KEPT, f'{{"sources": "{sources()}", "networks": {{\n{lines}\n}}}}\n')
    kept.cache_clear()


@cache
def graph_of(model: Model) -> Graph:
    """The graph of a network, kept or translated now (which needs torch); UserError if there is no such module."""
    stored = kept().get(repr(model))
    return translated(model) if stored is None else Graph.from_json(stored)


def translated(model: Model) -> Graph:
    """The graph of a declared network; one that is neither traced nor `untraced` is an error of this package."""
    import torch

    from reproduce.modules.translate import entries, translate

    with torch.device("meta"):
        module = model.module()
    if not model.untraced:
        return translate(module)
    outputs = tuple(2 + i for i in range(max(1, len(model.exits))))
    return Graph(*entries(module), outputs=outputs, features=1, untraced=model.untraced)
