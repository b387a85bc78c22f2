"""What a run will cost: the arithmetic on given rates, and the strategy that a plan expects."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from estimated import ROUND, declared, softmax

from reproduce.algorithms.base import FedAvg
from reproduce.algorithms.distillation import Distillation
from reproduce.algorithms.moon import Moon
from reproduce.clocks.rounds import Rounds
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClassificationSplit, ClientSplits
from reproduce.engine.cost import BATCHES, estimate, expected_strategy
from reproduce.engine.rates import ASSUMED, Anchor
from reproduce.engine.requests import Train
from reproduce.engine.rule import Rule
from reproduce.engine.trainer import Trainer
from reproduce.models.declared import MLP, ConvNet, FastText, ResNet, Softmax
from reproduce.models.model import Model
from reproduce.problem import Classification, Quadratic
from reproduce.runs import plan
from reproduce.runs.speed import measure
from reproduce.settings import Settings
from reproduce.systems import System
from reproduce.systems.work import Steps


@pytest.fixture
def here(tmp_path: Path) -> Settings:
    return Settings(tmp_path / "data", tmp_path / "store", "cpu", 1)


def test_seconds_are_samples_evaluations_rounds_and_runs_over_their_rates() -> None:
    """640 multiply-accumulates, 6.4 times the anchor's: 156.25 samples/s. 4 clients x 5 steps x 10 samples a round."""
    cost = estimate(softmax(), [0, 1], ROUND)
    samples, evaluated = 2 * 1000 * 4 * 5 * 10, 2 * 11 * 50
    assert cost.samples == samples
    assert cost.flops == samples * 6 * 640 + evaluated * 2 * 640
    expected = 2 * (2.0 + 1000 * 0.5) + samples / (1e3 / 6.4) + samples / BATCHES + evaluated / (1e4 / 6.4)
    assert cost.seconds == pytest.approx(expected, rel=1e-12)
    assert estimate(softmax(), [0, 1]).seconds == estimate(softmax(), [0, 1], ASSUMED).seconds


def test_seconds_of_quadratics_are_rounds() -> None:
    experiment = Experiment({}, Quadratic(3, 2), System(work=Steps(1)), FedAvg(0.1), Rounds(40))
    assert estimate(experiment, [0, 1, 2], ROUND).seconds == 3 * (2.0 + 40 * 0.25)


def test_between_two_sizes_arithmetic_per_second_is_interpolated_and_beyond_them_it_stays() -> None:
    rates = replace(ROUND, kinds={"compiled": (Anchor(100, 10.0, 1.0), Anchor(10_000, 1.0, 1.0))})
    assert rates.train("compiled", 1000) * 1000 == pytest.approx(math.sqrt(1000 * 10_000))
    assert rates.train("compiled", 100) == pytest.approx(10.0)
    assert rates.train("compiled", 10_000) == pytest.approx(1.0)
    assert rates.train("compiled", 10) == pytest.approx(100.0)
    assert rates.train("compiled", 1e6) == pytest.approx(0.01)
    assert rates.evaluate("compiled", 1e6) == pytest.approx(0.01)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
def test_rates_that_no_machine_has_are_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        replace(ROUND, round=wrong)
    with pytest.raises(ValueError, match="positive"):
        replace(ROUND, kinds={"kernel": (Anchor(1, wrong, 1),)})
    with pytest.raises(ValueError, match="no rate"):
        replace(ROUND, kinds={"kernel": ()})


def test_the_strategy_that_a_plan_expects_is_the_one_that_the_trainer_takes(here: Settings) -> None:
    """For every declared model (with a compiler; AlexNet is not compiled)."""
    models = dict(declared())
    assert len(models) > 10
    for model, shape in models.items():
        task, trainer = ClientSplits(here).get(measure.Piece(model, shape, 1, 2, 1, 2).problem, 0), Trainer(1)
        assert isinstance(task, ClassificationSplit)
        trainer.train([(task, Train(np.arange(1), np.ones(1, dtype=np.int64), task.initial(), 0.01, 0))])
        assert trainer.used - {"onednn-products"} == {expected_strategy(model, shape)}, model


RULES = (
    Rule(mu=0.1),
    Rule(momentum=0.9, decay=0.01, mean_gradient=True),
    Rule(distill=1.0),
    Rule(contrast=1.0, temperature=0.5),
    Rule(mask="dynamic", amplify=True),
    Rule(betas=(0.9, 0.999)),
)
NETWORKS: tuple[tuple[Model, tuple[int, ...]], ...] = (
    (Softmax(20, 4), (20,)),
    (Softmax(2000, 10), (2000,)),
    (MLP(64, 32, 10), (64,)),
    (ConvNet(1, 8, (4, 8), (12,), 4, kernel=3, padding=1), (1, 8, 8)),
    (ResNet(1, 4, (8, 16), (1, 1)), (1, 8, 8)),
    (FastText(60, 8), (12,)),
)


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize(("model", "shape"), NETWORKS, ids=lambda x: type(x).__name__)
def test_so_it_is_for_rules_with_other_terms(model: Model, shape: tuple[int, ...], rule: Rule, here: Settings) -> None:
    task, trainer = ClientSplits(here).get(measure.Piece(model, shape, 1, 2, 1, 2).problem, 0), Trainer(1)
    assert isinstance(task, ClassificationSplit)
    x = task.initial()
    brought = {
        "thresholds": torch.zeros(1, len(model.shapes)) if rule.mask else None,
        "teacher": torch.zeros_like(x) if rule.distill else None,
        "previous": torch.zeros_like(x).unsqueeze(0) if rule.contrast else None,
    }
    request = Train(np.arange(1), np.ones(1, dtype=np.int64), x, 0.01, 0, rule, **brought)
    trainer.train([(task, request)])
    assert trainer.used - {"onednn-products"} == {expected_strategy(model, shape, rule)}


@pytest.mark.parametrize(
    ("algorithm", "others"), [(Distillation(0.1), 1), (Moon(0.1), 2), (Moon(0.1, second_pass=True), 5)]
)
def test_other_models_that_a_step_asks_are_forward_passes_more(algorithm: FedAvg, others: int) -> None:
    """A step is three: forward, and backward to the input and to the weights."""
    plain, more = estimate(softmax(), [0], ROUND), estimate(softmax(algorithm=algorithm), [0], ROUND)
    assert more.samples == plain.samples
    assert more.flops == plain.flops + others * plain.samples * 2 * 640
    assert more.seconds == pytest.approx(plain.seconds + others / 3 * plain.samples / (1e3 / 6.4), rel=1e-12)


def test_a_problem_knows_how_many_samples_it_has(here: Settings) -> None:
    """As many as are loaded: all embedded data that is declared."""
    problems = {e.problem for j in plan.jobs("smoke") for e in j.experiments if isinstance(e.problem, Classification)}
    problems.add(softmax().problem)
    for problem in problems:
        arena = ClientSplits(here).get(problem, 0).device_data
        assert problem.sizes == (len(arena.train_y), len(arena.test_y)), problem
