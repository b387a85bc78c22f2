"""The grammar of the claims: `papers/<key>/claims.yaml` as checked records.

`docs/claims.md` shows the grammar by example and says how verdicts come about (`reproduce.verdicts.verdict`). A file
that does not follow it ends in a UserError that names the file, the claim and the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from reproduce.declare.artifact import printed_settings
from reproduce.declare.experiment import PACKAGE, SCALES
from reproduce.errors import UserError, unknown
from reproduce.files import read_yaml
from reproduce.report.names import canonical
from reproduce.verdicts.checks import (
    COMMON,
    FORMS,
    NUMBERS,
    Check,
    bound,
    check_choice,
    check_keys,
    form_of,
    listed,
    merged,
    parts,
    quantifier,
    spelled,
    statement,
    uses,
)

PRINTED = "printed"
"""The view of a claim on the paper's own printed numbers, beside the scales."""

NEEDED = {"id", "artifact", "statement", "where", "check"}
OPTIONAL = {"scales", "unasked", "at", "ours", "note", "printed", "rests_on", "readings", "looks"}
ASKED = ("reduced", "paper")
"""The scales at which every claim is asked that does not say why not."""


@dataclass(frozen=True)
class Metric:
    """A quantity of the cells: `better` is higher, lower or none; it orders runs and says what divergence means."""

    name: str
    unit: str
    better: str
    text: str


@dataclass(frozen=True)
class Contents:
    """What the cells of one artifact hold: setting columns with the paper's values, algorithms, metrics.

    labels: columns that describe a row and do not separate settings. points: metrics with one value for all seeds.
    """

    artifact: str
    columns: Mapping[str, tuple[str, ...]]
    labels: tuple[str, ...]
    algorithms: tuple[str, ...]
    metrics: tuple[str, ...]
    points: tuple[str, ...]


@dataclass(frozen=True)
class Readings:
    """What the paper does not say (`about`), and scale -> name of an answer -> the check under it."""

    about: str
    checks: Mapping[str, Mapping[str, Check]]


@dataclass(frozen=True)
class Claim:
    """One statement of a paper.

    checks: the check at each scale at which the claim is asked, and on the paper's `printed` numbers. unasked: why it
    is not asked at another. ours: scale -> the numbers of the check that the statement does not give, in words.
    printed: what the printed numbers should give (holds, fails, na), where someone has looked. construction: it holds
    or fails whatever is trained, so that it is no claim but a check of this package. readings: a choice that the paper
    leaves open, and the check at each scale under each answer. looks: scale -> with how many numbers of seeds it was
    judged until it was decided, or until today, if with more than one.
    """

    id: str
    artifact: str
    statement: str
    where: str
    scales: tuple[str, ...]
    checks: Mapping[str, Check]
    note: str
    printed: str | None
    construction: bool = False
    readings: Readings | None = None
    unasked: Mapping[str, str] = field(default_factory=dict)
    ours: Mapping[str, str] = field(default_factory=dict)
    looks: Mapping[str, int] = field(default_factory=dict)

    def under(self, scale: str) -> list[Check]:
        """The check at a scale at which it is asked, under each of its readings if it has some."""
        return [self.checks[scale]] if self.readings is None else [*self.readings.checks[scale].values()]


@dataclass(frozen=True)
class ClaimsFile:
    paper: str
    path: Path
    metrics: Mapping[str, Metric]
    artifacts: Mapping[str, Contents]
    claims: tuple[Claim, ...]


@cache
def claims_files(package: Path = PACKAGE) -> list[ClaimsFile]:
    """The claims of all papers, in the order of their names."""
    return [load_claims(path) for path in sorted((package / "papers").glob("*/claims.yaml"))]


def load_claims(path: Path) -> ClaimsFile:
    """Read and check one file; UserError for anything that does not follow the grammar."""
    data = read_yaml(path)
    try:
        return _file(data, path)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UserError(f"{path}: {type(error).__name__}: {error}") from error


def _file(data: Mapping[str, Any], path: Path) -> ClaimsFile:
    check_keys("the file", data, {"paper", "metrics", "artifacts", "claims"}, needed=("paper", "artifacts", "claims"))
    metrics = {}
    for name, m in data["metrics"].items():
        check_keys(f"metric {name}", m, {"unit", "better", "text"}, needed=("unit", "better", "text"))
        check_choice(f"metric {name}: better", m["better"], ("higher", "lower", "none"))
        metrics[name] = Metric(name, **m)
    artifacts = {name: _contents(data["paper"], name, raw, metrics, path) for name, raw in data["artifacts"].items()}
    claims = tuple(_claim(data["paper"], raw, artifacts, metrics) for raw in data["claims"])
    ids = [claim.id for claim in claims]
    for twice in (name for name in ids if ids.count(name) > 1):
        raise UserError(f"claim {twice}: the id is used twice")
    return ClaimsFile(data["paper"], path, metrics, artifacts, claims)


