"""The grammar of the claims: `papers/<key>/claims.yaml` as checked records.

`docs/claims.md` shows the grammar by example and says how verdicts come about (`reproduce.report.verdicts`). A file
that does not follow it ends in a UserError that names the file, the claim and the key.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reproduce.errors import UserError, unknown
from reproduce.experiment import PACKAGE, SCALES
from reproduce.report.intervals import INF, Region

PRINTED = "printed"
"""The view of a claim on the paper's own printed numbers, beside the scales."""

COMMON = {
    *("metric", "for", "with", "mean_over", "sum_over", "unpaired", "direction", "quantifier", "exact", "strict"),
    *("gap", "ratio"),
}
FORMS: dict[str, tuple[set[str], set[str]]] = {  # form: (keys it needs, further keys it may have)
    "better": ({"than"}, {"over", "margin"}),
    "order": (set(), {"over", "margin"}),
    "equal": (set(), {"over", "within"}),
    "is": (set(), set()),
    "trend": ({"over"}, {"values", "margin"}),
    "spread": ({"over", "at_most"}, {"values"}),
    "peak": ({"over"}, {"margin"}),
    "correlation": ({"over", "at_least"}, {"per"}),
    "best_at": ({"over"}, set()),
    "all_of": (set(), set()),
}
OPERANDS = ("best_of", "worst_of", "mean_of")
KINDS = ("ordering", "equivalence", "ratio", "threshold", "trend", "value")
CLAIM_KEYS = {
    *("id", "artifact", "statement", "where", "kind", "scales", "check", "at", "expected", "note", "printed"),
    *("rests_on", "readings"),
}


@dataclass(frozen=True)
class Metric:
    """A quantity of the cells: `better` is higher, lower or none; it orders runs and says what divergence means."""

    name: str
    unit: str
    better: str
    text: str


@dataclass(frozen=True)
class Cells:
    """What the cells of one artifact hold: setting columns with the paper's values, algorithms, metrics.

    labels: columns that describe a row and do not separate settings. points: metrics with one value for all seeds.
    """

    artifact: str
    columns: Mapping[str, tuple[str, ...]]
    labels: tuple[str, ...]
    algorithms: tuple[str, ...]
    metrics: tuple[str, ...]
    points: tuple[str, ...]
    reduced: str

    def lacking(self, columns: Iterable[str], metrics: Iterable[str]) -> list[str]:
        """The setting columns and metrics that the cells should have and do not (metrics may be missing at a scale)."""
        have, measured = set(columns), set(metrics)
        return [f"column {c}" for c in (*self.columns, "algorithm", "metric", "value") if c not in have] + [
            f"metric {m}" for m in self.metrics if m not in measured
        ]


@dataclass(frozen=True)
class Claim:
    """One statement of a paper.

    checks: the check at each scale that the claim is meant for, and on the paper's `printed` numbers. printed: what the
    latter should give (holds, fails, na), where someone has looked. construction: it holds or fails by construction,
    whatever is trained. readings: a choice that the paper leaves open, and the check at each scale under each answer.
    """

    id: str
    artifact: str
    statement: str
    where: str
    kind: str
    scales: tuple[str, ...]
    checks: Mapping[str, Mapping[str, Any]]
    expected: str
    note: str
    printed: str | None
    construction: bool = False
    readings: Readings | None = None


