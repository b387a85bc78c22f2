"""Writes modules of torch down as graphs (`models.graph`): torch.fx traces them, each node becomes an operator.

What an operator set does not know, or what fx cannot trace, runs by itself (`models.alone`); the graph then says why.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import fx, nn

from reproduce.models.graph import Graph, Step
from reproduce.models.layers import AS_LAYERS, DROPOUTS, EACH, LAYERS, MODES, NAMES, Unknown
from reproduce.models.model import Model
from reproduce.models.small import MeanEmbedding

SAFE = {"conv", "linear", "norm", "layer_norm", "group_norm", "pool", "mean_pool", "add"}
"""Operators whose output may be overwritten: their way back does not read it."""


class Tracer(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, MeanEmbedding) or super().is_leaf_module(m, module_qualified_name)


def lowered(model: Model) -> Graph:
    """The graph of a record's module. A declared network without one is an error of this package."""
    if not model.foreign:
        with torch.device("meta"):
            return lower(model.module())
    module = model.module()
    try:
        graph = lower(module)
        if len(graph.outputs) > 1:
            raise Unknown("it has several outputs")
    except Unknown as error:
        return Graph(*entries(module), alone=str(error))
    except Exception as error:  # a call as nobody has foreseen it; torch itself then says what is wrong with it, if so
        return Graph(*entries(module), alone=f"it is written in another way ({type(error).__name__}: {error})")
    return graph


def entries(module: nn.Module) -> tuple[dict[str, tuple[int, ...]], frozenset[str]]:
    """Shapes of the entries of a module's vector, and which of them are not trained.

    Entries are parameters and stored buffers of floating point, in the order of the state; counters are none.
    """
    parameters = dict(module.named_parameters())
    buffers = dict(module.named_buffers())
    stored = [n for n in module.state_dict() if n in parameters or (n in buffers and buffers[n].is_floating_point())]
    shapes = {name: tuple((parameters | buffers)[name].shape) for name in stored}
    return shapes, frozenset(n for n in stored if n not in parameters or not parameters[n].requires_grad)


def lower(module: nn.Module) -> Graph:
    """The graph of a module; Unknown names the first layer that keeps it from having one."""
    shapes, buffers = entries(module)
    names = {id(t): n for n, t in module.named_parameters()}
    if len(names) != len(list(module.named_parameters(remove_duplicate=False))):
        raise Unknown("layers share weights")
    if frozen := [n for n, t in module.named_parameters() if not t.requires_grad]:
        raise Unknown(f"{frozen[0]} is not trained")
    found = []
    for training in (True, False):
        module.train(training)
        luck = _luck()
        try:
            traced = Tracer().trace(module)
        except Exception as error:  # whatever a forward pass raises when it is handed no tensor
            raise Unknown(f"torch.fx cannot trace it ({type(error).__name__})") from error
        if luck != _luck():
            raise Unknown("it draws random numbers")
        found.append(Writer(module, traced, training).graph(shapes, buffers))
    module.train()
    if any("dropout" in kind for kind in found[1].kinds):
        raise Unknown("it drops in evaluation, too")
    if _undropped(found[0]) != _undropped(found[1]):
        raise Unknown("it computes something else in evaluation")
    return found[0]


def _undropped(graph: Graph) -> list[Any]:
    """What a graph computes without dropout, which is all that evaluation may leave out."""
    same, left = {0: 0}, []
    for number, step in enumerate(graph.steps, start=1):
        inputs = tuple(same[i] for i in step.inputs)
        if "dropout" in step.op:
            same[number] = inputs[0]
        else:
            left.append((step.op.removesuffix("_apart"), inputs, step.layer, step.options))
            same[number] = len(left)
    return [*left, *(same[i] for i in graph.outputs)]


def _luck() -> tuple[Any, ...]:
    numpy = repr(np.random.get_state())  # noqa: NPY002 (the global one)
    return random.getstate(), numpy, torch.get_rng_state().numpy().tobytes()


