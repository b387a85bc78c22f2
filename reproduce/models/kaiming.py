"""The network with one hidden layer from another start: a choice of DeFedAvg."""

from __future__ import annotations

import math
from dataclasses import dataclass

from reproduce.models.declared import MLP
from reproduce.models.model import Initial


@dataclass(frozen=True)
class KaimingMLP(MLP):
    """Fan-in Kaiming-normal weights and zero biases, as `ConvNet` has them with its initialisation "kaiming", but in
    the last layer, too."""

    def initial(self, name: str) -> Initial:
        if name.endswith("bias"):
            return Initial("constant", 0.0)
        return Initial("normal", math.sqrt(2 / self.shapes[name][1]))
