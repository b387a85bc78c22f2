"""Verdicts in words: what people read of an effect, and what they never read: identifiers and logarithms."""

import math
from dataclasses import replace

import pytest

from reproduce.verdicts import wording
from reproduce.verdicts.scoreboard import Verdict
from reproduce.verdicts.verdict import Measured


def lead(value: float, region: tuple[float, float], **change: object) -> Measured:
    given = {"what": "lead", "unit": "percent", "setting": "", "value": value, "low": 1.0, "high": 3.0}
    return Measured(**(given | {"region": region, "strict": False, "exact": False, "n": 3} | change))  # type: ignore


def test_what_a_verdict_is_beside_the_print() -> None:
    found = Verdict(
        "supported", id="p/c", artifact="p/fig1", source="table", size=(0.0312, 0.5), paper_numbers="refuted"
    )
    assert wording.beside_print(found) == [
        "read off a table", "effect: 3.12 % to 50 % of the published one", "refuted by the paper's own numbers",
    ]  # fmt: skip
    plain = replace(found, source="sentence", size=(1.0, 1.0), paper_numbers="supported")
    assert wording.beside_print(plain) == ["effect: 100 % of the published one"]


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


def test_the_measured_number_agrees_with_the_effect(boards: dict[str, list[Verdict]]) -> None:
    """The distance of the deciding number from the end of its region is the effect, in logarithms for ratios."""
    for v in (*boards["paper"], *boards["reduced"]):
        if v.measured is None or v.effect is None or not math.isfinite(v.effect):
            continue
        m = v.measured
        scaled = math.log if v.unit == "log ratio" else float
        low, high = (scaled(e) if e > 0 or scaled is float else -math.inf for e in m.region)
        value = scaled(m.value)
        assert min(value - low, high - value) == pytest.approx(v.effect, abs=1e-9), v.id
