"""All algorithms on all benchmarks: the table, the picture, the sentences about it, and what of it is committed."""

import math
import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from markdown_it import MarkdownIt
from scipy import stats

from reproduce.__main__ import main
from reproduce.declare import closure
from reproduce.pages import documents, page_numbers
from reproduce.pages.page_numbers import Cells, outcome, outcomes
from reproduce.play import across, display, play, summary
from reproduce.play.across import Matrix, excludes_zero, gained
from reproduce.play.benchmarks import ALIASES, find
from reproduce.play.match import Match
from reproduce.play.specs import ALL, Spec, seeds
from reproduce.runs import training

ROOT = Path(__file__).parents[2]
PAGE = ROOT / documents.TEMPLATES / "across.md"
BASE = np.array([50.0, 52.0, 51.0, 49.0, 53.0])
NOISE = np.array([0.1, -0.2, 0.3, -0.1, 0.0])


def runs(
    values: Mapping[tuple[str, str], object], edge: tuple[str, ...] = (), judges: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """What `play` returns, for (benchmark, algorithm) -> a value per seed, or a status; the first is the reference."""
    rows, base = [], {}
    for (benchmark, algorithm), given in values.items():
        numbers = np.full(5, np.nan) if isinstance(given, str) else np.asarray(given, float)
        base.setdefault(benchmark, numbers)
        for seed, value in enumerate(numbers):
            status = given if isinstance(given, str) else "diverged" if np.isnan(value) else "ok"
            rows.append((benchmark, "reduced", algorithm, 0.1, seed, "accuracy", value, value - base[benchmark][seed],
                         status, algorithm in edge, (judges or {}).get(benchmark, "")))  # fmt: skip
    names = ("benchmark", "scale", "algorithm", "lr", "seed", "metric", "value", "difference", "status", "edge")
    return pd.DataFrame(rows, columns=[*names, "chosen_on"])


ONE_LOST = BASE.copy()
ONE_LOST[3] = np.nan
MIXED = {
    ("a", "fedavg"): BASE, ("a", "fedprox"): BASE + 2 + NOISE, ("a", "fednova"): BASE + NOISE, ("a", "moon"): ONE_LOST,
    ("a", "fedacs"): BASE - 2 + NOISE, ("a", "fedbuff"): "refused: Asynchronous has no rounds",
    ("b", "fedavg"): BASE, ("b", "fedprox"): BASE + 1e-13, ("b", "fednova"): BASE - 1 + NOISE, ("b", "moon"): BASE + 3,
    ("b", "fedacs"): "refused: FedACS needs all", ("b", "fedbuff"): "refused: Asynchronous has no rounds",
}  # fmt: skip


def test_names_are_no_markdown() -> None:
    """A benchmark is called as the folder of a user's data, an algorithm as its options."""
    names = ["<i>a</i> *b* | [c](d) _e_", "# f `g` $h$"]
    each = [SimpleNamespace(name=n, scale="smoke", measured="accuracy (%)", reference="fedavg", declared=n,
                            substitute=n, by_client=False, target=None) for n in names]  # fmt: skip
    match: Any = SimpleNamespace(benchmarks=each, seeds=(0, 1, 2, 3, 4), tune=False, entries=[], twins=lambda: [])
    frame = runs({(n, algorithm): BASE for n in names for algorithm in ("fedavg", *names)})
    shown_ = MarkdownIt().enable("table").render(display.markdown(match, frame))
    text = unescape(re.sub("<[^>]*>", "", shown_))
    for name in names:
        assert text.count(name) == 8, "two titles, two declarations, four cells"


def test_the_table_ranks_what_was_trained_and_says_why_the_rest_is_not_there() -> None:
    lines = across.markdown(summary(runs(MIXED, edge=("fednova",))))
    assert lines[0] == "| algorithm | a | b | mean rank (benchmarks) |"
    cut = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:8]]
    rows = {algorithm: cells for algorithm, *cells in cut}
    assert list(rows) == ["fedprox", "fedavg", "fednova", "moon", "fedacs", "fedbuff"]
    t = stats.t.interval(0.95, 4, BASE.mean(), stats.sem(BASE))
    mean = f"51.00 ({t[0]:.2f} to {t[1]:.2f}), 3"
    assert rows["fedavg"] == [mean, mean, "3.0 (2)"]
    assert [cell.rpartition(", ")[2] for cell in rows["fednova"]] == ["2†", "4†", "3.0 (2)"]
    assert rows["moon"][0] == "diverged (1 of 5), 5", "whoever diverged comes last"
    assert rows["moon"][2] == "3.0 (2)"
    assert rows["fedacs"][1:] == ["no (1)", "4.0 (1)"]
    assert rows["fedbuff"] == ["no (2)", "no (2)", ""]
    assert "- (1) it needs all." in lines
    assert "- (2) it has no rounds." in lines
    assert any(line.startswith("- † ") for line in lines)


