"""A network as data: the layers of a module in the order in which they run, without torch.

`models.lower` writes a module down so. Every operator set runs it: one client, a stack of them, compiled code
(`models.ops`, `engine.kernels.compiled`), and the count of parameters and multiplications (`count.py`). Those of the
declared networks are kept in `networks.json`, so that planning needs no torch; `python -m reproduce.runs.graphs`
writes that file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce.files import read_source, write_text
from reproduce.models.count import Shapes

if TYPE_CHECKING:
    from reproduce.models.model import Model

KEPT = Path(__file__).with_name("networks.json")


@dataclass(frozen=True)
class Step:
    """op: an operator of `models.ops`; inputs: numbers of the values that it takes, 0 being the samples; layer: whose
    parameters; options: its other arguments; factor: what its output is multiplied by."""

    op: str
    inputs: tuple[int, ...]
    layer: str = ""
    options: tuple[tuple[str, Any], ...] = ()
    factor: float = 1.0


@dataclass(frozen=True, eq=False)
class Graph:
    """shapes: of the entries of the flat vector, in order; buffers: which of them are not trained.

    steps: step i makes value i + 1; none for a module that runs by itself, because of `alone`. outputs: the values that
    are logits, those of the last exit last. features: the value that is the representation.
    """

    shapes: Shapes
    buffers: frozenset[str] = frozenset()
    steps: tuple[Step, ...] = ()
    outputs: tuple[int, ...] = ()
    features: int = 0
    alone: str = ""

    def run(self, ops: Any, p: Mapping[str, Any], values: Mapping[int, Any], wanted: Sequence[int]) -> list[Any]:
        """The `wanted` values of those that are given, by the operators `ops` on the parameters `p`.

        Nothing is computed that is not asked for, or kept longer than it is needed.
        """
        known, found = dict(values), {}
        for number, ended in self._plan(frozenset(known), tuple(wanted)):
            step = self.steps[number - 1]
            inputs = [known[i] for i in step.inputs]
            for i in ended:
                del known[i]
            of = (p, step.layer) if step.layer else ()
            value = getattr(ops, step.op)(*inputs, *of, **dict(step.options))
            known[number] = value if step.factor == 1 else ops.scale(value, step.factor)
            del inputs, value
            if number in wanted:
                found[number] = known[number]
        return [found[i] if i in found else values[i] for i in wanted]

    def _plan(self, given: frozenset[int], wanted: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
        """The numbers of the values to make, in order, each with those that are not needed any more."""
        plans: dict[Any, Any] = self.__dict__.setdefault("_plans", {})
        if (given, wanted) not in plans:
            needed, stack = set(), [w for w in wanted if w not in given]
            while stack:
                if (number := stack.pop()) not in needed:
                    needed.add(number)
                    stack += [i for i in self.steps[number - 1].inputs if i not in given]
            last = {i: number for number in sorted(needed) for i in self.steps[number - 1].inputs}
            ends = {n: tuple(i for i, at in last.items() if at == n and i not in wanted) for n in needed}
            plans[given, wanted] = [(number, ends[number]) for number in sorted(needed)]
        return plans[given, wanted]  # type: ignore[no-any-return]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The operators, in order."""
        return tuple(step.op for step in self.steps)

    def ordered(self, *ops: str) -> bool:
        """Is it exactly these operators one after another, with the tensors of its layers in the same order?"""
        kinds = tuple(k for k in self.kinds if k != "flatten")
        tensors = [f"{s.layer}.{kind}" for s in self.steps if s.layer for kind in ("weight", "bias")]
        return kinds == ops and list(self.shapes) == tensors and self.kinds[:1] in (("flatten",), ops[:1])

    def narrowed(self, keep: Callable[[int], int], factor: float) -> Graph:
        """With `keep(c)` of the c channels of every layer; outputs of convolutions are multiplied by `factor`.

        Cut are all axes but the channels of the samples and the classes; nothing is made features of images.
        """
        shapes = dict(self.shapes)
        for i, step in enumerate(self.steps):
            for name in (n for n in self.shapes if n.rpartition(".")[0] == step.layer):
                axes = list(self.shapes[name])
                axes[0] = axes[0] if i + 1 in self.outputs else keep(axes[0])
                if len(axes) > 1 and 0 not in step.inputs:
                    axes[1] = keep(axes[1])
                shapes[name] = tuple(axes)
        steps = [replace(s, factor=factor) if s.op == "conv" else s for s in self.steps]
        return replace(self, shapes=shapes, steps=tuple(steps))

    def said(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "shapes": self.shapes,
            "buffers": sorted(self.buffers),
            "steps": [astuple(step)[:4] for step in self.steps],
            "outputs": self.outputs,
            "features": self.features,
            "alone": self.alone,
        }

    @staticmethod
    def read(said: dict[str, Any]) -> Graph:
        """The inverse of `said`."""
        steps = [Step(op, tuple(inputs), layer, tuple(map(tuple, rest))) for op, inputs, layer, rest in said["steps"]]
        shapes = {name: tuple(shape) for name, shape in said["shapes"].items()}
        outputs = tuple(said["outputs"])
        return Graph(shapes, frozenset(said["buffers"]), tuple(steps), outputs, said["features"], said["alone"])


def sources() -> str:
    """A digest of the sources that kept graphs follow from, beside the record: with others they do not count."""
    files = [Path(__file__).with_name(name) for name in ("small.py", "library.py", "layers.py", "lower.py", "graph.py")]
    return hashlib.sha256(b"\0".join(map(read_source, files))).hexdigest()[:16]


@cache
def kept() -> dict[str, Any]:
    """The graphs that are kept, by the words of their records; none if they were made by other sources."""
    content = json.loads(KEPT.read_bytes()) if KEPT.is_file() else {}
    found: dict[str, Any] = content.get("networks", {}) if content.get("sources") == sources() else {}
    return found


def keep(graphs: Mapping[str, Graph]) -> None:
    """Writes the graphs by the words of their records; a full disk is an error, and nothing is half-written."""
    lines = ",\n".join(f"{json.dumps(said)}: {json.dumps(graph.said())}" for said, graph in sorted(graphs.items()))
    write_text(KEPT, f'{{"sources": "{sources()}", "networks": {{\n{lines}\n}}}}\n')
    kept.cache_clear()


@cache
def graph_of(model: Model) -> Graph:
    """The graph of a network, kept or written down now (which needs torch); UserError if there is no such module."""
    if (said := kept().get(repr(model))) is not None:
        return Graph.read(said)
    from reproduce.models.lower import lowered

    return lowered(model)
