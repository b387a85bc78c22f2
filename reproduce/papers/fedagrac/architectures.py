"""Tables 3 to 5: the lines of an architecture table, generated from the model that the experiments train."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from reproduce.models.count import Count
from reproduce.models.model import Model
from reproduce.problem import Classification
from reproduce.report.histories import Histories

COLUMNS = ("layer", "output_shape", "activation", "hyperparameters")


@dataclass
class TableLine:
    """A layer, or several equal ones in a row, as a line of the table."""

    layer: str
    shape: tuple[int, ...]
    parameters: int = 0
    hyperparameters: str = ""
    activation: str = ""
    times: int = 1

    @property
    def output_shape(self) -> str:
        return "x".join(map(str, self.shape))

    @property
    def name(self) -> str:
        return f"{self.times}x{self.layer}" if self.times > 1 else self.layer


class Described(Count):
    """The counting operator set, which also writes down strides, paddings, and drop probabilities.

    An activation belongs to the last layer with parameters; pooling first computes the same.
    """

    def __init__(self, model: Model, sample: tuple[int, ...], pooling: str) -> None:
        super().__init__(dict(model.shapes))
        self.lines = [TableLine("Input", sample)]
        self.pooling = pooling
        model.forward(self, {n: n for n in model.shapes}, sample)
        self.lines[-1].activation = "softmax"  # inside the loss

    def _add(self, layer: str, shape: tuple[int, ...], hyperparameters: str = "") -> tuple[int, ...]:
        self.lines.append(TableLine(layer, shape, self.layers[-1][3], hyperparameters))
        return shape

    def conv(self, x: Any, p: Mapping[str, Any], layer: str, stride: int = 1, padding: int = 0) -> Any:
        out = super().conv(x, p, layer, stride, padding)
        numbers = {"kernel size": self.shapes[f"{layer}.weight"][2], "stride": stride, "padding": padding}
        shown = {k: v for k, v in numbers.items() if v != {"stride": 1, "padding": 0}.get(k)}
        return self._add("Conv2d", out, ", ".join(f"{k}={v}" for k, v in shown.items()))

    def linear(self, x: Any, p: Mapping[str, Any], layer: str) -> Any:
        return self._add("Dense", super().linear(x, p, layer))

    def pool(self, x: Any, size: int = 2, stride: int = 2, padding: int = 0) -> Any:
        return self._add("MaxPool2d", super().pool(x, size, stride, padding), self.pooling)

    def relu(self, x: Any) -> Any:
        next(line for line in reversed(self.lines) if line.parameters).activation = "ReLU"
        return x

    def dropout(self, x: Any, p: float) -> Any:
        return self._add("Dropout", super().dropout(x, p), f"p={p}")

    def channel_dropout(self, x: Any, p: float) -> Any:
        return self._add("Dropout2d", super().channel_dropout(x, p), f"p={p}")

    def flatten(self, x: Any, features: int = 0) -> Any:
        self.lines.append(TableLine("Flatten", (math.prod(x),)))
        return super().flatten(x, features)


def grouped(lines: list[TableLine]) -> list[TableLine]:
    """Convolutions of equal output in a row as one line (Table 5)."""
    out = [lines[0]]
    for line in lines[1:]:
        last = out[-1]
        if (line.layer, line.shape, line.hyperparameters) == (last.layer, last.shape, last.hyperparameters):
            last.times += 1
            last.parameters += line.parameters
        else:
            out.append(line)
    return out


def cells(histories: Histories, *, problem: Classification, model: str, pooling: str, group: bool) -> pd.DataFrame:
    """The lines of the problem's model, called `model`; nothing is trained, so there are no seeds.

    pooling: how the paper writes it. group: equal convolutions in a row are one line.
    """
    lines = Described(problem.model, problem.sample.shape, pooling).lines
    rows = [
        (i, line.name, line.output_shape, line.activation, line.hyperparameters, float(line.parameters))
        for i, line in enumerate(grouped(lines) if group else lines, start=1)
    ]
    frame = pd.DataFrame(rows, columns=["layer_index", *COLUMNS, "value"])
    return frame.assign(dataset=problem.data, model=model, algorithm="na", metric="trainable_parameters", seed=-1)