def _contents(paper: str, name: str, raw: Mapping[str, Any], metrics: Mapping[str, Metric], path: Path) -> Contents:
    """What claims.yaml says of an artifact; columns and algorithms that it leaves out are those of the paper's numbers
    (`reported/<name>.csv` beside the claims), in the paper's order."""
    where = f"artifact {name}"
    allowed = {"columns", "labels", "algorithms", "metrics", "points", "seeds"}
    check_keys(where, raw, allowed, needed=("metrics",))
    for metric in raw["metrics"]:
        if metric not in metrics:
            raise UserError(f"{where}: {unknown('metric', metric, metrics)}")
    labels = tuple(raw.get("labels", ()))
    rows = printed_settings(path.parent.name, name, path.parent.parent)
    columns = {c: [row[c] for row in rows] for c in (rows[0] if rows else ()) if c not in labels}
    of_paper = {"algorithms": columns.pop("algorithm", None), "columns": columns or None}
    for key, there in of_paper.items():
        if key not in raw and there is None:
            raise UserError(f"{where}: {key} can be left out only where reported/{name}.csv has them")
    given = {key: raw.get(key, there) for key, there in of_paper.items()}
    return Contents(
        f"{paper}/{name}",
        {c: tuple(dict.fromkeys(map(canonical, values))) for c, values in given["columns"].items()},
        labels,
        tuple(dict.fromkeys(map(canonical, given["algorithms"]))),
        tuple(raw["metrics"]),
        tuple(raw["metrics"] if raw.get("seeds") == "point" else raw.get("points", ())),
    )


def _claim(
    paper: str, raw: Mapping[str, Any], artifacts: Mapping[str, Contents], metrics: Mapping[str, Metric]
) -> Claim:
    try:
        check_keys("claim", raw, NEEDED | OPTIONAL, needed=NEEDED)
        if raw["artifact"] not in artifacts:
            raise unknown("artifact", str(raw["artifact"]), artifacts)
        for key in ("id", "statement", "where"):
            if not isinstance(raw[key], str) or not raw[key].strip():
                raise UserError(f"{key}: {raw[key]!r} is not a text")
        scales, unasked = _scales(raw)
        looks = _looks(raw.get("looks", {}))
        for scale in raw.get("at", {}):
            check_choice("at: scale", scale, (*SCALES, PRINTED))
        check_choice("printed", raw.get("printed", "na"), ("holds", "fails", "na"))
        check_choice("rests_on", raw.get("rests_on", "construction"), ("construction",))
        checks = {s: merged(raw["check"], raw.get("at", {}).get(s, {})) for s in (*scales, PRINTED)}
        readings = _readings(raw["readings"], checks) if "readings" in raw else None
        # Only at paper scale and in print are the values of settings those of the paper.
        judged = [(check, scale in ("paper", PRINTED)) for scale, check in {**checks, "paper": raw["check"]}.items()]
        judged += [(c, False) for named in (readings.checks.values() if readings else ()) for c in named.values()]
        for check, values_too in judged:
            for part in parts(check):
                _check(part, [raw["artifact"], *listed(check.get("with", []))], artifacts, metrics, values_too)
        ours = {s: _ours(raw.get("ours", []), raw["check"], check, metrics) for s, check in checks.items()}
    except UserError as error:
        raise UserError(f"claim {raw.get('id', '(no id)')}: {error}") from error
    return Claim(
        id=f"{paper}/{raw['id']}",
        artifact=f"{paper}/{raw['artifact']}",
        statement=raw["statement"],
        where=raw["where"],
        scales=scales,
        checks=checks,
        note=str(raw.get("note", "")),
        printed=raw.get("printed"),
        construction="rests_on" in raw,
        readings=readings,
        unasked=unasked,
        ours=ours,
        looks=looks,
    )


def _looks(raw: Any) -> dict[str, int]:
    check_keys("looks", raw, set(ASKED))
    for scale, times in raw.items():
        if type(times) is not int or times < 2:
            raise UserError(f"looks: {scale}: {times!r} is not a number of looks (2 or more; one is no key)")
    return dict(raw)


