"""The grammar of the claims: `papers/<key>/claims.yaml` as checked records, and how one check of a claim is written.

`docs/claims.md` shows the grammar by example and says how verdicts come about (`reproduce.verdicts.verdict`). A file
that does not follow it ends in a UserError that names the file, the claim and the key.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from reproduce.declare.experiment import SCALES
from reproduce.declare.paper import TEXT, Metric, metrics, papers
from reproduce.errors import UserError, unknown
from reproduce.files import mismatch, read_yaml, record
from reproduce.report.names import canonical
from reproduce.verdicts.judging import INF, Region

Check = Mapping[str, Any]

FORMS = ("better", "order", "equal", "is", "trend", "spread", "transfer")
NEEDED = {"better": ("than",), "trend": ("over",), "spread": ("over", "at_most"), "transfer": ("over", "at_most")}
"""Form of a check -> further keys that it needs."""

NUMBERS = ("margin", "within", "at_most", "is", "quantifier")
"""Keys of a check that say how much or how many."""


TRANSFORMS = (("gap", "minus"), ("ratio", "to"))
"""Keys that make one number of two, and the key of the second."""


def listed(value: Any) -> list[Any]:
    """A value or a list of values as a list."""
    return list(value) if isinstance(value, list | tuple) else [value]


def form_of(check: Check) -> str:
    """The one key of a check that names its form."""
    forms = [form for form in FORMS if form in check]
    if len(forms) != 1:
        raise UserError(f"a check has exactly one of {', '.join(FORMS)}; this one has {' and '.join(forms) or 'none'}")
    return forms[0]


def parts(check: Check) -> list[Check]:
    """The checks inside an `all_of`, each with what it inherits; a plain check is its own only part."""
    shared = {k: v for k, v in check.items() if k != "all_of"}
    return [merged(shared, part) for part in check["all_of"]] if "all_of" in check else [check]


def merged(check: Check, change: Check) -> dict[str, Any]:
    """`check` with the keys of `change`; `for` is merged by column, and null takes a key or column away."""
    result = {**check, **change}
    if "for" in check and change.get("for") is not None:
        result["for"] = {**check["for"], **change["for"]}
    if "for" in result:
        result["for"] = {k: v for k, v in (result["for"] or {}).items() if v is not None}
    return {k: v for k, v in result.items() if v is not None}


# --- numbers ----------------------------------------------------------------------------------------------------------


def statement(raw: Any) -> Region | tuple[float, ...] | str:
    """The region of an `is`: '>= 10' and [low, high] are regions, {one_of: [...]} the values that it may have;
    `unreached` stays a word."""
    if raw == "unreached":
        return str(raw)
    if isinstance(raw, Mapping):
        return tuple(map(float, raw["one_of"]))
    if isinstance(raw, list | tuple):
        return Region(float(raw[0]), float(raw[1]))
    op = raw.rstrip("0123456789.e- ")
    value = float(raw.removeprefix(op))
    return Region(-INF if op[0] == "<" else value, INF if op[0] == ">" else value, len(op) == 1)


def quantity(check: Check) -> str:
    """The one of `judging.QUANTITIES` of a part of a check: what is asked for `exact` is asked of every seed,
    what is true or false of a run is a share of the seeds; all else is a mean, unless the claim says median."""
    if check.get("exact"):
        return "every seed"
    if "is" in check and not isinstance(statement(check["is"]), Region):
        return "share"
    return str(check.get("quantity", "mean"))


def bound(check: Check, key: str) -> tuple[float, bool]:
    """The number behind `margin`, `within` or `at_most`, and whether it is a ratio (then its logarithm is returned)."""
    value = check.get(key, 0.0)
    return (math.log(value["ratio"]), True) if isinstance(value, Mapping) else (float(value), False)


def quantifier(check: Check) -> tuple[str, float, float]:
    """(name, low, high) of the quantifier; low and high bound the fraction."""
    raw = check.get("quantifier", "all")
    if isinstance(raw, str):
        return raw, 0.0, INF
    low, high = [*listed(raw["fraction"]), INF][:2]
    return "fraction", low, high


# --- columns and their values -----------------------------------------------------------------------------------------


def named_values(check: Check) -> dict[str, list[str]]:
    """The columns that a part of a check compares over, with the values that it names; [] for all of them."""
    over, form = check.get("over", "algorithm"), form_of(check)
    named = [(s.get("over", "algorithm"), s[k]) for t, to in TRANSFORMS if (s := check.get(t)) for k in ("of", to)]
    if form in ("better", "order", "equal", "transfer"):
        named += [(over, check[key]) for key in (form, "than") if key in check]
    by_column = {} if form == "is" else {over: [canonical(v) for v in check.get("values", [])]}
    unrestricted = set()
    for column, operands in named:
        values = [canonical(v) for operand in listed(operands) for v in operand_values(operand)]
        by_column.setdefault(column, []).extend(values)
        if not values:
            unrestricted.add(column)
    return {column: [] if column in unrestricted else values for column, values in by_column.items()}


def operand_values(operand: Any) -> list[Any]:
    """The values that an operand names: a value, a list of them, or {best_of | worst_of | mean_of: list or all}."""
    if isinstance(operand, Mapping):
        (values,) = operand.values()
        return [] if values == "all" else listed(values)
    return listed(operand)


# --- claims -----------------------------------------------------------------------------------------------------------

PRINTED = "printed"
"""The view of a claim on the paper's own printed numbers, beside the scales."""