class Writer:
    """Goes through the nodes of a traced module and writes a step for each that computes."""

    training: bool

    def __init__(self, module: nn.Module, traced: fx.Graph, training: bool) -> None:
        self.module, self.nodes = module, list(traced.nodes)
        self.training = training
        self.steps: list[Step] = []
        self.values: dict[fx.Node, int] = {}
        self.images: set[int] = set()
        self.outputs: tuple[int, ...] = ()

    def graph(self, shapes: dict[str, tuple[int, ...]], buffers: frozenset[str]) -> Graph:
        for node in self.nodes:
            self._node(node)
        used = {f"{s.layer}." for s in self.steps if s.layer}
        if lost := [n for n in shapes if not n.startswith(tuple(used))]:
            raise Unknown(f"{lost[0]} is not the parameter of a layer")
        steps = tuple(self._relu(i, step) for i, step in enumerate(self.steps))
        return Graph(shapes, buffers, steps, self.outputs, _features(steps, self.outputs[-1]))

    def _relu(self, i: int, step: Step) -> Step:
        """In place where nobody else reads what it overwrites."""
        if step.op != "relu":
            return step
        source = step.inputs[0]
        readers = sum(s.inputs.count(source) for s in self.steps) + self.outputs.count(source)
        safe = source > 0 and readers == 1 and self.steps[source - 1].op in SAFE
        return step if safe else replace(step, op="relu_apart")

    def _node(self, node: fx.Node) -> None:
        if node.op == "placeholder":
            if self.values:
                raise Unknown("it takes more than one argument")
            self.values[node] = 0
        elif node.op == "output":
            self.outputs = tuple(self._outputs(node.args[0]))
        elif node.op == "call_module":
            self._layer(node, str(node.target), self.module.get_submodule(str(node.target)))
        elif node.op == "get_attr":
            raise Unknown(f"{node.target} is not the parameter of a layer")
        else:
            self._function(node)

    def _outputs(self, given: Any) -> Iterator[int]:
        for value in given if isinstance(given, list | tuple) else (given,):
            if value not in self.values:
                raise Unknown("its output is not what a layer gives")
            yield self.values[value]

    def add(self, node: fx.Node, op: str, layer: str = "", image: bool | None = None, **options: Any) -> None:
        """A step for `node` of its tensors; image: is its output one (None: if its input is)?"""
        inputs = tuple(self.values[a] for a in node.args if isinstance(a, fx.Node) and a in self.values)
        if op == "pool" and self._swapped(node, options):
            return
        self.steps.append(Step(op, inputs, layer, tuple(options.items())))
        self.values[node] = len(self.steps)
        if image or (image is None and inputs[0] in self.images):
            self.images.add(len(self.steps))

    def _swapped(self, node: fx.Node, options: dict[str, Any]) -> bool:
        """Pooling before ReLU computes the same, to the bit, with less work."""
        number = self.values[node.args[0]]  # type: ignore[index]
        if not number or self.steps[number - 1].op != "relu" or any(number in step.inputs for step in self.steps):
            return False
        later = {user for n, value in self.values.items() if value == number for user in n.users} - self.values.keys()
        if later != {node}:
            return False
        before = self.steps[number - 1]
        self.steps[number - 1] = Step("pool", before.inputs, "", tuple(options.items()))
        self.steps.append(Step("relu", (number,)))
        self.values[node] = len(self.steps)
        self.images |= {number, len(self.steps)}
        return True

    def same(self, node: fx.Node) -> None:
        """The node changes nothing."""
        self.values[node] = self.values[node.args[0]]  # type: ignore[index]

    def given(self, node: fx.Node) -> str:
        """What the node takes: "samples", "images" or "features"."""
        number = self.values[node.args[0]]  # type: ignore[index]
        return "images" if number in self.images else "features" if number else "samples"

    def _layer(self, node: fx.Node, name: str, m: nn.Module) -> None:
        said = f"{name} ({type(m).__name__})"
        if m._forward_hooks or m._forward_pre_hooks:
            raise Unknown(f"{said} has hooks")
        if len(node.args) != 1 or node.kwargs or node.args[0] not in self.values:
            raise Unknown(f"{said} takes something else than what a layer gives")
        self._known(node, name, m)

    def _known(self, node: fx.Node, name: str, m: Any) -> None:
        """The step of a layer of torch; one in place says so."""
        kind, layer = type(m), LAYERS.get(type(m))
        said = name if name.endswith("()") else f"{name} ({kind.__name__})"
        if kind in EACH and {**vars(m), **MODES} == {**vars(kind()), **MODES}:  # with the numbers of its kind
            self.add(node, "each", function=EACH[kind])
        elif kind is nn.Identity or (kind in DROPOUTS and not (m.p and m.training)):
            self.same(node)
        elif kind is nn.Flatten and (m.start_dim, m.end_dim) == (1, -1):
            self.flat(node)
        elif layer is None:
            raise Unknown(said)
        elif not layer.fits(m, self, node) or self.given(node) not in layer.takes:
            raise Unknown(f"{said} of {self.given(node)}{layer.but}")
        else:
            weighted = next(m.parameters(recurse=False), None) is not None
            self.add(node, layer.op, name if weighted else "", layer.image, **layer.options(m))
        if getattr(m, "inplace", False):
            self._overwritten(node)

    def _function(self, node: fx.Node) -> None:
        name = node.target if isinstance(node.target, str) else NAMES.get(node.target, "")
        said = f"{node.target if isinstance(node.target, str) else getattr(node.target, '__name__', node.target)}()"
        tensors = [a for a in node.args if isinstance(a, fx.Node) and a in self.values]
        if name in ("size", "getattr", "getitem") and (name != "getattr" or node.args[1] == "shape"):
            return  # of a shape, which is looked at where it is used
        if not tensors or node.args[0] is not tensors[0] or any(isinstance(v, fx.Node) for v in node.kwargs.values()):
            raise Unknown(said)
        if name.rstrip("_") in ("add", "iadd") and len(node.args) == 2 == len(tensors) and not node.kwargs:
            self.add(node, "add")
        elif name == "mul" and len(node.args) == 2 and isinstance(node.args[1], int | float):
            self.add(node, "scale", factor=node.args[1])
        elif name in ("view", "reshape", "flatten"):
            self._flattened(node, name, said)
        elif name == "mean":
            axes, keep = _arguments(node, dim=None, keepdim=False)
            if keep or self.given(node) != "images" or sorted(a % 4 for a in axes or ()) != [2, 3]:
                raise Unknown(f"{said} over other axes than those of images")
            self.add(node, "global_pool", image=False)
        elif name in ("dropout", "dropout2d"):
            p, training, inplace = _arguments(node, p=0.5, training=True, inplace=False)
            self._known(node, said, DROPOUTS[name == "dropout2d"](p, inplace).train(training))
        elif name.rstrip("_") in AS_LAYERS:
            self._known(node, said, AS_LAYERS[name.rstrip("_")](*node.args[1:], **node.kwargs))
        else:
            raise Unknown(said)
        if name.endswith("_") or name == "iadd":
            self._overwritten(node)

    def _flattened(self, node: fx.Node, name: str, said: str) -> None:
        """`flatten(1)`, `view(x.size(0), -1)`, `view(-1, 400)` and their like."""
        sizes: Any = node.args[1:] or tuple(node.kwargs.values())
        sizes = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], list | tuple) else sizes
        known, features = name == "flatten" and sizes in ((1,), (1, -1)), -1
        if name != "flatten" and len(sizes) == 2 and (_batch(sizes[0]) or sizes[0] == -1):
            known, features = isinstance(sizes[1], int), sizes[1]
        if not known:
            raise Unknown(f"{said} to another shape than one axis of features")
        self.flat(node, **({} if features == -1 else {"features": features}))

    def flat(self, node: fx.Node, **features: Any) -> None:
        """Features of images; what is pooled has none but these."""
        number = self.values[node.args[0]]  # type: ignore[index]
        if number and self.steps[number - 1].op == "global_pool":
            self.same(node)
        else:
            self.add(node, "flatten", image=False, **features)

    def flattens(self, node: fx.Node) -> bool:
        """Does the node make features of images?"""
        if node.op == "call_module":
            return type(self.module.get_submodule(str(node.target))) in (nn.Flatten, nn.Identity)
        return (NAMES.get(node.target, "") or node.target) in ("flatten", "view", "reshape", "size", "getattr")

    def _overwritten(self, node: fx.Node) -> None:
        """Who reads the input of an operation in place later reads its result."""
        source = node.args[0]
        number = self.values[source]  # type: ignore[index]
        if not number or self.steps[number - 1].op == "flatten":
            raise Unknown(f"{node.target} overwrites what it was given")
        for other in [n for n, value in self.values.items() if value == number]:
            self.values[other] = self.values[node]


def _features(steps: tuple[Step, ...], output: int) -> int:
    """The representation: what goes into the last linear layer, before dropout; the logits, if that are the samples."""
    last = next((i for i in range(output, 0, -1) if steps[i - 1].op == "linear"), 0)
    at = steps[last - 1].inputs[0] if last else 0
    while at and steps[at - 1].op == "dropout":
        at = steps[at - 1].inputs[0]
    return at if at and not (steps[at - 1].op == "flatten" and steps[at - 1].inputs == (0,)) else output


def _arguments(node: fx.Node, **defaults: Any) -> list[Any]:
    """The arguments behind the first, by place or name."""
    given = dict(zip(defaults, node.args[1:], strict=False)) | node.kwargs
    return [given.get(name, value) for name, value in defaults.items()]


def _batch(node: Any) -> bool:
    """Is it the size of the batch?"""
    if not isinstance(node, fx.Node) or len(node.args) < 2 or node.args[1] != 0:
        return False
    return node.target == "size" or (node.target is operator.getitem and _shape(node.args[0]))


def _shape(node: Any) -> bool:
    return isinstance(node, fx.Node) and (node.target == "size" or (node.target is getattr and node.args[1] == "shape"))
