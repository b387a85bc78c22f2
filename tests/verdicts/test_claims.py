"""Claims: the grammar, the five files against the printed numbers and against complete cells, the scoreboard."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from runs import sealed
from scipy import stats
from verdict_cells import effect, interval

from reproduce.declare.experiment import SCALES
from reproduce.declare.paper import artifacts, printed_settings
from reproduce.errors import UserError
from reproduce.pages import documents
from reproduce.report.names import canonical
from reproduce.store import cells
from reproduce.verdicts import scope, wording
from reproduce.verdicts.claims import ClaimsFile, claims_files, listed, load_claims, merged, named_values, parts
from reproduce.verdicts.scoreboard import scoreboard, to_json

FILE = {"paper": "toy"}
METRICS = {
    "acc": {"unit": "points", "better": "higher", "text": "accuracy"},
    "skew": {"unit": "1", "better": "none", "text": "skewness"},
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
    (path / "metrics.yaml").write_text(json.dumps(METRICS))
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
    assert [list(claim.under(scale)) for scale in ("paper", "reduced")] == [[*under], ["as printed"]]


def test_merging_takes_keys_and_columns_away() -> None:
    check = {"for": {"n": [1], "m": [2]}, "exact": True}
    assert merged(check, {"for": {"n": None, "k": [3]}, "exact": None}) == {"for": {"m": [2], "k": [3]}}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"statement": ""}, "statement: ''"),
        ({"scales": ["paper"]}, "unasked: say in a phrase why the claim is not asked at reduced scale"),
        ({"caveat": "x"}, "'caveat' was unexpected"),
        ({"rests_on": "quadratics"}, "rests_on: 'construction' was expected"),
        ({"readings": {"about": "n"}}, "readings: 'under' is a required property"),
        ({"readings": {"about": "n", "under": {"a": {}, "b": {"four": 1}}}}, "'four' was unexpected"),
        ({"check": {"metric": "acc", "bettr": "a", "than": ["b"]}}, "'bettr' was unexpected"),
        ({"check": {"metric": "acc", "than": ["b"]}}, "exactly one of"),
        ({"check": {"metric": "acc", "better": "a", "than": ["b"], "is": "> 0"}}, "better and is"),
        ({"check": {"better": "a", "than": ["b"]}}, "the key 'metric' is missing"),
        ({"check": {"metric": "ac", "better": "a", "than": ["b"]}}, "unknown metric 'ac'; did you mean acc"),
        ({"check": {"metric": "acc", "for": {"n": {"mni": 3}}, "is": "> 0"}}, "check.for.n"),
        ({"check": {"metric": "acc", "better": "a", "than": ["b"], "margin": "wide"}}, "check.margin: 'wide'"),
        ({"check": {"metric": "acc", "equal": ["a", "b"]}}, "needs within or exact"),
        ({"check": {"metric": "acc", "is": "> 0", "quantifier": {"share": 1}}}, "check.quantifier"),
        ({"check": {"metric": "skew", "better": "a", "than": ["b"]}}, "skew has no better side"),
        ({"check": {"metric": "acc", "all_of": [{"is": "> 0"}, {"is": "nothing"}]}}, "check.all_of.1.is: 'nothing'"),
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
    (tmp_path / "metrics.yaml").write_text(json.dumps(METRICS))
    file.write_text(json.dumps({**FILE, "claims": [CLAIM, CLAIM]}))
    with pytest.raises(UserError, match="claim toy/one: the id is used twice"):
        load_claims(file)
    file.write_text("claims: [")
    with pytest.raises(UserError, match="is not YAML"):
        load_claims(file)
    file.write_text("- a list")
    with pytest.raises(UserError, match=r"claims\.yaml"):
        load_claims(file)


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


def test_claims_name_columns_metrics_and_values_that_there_are() -> None:
    """In the committed cells of any scale, in the paper's numbers, or in what is declared."""
    declared = {a.id: a for a in artifacts()}
    for file in FILES:
        for claim in file.claims:
            asked = [c for scale in claim.scales for c in claim.under(scale).values()]
            names = {claim.artifact, *(f"{file.paper}/{n}" for c in asked for n in listed(c.get("with", [])))}
            known: dict[str, set[str]] = defaultdict(set)
            for artifact in (declared[name] for name in names):
                for scale in SCALES:
                    for path in Path(f"results/{scale}/cells").glob(f"{artifact.paper}_{artifact.name}.csv"):
                        for column, texts in cells(path).items():
                            known[str(column)] |= set(map(canonical, texts.unique()))
                    for column, values in scope.declared(artifact.panels(scale)).items():
                        known[str(column)] |= set(values.dropna())
                for row in printed_settings(artifact.paper, artifact.name):
                    for column, value in row.items():
                        known[column].add(canonical(value))
            for part in (part for check in asked for part in parts(check)):
                for metric in listed(part["metric"]):
                    assert metric in known["metric"] or metric in NOT_MEASURED, (claim.id, metric)
                wanted = {c: v for c, v in part.get("for", {}).items() if not isinstance(v, dict)}
                for column, named in (*named_values(part).items(), *wanted.items()):
                    unknown = set(map(canonical, listed(named))) - known[column]
                    assert column in known, (claim.id, column)
                    assert not unknown, (claim.id, column, unknown)