ASKED = ("reduced", "paper")
"""The scales at which every claim is asked that does not say why not."""


@dataclass(frozen=True)
class Claim:
    """A statement of a paper and the checks that judge it.

    where: in the paper. checks: the check at each scale at which the claim is asked, and on the paper's `printed`
    numbers. unasked: why it is not asked at another. ours: scale -> has the check a number that the statement does
    not give? construction: it is true or false whatever is trained, so that it is no claim but a check of this package.
    about: an unstated choice; readings: scale -> name of an answer -> the check under it. looks: scale
    -> with how many numbers of seeds it was judged until it was decided, or until today, if with more than one.
    """

    id: str
    artifact: str
    statement: str
    where: str
    scales: tuple[str, ...]
    checks: Mapping[str, Check]
    note: str
    construction: bool = False
    about: str = ""
    readings: Mapping[str, Mapping[str, Check]] = field(default_factory=dict)
    unasked: Mapping[str, str] = field(default_factory=dict)
    ours: Mapping[str, bool] = field(default_factory=dict)
    looks: Mapping[str, int] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """sentence, if `where` names a place in the text; else the table or figure that it was read off, or derived."""
        text = r"\b(sec\.|section|app\.|appendix|corollary|introduction|footnote|caption)"
        sentence = re.search(text, self.where, re.IGNORECASE) and "sentence"
        kind = "table" if "table" in self.where.lower() else "figure"
        return "derived" if self.where.startswith("derived") else sentence or kind

    def read_by(self, check: Check) -> list[str]:
        """The artifacts whose cells a check reads: that of the claim, and those it is made `with`."""
        return [self.artifact, *(f"{self.artifact.split('/')[0]}/{name}" for name in check.get("with", []))]

    def under(self, scale: str) -> Mapping[str, Check]:
        """The check at a scale at which it is asked, under each of its readings if it has some."""
        return self.readings.get(scale) or {"": self.checks[scale]}


@dataclass(frozen=True)
class ClaimsFile:
    paper: str
    path: Path
    metrics: Mapping[str, Metric]
    claims: tuple[Claim, ...]


@cache
def claims_files() -> list[ClaimsFile]:
    """The claims of all papers that have some."""
    return [load_claims(file) for p in papers().values() if (file := p.folder / "claims.yaml").is_file()]


