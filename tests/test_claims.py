"""Claims: the grammar, the five files against the printed numbers and against complete cells, the scoreboard."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from runs import sealed
from scipy import stats

from reproduce.declare.artifact import printed_settings
from reproduce.errors import UserError
from reproduce.pages import documents
from reproduce.papers import artifacts
from reproduce.report.names import canonical
from reproduce.verdicts import words
from reproduce.verdicts.checks import merged
from reproduce.verdicts.claims import ClaimsFile, Contents, claims_files, load_claims
from reproduce.verdicts.scope import CHECK
from reproduce.verdicts.scoreboard import scoreboard, to_json

# --- the grammar ------------------------------------------------------------------------------------------------------

FILE = {
    "paper": "toy",
    "metrics": {
        "acc": {"unit": "points", "better": "higher", "text": "accuracy"},
        "skew": {"unit": "1", "better": "none", "text": "skewness"},
    },
    "artifacts": {"table1": {"columns": {"n": [1, 2]}, "algorithms": ["a", "b"], "metrics": ["acc", "skew"]}},
}
CLAIM = {
    "id": "one",
    "artifact": "table1",
    "statement": "a is better",
    "where": "section 1",
    "scales": ["reduced", "paper"],
    "check": {"metric": "acc", "for": {"n": [1]}, "better": "a", "than": ["b"]},
}


def load(path: Path, **change: Any) -> ClaimsFile:
    file = path / "claims.yaml"
    file.write_text(json.dumps({**FILE, "claims": [{**CLAIM, **change}]}))
    return load_claims(file)


def test_a_claim_as_a_record(tmp_path: Path) -> None:
    (claim,) = load(tmp_path, at={"reduced": {"for": {"n": None}, "margin": 2.0}}).claims
    assert (claim.id, claim.artifact) == ("toy/one", "toy/table1")
    assert claim.checks["paper"]["for"] == {"n": [1]}
    assert claim.checks["reduced"]["for"] == {}
    assert claim.checks["reduced"]["margin"] == 2.0
    assert "margin" not in claim.checks["printed"]


def test_readings_that_are_the_same_at_a_scale_count_once(tmp_path: Path) -> None:
    under = {"as printed": {}, "n = 2": {"for": {"n": [2]}, "at": {"reduced": {"for": {"n": [1]}}}}}
    (claim,) = load(tmp_path, readings={"about": "n", "under": under}).claims
    assert claim.readings
    assert [list(claim.readings.checks[scale]) for scale in ("paper", "reduced")] == [[*under], ["as printed"]]


def test_merging_takes_keys_and_columns_away() -> None:
    check = {"for": {"n": [1], "m": [2]}, "exact": True}
    assert merged(check, {"for": {"n": None, "k": [3]}, "exact": None}) == {"for": {"m": [2], "k": [3]}}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"artifact": "tabel1"}, "unknown artifact 'tabel1'; did you mean table1"),
        ({"scales": ["large"]}, "scale: 'large'"),
        ({"scales": ["paper"]}, "unasked: say in a phrase why the claim is not asked at reduced scale"),
        ({"unasked": {"reduced": " "}}, "unasked: reduced: ' ' is not a phrase"),
        ({"unasked": {"smoke": "no data"}}, "unasked: unknown key 'smoke'"),
        ({"ours": "margin"}, "ours: 'margin' is not a list"),
        ({"ours": ["margins"]}, "ours: 'margins' is not one of margin"),
        ({"ours": ["margin"]}, "ours: the check has no margin"),
        ({"printed": "yes"}, "printed: 'yes'"),
        ({"caveat": "x"}, "unknown key 'caveat'"),
        ({"looks": {"smoke": 2}}, "looks: unknown key 'smoke'"),
        ({"looks": {"paper": 1}}, "looks: paper: 1 is not a number of looks"),
        ({"looks": {"paper": True}}, "looks: paper: True is not a number of looks"),
        ({"check": {"metric": "acc", "bettr": "a", "than": ["b"]}}, "exactly one of"),
        ({"check": {"metric": "acc", "better": "a", "than": ["b"], "is": "> 0"}}, "better and is"),
        ({"check": {"metric": "acc", "better": "a"}}, "the key 'than' is missing"),
        ({"check": {"metric": "acc", "better": "a", "than": ["b"], "margins": 1}}, "unknown key 'margins'"),
        ({"check": {"better": "a", "than": ["b"]}}, "the key 'metric' is missing"),
        ({"check": {"metric": "ac", "better": "a", "than": ["b"]}}, "unknown metric of the artifact 'ac'"),
        ({"check": {"metric": "acc", "better": "a", "than": ["c"]}}, "unknown algorithm at paper scale 'c'"),
        ({"check": {"metric": "acc", "for": {"m": [1]}, "is": "> 0"}}, "unknown column 'm'"),
        ({"check": {"metric": "acc", "for": {"n": [3]}, "is": "> 0"}}, "unknown n at paper scale '3'"),
        ({"check": {"metric": "acc", "for": {"n": {"mni": 3}}, "is": "> 0"}}, "unknown key 'mni'"),
        ({"check": {"metric": "acc", "is": "about 3"}}, "is: 'about 3'"),
        ({"check": {"metric": "acc", "is": [1, 2, 3]}}, "two ends"),
        ({"check": {"metric": "acc", "better": "a", "than": ["b"], "margin": "wide"}}, "margin: wide"),
        ({"check": {"metric": "acc", "equal": ["a", "b"]}}, "needs within or exact"),
        ({"check": {"metric": "acc", "is": "> 0", "quantifier": "most"}}, "quantifier: 'most'"),
        ({"check": {"metric": "acc", "is": "> 0", "quantifier": {"share": 1}}}, "unknown key 'share'"),
        ({"check": {"metric": "skew", "better": "a", "than": ["b"]}}, "skew has no better side"),
        ({"check": {"metric": "acc", "gap": {"of": "a"}, "is": "> 0"}}, "the key 'minus' is missing"),
        (
            {"check": {"metric": "acc", "gap": {"of": "a", "minus": {"bestof": "all"}}, "is": "> 0"}},
            "unknown key 'bestof'",
        ),
        ({"check": {"metric": "acc", "all_of": [{"is": "> 0"}, {"is": "nothing"}]}}, "is: 'nothing'"),
        ({"at": {"reduced": {"margin": "x"}}}, "margin: x"),
        ({"check": {"metric": "acc", "with": ["table9"], "is": "> 0"}}, "unknown artifact 'table9'"),
    ],
)
def test_what_breaks_the_grammar_is_refused_by_name(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as error:
        load(tmp_path, **change)
    assert words in str(error.value)
    assert "claims.yaml" in str(error.value)
    assert "claim one" in str(error.value)


def test_an_id_is_used_once_and_a_file_is_yaml(tmp_path: Path) -> None:
    file = tmp_path / "claims.yaml"
    file.write_text(json.dumps({**FILE, "claims": [CLAIM, CLAIM]}))
    with pytest.raises(UserError, match="claim toy/one: the id is used twice"):
        load_claims(file)
    file.write_text("claims: [")
    with pytest.raises(UserError, match="is not YAML"):
        load_claims(file)
    file.write_text("- a list")
    with pytest.raises(UserError, match=r"claims\.yaml"):
        load_claims(file)


def with_artifact(path: Path, **raw: Any) -> Contents:
    """table1 as a file declares it, beside reported/table1.csv."""
    (path / "claims.yaml").write_text(json.dumps({**FILE, "artifacts": {"table1": raw}, "claims": []}))
    return load_claims(path / "claims.yaml").artifacts["table1"]


def reported(path: Path, text: str) -> None:
    (path / "reported").mkdir()
    (path / "reported/table1.csv").write_text(text)


def test_columns_and_algorithms_are_those_of_the_printed_numbers(tmp_path: Path) -> None:
    """In the paper's order, spelled once, without labels and what describes the number; what is given comes first."""
    reported(
        tmp_path, "artifact,n,goal,algorithm,metric,value,std\nt,0.30,1,b,acc,1,\nt,0.3,2,a,acc,2,\nt,x,2,b,acc,3,\n"
    )
    found = with_artifact(tmp_path, metrics=["acc"], labels=["goal"])
    assert (dict(found.columns), found.algorithms) == ({"n": ("0.3", "x")}, ("b", "a"))
    found = with_artifact(tmp_path, metrics=["acc"], columns={"n": [7]}, algorithms=["c"])
    assert (dict(found.columns), found.algorithms) == ({"n": ("7",)}, ("c",))


