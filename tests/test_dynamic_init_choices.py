"""Other readings of dynamic_init: each changes what its name says, and nothing twice."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from runs import run

from reproduce.algorithms.moon import Moon
from reproduce.algorithms.scaffold import Scaffold, ScaffoldAsReleased
from reproduce.declare.experiment import Experiment, Label, changed
from reproduce.papers.dynamic_init import runs
from reproduce.papers.dynamic_init.choices import (
    AS_RUN,
    CHOICES,
    FEWER,
    FURTHER,
    HALVES,
    LAST,
    MOON,
    MORE,
    OVERLAP,
    SCALED,
    TWICE,
    UNSEEN,
    WEIGHTS,
    added,
    fingerprinted,
    sensitivity,
)

SCALES = ("smoke", "reduced", "paper")


@pytest.mark.parametrize("scale", SCALES)
def test_no_choice_is_asked_twice(scale: str) -> None:
    for panel in sensitivity(scale):
        unlabelled = {replace(e, labels={}) for e in panel.experiments}
        assert len(unlabelled) == len(panel.experiments)
        kinds = {
            "moon": MOON,
            "more": MORE,
            "sensitivity": CHOICES,
            "weights": WEIGHTS,
            "further": FURTHER,
            "overlap": OVERLAP,
            "last": LAST,
            "halves": HALVES,
            "unseen": UNSEEN,
            "scaled": SCALED,
        }
        assert len(panel.experiments) == len(kinds[panel.name.partition("-")[0]])


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


def test_one_thing_is_exchanged() -> None:
    """In fields of the start or, for SCAFFOLD, in the algorithm and the course of its rate."""
    for panel in sensitivity("paper"):
        first, *others = panel.experiments
        for e in others:
            if e.labels["algorithm"] == "fedavg":
                assert replace(e, clock=first.clock, labels=first.labels) == first
                assert replace(e.clock, start=first.clock.start) == first.clock
        standard = [e for e in others if e.labels["choice"] == "with control variates"]
        for e in standard:
            assert isinstance(e.algorithm, Scaffold)
            assert (e.algorithm.lr, e.clock.floor) == (first.algorithm.lr, first.clock.floor)
        released = [e for e in others if isinstance(e.algorithm, ScaffoldAsReleased)]
        assert len(standard) == len(released) == 3


def test_the_distillation_has_half_its_weight() -> None:
    plain, half = next(p for p in sensitivity("reduced") if p.name == "weights-mnist").experiments
    assert (plain.algorithm.kappa, half.algorithm.kappa) == (1.0, 0.5)  # type: ignore[attr-defined]
    assert replace(half, algorithm=plain.algorithm, labels=plain.labels) == plain


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


def test_other_tables_differ_in_what_their_names_say() -> None:
    """Those that are as in their table have its experiments; Table 13's are all there, or with the other algorithm."""
    known = {p.name: p for p in sensitivity("reduced")}
    for kind, table in (("halves", "table9"), ("unseen", "table12")):
        printed = {replace(e, labels={}) for p in runs.panels((table,), "reduced") for e in p.experiments}
        for e in known[f"{kind}-fashion-mnist"].experiments:
            assert (replace(e, labels={}) in printed) == (e.labels["choice"] in ("Table 9", "Table 12"))
    twenty = [e for e in known["halves-mnist"].experiments if "20 clients" in str(e.labels["choice"])]
    assert {e.problem.clients for e in twenty} == {20}
    for e in known["unseen-mnist"].experiments:
        sets = e.problem.partition.label_sets
        assert e.clock.views == runs.views(sets)
        assert sorted(label for given in sets for label in given) == [*range(10)]
        last = e.clock.membership.group(e.clock.sessions - 1)
        assert last not in map(e.clock.membership.group, range(e.clock.sessions - 1))
    printed = {replace(e, labels={}) for p in runs.panels(("table13",), "reduced") for e in p.experiments}
    assert sum(replace(e, labels={}) in printed for e in known["scaled-cifar10"].experiments) == 4


