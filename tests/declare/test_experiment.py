"""An experiment that cannot run is refused when it is declared, in one line, and not in the middle of a run."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.graphs import SOURCES
from reproduce.algorithms.asynchronous import Asynchronous, Favano
from reproduce.algorithms.base import DistinctClients, FedAvg, WeightedDraws
from reproduce.algorithms.fedprox import FedProx
from reproduce.algorithms.fiarse import FIARSE
from reproduce.algorithms.moon import Distillation
from reproduce.algorithms.narrower import HeteroFL
from reproduce.clocks.events import Events
from reproduce.clocks.rounds import Rounds
from reproduce.clocks.sessions import Sessions
from reproduce.data.batches import Shuffled
from reproduce.data.embedded import GaussianClasses, ImageBlobs, TopicTokens
from reproduce.declare.experiment import SCALES, Experiment, Panel
from reproduce.engine.client_split import ClientSplits
from reproduce.engine.rule import SGD_TERMS, Rule
from reproduce.engine.strategies import NAMED
from reproduce.errors import UserError
from reproduce.models.declared import MLP, ConvNet, FastText, NormConvNet, ResNet, Softmax
from reproduce.papers.dynamic_init.variants import OtherFingerprints
from reproduce.partitions.groups import PartialOverlap
from reproduce.partitions.labels import IID, Shards
from reproduce.problem import Classification, Quadratic
from reproduce.runs import plan
from reproduce.settings import Settings
from reproduce.systems import System
from reproduce.systems.clients import Alternating, SplitCapacity
from reproduce.systems.link import PerClient as PerClientLink
from reproduce.systems.policies import DeFedAvgIIDPolicy, FavanoPolicy
from reproduce.systems.schedule import FASHION_MNIST
from reproduce.systems.work import PerClient, Steps

TOY = Quadratic(4, 2)
NET = Classification("digits", Softmax(64, 10), IID(), 4, Shuffled(10))
RESNET = replace(NET, model=ResNet(1, 10, (4, 8), (1, 1)))
RUNNING = NormConvNet(1, 8, ((4,),), 5, normalisation="running")
SYSTEM = System(work=Steps(2))
PARTS = System(work=Steps(2), capacity=SplitCapacity((1.0, 0.25)))
ROUNDS = Rounds(2)
SESSIONS = Sessions(4, 2, Alternating(2, 2), ("test", "test"))
PACED = System(work=Steps(2), pace=FASHION_MNIST)
EVENTS = Events(DeFedAvgIIDPolicy(2), aggregations=3, every=1)
CONTACTS = Events(FavanoPolicy(2), aggregations=3, every=1)

REFUSED: list[tuple[str, tuple[Any, Any, Any, Any]]] = [
    ("rounds need a System", (NET, None, FedAvg(), ROUNDS)),
    ("is a rule of the event clock", (NET, SYSTEM, Asynchronous(), ROUNDS)),
    ("needs an asynchronous rule", (NET, SYSTEM, FedProx(), EVENTS)),
    ("a system with a pace", (NET, SYSTEM, Asynchronous(), EVENTS)),
    ("its work is Steps(k), not PerClient", (NET, replace(PACED, work=PerClient((1,) * 4)), Asynchronous(), EVENTS)),
    ("Favano does not fit the policy DeFedAvgIIDPolicy", (NET, PACED, Favano(), EVENTS)),
    ("Asynchronous does not fit the policy FavanoPolicy", (NET, PACED, Asynchronous(), CONTACTS)),
    ("deadlock", (NET, PACED, Asynchronous(), replace(EVENTS, policy=DeFedAvgIIDPolicy(5)))),
    ("its schedule says who takes part", (NET, PACED, Asynchronous(participation=WeightedDraws(2)), EVENTS)),
    ("sessions have 4 clients, the problem has 6", (replace(NET, clients=6), SYSTEM, FedAvg(), SESSIONS)),
    ("a quadratic has no network for `distill`", (TOY, SYSTEM, Distillation(), SESSIONS)),
    ("a quadratic has no network for `mask`, `amplify`", (TOY, PARTS, FIARSE(), ROUNDS)),
    ("parts of a network, and a quadratic has none", (TOY, PARTS, HeteroFL(), ROUNDS)),
    ("a Softmax has no narrower form", (NET, PARTS, HeteroFL(), ROUNDS)),
    ("some clients hold only a part", (NET, PARTS, FedAvg(), ROUNDS)),
    ("not for models with running statistics", (replace(RESNET, model=RUNNING), PARTS, FIARSE(), ROUNDS)),
    ("cannot be divided over 2 capacities", (replace(RESNET, clients=1), PARTS, FIARSE(), ROUNDS)),
    ("work is given for 3 clients, not for 4", (NET, System(PerClient((1, 2, 3))), FedAvg(), ROUNDS)),
    ("given for 3 clients, not", (NET, System(Steps(1), PerClientLink((0.1, 0.2, 0.3))), FedAvg(), ROUNDS)),
    ("no 3 distinct clients among the 2", (NET, SYSTEM, FedAvg(participation=DistinctClients(3)), SESSIONS)),
    ("has no classes", (TOY, SYSTEM, FedAvg(), Rounds(2, by_class=True))),
    ("on the view 'test'", (NET, SYSTEM, FedAvg(), Rounds(2, view="train", by_client=True))),
    ("no evaluation view 'train'", (TOY, PACED, Asynchronous(), replace(EVENTS, train_view="train"))),
    ("no evaluation view 'labels:0,1'", (TOY, SYSTEM, FedAvg(), replace(SESSIONS, views=("labels:0,1", "test")))),
    ("no evaluation view 'held:3,4'", (NET, SYSTEM, FedAvg(), replace(SESSIONS, views=("test", "held:3,4")))),
    ("no evaluation view 'validation'", (NET, SYSTEM, FedAvg(), Rounds(2, view="validation"))),
]


@pytest.mark.parametrize(("words", "parts"), REFUSED)
def test_what_does_not_go_together_is_refused(words: str, parts: tuple[Any, Any, Any, Any]) -> None:
    with pytest.raises(UserError, match=r"^this experiment cannot be run \(algorithm x\): ") as error:
        Experiment({"algorithm": "x"}, *parts)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        ("unknown data set 'digit'; did you mean digits?", {"data": "digit"}),
        ("fc takes 60 features but gets (64,)", {"model": Softmax(60, 10)}),
        ("conv1 takes images of 3 channels but gets (1, 8, 8)", {"model": ConvNet(3, 8, (4, 8), (12,))}),
        ("conv1 takes images of 1 channels but gets (20,)", {"data": "gaussian", "model": ResNet(1)}),
        ("cannot read token ids; samples are int64", {"data": TopicTokens(3, 20, 9, 8, 4, 0)}),
        ("wants token ids; samples are float", {"model": FastText()}),
        ("the tokenizer has 30522 ids and does not fit the 30521", {"data": "ag_news", "model": FastText(30_521)}),
        ("has 4 outputs for the 10 classes of digits", {"model": Softmax(64, 4)}),
        ("Shards cannot split a test set", {"partition": Shards(), "test_partition": True}),
        ("PartialOverlap cannot split a test set", {"partition": PartialOverlap(), "test_partition": True}),
    ],
)
def test_a_problem_whose_parts_do_not_fit_is_refused(words: str, changes: dict[str, Any]) -> None:
    with pytest.raises(UserError) as error:
        replace(NET, **changes)
    assert words in str(error.value)


def test_a_quadratic_serves_what_its_strategy_serves() -> None:
    """The terms that an experiment refuses on a quadratic are those that the strategy refuses."""
    terms = {name for name in Rule.__dataclass_fields__ if name in NAMED["quadratic"].serves}
    assert terms == SGD_TERMS
    assert Rule(mu=1, momentum=0.5, decay=0.1, mean_gradient=True, first_gradient="single").network_terms == ()


def test_samples_are_as_declared(tmp_path: Any) -> None:
    """Shape and type of what is loaded, for every kind of embedded data; images with a border."""
    here = Settings(tmp_path, tmp_path, "cpu", 1)
    data: list[tuple[Any, Any, int]] = [
        ("digits", MLP(64, 3, 10), 0),
        ("digits", MLP(144, 3, 10), 2),
        ("gaussian", Softmax(20, 10), 0),
        (GaussianClasses(3, 7, 8, 4, 1.0, 0), Softmax(7, 3), 0),
        (ImageBlobs(3, 8, 8, 4, 9.0, 0, channels=3), ConvNet(3, 8, (2, 3), (4,), 3, kernel=3, padding=1), 0),
        (TopicTokens(3, 20, 9, 8, 4, 0), FastText(20, 2, 3), 0),
    ]
    for source, model, pad in data:
        problem = Classification(source, model, IID(), 2, Shuffled(4), pad=pad)
        arena: Any = ClientSplits(here).get(problem, 0).device_data
        for x in (arena.train_x, arena.test_x):
            assert tuple(x.shape[1:]) == problem.sample.shape
            assert str(x.dtype) == {"float": "torch.float32", "int64": "torch.int64"}[problem.sample.dtype]


def test_everything_that_is_declared_goes_together_and_needs_no_torch() -> None:
    """All experiments at all scales are made, which checks them; in a process that must not import torch, if graphs of
    all networks can be kept."""
    experiments = [e for scale in SCALES for j in plan.jobs(scale) for e in j.experiments]
    assert len(experiments) > 2000
    assert {type(e.clock) for e in experiments} == {Rounds, Sessions, OtherFingerprints, Events}
    code = "import sys; from reproduce.runs import plan; [plan.jobs(s) for s in ('smoke', 'reduced', 'paper')]"
    models = filter(None, (getattr(e.problem, "model", None) for e in experiments))
    makers = {part.make.partition(":")[0] for model in models for part in model.parts}
    held = "assert 'torch' not in sys.modules" if makers <= set(SOURCES) else "pass"
    subprocess.run([sys.executable, "-c", f"{code}; {held}"], check=True)


def test_samples_processed_count_short_batches() -> None:
    """Whole passes count the client's samples, the rest full batches; a quadratic's step is a sample."""
    here = Settings(Path("nowhere"), Path("nowhere"), "cpu", 1)
    task = ClientSplits(here).get(replace(NET, train_samples=100, batches=Shuffled(10)), 0)
    assert task.samples.tolist() == [25] * 4
    assert task.processed(np.array([0, 3]), np.array([4, 2])) == (25 + 10) + 20
    large = ClientSplits(here).get(replace(NET, train_samples=100, batches=Shuffled(200)), 0)
    assert large.processed(np.array([0, 3]), np.array([4, 2])) == 4 * 25 + 2 * 25, "a pass is a short batch"
    assert ClientSplits(here).get(TOY, 0).processed(np.array([0, 3]), np.array([4, 2])) == 6


def test_a_label_is_no_column_of_all_results() -> None:
    with pytest.raises(UserError, match="'seed' is a column of all results and cannot be a label"):
        Experiment({"seed": 1}, NET, System(Steps(1)), FedAvg(0.1), Rounds(1))


def test_a_panel_needs_a_seed_and_labels_that_tell_its_experiments_apart() -> None:
    e = Experiment({}, NET, System(Steps(1)), FedAvg(0.1), Rounds(1))
    for experiments, seeds, said in (((e,), (), "empty list of seeds"), ((e, e), (0,), "their labels are the same")):
        with pytest.raises(ValueError, match=said):
            Panel("p", experiments, seeds)
