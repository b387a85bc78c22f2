"""dynamic_init: distances and weights of the session starts, work and models of its experiments."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
import torch
from runs import run

from reproduce.algorithms.session_starts import Proposed
from reproduce.data.batches import Walk
from reproduce.declare.experiment import Experiment, Label, changed
from reproduce.engine.layout import Layout
from reproduce.models.declared import NormConvNet
from reproduce.modules.ops import One
from reproduce.papers.dynamic_init import runs
from reproduce.papers.dynamic_init.choices import AS_RUN, added, fingerprinted, sensitivity

BLOCKS = {"fc1.weight": slice(0, 3), "fc1.bias": slice(3, 5), "fc2.weight": slice(5, 7)}


def vector(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_distance_of_unit_vectors_per_weight_tensor() -> None:
    """By hand: tensors (3,4,0)/5 against (0,4,3)/5 and (0,2)/2 against (5,0)/5; biases do not count."""
    a, b = vector(3, 4, 0, 100, 7, 0, 2), vector(0, 4, 3, -9, 0, 5, 0)
    expected = (np.sqrt(2) * 3 / 5 + np.sqrt(2)) / 2
    assert Proposed().distances([b, a], BLOCKS) == pytest.approx([expected])
    assert Proposed().distances([10 * b, 0.1 * a], BLOCKS) == pytest.approx([expected])
    assert Proposed().distances([b, -b, a], BLOCKS)[0] == pytest.approx(expected)
    assert Proposed().distances([-b, b], BLOCKS) == pytest.approx([2.0])


def test_a_vanishing_gradient_has_no_direction() -> None:
    zero, a = torch.zeros(7, dtype=torch.float64), vector(3, 4, 0, 0, 0, 0, 2)
    assert Proposed().distances([zero, a], BLOCKS) == pytest.approx([1.0])
    assert Proposed().distances([zero, zero], BLOCKS) == pytest.approx([0.0])


@pytest.mark.parametrize(
    ("distances", "expected"),
    [
        ((0.03, 1.64), (1, 0)),
        ((1.63, 0.20, 1.63), (0, 1, 0)),
        ((0.03, 1.64, 0.03, 1.63), (0.5, 0, 0.5, 0)),
        ((0.5, 0.6), (1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1)))),
    ],
)
def test_weights_for_known_distances(distances: tuple[float, ...], expected: tuple[float, ...]) -> None:
    """The distances measured on MNIST give the weights 1 and 0, or 1/2 for two equally near models."""
    alpha = Proposed(R=10.0).weights(len(distances), np.array(distances))
    assert alpha == pytest.approx(expected, abs=1e-5)
    assert alpha.sum() == pytest.approx(1.0, abs=1e-15)


def test_large_similarity_scales_do_not_underflow() -> None:
    """exp(-800 * 1.9) is zero in float64; relative to the nearest model it is not needed."""
    alpha = Proposed(R=800.0).weights(3, np.array([1.95, 1.9, 1.9 + 1e-3]))
    assert alpha == pytest.approx([0, 1 / (1 + np.exp(-0.8)), 1 / (1 + np.exp(0.8))], abs=1e-12)


@pytest.mark.parametrize("R", [1e5, 1e200, 1e308])
def test_a_huge_similarity_scale_takes_the_nearest_model(R: float) -> None:
    """Also where a model that is too old to be kept is nearer than all others; two equally near ones share."""
    assert Proposed(R=R).weights(3, np.array([2.0, 0.0, 0.4])).tolist() == [0, 1, 0]
    assert Proposed(R=R).weights(3, np.array([0.2, 1.9, 0.2])).tolist() == [0.5, 0, 0.5]
    assert Proposed(R=R, history=2).weights(4, np.array([0.0, 0.1, 0.6, 0.3])).tolist() == [0, 0, 0, 1]


def test_without_similarity_scale_all_models_count_the_same() -> None:
    assert Proposed(R=0.0).weights(4, np.array([1.9, 0.2, 0.4, 0.0])).tolist() == [0.25] * 4
    assert Proposed(R=0.0, history=3).weights(2, np.array([1.9, 0.2])).tolist() == [0.5] * 2


@pytest.mark.parametrize(
    ("samples", "sizes"),
    [(306, [128, 128, 50]),
     (453, [128, 128, 128, 69]), (279, [128, 128, 23]), (250, [128, 122]), (600, [128] * 4 + [88]),
     (1250, [128] * 5), (555, [128] * 4 + [43])],
)  # fmt: skip
def test_a_client_walks_once_through_its_data_for_at_most_five_steps(samples: int, sizes: list[int]) -> None:
    batches = Walk(128)
    steps = batches.steps(5, "steps", samples)
    plan = batches.plan(np.arange(1000, 1000 + samples), steps, 0, 0, 0, 0)
    assert (plan >= 0).sum(1).tolist() == sizes
    drawn = plan[plan >= 0]
    assert len(set(drawn.tolist())) == len(drawn)
    assert drawn.min() >= 1000


def test_normalised_network_equals_torch_modules() -> None:
    """The same network out of torch.nn, normalising with the statistics of the batch."""
    nn = torch.nn
    model = NormConvNet(3, 8, ((4, 4), (6,)), hidden=5, dropout=0.0)
    parts: list[torch.nn.Module] = []
    for inputs, width, last in ((3, 4, False), (4, 4, True), (4, 6, True)):
        parts += [nn.Conv2d(inputs, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
        parts += [nn.MaxPool2d(2)] if last else []
    network = nn.Sequential(*parts, nn.Flatten(), nn.Linear(24, 5), nn.ReLU(), nn.Linear(5, 10)).double().train()
    layout = Layout(model)
    flat = torch.randn(layout.total, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for parameter, value in zip(network.parameters(), layout.named(flat).values(), strict=True):
        assert parameter.shape == value.shape
        parameter.data.copy_(value)
    x = torch.randn(7, 3, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    ops = One()
    torch.testing.assert_close(model.forward(ops, layout.named(flat), ops.images(x)), network(x), rtol=0, atol=1e-10)


@pytest.mark.parametrize("history", [0, 1])
def test_fingerprints_of_sessions_whose_models_were_dropped_do_not_count(history: int) -> None:
    start, distances = Proposed(R=1.0, history=history, trigger="every_time"), np.array([0.0, 5.0, 0.2, 0.7])
    np.testing.assert_array_equal(start.weights(2, distances), start.weights(2, distances[-2:]))
    assert start.weights(2, distances).argmax() == history


SCALES = ("smoke", "reduced", "paper")


@pytest.mark.parametrize("scale", SCALES)
def test_the_first_of_an_algorithm_is_that_of_its_table(scale: str) -> None:
    """Trained once more, and equal to the bit: the panels of Table 3, of news Table 2, have the same experiments."""
    printed: dict[Experiment, list[dict[str, Label]]] = defaultdict(list)  # Continuous is one of several algorithms
    for e in (e for p in runs.panels(("table2", "table3"), scale) for e in p.experiments):
        printed[replace(e, labels={})].append({**e.labels, "choice": AS_RUN})
    for panel in sensitivity(scale):
        for e in panel.experiments:
            as_run = e.labels["choice"] == AS_RUN
            assert (replace(e, labels={}) in printed) == as_run
            if as_run:
                assert dict(e.labels) in printed[replace(e, labels={})]


def test_the_shares_go_over_clients_and_the_distillation_is_an_addition() -> None:
    """Of all that is declared nothing else differs from the tables, and the samples of a group are the same."""
    known = {p.name: p for p in sensitivity("reduced")}
    base = {e.labels["init_scheme"]: e for e in known["sensitivity-mnist"].experiments[:3]}
    *shares, _, replaced, added = known["further-mnist"].experiments
    labels = np.arange(4000) % 10
    for e in shares:
        plain = base[e.labels["init_scheme"]]
        assert changed(e, {"problem.partition": plain.problem.partition, "labels": plain.labels}) == plain
        ours, theirs = (one.problem.partition.split(labels, 20, 3) for one in (e, plain))
        for half in (slice(0, 10), slice(10, 20)):
            assert set(np.concatenate(ours[half])) == set(np.concatenate(theirs[half]))
        assert len({len(part) for part in ours}) > 10 > 2 >= len({len(part) for part in theirs})
    rule, before = (e.algorithm.rule() for e in (added, replaced))
    assert (rule.mu, before.mu) == (1.0, 0.0)
    assert replace(rule, mu=0.0) == before
    assert changed(added, {"algorithm": replaced.algorithm, "labels": replaced.labels}) == replaced


def test_the_distillation_is_an_addition_to_each_algorithm() -> None:
    """Without weight it is the algorithm, to the bit; the local loss has the terms of both."""
    plain = next(p for p in sensitivity("smoke") if p.name.startswith("weights")).experiments[0]
    for name in ("scaffold", "fedacg"):
        both = changed(plain, added(name).changes)
        alone = replace(plain, algorithm=runs.algorithm(name, plain.algorithm.lr, runs.FEW))
        assert replace(alone.algorithm.rule(), distill=1.0) == both.algorithm.rule()
        a, b, c = run([alone, changed(both, {"algorithm.kappa": 0.0}), both])
        assert a.state["history"] == b.state["history"] != c.state["history"]


def test_half_of_the_first_rate_is_the_fingerprints_own() -> None:
    plain = next(p for p in sensitivity("smoke") if p.name.startswith("sensitivity")).experiments[0]
    given, half, whole = run([plain, *(changed(plain, fingerprinted(share)) for share in (0.5, 1.0))])
    assert given.state["history"] == half.state["history"] != whole.state["history"]
