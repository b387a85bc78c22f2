"""AlexNet and VGG-19 for 32x32 images (fedagrac)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reproduce.problems.count import Shapes
from reproduce.problems.models import Initial, Model, conv_shapes, linear_shapes


@dataclass(frozen=True)
class AlexNet(Model):
    """AlexNet for 32x32 images (fedagrac, Table 4): 7,212,874 parameters with ten classes."""

    classes: int = 10

    @property
    def shapes(self) -> Shapes:
        return (
            conv_shapes("conv1", 3, 64, 11)
            | conv_shapes("conv2", 64, 192, 5)
            | conv_shapes("conv3", 192, 384, 3)
            | conv_shapes("conv4", 384, 256, 3)
            | conv_shapes("conv5", 256, 256, 3)
            | linear_shapes("fc1", 256, 2048)
            | linear_shapes("fc2", 2048, 2048)
            | linear_shapes("fc3", 2048, self.classes)
        )

    def encode(self, ops: Any, p: Mapping[str, Any], x: Any) -> Any:
        x = ops.relu(ops.pool(ops.conv(x, p, "conv1", stride=4, padding=5)))
        x = ops.relu(ops.pool(ops.conv(x, p, "conv2", padding=2)))
        x = ops.relu(ops.conv(x, p, "conv3", padding=1))
        x = ops.relu(ops.conv(x, p, "conv4", padding=1))
        x = ops.relu(ops.pool(ops.conv(x, p, "conv5", padding=1)))
        x = ops.relu(ops.linear(ops.dropout(ops.flatten(x), 0.5), p, "fc1"))
        return ops.relu(ops.linear(ops.dropout(x, 0.5), p, "fc2"))

    def head(self, ops: Any, p: Mapping[str, Any], z: Any) -> Any:
        return ops.linear(z, p, "fc3")


@dataclass(frozen=True)
class VGG19(Model):
    """VGG-19 for 32x32 images without normalisation (fedagrac, Table 5): 20,554,826 parameters with ten classes."""

    classes: int = 10

    plan = ((2, 64), (2, 128), (4, 256), (4, 512), (4, 512))

    @property
    def shapes(self) -> Shapes:
        shapes: Shapes = {}
        inputs = 3
        for stage, (count, width) in enumerate(self.plan, start=1):
            for i in range(1, count + 1):
                shapes |= conv_shapes(f"conv{stage}_{i}", inputs, width, 3)
                inputs = width
        return (
            shapes
            | linear_shapes("fc1", 512, 512)
            | linear_shapes("fc2", 512, 512)
            | linear_shapes("fc3", 512, self.classes)
        )

    def initial(self, name: str) -> Initial:
        if not name.startswith("conv"):
            return super().initial(name)
        if name.endswith("bias"):
            return Initial("constant", 0.0)
        outputs, _, height, width = self.shapes[name]
        return Initial("normal", math.sqrt(2 / (height * width * outputs)))

    def encode(self, ops: Any, p: Mapping[str, Any], x: Any) -> Any:
        for stage, (count, _) in enumerate(self.plan, start=1):
            for i in range(1, count + 1):
                x = ops.relu(ops.conv(x, p, f"conv{stage}_{i}", padding=1))
            x = ops.pool(x)
        x = ops.relu(ops.linear(ops.dropout(ops.flatten(x), 0.5), p, "fc1"))
        return ops.relu(ops.linear(ops.dropout(x, 0.5), p, "fc2"))

    def head(self, ops: Any, p: Mapping[str, Any], z: Any) -> Any:
        return ops.linear(z, p, "fc3")