def _scales(raw: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The scales at which a claim is asked, and why it is not at others."""
    named, unasked = raw.get("scales", ASKED), raw.get("unasked", {})
    if not isinstance(named, list | tuple) or not named or len(set(named)) < len(named):
        raise UserError(f"scales: {named!r} is not a list of different scales")
    check_keys("unasked", unasked, set(ASKED))
    for scale in named:
        check_choice("scale", scale, SCALES)
    for scale, why in unasked.items():
        if not isinstance(why, str) or not why.strip():
            raise UserError(f"unasked: {scale}: {why!r} is not a phrase")
    scales = tuple(s for s in named if s not in unasked)
    for scale in (s for s in ASKED if s not in scales and s not in unasked):
        raise UserError(f"unasked: say in a phrase why the claim is not asked at {scale} scale")
    return scales, dict(unasked)


def _ours(keys: Any, of_claim: Check, check: Check, metrics: Mapping[str, Metric]) -> str:
    """The numbers of a check that are not the statement's: those under `keys`, and those that `at` a scale changes."""
    if not isinstance(keys, list):
        raise UserError(f"ours: {keys!r} is not a list of keys of the check")
    for key in keys:
        check_choice("ours", key, NUMBERS)
        if not any(key in part for part in parts(of_claim)):
            raise UserError(f"ours: the check has no {key}")
    own = [{k: v for k, v in part.items() if k in NUMBERS and k not in keys} for part in parts(of_claim)]
    found = [
        spelled(key, part, metrics[listed(part["metric"])[0]].unit)
        for part in parts(check)
        for key in NUMBERS
        if key in part and not any(key in p and p[key] == part[key] for p in own)
    ]
    return " and ".join(dict.fromkeys(filter(None, found)))


def _readings(raw: Mapping[str, Any], checks: Mapping[str, Check]) -> Readings:
    """Each reading is a change of the check, with further changes `at` a scale, where equal ones count once."""
    check_keys("readings", raw, {"about", "under"}, needed=("about", "under"))
    if not isinstance(raw["under"], Mapping) or len(raw["under"]) < 2:
        raise UserError("readings: under: needs at least two readings, each a change of the check")
    under: dict[str, dict[str, Check]] = {}
    for scale in (s for s in checks if s != PRINTED):
        for name, change in raw["under"].items():
            if not isinstance(change, Mapping):
                raise UserError(f"readings: under: reading {name}: expected keys and values, found {change!r}")
            first = {k: v for k, v in change.items() if k != "at"}
            check = merged(merged(checks[scale], first), change.get("at", {}).get(scale, {}))
            if check not in under.setdefault(scale, {}).values():
                under[scale][str(name)] = check
    return Readings(str(raw["about"]), under)


def _check(
    check: Check,
    names: Iterable[str],
    artifacts: Mapping[str, Contents],
    known_metrics: Mapping[str, Metric],
    values_too: bool,
) -> None:
    """Refuse a check with a wrong key, metric, column, number or (values_too) value of a setting."""
    form = form_of(check)
    if form == "all_of":
        raise UserError("all_of: a part cannot have parts")
    needs, may = FORMS[form]
    check_keys(form, check, COMMON | {form} | needs | may, needed=(*needs, "metric"))
    known: dict[str, set[str]] = {"algorithm": set(), "metric": set()}
    for name in names:
        if name not in artifacts:
            raise UserError(f"with: {unknown('artifact', name, artifacts)}")
        contents = artifacts[name]
        of_it = {**contents.columns, "algorithm": contents.algorithms, "metric": contents.metrics}
        for column, values in of_it.items():
            known.setdefault(column, set()).update(values)
    for metric in listed(check["metric"]):
        if metric not in known["metric"]:
            raise UserError(f"metric: {unknown('metric of the artifact', str(metric), known['metric'])}")
        if _ranks(check, form) and "direction" not in check and known_metrics[metric].better == "none":
            raise UserError(f"direction: {metric} has no better side, so the check needs direction: higher or lower")
    for key, column, named in uses(check, form):
        if column not in known:
            raise UserError(f"{key}: {unknown('column', column, known)}")
        for value in map(canonical, named if values_too else ()):
            if value not in known[column]:
                raise UserError(f"{key}: {unknown(f'{column} at paper scale', value, known[column])}")
    for key in ("margin", "within", "at_most"):
        bound(check, key)
    if form == "is":
        statement(check["is"])
    if form == "equal" and "within" not in check and not check.get("exact"):
        raise UserError("equal: needs within or exact: true")
    check_choice("direction", check.get("direction", "higher"), ("higher", "lower"))
    quantifier(check)


def _ranks(check: Check, form: str) -> bool:
    """Does the check ask which of two numbers is better?"""
    operands = [v for transform in ("gap", "ratio") for k, v in check.get(transform, {}).items() if k != "over"]
    operands += [v for key in ("better", "than") for v in listed(check.get(key, []))]
    best = any(isinstance(o, Mapping) and {"best_of", "worst_of"} & set(o) for o in operands)
    return best or form in ("better", "order", "transfer")