def test_what_is_not_printed_must_be_given(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"table1: columns can be left out only where reported/table1\.csv has them"):
        with_artifact(tmp_path, metrics=["acc"], algorithms=["a"])
    other = tmp_path / "other"
    other.mkdir()
    reported(other, "artifact,n,metric,value,std\nt,1,acc,1,\n")
    with pytest.raises(UserError, match="table1: algorithms can be left out only"):
        with_artifact(other, metrics=["acc"])


# --- the five files ---------------------------------------------------------------------------------------------------

FILES = claims_files()

NOT_PRINTED = {
    "fedagrac/c37": "the paper prints no bytes; the statement follows from the algorithms",
    "fiarse/t2_nested_holders": "a property of the masks, no printed number",
    "fiarse/t3_config_matches": "table3 is the configuration itself",
    "fiarse/f1_extraction_patterns": "a property of the masks, no printed number",
}
"""Claims that their authors annotate as true in print although no printed number can show it."""


WORDS: dict[str, float] = {
    **{"one": 1, "three": 3, "six": 6, "sixteen": 16, "twenty": 20, "thirty": 30, "forty": 40, "forty-five": 45},
    **{"ten": 10, "nine of ten": 0.9, "half": 0.5, "five points": 5, "percent": 0.98, "25 percent": 1.25},
    **{"15 percent": 0.85, "less than 15": 1.15, "up to 10": 1.1, "most": 0.51, "full capacity": 100, "only part": 100},
}
"""How statements say a number other than in digits."""


