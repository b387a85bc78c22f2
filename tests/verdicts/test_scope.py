"""What a verdict speaks of and rests on: settings that are missing, grounds, readings, coverage."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from runs import sealed

from reproduce.declare.paper import artifacts
from reproduce.verdicts import scope
from reproduce.verdicts.claims import claims_files
from reproduce.verdicts.scope import GROUNDS
from reproduce.verdicts.scoreboard import Verdict, by_ground, headline, scoreboard
from reproduce.verdicts.verdict import Outcome, under_readings

ROOT = Path(__file__).parents[2]
FILES = {file.paper: file for file in claims_files()}


def judged(path: Path, paper: str, scale: str, **cells: pd.DataFrame) -> dict[str, Verdict]:
    """Claim -> verdict on the given cells of a paper's artifacts."""
    folder = path / scale / "cells"
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in cells.items():
        frame.to_csv(folder / f"{paper}_{name}.csv", index=False)
        sealed(folder / f"{paper}_{name}.csv")
    return {v.id.split("/")[1]: v for v in scoreboard(scale, path, [FILES[paper]])}


def printed(paper: str, name: str, seeds: int = 3) -> pd.DataFrame:
    """The paper's own numbers as cells, give or take 0.01 per seed."""
    frame = pd.read_csv(ROOT / "reproduce" / "papers" / paper / "reported" / f"{name}.csv").drop(columns=["std"])
    return pd.concat([frame.assign(seed=s, value=frame["value"] + 0.01 * s) for s in range(seeds)], ignore_index=True)


def test_cells_that_are_not_what_their_record_says_are_not_judged(tmp_path: Path) -> None:
    """Damaged, without a record, with an unreadable one: the verdict says so and names the file."""
    rows = printed("fedagrac", "table6")
    claim = next(c.id.split("/")[1] for c in FILES["fedagrac"].claims if c.artifact == "fedagrac/table6")
    assert judged(tmp_path, "fedagrac", "paper", table6=rows)[claim].verdict != "not run"
    path = tmp_path / "paper" / "cells" / "fedagrac_table6.csv"
    record = path.with_suffix(".json")
    whole = path.read_bytes()
    for spoil, words in (
        (lambda: path.write_bytes(whole.replace(b"9", b"8", 1)), "is not what its record says"),
        (lambda: record.write_text("["), "cannot be read"),
        (record.unlink, "has no record"),
    ):
        spoil()
        verdict = {v.id.split("/")[1]: v for v in scoreboard("paper", tmp_path, [FILES["fedagrac"]])}[claim]
        assert verdict.verdict == "not run"
        assert words in verdict.reason
        assert "fedagrac_table6.csv is not used" in verdict.reason


def test_one_block_of_the_table_is_not_every_block(tmp_path: Path) -> None:
    frame = printed("dynamic_init", "table3")
    whole = judged(tmp_path / "all", "dynamic_init", "paper", table3=frame)["t3_beats_previous_everywhere"]
    assert (whole.verdict, whole.settings) == ("supported", 96)
    one = frame[(frame["dataset"] == "mnist") & (frame["label_overlap"] == 0) & (frame["dirichlet_alpha"] == 0.3)]
    one = one[(one["transition"] == "first") & (one["algorithm"] == "fedavg")]
    block = judged(tmp_path / "one", "dynamic_init", "paper", table3=one)["t3_beats_previous_everywhere"]
    assert (block.verdict, block.settings) == ("inconclusive", 1)
    assert "incomplete, lacks dataset fashion_mnist, dataset svhn" in block.reason
    without = judged(tmp_path / "two", "dynamic_init", "paper", table3=frame[frame["dataset"] != "svhn"])
    assert "incomplete, lacks dataset svhn;" in without["t3_beats_previous_everywhere"].reason
    assert "incomplete" not in without["t3_fedavg_equals_fedprox"].reason, "it speaks of MNIST and Fashion-MNIST only"


