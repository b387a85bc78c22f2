"""A network as data: the layers of a module in the order in which they run, without torch.

`modules.translate` writes a module down so. Every operator set runs it: one client, a stack of them, compiled code
(`modules.ops`, `engine.kernels.compiled`), and the count of parameters and multiplications (`Count`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Step:
    """op: an operator of `modules.ops`; inputs: numbers of the values that it takes, 0 being the samples; layer: whose
    parameters; options: its other arguments; factor: what its output is multiplied by."""

    op: str
    inputs: tuple[int, ...]
    layer: str = ""
    options: tuple[tuple[str, Any], ...] = ()
    factor: float = 1.0


@dataclass(frozen=True, eq=False)
class Graph:
    """shapes: of the entries of the flat vector, in order; buffers: which of them are not trained.

    steps: step i makes value i + 1; none for a module that runs eagerly, for the reason `untraced`. outputs: the values
    that are logits, those of the last exit last. features: the value that is the representation.
    """

    shapes: Shapes
    buffers: frozenset[str] = frozenset()
    steps: tuple[Step, ...] = ()
    outputs: tuple[int, ...] = ()
    features: int = 0
    untraced: str = ""

    def run(self, ops: Any, p: Mapping[str, Any], x: Any, wanted: Sequence[int]) -> list[Any]:
        """The `wanted` values, of the samples x by the operators `ops` on the parameters `p`.

        Nothing is computed that is not asked for, or kept longer than it is needed.
        """
        known = {0: x}
        for number, ended in self._plan(tuple(wanted)):
            step = self.steps[number - 1]
            inputs = [known[i] for i in step.inputs]
            for i in ended:
                del known[i]
            of = (p, step.layer) if step.layer else ()
            value = getattr(ops, step.op)(*inputs, *of, **dict(step.options))
            known[number] = value if step.factor == 1 else ops.scale(value, step.factor)
            del inputs, value
        return [known[i] for i in wanted]

    def _plan(self, wanted: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
        """The numbers of the values to make, in order, each with those that are not needed any more."""
        plans: dict[Any, Any] = self.__dict__.setdefault("_plans", {})
        if wanted not in plans:
            needed, last = {*wanted}, dict[int, int]()
            for number in range(max(wanted), 0, -1):
                if number in needed:
                    inputs = {*self.steps[number - 1].inputs}
                    last |= dict.fromkeys(inputs - needed, number)
                    needed |= inputs
            made = sorted(needed - {0})
            plans[wanted] = [(n, tuple(i for i, at in last.items() if at == n)) for n in made]
        return plans[wanted]  # type: ignore[no-any-return]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The operators, in order."""
        return tuple(step.op for step in self.steps)

    def ordered(self, *ops: str) -> bool:
        """Returns whether it is exactly these operators one after another, with its tensors in the same order."""
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

    def to_json(self) -> list[Any]:
        """As JSON, the fields in order; a step that is kept has no factor."""
        steps = [astuple(step)[:4] for step in self.steps]
        return [self.shapes, sorted(self.buffers), steps, self.outputs, self.features, self.untraced]

    @staticmethod
    def from_json(data: list[Any]) -> Graph:
        """The inverse of `to_json`."""
        shapes, buffers, steps, outputs, *rest = data
        made = [Step(op, tuple(inputs), layer, tuple(map(tuple, options))) for op, inputs, layer, options in steps]
        named = {name: tuple(shape) for name, shape in shapes.items()}
        return Graph(named, frozenset(buffers), tuple(made), tuple(outputs), *rest)


class Count:
    """The operator set that only counts: activations are shapes (channels, height, width) or (features,).

    After a forward pass `macs` are the multiply-accumulates of one sample, and `normed` has what each layer of batch
    normalisation was given.
    """

    def __init__(self, shapes: Shapes) -> None:
        self.shapes, self.macs = shapes, 0
        self.normed: Shapes = {}
        self.outputs: tuple[int, ...] = ()
        """The shape of the logits, if somebody puts it there."""

    def conv(self, x: Any, p: Mapping[str, Any], layer: str, stride: int = 1, padding: int = 0) -> Any:
        outputs, inputs, kernel, _ = self.shapes[f"{layer}.weight"]
        if len(x) != 3 or x[0] != inputs:
            raise ValueError(f"{layer} takes images of {inputs} channels but gets {x}")
        sides = _sides(layer, x, kernel, stride, padding)
        self.macs += math.prod(sides) * outputs * inputs * kernel**2
        return (outputs, *sides)

    def linear(self, x: Any, p: Mapping[str, Any], layer: str) -> Any:
        outputs, inputs = self.shapes[f"{layer}.weight"]
        if x[-1] != inputs or len(x) == 3:
            raise ValueError(f"{layer} takes {inputs} features but gets {x}")
        self.macs += math.prod(x) * outputs
        return (*x[:-1], outputs)

    def norm(self, x: Any, p: Mapping[str, Any], layer: str) -> Any:
        if len(x) != 3 or (x[0],) != self.shapes[f"{layer}.weight"]:
            raise ValueError(f"{layer} takes images of {self.shapes[f'{layer}.weight'][0]} channels but gets {x}")
        self.normed[layer] = x
        return x

    def embed(self, x: Any, p: Mapping[str, Any], layer: str) -> Any:
        (tokens,), (_, width) = x, self.shapes[f"{layer}.weight"]
        self.macs += tokens * width
        return (width,)

    def pool(self, x: Any, size: int = 2, stride: int = 2, padding: int = 0) -> Any:
        return (x[0], *_sides("pooling", x, size, stride, padding))

    def same(self, x: Any, *rest: Any, **options: Any) -> Any:
        return x

    layer_norm = relu = relu_apart = dropout = channel_dropout = scale = same

    def flatten(self, x: Any) -> Any:
        return (math.prod(x),)

    def global_pool(self, x: Any) -> Any:
        return (x[0],)

    def add(self, x: Any, y: Any) -> Any:
        if x != y:
            raise ValueError(f"images or features of the shapes {x} and {y} are added")
        return x


def _sides(layer: str, x: tuple[int, ...], kernel: int, stride: int, padding: int) -> tuple[int, ...]:
    """Height and width behind a window that moves over images x; ValueError if it does not fit in."""
    if min(x[1:]) + 2 * padding < kernel:
        raise ValueError(f"{layer} moves a window of {kernel} x {kernel} over images of {x[1]} x {x[2]}")
    return tuple((side + 2 * padding - kernel) // stride + 1 for side in x[1:])