@dataclass(frozen=True)
class Readings:
    """What the paper does not say (`about`), and scale -> name of an answer -> the check under it."""

    about: str
    checks: Mapping[str, Mapping[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class ClaimsFile:
    paper: str
    path: Path
    metrics: Mapping[str, Metric]
    artifacts: Mapping[str, Cells]
    claims: tuple[Claim, ...]


def claims_files(package: Path = PACKAGE) -> list[ClaimsFile]:
    """The claims of all papers, in the order of their names."""
    return [load_claims(path) for path in sorted((package / "papers").glob("*/claims.yaml"))]


def load_claims(path: Path) -> ClaimsFile:
    """Read and check one file; UserError for anything that does not follow the grammar."""
    import yaml

    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise UserError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    try:
        return _file(data, path)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UserError(f"{path}: {type(error).__name__}: {error}") from error


def canon(value: Any) -> str:
    """A setting value as text that is equal for equal values: 0.30, '0.3' and 0.3; True and 'true'."""
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value).strip()
    if re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", text):
        return f"{float(text):.12g}"
    return text.lower() if text.lower() in ("true", "false") else text


def listed(value: Any) -> list[Any]:
    """A value or a list of values as a list."""
    return list(value) if isinstance(value, list | tuple) else [value]


@dataclass(frozen=True)
class Statement:
    """What an `is` says about a number: that it lies in a region, is one of some values, was not reached, is absent."""

    says: str
    region: Region = field(default_factory=lambda: Region(1.0, 1.0))
    values: tuple[float, ...] = ()


def statement(raw: Any) -> Statement:
    """Read an `is`: '>= 10', [low, high], {one_of: [...]}, unreached or absent."""
    if raw in ("unreached", "absent"):
        return Statement(raw)
    if isinstance(raw, Mapping):
        _keys("is", raw, {"one_of"}, needed={"one_of"})
        return Statement("one_of", values=tuple(float(v) for v in raw["one_of"]))
    if isinstance(raw, list | tuple):
        if len(raw) != 2:
            raise UserError(f"is: {raw} needs two ends")
        return Statement("region", Region(float(raw[0]), float(raw[1])))
    match = re.fullmatch(r"(<=|>=|==|<|>)\s*(\S+)", str(raw))
    if not match:
        raise UserError(f"is: '{raw}' is not like '>= 10', [low, high], {{one_of: [...]}}, unreached or absent")
    op, value = match[1], float(match[2])
    return Statement("region", Region(-INF if op[0] == "<" else value, INF if op[0] == ">" else value, len(op) == 1))


def form_of(check: Mapping[str, Any]) -> str:
    """The one key of a check that names its form."""
    forms = [form for form in FORMS if form in check]
    if len(forms) != 1:
        raise UserError(f"a check has exactly one of {', '.join(FORMS)}; this one has {' and '.join(forms) or 'none'}")
    return forms[0]


def parts(check: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The checks inside an `all_of`, each with what it inherits; a plain check is its own only part."""
    if "all_of" not in check:
        return [check]
    shared = {k: v for k, v in check.items() if k != "all_of"}
    return [merged(shared, part) for part in check["all_of"]]


def merged(check: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """`check` with the keys of `change`; `for` is merged by column, and null takes a key or column away."""
    result = {**check, **change}
    if "for" in check and change.get("for") is not None:
        result["for"] = {**check["for"], **change["for"]}
    if "for" in result:
        result["for"] = {k: v for k, v in (result["for"] or {}).items() if v is not None}
    return {k: v for k, v in result.items() if v is not None}


def _file(data: Mapping[str, Any], path: Path) -> ClaimsFile:
    _keys("the file", data, {"paper", "metrics", "artifacts", "claims"}, needed={"paper", "artifacts", "claims"})
    metrics = {}
    for name, m in data["metrics"].items():
        _keys(f"metric {name}", m, {"unit", "better", "text"}, needed={"unit", "better", "text"})
        if m["better"] not in ("higher", "lower", "none"):
            raise UserError(f"metric {name}: better: {m['better']} is not higher, lower or none")
        metrics[name] = Metric(name, m["unit"], m["better"], m["text"])
    artifacts = {name: _cells(data["paper"], name, raw, metrics) for name, raw in data["artifacts"].items()}
    claims = tuple(_claim(data["paper"], raw, artifacts, metrics) for raw in data["claims"])
    seen: set[str] = set()
    for claim in claims:
        if claim.id in seen:
            raise UserError(f"claim {claim.id}: the id is used twice")
        seen.add(claim.id)
    return ClaimsFile(data["paper"], path, metrics, artifacts, claims)


def _cells(paper: str, name: str, raw: Mapping[str, Any], metrics: Mapping[str, Metric]) -> Cells:
    where = f"artifact {name}"
    allowed = {"columns", "labels", "algorithms", "metrics", "points", "seeds", "reduced"}
    _keys(where, raw, allowed, needed={"columns", "algorithms", "metrics"})
    for metric in raw["metrics"]:
        if metric not in metrics:
            raise UserError(f"{where}: {unknown('metric', metric, metrics)}")
    points = raw["metrics"] if raw.get("seeds") == "point" else raw.get("points", ())
    columns = {c: tuple(canon(v) for v in values) for c, values in raw["columns"].items()}
    algorithms = tuple(canon(a) for a in raw["algorithms"])
    labels = tuple(raw.get("labels", ()))
    return Cells(
        f"{paper}/{name}", columns, labels, algorithms, tuple(raw["metrics"]), tuple(points), raw.get("reduced", "")
    )


def _claim(paper: str, raw: Mapping[str, Any], artifacts: Mapping[str, Cells], metrics: Mapping[str, Metric]) -> Claim:
    try:
        needed = CLAIM_KEYS - {"at", "expected", "note", "printed", "rests_on", "readings"}
        _keys("claim", raw, CLAIM_KEYS, needed=needed)
        if raw["artifact"] not in artifacts:
            raise unknown("artifact", str(raw["artifact"]), artifacts)
        _choice("kind", raw["kind"], KINDS)
        for scale in (*raw["scales"], *raw.get("at", {})):
            _choice("scale", scale, (*SCALES, PRINTED))
        if "printed" in raw:
            _choice("printed", raw["printed"], ("holds", "fails", "na"))
        _choice("rests_on", raw.get("rests_on", "construction"), ("construction",))
        checks = {s: merged(raw["check"], raw.get("at", {}).get(s, {})) for s in (*raw["scales"], PRINTED)}
        readings = _readings(raw["readings"], checks) if "readings" in raw else None
        as_declared = {**checks, "paper": raw["check"]}
        judged = [(check, scale in ("paper", PRINTED)) for scale, check in as_declared.items()]
        judged += [(c, False) for named in (readings.checks.values() if readings else ()) for c in named.values()]
        for check, values_too in judged:
            names = [raw["artifact"], *listed(check.get("with", []))]
            for part in parts(check):
                _check(part, names, artifacts, metrics, values_too)
    except UserError as error:
        raise UserError(f"claim {raw.get('id', '(no id)')}: {error}") from error
    return Claim(
        id=f"{paper}/{raw['id']}",
        artifact=f"{paper}/{raw['artifact']}",
        statement=raw["statement"],
        where=raw["where"],
        kind=raw["kind"],
        scales=tuple(raw["scales"]),
        checks=checks,
        expected=str(raw.get("expected", "")),
        note=str(raw.get("note", "")),
        printed=raw.get("printed"),
        construction="rests_on" in raw,
        readings=readings,
    )


def _readings(raw: Mapping[str, Any], checks: Mapping[str, Mapping[str, Any]]) -> Readings:
    """Each reading is a change of the check, with further changes `at` a scale."""
    _keys("readings", raw, {"about", "under"}, needed={"about", "under"})
    if not isinstance(raw["under"], Mapping) or len(raw["under"]) < 2:
        raise UserError("readings: under: needs at least two readings, each a change of the check")
    under: dict[str, dict[str, Mapping[str, Any]]] = {}
    for scale in (s for s in checks if s != PRINTED):
        for name, change in raw["under"].items():
            if not isinstance(change, Mapping):
                raise UserError(f"readings: under: reading {name}: expected keys and values, found {change!r}")
            first = {k: v for k, v in change.items() if k != "at"}
            under.setdefault(scale, {})[str(name)] = merged(
                merged(checks[scale], first), change.get("at", {}).get(scale, {})
            )
    return Readings(str(raw["about"]), under)


def _check(
    check: Mapping[str, Any],
    names: list[str],
    artifacts: Mapping[str, Cells],
    known_metrics: Mapping[str, Metric],
    values_too: bool,
) -> None:
    """Refuse a check with a wrong key, metric, column or (at paper scale) value."""
    form = form_of(check)
    if form == "all_of":
        raise UserError("all_of: a part cannot have parts")
    needs, may = FORMS[form]
    _keys(form, check, COMMON | {form} | needs | may, needed=needs | {"metric"})
    for name in names:
        if name not in artifacts:
            raise UserError(f"with: {unknown('artifact', name, artifacts)}")
    cells = [artifacts[name] for name in names]
    metrics = {m for c in cells for m in c.metrics}
    for metric in listed(check["metric"]):
        if metric not in metrics:
            raise UserError(f"metric: {unknown('metric of the artifact', str(metric), metrics)}")
    known: dict[str, set[str]] = {"algorithm": {a for c in cells for a in c.algorithms}, "metric": metrics}
    for c in cells:
        for column, allowed in c.columns.items():
            known.setdefault(column, set()).update(allowed)
    for key, column, values in _uses(check, form):
        if column not in known:
            raise UserError(f"{key}: {unknown('column', column, known)}")
        for value in values if values_too else ():
            if canon(value) not in known[column]:
                raise UserError(f"{key}: {unknown(f'{column} at paper scale', canon(value), known[column])}")
    if _ranks(check, form) and "direction" not in check:
        for metric in listed(check["metric"]):
            if known_metrics[metric].better == "none":
                raise UserError(
                    f"direction: {metric} has no better side, so the check needs direction: higher or lower"
                )
    _numbers(check, form)


def _ranks(check: Mapping[str, Any], form: str) -> bool:
    """Does the check ask which of two numbers is better?"""
    operands = [v for t in ("gap", "ratio") for k, v in check.get(t, {}).items() if k != "over"]
    operands += [v for key in ("better", "than") for v in listed(check.get(key, []))]
    best = any(isinstance(o, Mapping) and {"best_of", "worst_of"} & set(o) for o in operands)
    return best or form in ("better", "order", "peak", "best_at")


def _numbers(check: Mapping[str, Any], form: str) -> None:
    """Refuse margins, quantifiers and regions that cannot be read."""
    for key in ("margin", "within", "at_most"):
        bound(check, key)
    if form == "is":
        statement(check["is"])
    if form == "equal" and "within" not in check and not check.get("exact"):
        raise UserError("equal: needs within or exact: true")
    _choice("direction", check.get("direction", "higher"), ("higher", "lower"))
    quantifier(check)


def bound(check: Mapping[str, Any], key: str) -> tuple[float, bool]:
    """The number behind `margin`, `within` or `at_most`, and whether it is a ratio (then its logarithm is returned)."""
    value = check.get(key, 0.0)
    if isinstance(value, Mapping):
        _keys(key, value, {"ratio"}, needed={"ratio"})
        return math.log(value["ratio"]), True
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"{key}: {value} is neither a number nor {{ratio: number}}")
    return float(value), False


def quantifier(check: Mapping[str, Any]) -> tuple[str, float, float]:
    """(name, low, high) of the quantifier; low and high bound the fraction or the count."""
    raw = check.get("quantifier", "all")
    if isinstance(raw, str):
        _choice("quantifier", raw, ("all", "any", "mean"))
        return raw, 0.0, INF
    _keys("quantifier", raw, {"fraction", "count"})
    (name, value), *rest = raw.items()
    ends = [float(v) for v in listed(value)]
    if rest or len(ends) not in (1, 2):
        raise UserError(f"quantifier: {raw} is not {{fraction: x}} or {{count: [low, high]}}")
    return name, ends[0], ends[1] if len(ends) == 2 else INF


def _uses(check: Mapping[str, Any], form: str) -> Iterator[tuple[str, str, list[Any]]]:
    """(key, column, values) wherever a check names a column, with the values of it that it names."""
    for column, values in check.get("for", {}).items():
        if isinstance(values, Mapping):
            _keys(f"for: {column}", values, {"min", "max", "not"})
            yield "for", column, []
        else:
            yield "for", column, listed(values)
    for transform, keys in (("gap", {"over", "of", "minus"}), ("ratio", {"over", "of", "to"})):
        if transform in check:
            _keys(transform, check[transform], keys, needed=keys - {"over"})
            column = check[transform].get("over", "algorithm")
            for key in sorted(keys - {"over"}):
                yield transform, column, operand_values(check[transform][key])
    over = check.get("over", "algorithm")
    for key in ({form, "than"} if form in ("better", "order", "equal", "correlation", "best_at") else set()) & set(
        check
    ):
        yield key, over, [v for item in listed(check[key]) for v in operand_values(item)]
    yield "over", over, listed(check.get("values", []))
    for key in ("mean_over", "sum_over", "unpaired", "per"):
        for column in listed(check.get(key, [])):
            yield key, column, []


def named_values(check: Mapping[str, Any]) -> dict[str, list[str]]:
    """The columns that a part of a check compares over, with the values that it names; [] for all of them."""
    found: dict[str, list[str]] = {}
    everything = set()
    for key, column, values in _uses(check, form_of(check)):
        if key in ("for", "mean_over", "sum_over", "unpaired", "per") or (key == "over" and form_of(check) == "is"):
            continue
        if key == "best_at" or (not values and key != "over"):
            everything.add(column)
        found.setdefault(column, []).extend(canon(v) for v in values)
    return {column: [] if column in everything else values for column, values in found.items()}


def operand_values(operand: Any) -> list[Any]:
    """The values that an operand names: a value, a list of them, or {best_of | worst_of | mean_of: list or all}."""
    if isinstance(operand, Mapping):
        _keys("operand", operand, set(OPERANDS))
        (values,) = operand.values()
        return [] if values == "all" else listed(values)
    return listed(operand)


def _keys(what: str, mapping: Any, allowed: set[str], needed: Iterable[str] = ()) -> None:
    if not isinstance(mapping, Mapping):
        raise UserError(f"{what}: expected keys and values, found {mapping!r}")
    for key in mapping:
        if key not in allowed:
            raise UserError(f"{what}: {unknown('key', str(key), allowed)}")
    for key in needed:
        if key not in mapping:
            raise UserError(f"{what}: the key '{key}' is missing")


def _choice(what: str, value: Any, allowed: Iterable[str]) -> None:
    if value not in allowed:
        raise UserError(f"{what}: '{value}' is not one of {', '.join(allowed)}")