def stated(statement: str) -> set[float]:
    """The numbers that a statement gives, found without the package."""
    statement = re.sub(r"sizes? [\d/.]+(?:(?:,| and| to) [\d/.]+)*", "", statement)  # names of settings
    digits = re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?", statement)
    return {float(d.replace(",", "")) for d in digits} | {
        v for k, v in WORDS.items() if re.search(rf"\b{k}\b", statement)
    }


def demanded(check: Any, key: str = "") -> Iterator[tuple[str, float]]:
    """(key, number) of everything that says how much, in a raw check with its parts; what is 0 says nothing."""
    if isinstance(check, dict):
        for k, value in check.items():
            yield from demanded(value, k if k in ("margin", "within", "at_most", "is", "quantifier", "all_of") else key)
    elif isinstance(check, list):
        for value in check:
            yield from demanded(value, key)
    elif key in ("margin", "within", "at_most", "is", "quantifier"):
        for number in re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", str(check)):
            if float(number):
                yield key, float(number)


def test_every_number_of_a_check_is_the_statements_or_printed_as_ours() -> None:
    """Of claims; what checks ask for is what was built."""
    silent, idle = set(), set()
    for file in FILES:
        for raw, claim in zip(yaml.safe_load(file.path.read_text())["claims"], file.claims, strict=True):
            known, said = stated(claim.statement), raw.get("ours", [])
            known |= {1.0} if "ratio" in raw["check"] else set()  # as much
            found = set(demanded({k: v for k, v in raw["check"].items() if k not in ("for", "values", "ratio", "gap")}))
            silent |= {
                (claim.id, k, n) for k, n in found if n not in known and k not in said and not claim.construction
            }
            idle |= {(claim.id, k) for k in said if all(n in known for key, n in found if key == k)}
    assert not silent
    assert not idle, "the statement gives all of these"


AS_GIVEN = {
    "dynamic_init/table11": (
        {"label_distribution": ["partial_overlap"], "dataset": ["mnist", "fashion_mnist"], "model": ["mlp"],
         "num_clients": ["50", "100"], "transition": ["first", "second", "third"],
         "init_scheme": ["proposed", "previous", "average"]},
        ["fedprox", "fedavg", "scaffold", "moon"],
    ),
    "defedavg/table1": (
        {"distribution": ["iid", "noniid"], "dataset": ["fashion_mnist", "cifar10"], "n": ["10", "20", "40", "80"]},
        [
            *("fedavg", "favano", "asysg", "fedbuff", "defedavg_iid", "defedavg_niid"),
            *("fedavg_lr_n10", "defedavg_iid_corrected", "defedavg_niid_corrected"),
        ],
    ),
    "fedacs/table5": (
        {"system": ["dynamic"], "dataset": ["cifar10"], "dirichlet_alpha": ["0.05", "0.2", "0.35"]},
        ["fedacs", "fedavg", "ca_fedavg", "fedvarp", "fednova", "fedau", "os"],
    ),
    "fiarse/table1": (
        {"dataset": ["cifar10", "cifar100", "ag_news"], "size_set": ["four"], "participation": ["0.1"],
         "eval_scope": ["local", "global"], "model_size": ["1/64", "1/16", "1/4", "1", "avg"]},
        ["heterofl", "fedrolex", "scalefl", "fiarse"],
    ),
}  # fmt: skip
"""What claims.yaml gave before it was left to reported/*.csv, some of it."""


