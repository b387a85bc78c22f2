"""Numbers for sentences: against scipy on the raw numbers."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from reproduce.errors import UserError
from reproduce.pages import page_numbers
from reproduce.pages.page_numbers import Cells, lead

ROOT = Path(__file__).parents[2]


def test_a_lead_over_or_of_a_missed_target_has_one_end() -> None:
    """The horizon stands in for a time that is longer: of the far side nothing is known."""

    def times(values: list[float], missed: str = "False") -> Cells:
        rows = [{"seed": i, "value": v, "censored": missed if i else "False"} for i, v in enumerate(values)]
        return Cells(pd.DataFrame(rows), "times")

    gaps = np.array([100.0, 120, 120]) - [70, 80, 90]
    half = 4.302653 * gaps.std(ddof=1) / np.sqrt(3)
    low, high = (f"{gaps.mean() + side * half:.1f}" for side in (-1, 1))
    slow, fast, missed = times([100, 120, 120]), times([70, 80, 90]), times([100, 120, 120], "True")
    assert lead(slow, fast) == f"33.3 ({low} to {high})"
    assert lead(missed, fast) == f"at least {low}"
    assert lead(fast, missed) == f"at most −{low}"
    assert lead(missed, times([70, 80, 90], "True")) == "33.3 (bounds on both sides)"


def rows(values: list[float], first: int = 0, missed: tuple[int, ...] = (), name: str = "x") -> pd.DataFrame:
    """A value per seed from `first` on; `missed`: seeds whose value is a bound."""
    seeds = range(first, first + len(values))
    found = [{"n": name, "seed": str(s), "value": v} for s, v in zip(seeds, values, strict=True)]
    return pd.DataFrame(found).assign(censored=[str(s in missed) for s in seeds])


def test_a_table_has_intervals_of_one_level_whatever_claims_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of FIARSE's table had some of 95 % and, where a claim was at its second look, some of 97.5 %."""
    monkeypatch.chdir(ROOT)
    rows = page_numbers.cells("reduced/fiarse_table1")(
        dataset="fashion_mnist", eval_scope="global", algorithm=["fiarse", "heterofl"]
    )
    for size in ("1/64", "1/16", "1/4", "1.0", "avg"):
        ours, other = (rows(model_size=size, algorithm=name) for name in ("fiarse", "heterofl"))
        gaps = ours.seeds - other.seeds
        half = 6.2053468 * gaps.std() / 3**0.5  # t(2) at 98.75 %
        least, most = (f"{gaps.mean() + side * half:.1f}".replace("-", "−") for side in (-1, 1))
        assert lead(ours, other, look=2).endswith(f" ({least} to {most})")
    claimed = page_numbers.cells("reduced/fedacs_fig6")(dataset="cifar10", metric="final_accuracy")
    ours, other = (claimed(algorithm=name) for name in ("fedacs", "fedavg"))
    assert lead(ours, other).endswith(")‡"), "the claim is at its fifth look"
    assert lead(ours, other, look=1).endswith(")")


def test_an_average_over_a_missed_target_is_a_bound() -> None:
    values = [100.0, 120, 120]
    fast = Cells(rows([70, 80, 90]), "times")
    for missed in ((), (1,)):
        both = Cells(pd.concat([rows(values, missed=missed), rows(values, name="y")]), "times")
        plain = Cells(rows(values, missed=missed), "times")
        assert both.average("n").censored == plain.censored == bool(missed)
        assert lead(both.average("n"), fast) == lead(plain, fast)
        assert lead(both.average("n"), fast).startswith("at least") == bool(missed)
    assert "censored" not in Cells(both.rows.drop(columns="censored"), "points").average("n").rows


def test_a_run_that_diverged_is_not_left_out_of_an_average_or_a_range() -> None:
    both = Cells(pd.concat([rows([1.0, 2, 3]), rows([1.0, float("nan"), 3], name="y")]), "times")
    assert both.average("n").mean() == "1 of 3 diverged"
    assert both.average("n").seeds.iloc[[0, 2]].tolist() == [1, 3]
    with pytest.raises(UserError, match="a run of these diverged"):
        both.range(over="n")


def test_a_target_missed_in_a_seed_that_the_other_lacks_bounds_no_lead() -> None:
    many, few = rows([100, 120, 120, 200], missed=(3,)), Cells(rows([70, 80, 90]), "times")
    assert lead(Cells(many, "times"), few) == lead(Cells(many[:3], "times"), few)
    with pytest.raises(UserError, match="two seeds that both have"):
        lead(Cells(rows([1, 2, 3], first=2), "times"), few)
