"""Partitions: golden sizes of the papers, completeness, disjointness, sizes, determinism, refusals."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reproduce.data.batches import Fixed
from reproduce.data.load import load
from reproduce.models.declared import Softmax
from reproduce.partitions import groups
from reproduce.partitions.base import by_class
from reproduce.partitions.dirichlet import BalancedDirichlet, CappedDirichlet, DirichletClass, DirichletClient
from reproduce.partitions.labels import IID, ClassPerClient, Sharding, Shards, ShuffledBlocks, TwoClasses
from reproduce.partitions.split import chosen
from reproduce.problem import Classification
from reproduce.settings import Settings


def balanced(classes: int, each: int) -> np.ndarray:
    return np.repeat(np.arange(classes), each)


def sizes(parts: list[np.ndarray]) -> list[int]:
    return [len(p) for p in parts]


def counts(labels: np.ndarray, parts: list[np.ndarray]) -> np.ndarray:
    """How many samples of each class the parts have [parts, classes]."""
    return np.array([np.bincount(labels[p], minlength=labels.max() + 1) for p in parts])


CIFAR, FASHION, A9A = balanced(10, 5000), balanced(10, 6000), np.repeat([0, 1], [24720, 7841])
MNIST_COUNTS = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]

GOLDEN = [  # sizes for seed 1234, computed apart from this package
    (
        CIFAR,
        20,
        0.3,
        "2526 2727 1411 1564 2968 3858 2546 3029 2806 2804 2693 2909 3355 1814 704 2632 1552 2471 2720 2911",
    ),
    (CIFAR, 20, 0.1, "2736 12 3921 3710 3559 2639 2874 4015 4000 1255 3663 427 3902 2291 66 2896 2020 858 3208 1948"),
    (A9A, 20, 0.3, "234 3918 2841 1787 743 3047 2155 1880 446 778 538 1247 13 3395 100 5679 1934 504 1320 2"),
    (FASHION, 10, 0.1, "2920 476 7291 6086 9103 4927 6305 6816 9791 6285"),
    (FASHION, 10, 0.3, "3414 2548 8924 6711 6772 7752 5183 6893 4777 7026"),
]


@pytest.mark.parametrize(("labels", "clients", "alpha", "golden"), GOLDEN)
def test_capped_dirichlet_golden_sizes(labels: np.ndarray, clients: int, alpha: float, golden: str) -> None:
    parts = CappedDirichlet(alpha).split(labels, clients, seed=5)
    assert any(np.any(np.diff(labels[p]) < 0) for p in parts)  # the clients' lists are shuffled, not sorted by class
    assert sizes(parts) == [int(n) for n in golden.split()]


def test_a_client_of_capped_dirichlet_that_holds_its_share_gets_nothing_of_later_classes() -> None:
    labels = balanced(2, 4)
    held = np.concatenate([counts(labels, CappedDirichlet(0.1, None).split(labels, 2, seed)) for seed in range(30)])
    full = held[:, 0] == len(labels) / 2
    assert full.sum() > 5
    assert not held[full, 1].any()


def test_sharding_golden_sizes_and_holders() -> None:
    parts = Sharding().split(CIFAR, 20, seed=0)
    golden = "3269 2149 2464 2723 2241 2838 2695 2195 3025 2412 2409 2506 2195 2366 2363 2393 2250 2893 2320 2265"
    assert sizes(parts) == [int(n) for n in golden.split()]
    assert sum(sizes(parts)) == 49971
    held = np.array([[np.any(CIFAR[p] == c) for c in range(10)] for p in parts])
    assert held.sum(axis=0).tolist() == [7, 5, 10, 10, 11, 13, 14, 10, 11, 9]
    assert (held.sum(axis=1) == 5).all()


@pytest.mark.parametrize(
    ("count", "overlap", "first", "second"),
    [
        (10, 0.0, (0, 4), (5, 9)),
        (10, 0.2, (0, 4), (4, 8)),
        (100, 0.0, (0, 49), (50, 99)),
        (100, 0.2, (0, 54), (44, 98)),
        (200, 0.0, (0, 99), (100, 199)),
        (200, 0.2, (0, 110), (89, 199)),
        (4, 0.0, (0, 1), (2, 3)),
        (4, 0.6, (0, 1), (1, 2)),
        (4, 0.8, (0, 2), (1, 3)),
    ],
)
def test_label_groups_table_of_dynamic_init_4_2(
    count: int, overlap: float, first: tuple[int, int], second: tuple[int, int]
) -> None:
    a, b = groups.label_groups(count, overlap)
    assert a == tuple(range(first[0], first[1] + 1))
    assert b == tuple(range(second[0], second[1] + 1))


COMPLETE: list[Any] = [  # every sample exactly once
    IID(),
    TwoClasses(),
    Shards(),
    ClassPerClient(),
    ClassPerClient("modulo"),
    DirichletClass(0.5, min_size=1),
    DirichletClient(0.5),
    CappedDirichlet(0.5, None),
    groups.HalfLabels(),
    groups.PartialOverlap(),
]
PARTIAL: list[Any] = [ShuffledBlocks(None), Sharding(2, None), BalancedDirichlet(0.5, None)]


@st.composite
def problems(draw: st.DrawFn) -> tuple[np.ndarray, int, int]:
    """Unbalanced labels of 4 or 5 classes in random order, an even number of clients >= classes, a seed."""
    counts = draw(st.lists(st.integers(60, 150), min_size=4, max_size=5))
    labels = np.repeat(np.arange(len(counts)), counts)
    np.random.default_rng(draw(st.integers(0, 99))).shuffle(labels)
    return labels, draw(st.sampled_from([6, 8, 10])), draw(st.integers(0, 2**31 - 1))


@pytest.mark.parametrize("partition", COMPLETE + PARTIAL, ids=lambda p: type(p).__name__)
@settings(max_examples=15, deadline=None)
@given(problem=problems())
def test_every_used_sample_once_no_client_empty_same_by_seed(
    partition: Any, problem: tuple[np.ndarray, int, int]
) -> None:
    labels, clients, seed = problem
    parts = partition.split(labels, clients, seed)
    used = np.concatenate(parts)
    assert len(parts) == clients
    assert min(sizes(parts)) > 0
    assert all(p.dtype == np.int64 for p in parts)
    assert len(np.unique(used)) == len(used)
    assert used.min() >= 0
    assert used.max() < len(labels)
    if partition in COMPLETE:
        assert len(used) == len(labels)
    for first, second in zip(parts, partition.split(labels, clients, seed), strict=True):
        assert np.array_equal(first, second)
    other = partition.split(labels, clients, seed + 1)
    assert any(not np.array_equal(p, q) for p, q in zip(parts, other, strict=True))


@settings(max_examples=15, deadline=None)
@given(problem=problems(), alpha=st.sampled_from([0.1, 0.3, 10.0]), overlap=st.sampled_from([0.0, 0.5]))
def test_grouped_shares_cut_each_label_over_the_clients_of_its_group(
    problem: tuple[np.ndarray, int, int], alpha: float, overlap: float
) -> None:
    """Label by label as an independent loop cuts it: at floor(cumulative share * samples)."""
    labels, clients, seed = problem
    parts = groups.GroupedShares(alpha, overlap, min_size=0).split(labels, clients, seed)
    n = clients // 2
    for g, given_labels in enumerate(groups.label_groups(labels.max() + 1, overlap)):
        rng = np.random.default_rng([seed, 1, g + 1])
        while True:
            wanted: list[list[int]] = [[] for _ in range(n)]
            for label in given_labels:
                own, before, cumulative = rng.permutation(np.flatnonzero(labels == label)), 0, 0.0
                for client, share in enumerate(rng.dirichlet([alpha] * n)):
                    cumulative += share
                    end = len(own) if client == n - 1 else int(cumulative * len(own))
                    wanted[client] += own[before:end].tolist()
                    before = end
            if all(wanted):
                break
        assert [part.tolist() for part in parts[g * n : (g + 1) * n]] == wanted


@settings(max_examples=15, deadline=None)
@given(problem=problems(), alpha=st.sampled_from([0.3, 0.7]), data=st.data())
def test_groups_with_label_sets_of_their_own(
    problem: tuple[np.ndarray, int, int], alpha: float, data: st.DataObject
) -> None:
    """Complete, disjoint inside a group, quotas equal up to one sample; labels of no group are unused (Table 12)."""
    labels, _, seed = problem
    label_set = st.lists(st.integers(0, int(labels.max())), min_size=1, unique=True).map(tuple)
    sets = tuple(data.draw(st.lists(label_set, min_size=1, max_size=4)))
    each = data.draw(st.integers(1, 7))
    parts = groups.GroupedDirichlet(alpha, label_sets=sets).split(labels, each * len(sets), seed)
    for g, given_labels in enumerate(sets):
        group = parts[g * each : (g + 1) * each]
        assert np.array_equal(np.sort(np.concatenate(group)), np.flatnonzero(np.isin(labels, given_labels)))
        assert max(sizes(group)) - min(sizes(group)) <= 1


def test_label_sets_of_two_groups_are_those_of_an_overlap() -> None:
    """The same samples to the same clients: the streams are those of the groups. A third group changes nothing."""
    a, b = groups.label_groups(10, 0.2)
    declared = groups.GroupedDirichlet(0.3, 0.2).split(FASHION, 10, 4)
    for sets in ((a, b), (a, b, (9,))):
        parts = groups.GroupedDirichlet(0.3, label_sets=sets).split(FASHION, 5 * len(sets), 4)
        assert all(np.array_equal(p, q) for p, q in zip(declared, parts, strict=False))
    assert set(FASHION[np.concatenate(parts[10:])]) == {9}


def naive_group(labels: np.ndarray, alpha: float, clients: int, seed: int) -> list[np.ndarray]:
    """The dealing of samples within a group, step by step as docs/papers/dynamic_init.md has it, on numpy scalars."""
    rng = np.random.default_rng([seed, 77])
    count = labels.max() + 1
    pools = [list(rng.permutation(np.flatnonzero(labels == c))) for c in range(count)]
    priors = rng.dirichlet(np.full(count, alpha), size=clients)
    parts = []
    for i in range(clients):
        mine: list[int] = []
        for _ in range(len(labels) // clients + (i < len(labels) % clients)):
            tries = (int(rng.choice(count, p=priors[i])) for _ in range(3 * count + 5))
            label = next((c for c in tries if pools[c]), None)
            if label is None:
                label = int(rng.choice([c for c in range(count) if pools[c]]))
            mine.append(pools[label].pop())
        parts.append(np.array(mine))
    return parts


def naive_balanced(labels: np.ndarray, alpha: float, clients: int, seed: int) -> list[np.ndarray]:
    """The balanced loop of fiarse with the released code's rejection of full clients and exhausted classes."""
    rng = np.random.default_rng([seed, 78])
    count, quota = labels.max() + 1, len(labels) // clients
    pools = [list(np.flatnonzero(labels == c)) for c in range(count)]
    priors = rng.dirichlet(np.full(count, alpha), size=clients)
    parts: list[list[int]] = [[] for _ in range(clients)]
    while any(len(p) < quota for p in parts):
        i = int(rng.integers(clients))
        mass = priors[i] * [bool(p) for p in pools]
        if len(parts[i]) < quota:
            parts[i].append(pools[int(rng.choice(count, p=mass / mass.sum()))].pop(0))
    return [np.array(p) for p in parts]


