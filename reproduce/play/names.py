"""The algorithms that can be named, those of event clocks with the policy that the name stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reproduce.algorithms.base import FedAvg
from reproduce.report.names import found
from reproduce.systems.policies import (
    AsySGPolicy,
    DeFedAvgIIDPolicy,
    DeFedAvgNIIDPolicy,
    FavanoPolicy,
    FedAvgPolicy,
    FedBuffPolicy,
)
from reproduce.systems.schedule import Policy

POLICIES: Mapping[str, type[Policy]] = {
    "fedavg": FedAvgPolicy, "defedavg_niid": DeFedAvgNIIDPolicy, "defedavg_iid": DeFedAvgIIDPolicy,
    "fedbuff": FedBuffPolicy, "asysg": AsySGPolicy, "favano": FavanoPolicy,
}  # fmt: skip
"""Who trains when, where the clock is that of events."""
ORDER = (
    "fedavg", "fedprox", "fednova", "scaffold", "fedlin", "fedagrac", "fedacs", "ca_fedavg", "fedvarp", "fedau", "os",
    "os_original", "fedacg", "moon", "distillation", "decay", "fading", "scaffold_released", "heterofl", "fedrolex",
    "fjord", "scalefl", "fiarse", "pruning_greedy", "defedavg_iid", "defedavg_niid", "fedbuff", "asysg", "favano",
)  # fmt: skip
"""In which they stand in tables; others come after these."""


@dataclass(frozen=True)
class Named:
    """options: fields that the name stands for. policy: without one the algorithm has rounds."""

    cls: type[FedAvg]
    options: Mapping[str, Any] = field(default_factory=dict)
    policy: type[Policy] | None = None


_found = {name: Named(cls, options, POLICIES.get(name)) for name, cls, options in found()}
NAMES: Mapping[str, Named] = {n: _found[n] for n in sorted(_found, key=[*ORDER, *sorted(_found)].index)}
"""All classes of `reproduce.algorithms` that are algorithms by themselves."""
