"""Translates modules of torch to graphs (`modules.graph`): torch.fx traces them, each node becomes an operator.

That a graph computes what the module does is checked elsewhere: of a user's module by `modules.check_translation`, of
those of this package by tests.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from reproduce.modules.graph import Graph, Step

SAFE = {"conv", "linear", "norm", "layer_norm", "pool", "add"}
"""Operators whose output may be overwritten: their way back does not read it."""


DROPOUT = nn.Dropout | nn.Dropout2d


class Unknown(Exception):
    """A part of a module that no operator set computes."""


class MeanEmbedding(nn.Embedding):
    """The mean [B, F] of the rows that the token ids [B, L] name; id 0 is padding and does not count."""

    def forward(self, ids: Tensor) -> Tensor:
        kept = (ids != 0).unsqueeze(-1)  # [B, L, 1]
        return (super().forward(ids) * kept).sum(1) / (kept.sum(1) + 1e-6)


def window(*names: str) -> Callable[[Any], dict[str, int]]:
    """Size, stride and padding of a layer's window, as they are in the first direction."""

    def options(m: Any) -> dict[str, int]:
        values = {name.removeprefix("kernel_"): getattr(m, name) for name in names}
        return {name: value[0] if isinstance(value, list | tuple) else value for name, value in values.items()}

    return options


LAYERS: dict[type[nn.Module], tuple[str, Callable[[Any], dict[str, Any]]]] = {
    nn.Conv2d: ("conv", window("stride", "padding")),
    nn.Linear: ("linear", lambda m: {}),
    nn.BatchNorm2d: ("norm", lambda m: {}),
    nn.LayerNorm: ("layer_norm", lambda m: {}),
    nn.MaxPool2d: ("pool", window("kernel_size", "stride", "padding")),
    nn.AdaptiveAvgPool2d: ("global_pool", lambda m: {}),
    nn.ReLU: ("relu", lambda m: {}),
    nn.Dropout: ("dropout", lambda m: {"p": m.p}),
    nn.Dropout2d: ("channel_dropout", lambda m: {"p": m.p}),
    MeanEmbedding: ("embed", lambda m: {}),
}
"""Kind of layer -> its operator, and the operator's arguments beside tensors. What a layer does beyond its operator is
not seen here: the graph then computes something else than the module, and `modules.check_translation` refuses it."""
FUNCTIONS: dict[str, Callable[..., nn.Module]] = {
    **{"relu": nn.ReLU, "max_pool2d": nn.MaxPool2d, "mean": lambda *dims, **kept: nn.AdaptiveAvgPool2d(1)},
    **dict.fromkeys(("flatten", "view", "reshape"), nn.Flatten),
}
"""Functions that compute what a layer without parameters does, whose arguments they take."""
NAMES: dict[Any, str] = {
    getattr(where, name): name for where in (torch, F) for name in (*FUNCTIONS, "relu_", "add") if hasattr(where, name)
} | {operator.add: "add", operator.iadd: "add", operator.getitem: "getitem", getattr: "getattr"}


class Tracer(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, MeanEmbedding) or super().is_leaf_module(m, module_qualified_name)


def tensors(module: nn.Module) -> dict[str, Tensor]:
    """The entries of a module's vector: parameters and stored buffers of floating point, in the order of the state.

    What is shared is there once. Counters and what is not stored are none.
    """
    known: dict[int, tuple[str, Tensor]] = {}
    for prefix, m in module.named_modules():
        kept = {n: b for n, b in m._buffers.items() if n not in m._non_persistent_buffers_set}
        for name, t in (dict(m._parameters.items()) | kept).items():
            if t is not None and (name in m._parameters or t.is_floating_point()):
                known.setdefault(id(t), (f"{prefix}.{name}".removeprefix("."), t))
    return dict(known.values())


def entries(module: nn.Module) -> tuple[dict[str, tuple[int, ...]], frozenset[str]]:
    """Shapes of the entries of a module's vector, and which of them are buffers. A frozen parameter has gradient 0."""
    named = tensors(module)
    buffers = frozenset(n for n, t in named.items() if not isinstance(t, nn.Parameter))
    return {n: tuple(t.shape) for n, t in named.items()}, buffers


def translate(module: nn.Module) -> Graph:
    """The graph of a module; Unknown names the first layer that keeps it from having one."""
    known = entries(module.train())
    if frozen := [name for name, t in module.named_parameters() if not t.requires_grad]:
        raise Unknown(f"{frozen[0]} is frozen (requires_grad=False)")
    try:
        traced = Tracer().trace(module)
    except Exception as error:  # whatever a forward pass raises when it is handed no tensor
        raise Unknown(f"torch.fx cannot trace it ({type(error).__name__})") from error
    return Writer(module, traced).graph(*known)