@pytest.mark.parametrize("name", AS_GIVEN)
def test_what_is_left_out_is_what_was_there(name: str) -> None:
    columns, algorithms = AS_GIVEN[name]
    (found,) = (a for file in FILES for a in file.artifacts.values() if a.artifact == name)
    assert {c: set(values) for c, values in found.columns.items()} == {c: set(v) for c, v in columns.items()}
    assert set(found.algorithms) == set(algorithms)


def test_no_file_repeats_the_printed_settings() -> None:
    for file in FILES:
        raw = yaml.safe_load(file.path.read_text(encoding="utf-8"))["artifacts"]
        for name, given in raw.items():
            rows = printed_settings(file.paper, name)
            of_paper = {c: {canonical(row[c]) for row in rows} for c in (rows[0] if rows else ())}
            same = {
                "columns": {c: set(map(canonical, v)) for c, v in given.get("columns", {}).items()}
                == {c: v for c, v in of_paper.items() if c != "algorithm" and c not in given.get("labels", ())},
                "algorithms": set(map(canonical, given.get("algorithms", ()))) == of_paper.get("algorithm"),
            }
            assert not [key for key in same if key in given and same[key] and rows], (
                f"{file.paper}/{name}: leave it out"
            )


def test_printed_numbers_agree_with_the_annotations(tmp_path: Path) -> None:
    found = {v.id: v.paper_numbers for v in scoreboard("paper", tmp_path)}
    annotated = {claim.id: claim.printed for file in FILES for claim in file.claims}
    differ = {name for name, said in annotated.items() if said is not None and said != found[name]}
    assert differ == set(NOT_PRINTED)
    assert {found[name] for name in NOT_PRINTED} == {"na"}
    assert Counter(found.values()) == {"holds": 102, "fails": 2, "na": 91}
    assert {name for name, said in found.items() if said == "fails"} == {"fedagrac/c26", "fiarse/t4_margin_cifar100"}


def complete(cells_of: Contents, rng: np.random.Generator) -> pd.DataFrame:
    """Random cells with every setting, algorithm and metric that an artifact demands, three seeds."""
    names = [*cells_of.columns, "algorithm", "metric"]
    values = [*cells_of.columns.values(), cells_of.algorithms, cells_of.metrics]
    frame = pd.DataFrame(list(product(*values, (0, 1, 2))), columns=[*names, "seed"])
    if {"k_mode", "k_variance"} <= set(frame):  # without variance there is no mode, and with one there is
        frame = frame[(frame["k_mode"] == "none") == (frame["k_variance"] == "0")]
    point = frame["metric"].isin(cells_of.points)
    frame = frame[~point | (frame["seed"] == 0)].copy()
    frame.loc[frame["metric"].isin(cells_of.points), "seed"] = -1
    return frame.assign(value=rng.uniform(1, 99, len(frame)))