def load_claims(path: Path) -> ClaimsFile:
    """Read and check one file, with the metrics beside it; UserError for anything that does not follow the grammar."""
    data = read_yaml(path)
    try:
        if problem := mismatch(data, FILE):
            raise UserError(problem)
        known = metrics(path.parent)
        claims = tuple(_claim(data["paper"], raw, known) for raw in data["claims"])
        ids = [claim.id for claim in claims]
        for twice in (name for name in ids if ids.count(name) > 1):
            raise UserError(f"claim {twice}: the id is used twice")
        return ClaimsFile(data["paper"], path, known, claims)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def _claim(paper: str, raw: Any, metrics: Mapping[str, Metric]) -> Claim:
    try:
        if problem := mismatch(_without_nulls(raw), CLAIM):
            raise UserError(problem)
        unasked = raw.get("unasked", {})
        scales = tuple(s for s in raw.get("scales", ASKED) if s not in unasked)
        for scale in (s for s in ASKED if s not in scales and s not in unasked):
            raise UserError(f"unasked: say in a phrase why the claim is not asked at {scale} scale")
        checks = {s: merged(raw["check"], raw.get("at", {}).get(s, {})) for s in (*scales, PRINTED)}
        readings = _readings(raw["readings"]["under"], checks) if "readings" in raw else {}
        under = [c for named in readings.values() for c in named.values()]
        for part in (part for check in (*checks.values(), raw["check"], *under) for part in parts(check)):
            _check(part, metrics)
        ours = {s: _ours(raw.get("ours", []), raw["check"], check) for s, check in checks.items()}
    except UserError as error:
        name = raw.get("id", "(no id)") if isinstance(raw, dict) else raw
        raise UserError(f"claim {name}: {error}") from error
    return Claim(
        id=f"{paper}/{raw['id']}",
        artifact=f"{paper}/{raw['artifact']}",
        statement=raw["statement"],
        where=raw["where"],
        scales=scales,
        checks=checks,
        note=raw.get("note", ""),
        construction="rests_on" in raw,
        about=raw["readings"]["about"] if readings else "",
        readings=readings,
        unasked=unasked,
        ours=ours,
        looks=raw.get("looks", {}),
    )


def _without_nulls(value: Any) -> Any:
    """A value without the entries that are null, which take keys away in `merged`."""
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    return [_without_nulls(v) for v in value] if isinstance(value, list) else value


def _ours(keys: Sequence[str], of_claim: Check, check: Check) -> bool:
    """Tells whether the check has a number that is not the statement's: of `keys`, or changed `at` a scale."""
    stated = [(k, part[k]) for part in parts(of_claim) for k in NUMBERS if k in part and k not in keys]
    return any((k, part[k]) not in stated for part in parts(check) for k in NUMBERS if part.get(k))


def _readings(raw: Mapping[str, Any], checks: Mapping[str, Check]) -> Mapping[str, Mapping[str, Check]]:
    """Each reading is a change of the check, with further changes `at` a scale, where equal ones count once."""
    under: dict[str, dict[str, Check]] = {}
    for scale in (s for s in checks if s != PRINTED):
        for name, change in raw.items():
            first = {k: v for k, v in change.items() if k != "at"}
            check = merged(merged(checks[scale], first), change.get("at", {}).get(scale, {}))
            if check not in under.setdefault(scale, {}).values():
                under[scale][str(name)] = check
    return under


def _check(check: Check, metrics: Mapping[str, Metric]) -> None:
    """Refuse what the schema cannot: no form or two, what a form needs, and metrics that are not known."""
    form = form_of(check)
    for key in ("metric", *NEEDED.get(form, ())):
        if key not in check:
            raise UserError(f"{form}: the key '{key}' is missing")
    for metric in listed(check["metric"]):
        if metric not in metrics:
            raise UserError(f"metric: {unknown('metric', metric, metrics)}")
        if _ranks(check, form) and "direction" not in check and metrics[metric].better == "none":
            raise UserError(f"direction: {metric} has no better side, so the check needs direction: higher or lower")
    if form == "equal" and "within" not in check and not check.get("exact"):
        raise UserError("equal: needs within or exact: true")


def _ranks(check: Check, form: str) -> bool:
    """Tells whether the check asks which of two numbers is better."""
    operands = [check[transform][key] for transform, to in TRANSFORMS if transform in check for key in ("of", to)]
    best = any(isinstance(o, Mapping) and {"best_of", "worst_of"} & set(o) for o in operands)
    return form in ("better", "order", "transfer") or best


