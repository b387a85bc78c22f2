"""A client without samples, which a partition may allow, takes part in vain in every algorithm."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from plain_sessions import LR, PROBLEM
from runs import run

from reproduce.algorithms.base import FedAvg, Full
from reproduce.algorithms.scaffold import Scaffold
from reproduce.algorithms.submodels import Submodels
from reproduce.clocks.rounds import Rounds
from reproduce.declare.experiment import Experiment
from reproduce.errors import UserError
from reproduce.models.declared import MLP
from reproduce.play.specs import NAMES
from reproduce.systems import Steps, System


@dataclass(frozen=True)
class Idle:
    """The first four clients share the samples."""

    leaves_empty: ClassVar[bool] = True
    data_seed: ClassVar[int] = 0

    def split(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        return [np.arange(len(labels))[i : len(labels) if i < 4 else 0 : 4] for i in range(clients)]


Idle.__module__ = FedAvg.__module__  # as one of the package, around which no hook of an algorithm is watched


def experiment(algorithm: FedAvg, clients: int) -> Experiment:
    problem = replace(PROBLEM, model=MLP(20, 7, 10), partition=Idle(), clients=clients)
    return Experiment({"n": clients}, problem, System(work=Steps(5)), algorithm, Rounds(4))


def fitting() -> dict[str, FedAvg]:
    """Every algorithm that has rounds and takes this network."""
    found: dict[str, FedAvg] = {"displacement": Scaffold(LR, control="displacement")}
    for name, named in NAMES.items():
        algorithm = named.cls(lr=LR, **named.options)
        try:
            experiment(algorithm, 4)
            found[name] = algorithm
        except UserError:
            continue
    return found


ALGORITHMS = fitting()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_it_takes_part_in_vain(name: str) -> None:
    algorithm = ALGORITHMS[name]
    with_it, without = run([experiment(algorithm, 5), experiment(algorithm, 4)], dtype=torch.float64)
    assert with_it.state["status"] == "ok"
    if isinstance(algorithm, Submodels) or name == "os_original":
        assert with_it.state["x"].isfinite().all(), "plain means over holders, and luck drawn client by client, differ"
    else:
        torch.testing.assert_close(with_it.state["x"], without.state["x"], rtol=0, atol=1e-12)


def test_all_that_have_rounds_are_asked() -> None:
    assert len(ALGORITHMS) >= 18
    assert all(a.participation == Full() for a in ALGORITHMS.values())