def test_complete_cells_leave_no_claim_unjudged(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for file in FILES:
        for name, cells_of in file.artifacts.items():
            path = tmp_path / "paper" / "cells" / f"{file.paper}_{name}.csv"
            path.parent.mkdir(parents=True, exist_ok=True)
            complete(cells_of, rng).to_csv(path, index=False)
            sealed(path)
    board = scoreboard("paper", tmp_path)
    unjudged = {v.id: v.reason for v in board if v.verdict == "not run"}
    meant = {c.id for f in FILES for c in f.claims if "paper" in c.scales}
    assert not set(unjudged) & meant, unjudged
    assert not [v.id for v in board if "incomplete" in v.reason]
    assert len({v.verdict for v in board}) >= 3


def test_without_cells_every_claim_says_what_to_do(tmp_path: Path) -> None:
    board = scoreboard("reduced", tmp_path)
    assert [v.id for v in board] == [claim.id for file in FILES for claim in file.claims]
    assert {v.verdict for v in board} == {"not run"}
    made = {a.id for a in artifacts()}
    for v in board:
        todo = "render it first" if v.artifact in made else "is not part of this package yet"
        assert todo in v.reason or v.unasked, (v.id, v.reason)
    with pytest.raises(UserError, match="unknown scale 'large'"):
        scoreboard("large", tmp_path)


# --- the scoreboard ---------------------------------------------------------------------------------------------------


def toy_board(path: Path) -> list[Any]:
    folder = path / "results" / "paper" / "cells"
    folder.mkdir(parents=True)
    lines = [f"1,{a},-1,acc,{v}" for a, v in (("a", 9), ("b", 5))]
    (folder / "toy_table1.csv").write_text("n,algorithm,seed,metric,value\n" + "\n".join(lines) + "\n")
    sealed(folder / "toy_table1.csv")
    printed = path / "reported" / "table1.csv"
    printed.parent.mkdir()
    printed.write_text("artifact,n,algorithm,metric,value,std\ntable1,1,a,acc,3,\ntable1,1,b,acc,4,\n")
    file = load(path)
    worse = {**CLAIM, "id": "two", "check": {**CLAIM["check"], "better": "b", "than": ["a"]}}  # type: ignore[dict-item]
    other = {**CLAIM, "id": "three", "scales": ["smoke"], "unasked": {"reduced": "no data", "paper": "says two"}}
    file.path.write_text(json.dumps({**FILE, "claims": [CLAIM, worse, other]}))
    return scoreboard("paper", path / "results", [load_claims(file.path)])


def test_scoreboard_as_data(tmp_path: Path) -> None:
    one, two, three = json.loads(to_json(toy_board(tmp_path)))
    assert {"id", "artifact", "verdict", "effect", "interval", "n"} <= set(one)
    assert (one["verdict"], one["effect"], one["interval"], one["n"]) == ("holds", 4.0, [4.0, 4.0], 0)
    assert one["paper_numbers"] == "fails"
    assert (one["rests_on"], three["rests_on"]) == ("closed form or simulation", "")
    assert (two["verdict"], two["effect"], two["paper_numbers"]) == ("fails", -4.0, "holds")
    assert (three["verdict"], three["interval"], three["reason"]) == ("not run", None, "says two")


def test_each_further_look_halves_the_error_of_the_interval(tmp_path: Path) -> None:
    """Three seeds with a lead of 2 and a standard deviation of 0.7: inside at 95 %, by the textbook, not at 97.5 %."""
    leads, folder = (1.3, 2.0, 2.7), tmp_path / "results/paper/cells"
    folder.mkdir(parents=True)
    lines = [f"1,{a},{seed},acc,{v}" for seed, lead in enumerate(leads) for a, v in (("a", lead), ("b", 0))]
    (folder / "toy_table1.csv").write_text("n,algorithm,seed,metric,value\n" + "\n".join(lines) + "\n")
    sealed(folder / "toy_table1.csv")
    for looks, said, level in (({}, "holds", 0.95), ({"paper": 2}, "open", 0.975)):
        (found,) = scoreboard("paper", tmp_path / "results", [load(tmp_path, looks=looks)])
        half = stats.t.ppf((1 + level) / 2, 2) * 0.7 / np.sqrt(3)
        assert (found.verdict, found.interval) == (said, (pytest.approx(2 - half), pytest.approx(2 + half)))
        assert ("look 2: 97.5 % intervals" in words.basis(found)) == bool(looks)


def test_claims_as_a_list(tmp_path: Path) -> None:
    one, two, three = toy_board(tmp_path)
    rerun = replace(one, rests_on="stand-in data", settings=4, seeds=(3, 10), look=2)
    boards = {"paper": [one, two, three], "reduced": [rerun, replace(two, rests_on=CHECK), three]}
    head, _, *lines = documents.claims_list("toy", boards).splitlines()
    assert head == "| claim | paper scale | reduced scale |"
    said = f"{one.statement} `one` (closed form or simulation)"
    assert lines[0] == f"| {said} | holds<br>1 | holds<br>4×3–10, look 2 |"
    assert lines[1].startswith(f"| {three.statement} `three` | – | – |")
    assert lines[2].endswith("| fails<br>1 | fails<br>1 |"), "checks come last"
