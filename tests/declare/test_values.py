"""The one check of what fields of records may be: a value of each room that means nothing, and what a line says."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from reproduce.algorithms import fiarse, narrower, session_starts
from reproduce.algorithms.base import DistinctClients, FedAvg, WeightedDraws
from reproduce.clocks.events import Events
from reproduce.clocks.rounds import Rounds
from reproduce.clocks.sessions import Sessions
from reproduce.data import batches
from reproduce.declare.experiment import Experiment
from reproduce.declare.values import check_values
from reproduce.errors import UserError
from reproduce.models import declared
from reproduce.partitions import dirichlet, labels
from reproduce.play.specs import NAMES
from reproduce.problem import Classification, Quadratic
from reproduce.systems import System, clients, link, schedule, work
from reproduce.systems.policies import FavanoPolicy, FedAvgPolicy
from reproduce.systems.schedule import Schedule

if TYPE_CHECKING:
    from nowhere import Unknown

INF, NAN = math.inf, math.nan
PAIR = clients.Alternating(2, 2)
POLICY = FedAvgPolicy(2)
PACE = schedule.Pace(1.0, 0.1, 0.1)
PROBLEM = Classification("digits", declared.Softmax(64, 10), labels.IID(), 4, batches.Shuffled(8))
QUADRATIC = Quadratic(2, 2)

FAVANO, EVERY = FavanoPolicy(1), Events(POLICY, 3, every=1)
SESSIONS, CONVNET = Sessions(3, 2, PAIR), declared.ConvNet(1, 8, (2, 3), (4,))
BAD: list[tuple[Any, dict[str, tuple[Any, ...]]]] = [
    (work.Steps(1), {"k": (0, 1.5, True, "8", None, 10**10)}),
    (work.PerClient((1, 2)), {"values": ((1, 0),), "unit": ("rounds",)}),
    (work.Gaussian(5, 1), {"mean": (0,), "variance": (-1,), "mode": ("often",)}),
    (link.Same(0.5), {"q": (1.1, -0.1, NAN)}),
    (PACE, {"upload": (-1.0, 1e13)}),
    (POLICY, {"n": (0, 10**7), "selections": (((0, -1),),)}),
    (System(), {"pace": (3.0,)}),
    (dirichlet.DirichletClass(0.3), {"alpha": (0.0, -0.3, NAN, INF, True, "0.3", None, 1e308), "min_size": (-1,)}),
    (dirichlet.CappedDirichlet(0.3), {"alpha": (0.0,), "data_seed": (-1, 1.5, 2**32, "1")}),
    (labels.Head(labels.IID(), 0.5), {"share": (0, 1.5)}),
    *((cls(8), {"size": (0,)}) for cls in (batches.Shuffled, batches.Walk, batches.Cyclic, batches.WithReplacement)),
    (FedAvg(), {"lr": (0.0, -1.0, INF, NAN, 10**400, True), "server_lr": (0.0,), "momentum": (1.0, -0.1)}),
    (FedAvg(), {"participation": (WeightedDraws(0), DistinctClients(0))}),
    (fiarse.FIARSE(), {"sweep": ((0.5, 1.5),), "betas": ((0.9, 1.0),), "scope": ("channel",)}),
    (narrower.ScaleFL(), {"levels": (((1.0, 0, 1.0),),), "distill": (-1.0,)}),
    (session_starts.Proposed(), {"V": (0,), "history": (-1,), "distance": ("cosine",)}),
    (SESSIONS, {"rounds": (0,), "pilots": (0,), "floor": (-0.1, 1.1), "start": (3,)}),
    (EVERY, {"aggregations": (0,), "horizon": (0.0, NAN, INF), "least": (-1.0, INF), "train_every": (0,)}),
    (declared.Softmax(64, 10), {"features": (0,)}),
    (CONVNET, {"widths": ((2, 3, 4),), "dropout": (1.0,), "dropout_at": ("never",)}),
    # records that look at their values when they are made
    (PROBLEM, {"test_samples": (-1, True, 30.0), "clients": (0,), "subset_seed": (2**32,), "partition_seed": (-1,)}),
    (PROBLEM, {"evaluation_batch": (0,), "std": ((0.0,),), "pad": (-1,), "augment": ("x",), "tokenizer": ("x",)}),
    (PROBLEM, {"batches": (8, batches.Fixed(0)), "partition": (object(),)}),
    (QUADRATIC, {"minimisers": ((("1", "0"), ("0", "1")), [[1.0, 0.0], [0.0, 1.0]])}),
    (Schedule(POLICY, 2, 1, PACE), {"clients": (10**7,), "steps": (0,)}),
]
"""Records, and values of their fields that mean nothing."""


@pytest.mark.parametrize(("record", "bad"), BAD)
def test_a_value_that_means_nothing_is_refused(record: Any, bad: dict[str, tuple[Any, ...]]) -> None:
    check_values(record)
    for name, value in ((name, value) for name, values in bad.items() for value in values):
        inner = hasattr(value, "__dataclass_fields__")  # then it is a number of that record
        line = f"{type(value).__name__}: .* is" if inner else f"{type(record).__name__}: {name} is"
        with pytest.raises(UserError, match=f"^{line} .*, not "):
            check_values((1, (replace(record, **{name: value}),)))


def test_the_defaults_of_all_algorithms_mean_something() -> None:
    """What the papers' experiments give them is checked where these are declared."""
    for algorithm in NAMES.values():
        check_values(algorithm.cls())


def test_an_experiment_names_itself_the_record_the_field_the_bounds_and_the_value() -> None:
    with pytest.raises(UserError) as error:
        Experiment({"algorithm": "x"}, QUADRATIC, System(), FedAvg(momentum=1.0), Rounds(2))
    line = "FedAvg: momentum is a number at least 0 and below 1, not 1.0"
    assert str(error.value) == f"this experiment cannot be run (algorithm x): {line}"


@dataclass(frozen=True)
class Odd(FedAvg):
    """A user's own: a name for checkers alone, and what is no plain value."""

    of: "Unknown | None" = None
    more: Any = ()
    steps: int = 2


def test_a_field_of_a_users_own_is_what_its_annotation_or_its_default_says() -> None:
    check_values(Odd(more=(1, "a", (0.5, None), FedAvg())))
    for wrong in (Odd(more=[1]), Odd(more=(1, {})), Odd(more=NAN), Odd(more=object()), Odd(steps=0.5)):  # type: ignore[arg-type]
        with pytest.raises(UserError, match=r"Odd: (more|steps) is"):
            check_values(wrong)
