"""The algorithms that can be named: a word, the class behind it, and what the word says beyond the class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reproduce.algorithms.asynchronous import Asynchronous, Favano
from reproduce.algorithms.base import FedAvg
from reproduce.algorithms.ca_fedavg import CAFedAvg
from reproduce.algorithms.distillation import Distillation
from reproduce.algorithms.fedacg import FedACG
from reproduce.algorithms.fedacs import FedACS
from reproduce.algorithms.fedagrac import FedaGrac
from reproduce.algorithms.fedau import FedAU
from reproduce.algorithms.fedlin import FedLin
from reproduce.algorithms.fednova import FedNova
from reproduce.algorithms.fedprox import FedProx
from reproduce.algorithms.fedvarp import FedVARP
from reproduce.algorithms.fiarse import FIARSE
from reproduce.algorithms.fjord import FjORD
from reproduce.algorithms.heterofl import HeteroFL
from reproduce.algorithms.moon import Moon
from reproduce.algorithms.os_sampling import OptimalSampling, OptimalSamplingOriginal
from reproduce.algorithms.scaffold import Scaffold, ScaffoldAsReleased
from reproduce.algorithms.scalefl import ScaleFL
from reproduce.algorithms.solvers import DecayFedAvg, FadingFedAvg
from reproduce.systems.policies_arrivals import AsySGPolicy, DeFedAvgIIDPolicy, FedBuffPolicy
from reproduce.systems.policies_drawn import DeFedAvgNIIDPolicy, FavanoPolicy, FedAvgPolicy
from reproduce.systems.schedule import Policy


@dataclass(frozen=True)
class Named:
    """options: numbers that the name stands for. policy: who trains when, where the clock is that of events; without
    one the algorithm has rounds. draws: it says itself with which probability a client is drawn."""

    cls: type[FedAvg]
    options: Mapping[str, Any] = field(default_factory=dict)
    policy: type[Policy] | None = None
    draws: bool = False


NAMES: Mapping[str, Named] = {
    "fedavg": Named(FedAvg, policy=FedAvgPolicy),
    "fedprox": Named(FedProx),
    "fednova": Named(FedNova),
    "scaffold": Named(Scaffold),
    "fedlin": Named(FedLin),
    "fedagrac": Named(FedaGrac),
    "fedacs": Named(FedACS, draws=True),
    "ca_fedavg": Named(CAFedAvg),
    "fedvarp": Named(FedVARP),
    "fedau": Named(FedAU),
    "os": Named(OptimalSampling, draws=True),
    "os_original": Named(OptimalSamplingOriginal),
    "fedacg": Named(FedACG),
    "moon": Named(Moon),
    "distillation": Named(Distillation),
    "decay": Named(DecayFedAvg),
    "fading": Named(FadingFedAvg),
    "scaffold_released": Named(ScaffoldAsReleased),
    "heterofl": Named(HeteroFL),
    "fedrolex": Named(HeteroFL, {"rolling": True}),
    "fjord": Named(FjORD),
    "scalefl": Named(ScaleFL),
    "fiarse": Named(FIARSE),
    "pruning_greedy": Named(FIARSE, {"mask": "frozen", "amplify": False}),
    "defedavg_iid": Named(Asynchronous, policy=DeFedAvgIIDPolicy),
    "defedavg_niid": Named(Asynchronous, policy=DeFedAvgNIIDPolicy),
    "fedbuff": Named(Asynchronous, policy=FedBuffPolicy),
    "asysg": Named(Asynchronous, policy=AsySGPolicy),
    "favano": Named(Favano, policy=FavanoPolicy),
}
"""All classes of `reproduce.algorithms` that are algorithms by themselves."""
