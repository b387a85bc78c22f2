"""Other readings of dynamic_init: each changes what its name says, and nothing twice."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from runs import run

from reproduce.algorithms.scaffold import Scaffold, ScaffoldAsReleased
from reproduce.declare.experiment import Experiment, Label, changed
from reproduce.papers.dynamic_init import runs
from reproduce.papers.dynamic_init.choices import (
    AS_RUN,
    added,
    fingerprinted,
    sensitivity,
)

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