def test_a_counterexample_needs_no_complete_table(tmp_path: Path) -> None:
    frame = printed("dynamic_init", "table3", seeds=9)
    frame = frame[frame["dataset"] == "mnist"]
    frame.loc[frame["init_scheme"] == "proposed", "value"] -= 80
    found = judged(tmp_path, "dynamic_init", "paper", table3=frame)
    assert found["t3_beats_previous_everywhere"].verdict == "refuted"


def test_what_the_scale_declares_and_did_not_run_is_missing(tmp_path: Path) -> None:
    frame = printed("dynamic_init", "table3").assign(num_clients=10).replace({"dataset": {"svhn": "cifar10"}})
    both = judged(tmp_path / "a", "dynamic_init", "reduced", table3=frame)["t3_beats_previous_everywhere"]
    assert both.verdict == "supported on substitute data"
    half = frame[frame["dataset"] != "fashion_mnist"]
    one = judged(tmp_path / "b", "dynamic_init", "reduced", table3=half)["t3_beats_previous_everywhere"]
    assert one.verdict == "supported where run on substitute data"
    assert "lacks dataset fashion_mnist" in one.reason


@pytest.mark.parametrize(
    ("check", "left", "missing"),
    [
        ({"is": "> 0"}, "n == 1", ["n 2"]),
        ({"is": "> 0", "for": {"n": [1]}}, "n == 1", []),
        ({"is": "> 0"}, "n == 1 or algorithm == 'a'", ["n 2, algorithm b", "n 2, algorithm c"]),
        ({"better": "a", "than": ["b"]}, "algorithm != 'c'", []),
        ({"better": "a", "than": [{"best_of": "all"}]}, "algorithm != 'c'", ["algorithm c"]),
        ({"over": "n", "trend": "increasing"}, "n == 1", ["n 2"]),
        ({"ratio": {"of": "a", "to": "b"}, "is": "> 1"}, "algorithm != 'c' and n == 2", ["n 1"]),
    ],
)
def test_what_a_check_asks_for_and_the_cells_lack(check: dict[str, Any], left: str, missing: list[str]) -> None:
    rows = [{"n": n, "algorithm": a, "metric": "acc"} for n in (1, 2) for a in "abc"]
    frame = pd.DataFrame(rows)
    have = frame.query(left).astype(str)
    assert scope.lacking({"metric": "acc", **check}, have, frame.astype(str)) == missing


def ground(paper: str, claim: str, scale: str) -> str:
    file = FILES[paper]
    (found,) = (c for c in file.claims if c.id == f"{paper}/{claim}")
    return scope.rests_on(found.checks[scale], [a for a in artifacts() if a.id == found.artifact], scale)


@pytest.mark.parametrize(
    ("paper", "claim", "scale", "expected"),
    [
        ("defedavg", "defedavg-setup-straggler", "paper", "closed form or simulation"),
        ("fedacs", "appendixB_same_surrogate", "paper", "closed form or simulation"),
        ("fedacs", "fig7_fedavg_farthest", "reduced", "quadratics"),
        ("fedagrac", "c10", "smoke", "quadratics"),
        ("dynamic_init", "t3_beats_previous_everywhere", "reduced", "substitute data"),
        ("dynamic_init", "t3_beats_previous_everywhere", "paper", "the paper's data"),
        ("fedagrac", "c34", "paper", "the paper's data"),
        ("fedagrac", "c34", "reduced", "substitute data"),
    ],
)
def test_what_a_verdict_rests_on(paper: str, claim: str, scale: str, expected: str) -> None:
    assert ground(paper, claim, scale) == expected


def test_smoke_never_rests_on_the_papers_data() -> None:
    for file in FILES.values():
        for claim in file.claims:
            made = [a for a in artifacts() if a.id == claim.artifact]
            for scale in claim.scales:
                if made and not claim.construction:
                    rests = scope.rests_on(claim.checks[scale], made, scale)
                    assert rests != GROUNDS[3] or scale == "paper", (claim.id, scale)


