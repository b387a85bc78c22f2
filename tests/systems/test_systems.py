"""Work, links, capacities, membership and their random streams."""

import math
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproduce.data.batches import Shuffled
from reproduce.papers.fedacs import settings
from reproduce.streams import per_client, rng
from reproduce.systems import FullCapacity, link, work
from reproduce.systems.clients import Alternating, Rotation, SplitCapacity

# FedaGrac: step counts of the published code, clients 1..20, computed from its rule with the legacy generator.
GAUSSIAN = {
    (500, 100): "502 490 512 484 493 515 494 498 499 512 513 511 497 508 491 497 495 519 491 492",
    (500, 10000): "529 408 629 348 434 653 445 481 491 629 636 617 475 589 419 472 454 697 415 423",
    (100, 10000): "129 8 229 51 34 253 45 81 91 229 236 217 75 189 19 72 54 297 15 23",
}


def test_streams_differ_by_every_part_of_the_key() -> None:
    keys = [("a",), ("a", 0), ("a", 0, 0), ("a", 0, 1), ("a", 1, 0), ("b", 0, 1), (0,), (0, 0)]
    assert len({rng(*key).random() for key in keys}) == len(keys)
    assert rng("a", 1).random() == rng("a", np.int64(1)).random()


def test_streams_are_the_same_in_every_process() -> None:
    code = "from reproduce.streams import rng; print(rng('work', 3, 'x').integers(10**9))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert int(printed) == rng("work", 3, "x").integers(10**9)


def test_a_clients_number_does_not_depend_on_how_many_clients_there_are() -> None:
    assert (per_client(5, "u", 1) == per_client(50, "u", 1)[:5]).all()


@pytest.mark.parametrize("key", [(), (-1,), (2**32,), (0.5,)])
def test_streams_refuse_bad_keys(key: tuple) -> None:
    with pytest.raises(ValueError, match="key"):
        rng(*key)


@pytest.mark.parametrize("moments", GAUSSIAN)
def test_gaussian_steps_are_those_of_the_published_code(moments: tuple[int, int]) -> None:
    drawn = work.Gaussian(*moments).amounts(seed=5, round=3, clients=20)
    assert drawn.tolist() == [int(k) for k in GAUSSIAN[moments].split()]


def test_random_gaussian_steps_of_the_first_six_rounds() -> None:
    rounds = np.array([work.Gaussian(500, 10000, "random").amounts(0, r, 20) for r in range(6)])
    assert rounds[:, 0].tolist() == [529, 522, 447, 521, 575, 520]
    assert rounds[:, 1].tolist() == [408, 562, 372, 356, 684, 591]
    assert rounds[:, 19].tolist() == [423, 475, 427, 312, 514, 481]


def test_uniform_steps_are_those_of_the_published_code() -> None:
    expected = [243, 337, 125, 160, 385, 243, 176, 295, 183, 397]
    assert work.Uniform(100, 400).amounts(9, 9, 10).tolist() == expected
    assert work.Uniform(100, 400, "random").amounts(9, 0, 10).tolist() == expected
    assert work.Uniform(100, 400, "random").amounts(9, 1, 10).tolist() != expected
    assert set(work.Uniform(2, 3).amounts(9, 9, 40)) == {2, 3}, "both ends"


def test_device_classes_speed_up_the_last_client() -> None:
    rho = work.DEVICE_RATIOS["default"]
    assert work.DeviceClasses(10, rho["rpi4"], 0.25).amounts(0, 0, 4).tolist() == [10, 10, 10, 250]
    assert work.DeviceClasses(10, rho["gtx2080ti"], 0.05).amounts(0, 0, 2).tolist() == [10, 1]
    assert work.DeviceClasses(1, 1.0, 0.01).amounts(0, 0, 2).tolist() == [1, 1]
    halves = [work.DeviceClasses(10, 2.5, u).amounts(0, 0, 2)[1] for u in (0.1, 0.3, 0.5)]
    assert halves == [3, 8, 13], "2.5, 7.5 and 12.5"


def test_static_system_of_fedacs() -> None:
    system = settings.STATIC
    assert system.work.unit == "epochs"
    assert system.work.amounts(0, 0, 20).tolist() == list(range(1, 40, 2))
    assert system.link.failure(0, 0, 20) == pytest.approx(np.linspace(0.40, 0.02, 20), abs=1e-12)
    reverse = replace(settings.STATIC.link, pairing="reverse").failure(0, 0, 20)
    assert reverse == pytest.approx(np.linspace(0.02, 0.40, 20), abs=1e-12)
    shuffled = replace(settings.STATIC.link, pairing="random")
    assert sorted(shuffled.failure(1, 0, 20)) == pytest.approx(np.linspace(0.02, 0.40, 20), abs=1e-12)
    assert (shuffled.failure(1, 0, 20) == shuffled.failure(1, 7, 20)).all()
    assert (shuffled.failure(1, 0, 20) != shuffled.failure(2, 0, 20)).any()


