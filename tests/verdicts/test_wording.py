"""Verdicts in words: what people read of an effect, and what they never read: identifiers and logarithms."""

import math
from dataclasses import replace

from reproduce.verdicts import wording
from reproduce.verdicts.scoreboard import Verdict
from reproduce.verdicts.verdict import Measured


def lead(value: float, region: tuple[float, float], **change: object) -> Measured:
    given = {"what": "lead", "unit": "percent", "setting": "", "value": value, "low": 1.0, "high": 3.0}
    return Measured(**(given | {"region": region, "strict": False, "exact": False, "n": 3} | change))  # type: ignore


def test_what_a_verdict_is_beside_the_print() -> None:
    found = Verdict("supported", id="p/c", artifact="p/fig1", source="table", paper_numbers="refuted")
    assert wording.beside_print(found) == ["read off a table", "refuted by the paper's own numbers"]
    assert wording.beside_print(replace(found, source="sentence", paper_numbers="supported")) == []


def test_a_measured_number_and_what_is_demanded_of_it() -> None:
    assert wording.measured(lead(2.0, (1.5, math.inf))) == "lead 2 points (1 to 3), 3 seeds"
    assert wording.measured(lead(2.0, (0, 1), low=None, high=None, n=1)) == "lead 2 points, no interval, 1 seed"
    assert wording.measured(lead(2.0, (0, 1), low=2.0, high=2.0, n=0, exact=True)) == "lead 2 points"
    assert wording.measured(lead(2.0, (0, 1), low=2.0, high=2.0)) == "lead 2 points (2 to 2), 3 seeds"
    assert wording.measured(lead(80.0, (0, 1), what="value")).startswith("value 80 %")
    assert wording.required(lead(2.0, (1.5, math.inf))) == "at least 1.5 points"
    assert wording.required(lead(2.0, (0.0, math.inf), strict=True)) == "more than 0 points"
    assert wording.required(lead(2.0, (-math.inf, 3.0))) == "at most 3 points"
    assert wording.required(lead(2.0, (-math.inf, math.inf))) == "no bound"
    assert wording.demanded(lead(2.0, (-1.0, 1.0)), ours=True) == "−1 to 1 points (a number of ours)"
    assert wording.required(lead(2.0, (0.0, 0.5), what="ratio", unit="")) == "at most 0.5"


def test_names_are_those_of_print_and_paths_stay() -> None:
    said = wording.named("no rows with dataset = fashion_mnist; fedacs - fednova: -0.3, n 10", {"fedacs": "FedACS*"})
    assert said == "no rows with dataset = Fashion-MNIST; FedACS* − FedNova: −0.3, n 10"
    path = "dynamic_init/table1 (render it first)"
    assert wording.named(f"no values of {path}") == f"no values of {path}"