@pytest.mark.parametrize("name", ["grouped", "balanced"])
def test_fast_loops_follow_the_law_of_the_slow_ones(name: str) -> None:
    """Mean and spread of each client's largest class, over seeds, against the procedure written out naively."""
    labels, clients, alpha, seeds = balanced(4, 15), 4, 0.5, 250

    def fast(seed: int) -> list[np.ndarray]:
        if name == "balanced":
            return BalancedDirichlet(alpha, None).split(labels, clients, seed)
        return groups.GroupedDirichlet(alpha).split_group(
            list(by_class(labels).values()), clients, np.random.default_rng(seed)
        )

    slow = naive_balanced if name == "balanced" else naive_group
    ours = np.array([[np.bincount(labels[p]).max() for p in fast(s)] for s in range(seeds)])
    theirs = np.array([[np.bincount(labels[p]).max() for p in slow(labels, alpha, clients, s)] for s in range(seeds)])
    error = np.sqrt((ours.var(axis=0) + theirs.var(axis=0)) / seeds)
    assert (np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) < 4 * error).all()
    assert np.allclose(ours.std(axis=0), theirs.std(axis=0), rtol=0.25)


def test_who_has_used_up_the_classes_of_its_prior_takes_from_all_others_alike() -> None:
    labels = np.repeat(np.arange(4), 100)
    first, _ = groups.GroupedDirichlet(1e-3, label_sets=((0, 1, 2, 3),)).split(labels, 2, 0)
    own, *others = np.sort(np.bincount(labels[first], minlength=4))[::-1]
    assert own == 100
    assert min(others) > 15, "33 each are expected"