class Writer:
    """Goes through the nodes of a traced module and writes a step for each that computes."""

    def __init__(self, module: nn.Module, traced: fx.Graph) -> None:
        self.module, self.nodes = module, list(traced.nodes)
        self.steps: list[Step] = []
        self.values: dict[fx.Node, int] = {}
        self.outputs: tuple[int, ...] = ()

    def graph(self, shapes: dict[str, tuple[int, ...]], buffers: frozenset[str]) -> Graph:
        for node in self.nodes:
            self._node(node)
        used = {f"{s.layer}." for s in self.steps if s.layer}
        if lost := [n for n in shapes if not n.startswith(tuple(used))]:
            raise Unknown(f"{lost[0]} is not the parameter of a layer")
        for i, step in enumerate(self.steps):
            source = step.inputs[0]
            before, alone = self.steps[source - 1], source > 0 and self._readers(source) == 1
            if step.op == "pool" and before.op == "relu" and alone:  # to the bit the same before ReLU, with less work
                self.steps[source - 1] = replace(step, inputs=before.inputs)
                self.steps[i] = replace(before, inputs=(source,))
        steps = tuple(self._relu(step) for step in self.steps)
        return Graph(shapes, buffers, steps, self.outputs, _features(steps, self.outputs[-1]))

    def _readers(self, value: int) -> int:
        return sum(s.inputs.count(value) for s in self.steps) + self.outputs.count(value)

    def _relu(self, step: Step) -> Step:
        """In place where nobody else reads what it overwrites."""
        source = step.inputs[0]
        safe = source > 0 and self._readers(source) == 1 and self.steps[source - 1].op in SAFE
        return step if step.op != "relu" or safe else replace(step, op="relu_apart")

    def _node(self, node: fx.Node) -> None:
        if node.op == "placeholder":
            self.values[node] = 0
        elif node.op == "output":
            self.outputs = tuple(self._outputs(node.args[0]))
        elif node.op == "call_module":
            self._layer(node, str(node.target), self.module.get_submodule(str(node.target)))
        else:
            self._function(node)

    def _outputs(self, given: Any) -> Iterator[int]:
        for value in given if isinstance(given, list | tuple) else (given,):
            if value not in self.values:
                raise Unknown("its output is not what a layer gives")
            yield self.values[value]

    def _function(self, node: fx.Node) -> None:
        name = node.target if isinstance(node.target, str) else NAMES.get(node.target, "")
        call, rest = f"{getattr(node.target, '__name__', node.target)}()", node.args[1:]
        if name in ("size", "getattr", "getitem"):
            return  # of a shape: what else is read so is no value, and nothing may be computed from it
        if name.rstrip("_") == "add" and len(rest) == 1:
            self.add(node, "add")
        elif name.rstrip("_") in FUNCTIONS and node.op != "get_attr":
            kind = FUNCTIONS[name.rstrip("_")]
            self._layer(node, call, kind() if kind is nn.Flatten else kind(*rest, **node.kwargs))
        else:
            raise Unknown(call)

    def _layer(self, node: fx.Node, name: str, m: Any) -> None:
        """The step of a layer of torch."""
        if type(m) is nn.Identity or (isinstance(m, DROPOUT) and not m.p):
            self.same(node)
        elif type(m) is nn.Flatten:
            pooled = self.given(node) and self.steps[self.given(node) - 1].op == "global_pool"
            self.same(node) if pooled else self.add(node, "flatten")  # what is pooled has no axes but features
        elif type(m) not in LAYERS:
            raise Unknown(name if name.endswith("()") else f"{name} ({type(m).__name__})")
        else:
            op, options = LAYERS[type(m)]
            weighted = next(m.parameters(recurse=False), None) is not None
            self.add(node, op, name if weighted else "", **options(m))

    def given(self, node: fx.Node) -> int:
        """The number of the value that the node takes."""
        if not node.args or node.args[0] not in self.values:
            raise Unknown(f"{node.target} takes something else than what a layer gives")
        return self.values[node.args[0]]  # type: ignore[index]

    def same(self, node: fx.Node) -> None:
        """The node changes nothing."""
        self.values[node] = self.given(node)

    def add(self, node: fx.Node, op: str, layer: str = "", **options: Any) -> None:
        """A step for `node` of its tensors."""
        self.given(node)
        inputs = tuple(self.values[a] for a in node.args if isinstance(a, fx.Node) and a in self.values)
        self.steps.append(Step(op, inputs, layer, tuple(options.items())))
        self.values[node] = len(self.steps)


def _features(steps: tuple[Step, ...], output: int) -> int:
    """The representation: what goes into the last linear layer, before dropout; the logits, if that are the samples."""
    last = next((i for i in range(output, 0, -1) if steps[i - 1].op == "linear"), 0)
    at = steps[last - 1].inputs[0] if last else 0
    while at and steps[at - 1].op == "dropout":
        at = steps[at - 1].inputs[0]
    return at if at and not (steps[at - 1].op == "flatten" and steps[at - 1].inputs == (0,)) else output