def test_dynamic_system_of_fedacs() -> None:
    system = settings.DYNAMIC
    amounts = np.array([system.work.amounts(3, r, 20) for r in range(300)])
    failure = np.array([system.link.failure(3, r, 20) for r in range(300)])
    assert set(amounts[:, :10].ravel()) == set(range(1, 11))
    assert set(amounts[:, 10:].ravel()) == set(range(20, 31))
    assert amounts.mean() == pytest.approx((5.5 + 25) / 2, abs=0.2)
    for half, low, high in ((failure[:, :10], 0.4, 0.5), (failure[:, 10:], 0.0, 0.1)):
        assert low <= half.min() < low + 0.001
        assert high - 0.001 < half.max() < high
    assert (amounts[0] != amounts[1]).any()
    assert (amounts[0] != system.work.amounts(4, 0, 20)).any()


def test_links_lose_as_often_as_they_say() -> None:
    lossy = link.PerClient((0.0, 0.1, 0.5, 0.9, 1.0))
    arrivals = np.array([lossy.arrived(1, r, 5) for r in range(4000)])
    assert arrivals.mean(axis=0) == pytest.approx([1.0, 0.9, 0.5, 0.1, 0.0], abs=0.03)
    assert arrivals[:, 0].all()
    assert not arrivals[:, 4].any()


def test_losses_are_common_to_systems_and_independent_of_qualities() -> None:
    u = per_client(6, "link", 2, 8)
    for lossy in (link.Same(0.5), link.Halves()):
        assert (lossy.arrived(2, 8, 6) == (u >= lossy.failure(2, 8, 6))).all()
    arrivals = np.array([link.Same(0.5).arrived(0, r, 2) for r in range(4000)])
    assert np.corrcoef(arrivals.T)[0, 1] == pytest.approx(0, abs=0.05)
    any_link = link.Halves((0.0, 1.0), (0.0, 1.0))
    assert np.mean([any_link.arrived(0, r, 2) for r in range(4000)]) == pytest.approx(0.5, abs=0.03)


def test_with_an_odd_number_of_clients_the_second_half_is_the_larger() -> None:
    assert link.Halves((1.0, 1.0), (0.0, 0.0)).failure(0, 0, 5).tolist() == [1, 1, 0, 0, 0]
    assert work.Halves((1, 1), (2, 2)).amounts(0, 0, 5).tolist() == [1, 1, 2, 2, 2]


def test_capacities_of_fiarse() -> None:
    four = SplitCapacity((1, 1 / 4, 1 / 16, 1 / 64))
    assert four.capacities(100).tolist() == [1.0] * 25 + [0.25] * 25 + [0.0625] * 25 + [0.015625] * 25
    uneven = four.capacities(6)
    assert uneven[0] == 1.0
    assert (np.diff(uneven) <= 0).all()
    assert np.unique(uneven, return_counts=True)[1].tolist() in ([1, 2, 1, 2], [2, 1, 2, 1], [1, 1, 2, 2])
    assert four.sizes == (1.0, 0.25, 0.0625, 0.015625)
    assert FullCapacity().capacities(3).tolist() == [1.0, 1.0, 1.0]


def test_groups_alternate() -> None:
    groups = Alternating(groups=2, clients_per_group=3)
    assert [groups.members(s).tolist() for s in range(3)] == [[0, 1, 2], [3, 4, 5], [0, 1, 2]]
    assert groups.clients == 6
    assert [Rotation((1, 3, 2)).members(s).tolist() for s in range(4)] == [[0], [1, 2, 3], [4, 5], [0]]


@pytest.mark.parametrize(
    "make",
    [
        lambda: work.PerClient((1, 2)).amounts(0, 0, 3),
        lambda: work.Linear(3, -1).amounts(0, 0, 4),
        lambda: link.PerClient((0.5,)).failure(0, 0, 2),
        lambda: link.StaticLink().failure(0, 0, 22),
        lambda: SplitCapacity((1.0, 0.5)).capacities(1),
    ],
)
def test_nonsense_is_refused(make) -> None:
    with pytest.raises(ValueError, match=r"\d|''|\(\)|'\w+'"):
        make()


@given(tenths=st.integers(1, 40), samples=st.integers(0, 60), size=st.integers(1, 20))
def test_a_part_of_an_epoch_is_the_batches_that_it_begins(tenths: int, samples: int, size: int) -> None:
    """Exactly, where 0.7 * 10 is a little more than 7."""
    exact = math.ceil(Fraction(tenths, 10) * math.ceil(Fraction(samples, size)))
    assert Shuffled(size).steps(tenths / 10, "epochs", samples) == exact
    assert Shuffled(size).steps(tenths, "steps", samples) == tenths * (samples > 0)
