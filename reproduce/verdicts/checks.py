"""How one check of a claim is written: its forms, and how margins, quantifiers, operands and settings are read.

`docs/claims.md` shows the grammar by example; `reproduce.verdicts.claims` has the schema.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from reproduce.errors import UserError
from reproduce.report.names import canonical
from reproduce.verdicts.judging import INF, Region

Check = Mapping[str, Any]

FORMS: Mapping[str, tuple[str, ...]] = {  # form: further keys that it needs
    "better": ("than",),
    "order": (),
    "equal": (),
    "is": (),
    "trend": ("over",),
    "spread": ("over", "at_most"),
    "transfer": ("over", "at_most"),
    "all_of": (),
}

NUMBERS = ("margin", "within", "at_most", "is", "quantifier")
"""Keys of a check that say how much or how many."""


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
    """What an `is` says of a number: '>= 10' and [low, high] are regions, {one_of: [...]} the values that it may have;
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
    """Which of the `judging.QUANTITIES` a part of a check is about: what is asked for `exact` is asked of every seed,
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


def uses(check: Check, form: str) -> Iterator[tuple[str, str, list[Any]]]:
    """(key, column, values) wherever a check names a column, with the values of it that it names."""
    for column, values in check.get("for", {}).items():
        yield "for", column, [] if isinstance(values, Mapping) else listed(values)
    for transform, second in (("gap", "minus"), ("ratio", "to")):
        if transform in check:
            for key in ("of", second):
                yield transform, check[transform].get("over", "algorithm"), operand_values(check[transform][key])
    over = check.get("over", "algorithm")
    for key in (form, "than") if form in ("better", "order", "equal", "transfer") else ():
        if key in check:
            yield key, over, [v for item in listed(check[key]) for v in operand_values(item)]
    yield "over", over, listed(check.get("values", []))
    for key in ("sum_over", "unpaired", "per"):
        for column in listed(check.get(key, [])):
            yield key, column, []


def named_values(check: Check) -> dict[str, list[str]]:
    """The columns that a part of a check compares over, with the values that it names; [] for all of them."""
    found: dict[str, list[str]] = {}
    everything = set()
    form = form_of(check)
    for key, column, values in uses(check, form):
        if key in ("for", "sum_over", "unpaired", "per") or (key == "over" and form == "is"):
            continue
        if not values and key != "over":
            everything.add(column)
        found.setdefault(column, []).extend(canonical(v) for v in values)
    return {column: [] if column in everything else values for column, values in found.items()}


def operand_values(operand: Any) -> list[Any]:
    """The values that an operand names: a value, a list of them, or {best_of | worst_of | mean_of: list or all}."""
    if isinstance(operand, Mapping):
        (values,) = operand.values()
        return [] if values == "all" else listed(values)
    return listed(operand)