def test_one_thing_of_the_experiment_is_exchanged() -> None:
    """Beside the same scheme as in the tables: the rate, the steps, the link, or who there is."""
    known = {p.name: p for p in sensitivity("reduced")}
    base = {e.labels["init_scheme"]: e for e in known["sensitivity-mnist"].experiments[:3]}
    for e in known["more-mnist"].experiments:
        text, plain = e.labels["choice"], base[e.labels["init_scheme"]]
        if text == FEWER:
            assert (e.problem.clients, plain.problem.clients) == (10, 20)
            assert e.clock.membership.sizes == (5, 5)
            assert replace(e.problem, clients=20) == plain.problem
            continue
        assert (e.problem, e.clock) == (plain.problem, plain.clock)
        if str(text).endswith("rate"):
            assert e.algorithm.lr / plain.algorithm.lr == pytest.approx(3 if text == "three times the rate" else 1 / 3)
            assert replace(e.algorithm, lr=plain.algorithm.lr) == plain.algorithm
        elif text == "an epoch for five steps":
            assert [e.problem.batches.steps(1, e.system.work.unit, n) for n in (128, 3000)] == [1, 24]
        else:
            assert (e.system.link.failure(0, 0, 20) == 0.2).all()
            assert replace(e.system, link=plain.system.link) == plain.system


@pytest.mark.parametrize("scale", ["smoke", "reduced"])
def test_the_readings_of_moon_differ_in_the_second_pass_and_only_with_running_statistics(scale: str) -> None:
    (panel,) = (p for p in sensitivity(scale) if p.name.startswith("moon"))
    once, twice = (
        [e for e in panel.experiments if (e.labels["choice"] == TWICE) == second] for second in (False, True)
    )
    assert [replace(e, labels={}, algorithm=replace(e.algorithm, second_pass=True)) for e in once] == [
        replace(e, labels={}) for e in twice
    ]
    assert all(any("running" in name for name in e.problem.model.shapes) for e in panel.experiments)
    if scale == "smoke":
        ends = [[v for _, _, m, _, v in r.state["history"] if m == "accuracy"][-1] for r in run([once[0], twice[0]])]
        assert ends[0] != ends[1]


def test_no_reduced_table_has_a_network_on_which_a_second_pass_tells() -> None:
    """What the page says: neither running statistics nor dropout, whose masks a second pass would draw anew."""
    panels = runs.panels(tuple(f"table{i}" for i in (*range(1, 15),)), "reduced")
    models = {e.problem.model for p in panels for e in p.experiments if isinstance(e.algorithm, Moon)}
    assert len(models) >= 4
    assert not any(m.buffers or getattr(m, "dropout", 0.0) for m in models)


def test_what_the_printed_lines_come_to() -> None:
    """V rounds less one of one are none: all fingerprints are zero, all models weigh the same, as in Average."""
    panel, *_ = sensitivity("smoke")
    chosen = {(e.labels["init_scheme"], e.labels["choice"]): e for e in panel.experiments[:8]}
    index = next(e for (_, text), e in chosen.items() if text.startswith("eq. (4)"))
    average = chosen["average", AS_RUN]
    a, b = run([index, average])
    numbers = [[v for _, _, m, _, v in r.state["history"] if m == "accuracy"] for r in (a, b)]
    assert numbers[0][-len(numbers[1]) :] == numbers[1]
    assert len(set(numbers[1])) > 3


def test_with_six_tenths_of_overlap_group_a_is_that_of_none() -> None:
    """Why the tables' 0.8 is run: two of four labels each, one of them shared."""
    (panel,) = (p for p in sensitivity("reduced") if p.name == "overlap-ag-news")
    sets = {str(e.labels["choice"]): e.clock.views for e in panel.experiments}
    assert sets == {AS_RUN: ("labels:0,1,2", "labels:1,2,3"), "overlap 0.6 for 0.8": ("labels:0,1", "labels:1,2")}
    held = {e.clock.views: e.problem.partition.split(np.arange(400) % 4, 20, seed=0) for e in panel.experiments}
    for views, parts in held.items():
        for view, group in zip(views, (parts[:10], parts[10:]), strict=True):
            assert {int(i) % 4 for part in group for i in part} == set(
                map(int, view.removeprefix("labels:").split(","))
            )
