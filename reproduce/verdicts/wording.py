"""Verdicts in words: numbers with their units, names as they are printed, differences of percent as points."""

import math
import re
from collections.abc import Mapping

from reproduce.report.names import pretty
from reproduce.report.names import words as spelled
from reproduce.text import counted, counted_seeds
from reproduce.verdicts.judging import level_at
from reproduce.verdicts.scoreboard import Verdict
from reproduce.verdicts.verdict import Measured

_WORD = re.compile(r"(?<![\w/.])[a-zA-Z][a-zA-Z0-9]*(?:_[a-zA-Z0-9]+)*(?![\w/])")


def number(value: float) -> str:
    """Three digits, thousands in groups, a true minus sign."""
    if math.isinf(value):
        return "unbounded" if value > 0 else "−unbounded"
    value += 0.0  # no minus before zero
    text = f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}"
    return text.replace("-", "−")


def amount(value: float, unit: str, what: str = "difference") -> str:
    """A number with its unit: a difference of percentages is in points."""
    named = {"percent": " %" if what in ("value", "best value") else " points", "": ""}
    return number(value) + named.get(unit, f" {unit}")


def measured(m: Measured) -> str:
    """ "lead 2.03 points (1.88 to 2.17), 3 seeds"."""
    text = f"{m.what} {amount(m.value, m.unit, m.what)}"
    if m.low is None or m.high is None:
        text += ", no interval"
    elif m.low != m.high or not (m.exact or math.isinf(m.low)):
        text += f" ({number(m.low)} to {number(m.high)})"
    return text + (f", {counted(m.n, 'seed')}" if m.n else "")


def deciding(m: Measured | None, names: Mapping[str, str]) -> str:
    """The number with its setting, if there are several: "FedACS ahead of FedAvg: lead 2.03 points ..."."""
    return f"{named(m.setting, names)}: " * bool(m.setting) + measured(m) if m else ""


def ours(v: Verdict) -> str:
    """The deciding number of a verdict; where it depends on an unstated choice, that of each alternative."""
    each = [f"{name}: {deciding(m, v.names)}" for name, m in v.under]
    return "; ".join(each) or deciding(v.measured, v.names)


def required(m: Measured) -> str:
    """The requirement of the claim on the number: "at least 2 points"."""
    low, high = m.region
    least, most = (amount(end, m.unit, m.what) for end in (low, high))
    if low == high:
        return f"exactly {least}"
    bounded = [math.isfinite(low) and not (low == 0 and m.what == "ratio"), math.isfinite(high)]
    if all(bounded):
        return f"{number(low)} to {most}"
    if bounded[0]:
        return f"{'more than' if m.strict else 'at least'} {least}"
    return f"{'less than' if m.strict else 'at most'} {most}" if bounded[1] else "no bound"


def demanded(m: Measured, ours: bool) -> str:
    """`required`, with a remark if we chose a number of it: "at least 2 points (a number of ours)"."""
    return required(m) + " (a number of ours)" * ours


def basis(v: Verdict) -> str:
    """The basis of a verdict: "64 settings, 3 to 10 seeds, mean, interim analysis 2: 97.5 % intervals"."""
    if not v.settings:
        return ""
    seeds = counted_seeds(*v.seeds) if v.seeds[1] else "no seeds"
    looked = f", interim analysis {v.look}: {100 * level_at(v.look):.3g} % intervals" if v.look > 1 else ""
    return f"{counted(v.settings, 'setting')}, {seeds}{', one split' * v.one_split}, {v.quantity}{looked}"


def beside_print(v: Verdict) -> list[str]:
    """Remarks on a verdict: its source, and the paper's own numbers."""
    return [
        *([f"read off a {v.source}" if v.source != "derived" else v.source] if v.source != "sentence" else []),
        *(["refuted by the paper's own numbers"] if v.paper_numbers == "refuted" else []),
    ]


def named(text: str, names: Mapping[str, str] | None = None) -> str:
    """`text` with the names of settings, metrics and algorithms as they are printed; paths and claims stay."""
    printed = _WORD.sub(lambda match: _name(match[0], names or {}), text)
    printed = re.sub(r"\b(?:dataset|model) (?=[A-Z])", "", printed)
    return re.sub(r"(?<=\S) - (?=\w)", " − ", re.sub(r"(?<=[ (])-(?=[\d.])", "−", printed))


def _name(token: str, names: Mapping[str, str]) -> str:
    if token not in names and token not in spelled() and "_" not in token:
        return token
    text = pretty(token, names)
    if text == token.replace("_", " "):
        text = " ".join(spelled().get(part, part) for part in token.split("_"))
    return text[:1].lower() + text[1:] if token not in names and re.fullmatch(r"[A-Z][a-z]+( [a-z]+)*", text) else text