def test_what_is_told_apart_and_by_how_much() -> None:
    cells = Matrix(summary(runs(MIXED))).cells
    assert gained(cells["fedprox", "a"]) == pytest.approx((2 + NOISE).mean())
    assert gained(cells["fedacs", "a"]) == pytest.approx((NOISE - 2).mean())
    assert {key: excludes_zero(c) for key, c in cells.items() if c["state"] == "ok" and key[1] == "a"} == {
        (name, "a"): name in ("fedprox", "fedacs") for name in ("fedavg", "fedprox", "fednova", "fedacs")
    }
    assert not excludes_zero(cells["fedprox", "b"]), "equal but for rounding"
    assert excludes_zero(cells["moon", "b"]), "three points in every seed, which agree: there is no interval"
    nearer = {"metric": "distance", "mean": 3.0, "difference": -1.0}
    assert gained(nearer) == 19.98 < 25, "a quarter of the reference's 4, cut to the scale"
    assert gained(nearer | {"difference": 0.3}) == pytest.approx(-100 * 0.3 / 2.7), "of distances, less is better"
    one = summary(runs({("a", "x"): BASE[:1], ("a", "y"): BASE[:1] + 1}))
    assert not excludes_zero(Matrix(one).cells["y", "a"]), "one seed has no interval"


def test_what_is_finished_is_shown_and_nothing_is_trained(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tuned = play("fednova", on="fedacs/fig7-static", scale="smoke", seeds=(0, 1), tune=True)
    monkeypatch.setattr(training, "train", lambda job: pytest.fail("trained"))
    monkeypatch.setattr(closure, "digest", lambda files: "0" * 16)  # all is stale
    words = "play fednova --on fedacs/fig7-static --scale smoke --seeds 0,1 --tune --finished -o out/all"
    assert main(words.split()) == 0
    frame = pd.read_csv("out/all.csv", keep_default_na=False)
    pd.testing.assert_frame_equal(frame, tuned.drop(columns="run"), check_dtype=False, rtol=1e-12)
    for file in folder.glob("results/smoke/play/*.parquet"):
        file.unlink()
    capsys.readouterr()
    assert main(words.split()) == 2
    assert "is not trained: leave --finished out" in capsys.readouterr().err


def cells(values: Mapping[tuple[str, str], object]) -> Cells:
    frame = runs(values)
    return Cells(frame.astype({"edge": str}), "toy")


def test_outcomes_are_those_of_the_paired_interval() -> None:
    c = cells(MIXED)
    for name in ("fedprox", "fednova", "fedacs"):
        a, b = c(benchmark="a", algorithm=name), c(benchmark="a", algorithm="fedavg")
        t = stats.ttest_rel(a.seeds, b.seeds).confidence_interval(0.95)
        assert outcome(a, b) == ("ahead" if t.low > 0 else "behind" if t.high < 0 else "unclear")
    assert outcomes(c(algorithm="fedprox"), c(algorithm="fedavg"), "benchmark") == {
        "ahead": ["a"], "unclear": [], "equal": ["b"], "behind": [], "diverged": [], "failed": [], "refused": [],
    }  # fmt: skip
    assert outcome(c(benchmark="a", algorithm="moon"), c(benchmark="a", algorithm="fedavg")) == "diverged"
    assert outcome(c(benchmark="a", algorithm="fedbuff"), c(benchmark="a", algorithm="moon")) == "refused"
    assert page_numbers.told(c(benchmark="a", algorithm="fedprox"), c(benchmark="a", algorithm="fedavg")).startswith(
        "ahead: 2.0 ("
    )
    far = Cells(c.rows.assign(metric="distance"), "toy")
    assert outcome(far(benchmark="a", algorithm="fedprox"), far(benchmark="a", algorithm="fedavg")) == "behind"


def committed() -> pd.DataFrame:
    return pd.read_csv(ROOT / "play/reduced/across.csv").fillna({"chosen_on": ""})


@pytest.mark.parametrize("case", ["as committed", "diverged", "random"])
def test_the_page_can_be_written_whatever_came_out(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = committed()
    runs = ~frame["status"].str.startswith("refused")
    rng = np.random.default_rng(0)
    if case != "as committed":
        frame.loc[runs, "status"] = "ok" if case == "random" else case
        frame.loc[runs, "value"] = rng.normal(50, 5, runs.sum()) if case == "random" else math.nan
    (tmp_path / "play/reduced").mkdir(parents=True)
    frame.to_csv(tmp_path / "play/reduced/across.csv", index=False)
    monkeypatch.chdir(tmp_path)
    text = documents.rendered(PAGE)
    c = page_numbers.played("reduced/across")
    pair = c(algorithm="fedacs", benchmark="fedacs-static"), c(algorithm="fedavg", benchmark="fedacs-static")
    said = page_numbers.told(*pair).rpartition(": ")[2].replace("refused", "–")
    (row,) = (line for line in text.splitlines() if line.startswith("| FedACS minus FedAvg |"))
    assert f"| {said} |" in row


def test_the_committed_matrix_is_that_of_the_committed_results() -> None:
    """`reproduce play --all --tune --finished -o play/reduced/across` makes it again."""
    specs, benchmarks = [Spec(n) for n in ALL], [find(a, "reduced") for a in ALIASES]
    match = Match(specs, benchmarks, seeds("0-4"), tune=True, lenient=True, finished=True)
    match.train()
    frame = match.frame()
    pd.testing.assert_frame_equal(frame.reset_index(drop=True), committed(), check_dtype=False, rtol=1e-9)
    found = summary(frame)
    text = (ROOT / "play/reduced/across.md").read_text(encoding="utf-8")
    assert "\n".join(across.markdown(found)) in text