# --- the schema (JSON Schema) -----------------------------------------------------------------------------------------


def several(item: Any, least: int = 1) -> dict[str, Any]:
    return {"type": "array", "items": item, "minItems": least}


Schema = dict[str, Any]
NUMBER: Schema = {"type": "number"}
VALUE: Schema = {"type": ["string", "number", "boolean"]}
COLUMNS: Schema = {"anyOf": [TEXT, several(TEXT)]}
VALUES: Schema = {"anyOf": [VALUE, several(VALUE)]}
BEST = record(best_of=VALUES, worst_of=VALUES, mean_of=VALUES) | {"minProperties": 1, "maxProperties": 1}
OPERAND: Schema = {"anyOf": [VALUE, BEST]}
OPERANDS: Schema = {"anyOf": [VALUE, BEST, several(OPERAND)]}
RANGE = record(min=NUMBER, max=NUMBER, **{"not": VALUES})
BOUND: Schema = {"anyOf": [NUMBER, record(("ratio",), ratio={"type": "number", "exclusiveMinimum": 0})]}
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
FRACTION = record(("fraction",), fraction={"anyOf": [SHARE, several(SHARE, 2) | {"maxItems": 2}]})
OPERATOR: Schema = {"type": "string", "pattern": r"^((<=|>=|==|<|>) *-?[0-9.]+(e-?[0-9]+)?|unreached)$"}
CONDITIONS: Schema = {"type": "object", "additionalProperties": {"anyOf": [VALUE, several(VALUE), RANGE]}}
CHECK = record(
    **{"metric": COLUMNS, "with": several(TEXT), "over": TEXT, "values": several(VALUE)},
    **{"for": CONDITIONS},
    **{key: COLUMNS for key in ("sum_over", "unpaired", "per")},
    **{key: BOUND for key in ("margin", "within", "at_most")},
    **{key: {"type": "boolean"} for key in ("exact", "spread")},
    **{key: OPERANDS for key in ("better", "than")},
    **{key: several(OPERAND, 2) for key in ("order", "equal", "transfer")},
    trend={"enum": ["increasing", "decreasing"]},
    direction={"enum": ["higher", "lower"]},
    quantity={"enum": ["mean", "median"]},
    gap=record(("of", "minus"), of=OPERANDS, minus=OPERANDS, over=TEXT),
    ratio=record(("of", "to"), of=OPERANDS, to=OPERANDS, over=TEXT),
    quantifier={"anyOf": [{"enum": ["all", "any", "mean"]}, FRACTION]},
    **{"is": {"anyOf": [OPERATOR, several(NUMBER, 2) | {"maxItems": 2}, record(("one_of",), one_of=several(NUMBER))]}},
    all_of=several({"$ref": "#/$defs/change"}),
)
CHANGE: Schema = {"$ref": "#/$defs/change"}
READING: Schema = {**CHECK, "properties": {**CHECK["properties"], "at": {"additionalProperties": CHANGE}}}
CLAIM = record(
    ("id", "artifact", "statement", "where", "check"),
    **{key: TEXT for key in ("id", "artifact", "statement", "where", "note")},
    check=CHANGE,
    at={"type": "object", "propertyNames": {"enum": [*SCALES, PRINTED]}, "additionalProperties": CHANGE},
    scales=several({"enum": [*SCALES]}) | {"uniqueItems": True},
    unasked=record(**{scale: TEXT for scale in ASKED}),
    looks=record(**{scale: {"type": "integer", "minimum": 2} for scale in ASKED}),
    ours=several({"enum": [*NUMBERS]}),
    printed={"enum": ["supported", "refuted", "na"]},
    rests_on={"const": "construction"},
    readings=record(("about", "under"), about=TEXT, under={"additionalProperties": READING, "minProperties": 2}),
) | {"$defs": {"change": CHECK}}
FILE = record(("paper", "claims"), paper=TEXT, claims={"type": "array"})