def verdict(name: str, said: str, rests_on: str) -> Verdict:
    return Verdict(said, id=f"toy/{name}", artifact="toy/table1", rests_on=rests_on)


def test_the_headline_counts_coverage_first_and_training_only(tmp_path: Path) -> None:
    board = [
        verdict("a", "supported", "check"),
        verdict("f", "refuted", "check"),
        verdict("b", "supported", "the paper's data"),
        verdict("c", "not supported on substitute data", "substitute data"),
        verdict("d", "supported", "quadratics"),
        verdict("e", "not run", ""),
    ]
    assert headline("paper", board, tmp_path) == [
        "70 of 70 of the papers' tables and figures are part of this package; 0 have numbers at this scale.",
        "3 of 4 claims are evaluated.",
        "On the paper's data: 1 supported.",
        "On substitute data: 1 not supported.",
        "2 checks, true or false whatever is trained: 1 supported, 1 refuted.",
    ]
    assert by_ground(board)[0] == ("the paper's data", {"supported": 1})
    assert [ground for ground, _ in by_ground(board)] == list(reversed(GROUNDS))


def test_readings_that_disagree_make_a_verdict_depend() -> None:
    good, bad = Outcome("supported", reason="yes"), Outcome("refuted", reason="no", settings=3)
    idle = Outcome("not run", reason="no cells")
    both = under_readings("the rate", {"printed": bad, "fitting": good, "third": idle})
    assert (both.verdict, both.settings) == ("depends on an unstated choice", 3), "the first one's number"
    said = "unstated choice: the rate. printed: refuted, no; fitting: supported, yes; third: not run, no cells"
    assert both.reason == said
    assert under_readings("the rate", {"printed": good, "fitting": good}).verdict == "supported"
    assert under_readings("the rate", {"printed": idle, "fitting": good}).verdict == "supported"
    partly = Outcome("supported where run", settings=2)
    found = under_readings("the rate", {"printed": good, "fitting": partly})
    assert (found.verdict, found.settings) == ("supported where run", 2)
    assert under_readings("the rate", {"printed": bad, "fitting": partly}).verdict == "depends on an unstated choice"
    assert under_readings("the rate", {"printed": idle, "fitting": idle}).verdict == "not run"


@pytest.mark.parametrize("other", ["supported", "refuted"])
def test_an_open_reading_leaves_the_claim_open(other: str) -> None:
    """No reading says the opposite of another, so nothing turns on them."""
    clear, wide = Outcome(other, reason="clear"), Outcome("inconclusive", reason="wide", settings=2)
    for readings in ({"a": clear, "b": wide}, {"b": wide, "a": clear}):
        found = under_readings("the rate", readings)
        assert (found.verdict, found.settings) == ("inconclusive", 2)
        assert "clear" in found.reason
        assert "wide" in found.reason


def table1(rate: str, *rounds: tuple[int, int, int]) -> pd.DataFrame:
    rows = [
        {"dataset": "fashion_mnist", "model": rate, "step_async": a, "non_iid": n, "algorithm": "fedavg", "seed": s}
        | {"metric": "rounds_to_target", "value": v + s, "censored": v >= 1000}
        for a, n, v in rounds
        for s in range(6)
    ]
    return pd.DataFrame(rows)


def test_claims_that_turn_on_our_choice_say_so(tmp_path: Path) -> None:
    printed = table1("lr", (0, 0, 26), (0, 1, 149), (1, 0, 10), (1, 1, 232))
    fits = table1("lr_eta003", (0, 0, 2), (0, 1, 117), (1, 0, 1), (1, 1, 1000))
    network = table1("cnn2", (0, 0, 2), (0, 1, 117), (1, 0, 1), (1, 1, 232))
    found = judged(tmp_path, "fedagrac", "paper", table1=pd.concat([printed, fits, network]))
    assert found["c04"].verdict == "depends on an unstated choice"
    assert found["c02"].verdict == "depends on an unstated choice"
    assert "rate 0.001: refuted" in found["c04"].reason
    assert "rate 0.03: supported" in found["c04"].reason