@settings(max_examples=15, deadline=None)
@given(problem=problems(), alpha=st.sampled_from([0.05, 0.3, 5.0]))
def test_balanced_dirichlet_sizes_priors_and_matched_test_sets(
    problem: tuple[np.ndarray, int, int], alpha: float
) -> None:
    labels, clients, seed = problem
    partition = BalancedDirichlet(alpha, None)
    parts, priors = partition.split(labels, clients, seed), partition.priors(labels.max() + 1, clients, seed)
    assert set(sizes(parts)) == {len(labels) // clients}
    assert priors.shape == (clients, labels.max() + 1)
    assert np.allclose(priors.sum(axis=1), 1)
    test_labels = np.repeat(np.arange(labels.max() + 1), 40)
    test = partition.split_test(labels, test_labels, clients, seed)
    assert set(sizes(test)) == {len(test_labels) // clients}
    assert len(np.unique(np.concatenate(test))) == sum(sizes(test))


def histograms(labels: np.ndarray, parts: list[np.ndarray]) -> np.ndarray:
    return counts(labels, parts) / np.array(sizes(parts))[:, None]


@pytest.mark.parametrize("partition", [BalancedDirichlet(0.3), CappedDirichlet(1.0, 0)], ids=["balanced", "capped"])
def test_matched_test_sets_have_the_classes_of_the_training_sets(partition: Any) -> None:
    train, test = balanced(4, 3000), balanced(4, 500)
    mine = histograms(train, partition.split(train, 20, 0))
    matched = histograms(test, partition.split_test(train, test, 20, 0))
    independent = histograms(test, replace(partition, data_seed=1).split(test, 20, 0))
    near, far = np.abs(mine - matched).sum(axis=1).mean(), np.abs(mine - independent).sum(axis=1).mean()
    assert near < 0.5 * far


def test_who_is_left_without_a_test_sample_takes_one_from_the_largest() -> None:
    local = CappedDirichlet(1.0, data_seed=0).split_test(balanced(2, 20), balanced(2, 2), 4, 0)
    assert sorted(np.concatenate(local)) == [0, 1, 2, 3]
    assert sizes(local) == [1] * 4


def test_balanced_dirichlet_takes_the_samples_of_a_class_in_order() -> None:
    """Per class, the samples used are the first ones of the data set."""
    labels = np.repeat([0, 1, 2], [100, 100, 103])
    used = np.sort(np.concatenate(BalancedDirichlet(0.3).split(labels, 10, 0)))
    assert len(used) == 300
    for c in range(3):
        mine = used[labels[used] == c]
        assert np.array_equal(mine, np.flatnonzero(labels == c)[: len(mine)])


def test_a_class_that_the_test_split_lacks_is_drawn_by_nobody() -> None:
    labels = np.repeat([0, 1, 2], 100)
    assert sizes(BalancedDirichlet(0.3).split_test(labels, labels[100:], 10, 0)) == [20] * 10


def test_iid_is_a_cut_permutation_of_the_documented_stream() -> None:
    order = np.random.default_rng([7, 1]).permutation(60)
    assert np.array_equal(np.concatenate(IID().split(np.zeros(60, int), 6, 7)), order)


def test_shuffled_blocks_use_python_random_1234_whatever_the_seed() -> None:
    order = list(range(103))
    random.Random(1234).shuffle(order)
    for seed in (0, 1):
        parts = ShuffledBlocks().split(np.zeros(103, int), 10, seed)
        assert np.concatenate(parts).tolist() == order[:100]
        assert sizes(parts) == [10] * 10


def test_class_per_client_on_mnist_counts() -> None:
    labels = np.repeat(np.arange(10), MNIST_COUNTS)
    contiguous = ClassPerClient().split(labels, 20, 0)
    modulo = ClassPerClient("modulo").split(labels, 20, 0)
    assert [np.unique(labels[p]).tolist() for p in contiguous] == [[m * 10 // 20] for m in range(20)]
    assert [np.unique(labels[p]).tolist() for p in modulo] == [[m % 10] for m in range(20)]
    assert sum(sizes(contiguous)) == 60_000
    assert (max(sizes(contiguous)), min(sizes(contiguous))) == (3371, 2710)


def test_two_classes_owns_i_mod_c_and_one_more() -> None:
    parts = TwoClasses().split(FASHION, 100, 0)
    held = [np.unique(FASHION[p]).tolist() for p in parts]
    assert all(len(h) == 2 and i % 10 in h for i, h in enumerate(held))
    assert sum(sizes(parts)) == 60_000
    assert 400 < min(sizes(parts)) < max(sizes(parts)) < 900
    for c in range(10):
        shares = [np.sum(FASHION[p] == c) for p in parts if np.any(FASHION[p] == c)]
        assert max(shares) - min(shares) <= 1


def test_half_partial_overlap_distinct() -> None:
    def held(partition: Any) -> list[list[int]]:
        return [np.unique(CIFAR[p]).tolist() for p in partition.split(CIFAR, 10, 0)]

    assert held(groups.HalfLabels()) == [[0, 1, 2, 3, 4]] * 5 + [[5, 6, 7, 8, 9]] * 5
    assert held(groups.PartialOverlap()) == [[0, 1, 2, 3, 4, 5]] * 5 + [[4, 5, 6, 7, 8, 9]] * 5
    assert held(groups.DistinctLabels()) == [[c] for c in range(10)]
    assert sizes(groups.HalfLabels().split(CIFAR, 10, 0)) == [5000] * 10
    assert sizes(groups.PartialOverlap().split(CIFAR, 10, 0)) == [5000] * 10
    hundred = balanced(100, 20)
    assert np.unique(hundred[groups.DistinctLabels().split(hundred, 10, 0)[3]]).tolist() == list(range(30, 40))


@pytest.mark.parametrize(
    ("partition", "count", "clients", "each"),
    [(groups.TwoShard(), 10, 10, 2), (groups.TwoShard(), 100, 10, 20), (groups.TwoShard(False), 200, 20, 20)],
)
def test_two_shard_gives_two_halves_of_each_label_to_different_clients(
    partition: groups.TwoShard, count: int, clients: int, each: int
) -> None:
    labels = balanced(count, 40)
    for seed in range(20):
        parts = partition.split(labels, clients, seed)
        counts = np.array([np.bincount(labels[p], minlength=count) for p in parts])
        assert set(np.unique(counts)) == {0, 20}
        assert ((counts > 0).sum(axis=1) == each).all()
        assert ((counts > 0).sum(axis=0) == 2).all()
        assert len(np.unique(np.concatenate(parts))) == len(labels)


def test_fixed_partitions_ignore_the_seed_of_the_run_and_keyed_ones_do_not() -> None:
    for partition in (CappedDirichlet(0.3), Sharding(), BalancedDirichlet(0.3)):
        first, second = partition.split(CIFAR, 20, 0), partition.split(CIFAR, 20, 1)
        assert all(np.array_equal(p, q) for p, q in zip(first, second, strict=True))


def test_a_balanced_subset_has_as_many_samples_of_each_class(place: Settings) -> None:
    problem = Classification("digits", Softmax(64, 10), IID(), 4, Fixed(10), train_samples=57, subset_balanced=True)
    data = load("digits", place)
    drawn, _ = chosen(problem, data)
    assert np.bincount(data.train_y[drawn]).tolist() == [5] * 10
    assert (np.diff(drawn) > 0).all()
    assert not np.array_equal(drawn, chosen(replace(problem, subset_seed=1), data)[0])
    assert np.array_equal(drawn, chosen(replace(problem, partition=IID(), clients=5), data)[0])
