"""How many models a stack on a GPU holds: arithmetic alone."""

from __future__ import annotations

import pytest

from reproduce.engine import memory
from reproduce.engine.rule import Rule
from reproduce.models.declared import MLP, ConvNet, ResNet, Softmax

GIB = 2**30
H200 = 139 * GIB


def test_bytes_of_a_model_by_hand() -> None:
    """Softmax 4 -> 3 has 15 parameters; a sample is 4 numbers in and 3 out."""
    assert memory.activations(Softmax(4, 3), (4,)) == 7
    assert memory.model_bytes(Softmax(4, 3), (4,), 10, Rule()) == 4 * (8 * 15 + 3 * 10 * 7)
    assert memory.model_bytes(Softmax(4, 3), (4,), 10, Rule(), 8) == 8 * (8 * 15 + 3 * 10 * 7)


def test_every_memory_of_the_rule_is_counted() -> None:
    plain = memory.parameter_arrays(Rule())
    assert memory.parameter_arrays(Rule(momentum=0.9)) == plain + 1
    assert memory.parameter_arrays(Rule(mean_gradient=True)) == plain + 2
    assert memory.parameter_arrays(Rule(first_gradient="single")) == plain + 4
    assert memory.parameter_arrays(Rule(mask="frozen")) == plain + 2


@pytest.mark.parametrize("total", [GIB, 16 * GIB, H200])
@pytest.mark.parametrize("each", [1, 10**6, 10**8, 10**9, 10**12])
def test_a_stack_fits_and_the_next_would_not(each: int, total: int) -> None:
    size = memory.stack_size(each, total)
    budget = memory.SHARE * total / (memory.FLIGHT * (memory.KEPT + 1))
    assert size in memory.SIZES
    assert size == 1 or size * each <= budget
    larger = [s for s in memory.SIZES if s > size]
    assert not larger or larger[0] * each > budget


def test_all_lanes_and_kept_steps_together_stay_within_the_share() -> None:
    each = memory.model_bytes(ConvNet(3, 32, (32, 32), (256, 64), kernel=3, padding=1), (3, 32, 32), 64, Rule())
    size = memory.stack_size(each, H200)
    assert size >= 8
    assert memory.FLIGHT * (memory.KEPT + 1) * size * each <= memory.SHARE * H200


def test_the_size_is_the_devices_and_not_the_moments() -> None:
    """A few per cent more or less, as drivers report them, must not change the bits of a small model's stack."""
    each = memory.model_bytes(MLP(784, 200, 10), (784,), 25, Rule())
    assert memory.stack_size(each, H200) == memory.stack_size(each, int(0.97 * H200))
    large = memory.model_bytes(ResNet(), (3, 32, 32), 20, Rule())
    assert memory.stack_size(large, H200) < memory.stack_size(each, H200)
    assert memory.stack_size(large, GIB) == 1