NOT_MEASURED = {"tuned_global_lr", "tuned_local_lr"}
"""Metrics of cells that nobody has made."""


def test_printed_numbers_agree_with_the_annotations(tmp_path: Path) -> None:
    found = {v.id: v.paper_numbers for v in scoreboard("paper", tmp_path)}
    raw = [(file.paper, claim) for file in FILES for claim in yaml.safe_load(file.path.read_text())["claims"]]
    annotated = {f"{paper}/{claim['id']}": claim["printed"] for paper, claim in raw if "printed" in claim}
    differ = {name for name, said in annotated.items() if said != found[name]}
    assert differ == set(NOT_PRINTED)
    assert {found[name] for name in NOT_PRINTED} == {"na"}
    assert {name for name, said in found.items() if said == "refuted"} == {"fedagrac/c26", "fiarse/t4_margin_cifar100"}


def test_without_cells_every_claim_says_what_to_do(tmp_path: Path) -> None:
    board = scoreboard("reduced", tmp_path)
    assert [v.id for v in board] == [claim.id for file in FILES for claim in file.claims]
    assert {v.verdict for v in board} == {"not run"}
    assert all("render it first" in v.reason or v.unasked for v in board)
    with pytest.raises(UserError, match="unknown scale 'large'"):
        scoreboard("large", tmp_path)


def put(path: Path, name: str, *lines: str) -> None:
    """The cells of an artifact."""
    file = path / f"results/paper/cells/toy_{name}.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(("n,algorithm,seed,metric,value", *lines)) + "\n")
    sealed(file)


def test_a_check_may_ask_for_the_cells_of_another_artifact_too(tmp_path: Path) -> None:
    put(tmp_path, "table1", "1,a,-1,acc,9")
    put(tmp_path, "table2", "1,b,-1,acc,5")
    check = {"metric": "acc", "for": {"n": [1]}, "better": "a", "than": ["b"], "with": ["table2"]}
    (found,) = scoreboard("paper", tmp_path / "results", [load(tmp_path, check=check)])
    assert (found.verdict, effect(found)) == ("supported", 4.0)


def toy_board(path: Path) -> list[Any]:
    put(path, "table1", "1,a,-1,acc,9", "1,b,-1,acc,5")
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
    assert {"id", "artifact", "verdict", "measured", "printed"} <= set(one)
    found = one["measured"]
    assert (one["verdict"], found["value"], found["low"], found["high"], found["n"]) == ("supported", 4.0, 4.0, 4.0, 0)
    assert one["paper_numbers"] == "refuted"
    assert (one["rests_on"], three["rests_on"]) == ("closed form or simulation", "")
    assert (two["verdict"], two["measured"]["value"], two["paper_numbers"]) == ("refuted", -4.0, "supported")
    assert (three["verdict"], three["measured"], three["reason"]) == ("not run", None, "says two")


def test_each_further_look_halves_the_error_of_the_interval(tmp_path: Path) -> None:
    """Three seeds with a lead of 2 and a standard deviation of 0.7: inside at 95 %, by the textbook, not at 97.5 %."""
    leads = ((seed, a, v) for seed, lead in enumerate((1.3, 2.0, 2.7)) for a, v in (("a", lead), ("b", 0)))
    put(tmp_path, "table1", *(f"1,{a},{seed},acc,{v}" for seed, a, v in leads))
    for looks, said, level in (({}, "supported", 0.95), ({"paper": 2}, "inconclusive", 0.975)):
        (found,) = scoreboard("paper", tmp_path / "results", [load(tmp_path, looks=looks)])
        half = stats.t.ppf((1 + level) / 2, 2) * 0.7 / np.sqrt(3)
        assert (found.verdict, interval(found)) == (said, (pytest.approx(2 - half), pytest.approx(2 + half)))
        assert ("interim analysis 2: 97.5 % intervals" in wording.basis(found)) == bool(looks)


def test_what_stands_under_a_verdict(tmp_path: Path) -> None:
    one, _, three = toy_board(tmp_path)
    beside = "refuted by the paper's own numbers"
    assert documents.verdict_of(one) == f"supported<br>1 setting, no seeds, point; closed form or simulation; {beside}"
    rerun = replace(one, rests_on="substitute data", settings=4, seeds=(3, 10), look=2)
    words = "4 settings, 3 to 10 seeds, point, interim analysis 2: 97.5 % intervals"
    assert documents.verdict_of(rerun) == f"supported<br>{words}; {beside}"
    assert documents.verdict_of(three) == "not run"
