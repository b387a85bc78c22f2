"""What a run will cost: its work, the strategy that a plan expects, and seconds by the rates of other runs."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from runs import run

from reproduce.algorithms.base import FedAvg, WeightedDraws
from reproduce.algorithms.moon import Distillation, Moon
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Shuffled
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClientSplits
from reproduce.models.declared import Softmax
from reproduce.partitions.labels import IID
from reproduce.play.benchmarks import find
from reproduce.play.match import Match
from reproduce.play.specs import NAMES, Spec
from reproduce.problem import Classification, Quadratic
from reproduce.runs import costs, plan, rates, results
from reproduce.runs.rates import Kind, estimate
from reproduce.settings import Settings
from reproduce.systems import System
from reproduce.systems.work import Steps, Uniform

PLAIN = FedAvg(0.1)


def softmax(algorithm: FedAvg = PLAIN) -> Experiment:
    problem = Classification("digits", Softmax(64, 10), IID(), 4, Shuffled(10), train_samples=400, test_samples=50)
    return Experiment({}, problem, System(work=Steps(5)), algorithm, Rounds(1000, every=100))


def test_work_is_samples_and_evaluations() -> None:
    """640 multiply-accumulates; 4 clients x 5 steps x 10 samples a round, 11 evaluations of 50 samples."""
    samples, evaluated = 2 * 1000 * 4 * 5 * 10, 2 * 11 * 50
    work = estimate(softmax(), [0, 1])
    assert (work.samples, work.flops) == (samples, samples * 6 * 640 + evaluated * 2 * 640)
    uneven = Uniform(2, 9, "random")
    one = replace(softmax(), system=System(work=uneven), clock=Rounds(1))
    more = FedAvg(0.1, participation=WeightedDraws(9))
    assert estimate(softmax(more), [0]).samples == samples / 2, "who is drawn twice trains once"
    assert estimate(one, [0]).samples == 10 * uneven.amounts(0, 0, 4).sum() != 10 * uneven.amounts(0, 1, 4).sum()


@pytest.mark.parametrize(
    ("algorithm", "others"), [(Distillation(0.1), 1), (Moon(0.1), 2), (Moon(0.1, second_pass=True), 5)]
)
def test_other_models_that_a_step_asks_are_forward_passes_more(algorithm: FedAvg, others: int) -> None:
    """A step is three: forward, and backward to the input and to the weights."""
    plain, more = estimate(softmax(), [0]), estimate(softmax(algorithm), [0])
    assert more.samples == plain.samples
    assert more.flops == plain.flops + others * plain.samples * 2 * 640


def test_what_an_experiment_is_estimated_by() -> None:
    assert rates.kind(softmax(Moon(0.1))) == Kind("Softmax", 640, "Moon")
    assert rates.work(softmax()) == estimate(softmax(), [0]).flops
    quadratic = Experiment({}, Quadratic(3, 2), System(work=Steps(1)), PLAIN, Rounds(40))
    assert (rates.kind(quadratic), rates.work(quadratic)) == (Kind("", 1, "FedAvg"), 40)


RATES = {
    Kind("", 1, "FedAvg"): 1.0,
    Kind("Softmax", 100, "FedAvg"): 2.0,
    Kind("Softmax", 100, "FedProx"): 8.0,
    Kind("Softmax", 10_000, "FedAvg"): 16.0,
    Kind("ConvNet", 10_000, "FedACS"): 32.0,
}


@pytest.mark.parametrize(
    ("kind", "rate"),
    [
        (Kind("Softmax", 100, "FedProx"), 8.0),
        (Kind("Softmax", 990, "FedProx"), 8.0),  # the logarithm is nearer to that of 100
        (Kind("Softmax", 1010, "FedProx"), 8.0),  # another algorithm is as far as e times the size
        (Kind("Softmax", 2000, "FedProx"), 16.0),
        (Kind("Softmax", 100, "Scaffold"), 4.0),  # the mean of those of this size
        (Kind("ConvNet", 1000, "FedAvg"), 32.0),  # another network is as far as 33 times the size
        (Kind("ConvNet", 100, "FedAvg"), 2.0),
        (Kind("MLP", 2, "FedAvg"), 2.0),  # a quadratic is no network
        (Kind("", 1, "Scaffold"), 1.0),
    ],
    ids=str,
)
def test_the_rate_is_that_of_the_most_similar_runs(kind: Kind, rate: float) -> None:
    assert rates.rate(kind, RATES) == pytest.approx(rate)


def test_a_job_is_its_start_and_its_runs_by_the_speed_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "rates", lambda: {Kind("Softmax", 640, "FedAvg"): 1e-9})
    monkeypatch.setattr(rates, "machine", lambda: 3.0)
    cost, each = costs.together([softmax(), softmax()], [0, 1]), estimate(softmax(), [0, 1])
    assert (cost.samples, cost.flops, cost.bytes) == (2 * each.samples, 2 * each.flops, each.bytes)
    assert cost.seconds == pytest.approx(3 * (rates.START + 2 * each.flops / 1e9))


def test_of_a_job_in_part_there_what_is_due_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    job = plan.job("smoke", "fedagrac", "table1-lr")
    one = replace(job, experiments=job.experiments[:1])
    for parts, expected in (((), job), ((job,), job), ((one,), one)):
        monkeypatch.setattr(results, "parts", lambda job, parts=parts: parts)
        assert costs.due(job) == costs.cost(expected)


def test_estimates_are_near_what_committed_runs_took() -> None:
    """Of each network, all jobs at reduced scale together; a factor of three has room for the processors."""
    measured, estimated = defaultdict[str, float](float), defaultdict[str, float](float)
    for job in plan.jobs("reduced"):
        if Path(job.output).is_file() and not costs.at_most(job):
            for run in results.standing(job).runs:
                if run.stored and run.stored.seconds:
                    network = rates.kind(run.experiment).model
                    measured[network] += run.stored.seconds
                    estimated[network] += rates.seconds(run.experiment)
    long = [network for network in measured if measured[network] > 600]
    assert len(long) > 3
    for network in long:
        assert 1 / 3 < measured[network] / estimated[network] < 3, network


def test_a_problem_knows_how_many_samples_it_has(tmp_path: Path) -> None:
    """As many as are loaded: all embedded data that is declared."""
    here = Settings(tmp_path / "data", tmp_path / "store", "cpu", 1)
    problems = {e.problem for j in plan.jobs("smoke") for e in j.experiments if isinstance(e.problem, Classification)}
    problems.add(softmax().problem)
    for problem in problems:
        data = ClientSplits(here).get(problem, 0).device_data
        assert problem.sizes == (len(data.train_y), len(data.test_y)), problem


BENCHMARK = find("fedagrac-steps", "smoke")


def numbers(state: Any) -> Iterator[int]:
    """How many numbers each tensor of a state has."""
    if isinstance(state, torch.Tensor):
        yield state.numel()
    elif isinstance(state, dict):
        for value in state.values():
            yield from numbers(value)
    elif isinstance(state, list | tuple):
        for value in state:
            yield from numbers(value)


FIT = [e.spec for e in Match([*map(Spec, NAMES)], [BENCHMARK], lenient=True).entries if e.experiment]


@pytest.mark.parametrize("spec", FIT, ids=lambda spec: spec.name)
def test_what_an_algorithm_keeps_for_its_clients_is_known(spec: Spec) -> None:
    experiment = BENCHMARK.experiment(spec)
    (played,) = run([experiment])
    vectors = sum(numbers(played.state)) / played.env.parameters
    assert experiment.algorithm.per_client == int(vectors // played.env.clients)


@pytest.mark.parametrize("scale", ["reduced", "paper"])
def test_a_job_that_was_trained_is_asked_for_no_less_than_it_had(scale: str) -> None:
    for job in plan.jobs(scale):
        if Path(job.output).is_file():
            peak = max((run.training.get("peak_memory", 0) for run in results.standing(job).stored), default=0)
            assert costs.memory(job) >= peak / 1e6
