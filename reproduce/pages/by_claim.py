"""From claim to number, on one page: the printed number, ours, the verdict, and what trains and shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

from reproduce.pages.short import about
from reproduce.runs import plan, results
from reproduce.text import duration, markdown
from reproduce.verdicts import words
from reproduce.verdicts.scope import EMPIRICAL
from reproduce.verdicts.scoreboard import Verdict
from reproduce.verdicts.verdict import JUDGED

FILE = Path("docs/papers/claims.md")
INTRODUCTION = """# From claim to number

All claims of the papers, table by table and figure by figure. A claim stands at paper scale, or at reduced scale if it
is judged there alone. Its numbers are those that decide the verdict ([how to read
one](index.md#how-to-read-a-verdict)).

The first command trains anew, in a folder of its own; the time is what the committed runs took of a processor. Where
data sets are not at hand, it says so and goes on without them. The second shows the numbers behind the verdicts, which
are in the file. `reproduce replay` in place of `verify` trains only the first rounds, and compares them.
"""


def page(boards: Mapping[str, Sequence[Verdict]]) -> str:
    """Markdown: the claims of a paper by artifact, each at the first scale where it is judged, or at the first."""
    found = []
    for row in zip(*boards.values(), strict=True):
        judged = [*zip(boards, row, strict=True)]
        found.append(next((pair for pair in judged if pair[1].verdict in JUDGED), judged[0]))
    order = [a.id for a in plan.select(None)]
    found.sort(key=lambda pair: (order.index(pair[1].artifact), [*boards].index(pair[0])))
    text, paper = [INTRODUCTION], ""
    for (scale, artifact), pairs in groupby(found, key=lambda pair: (pair[0], pair[1].artifact)):
        here = artifact.partition("/")[0]
        text += [f"## {about(here).name}\n"] * (here != paper)
        paper = here
        text.append(_part(scale, artifact, [v for _, v in pairs]))
    return "\n".join(text)


def _part(scale: str, artifact: str, verdicts: Sequence[Verdict]) -> str:
    """The claims about an artifact at a scale."""
    drawn, cells = plan.outputs(scale, artifact)[0], plan.cells_file(scale, artifact)
    at = "" if scale == "paper" else f" --scale {scale}"
    anew = f"`snakemake {drawn} --cores 2 -d anew --config budget=1000` ({took(scale, artifact)})"
    show = f"`reproduce verify {artifact}{at}`"
    file = f"[{cells}](../../{cells})" if Path(cells).is_file() else "no numbers yet"
    head = f"### {artifact}, {scale} scale\n\n{anew}\\\n{show}: {file}\n"
    rows = [[f"{v.statement} `{v.name}`", *_numbers(v), told(v)] for v in verdicts]
    return f"{head}\n{markdown(('claim', 'printed', 'ours', 'verdict'), rows)}\n"


def told(v: Verdict) -> str:
    """A verdict, and under it settings×seeds and what else to know of it: "64×3–10, look 2, one split"."""
    if v.verdict not in JUDGED:
        return v.verdict
    seeds = "×" + "–".join(str(n) for n in sorted(set(v.seeds))) if any(v.seeds) else ""
    odd = [f"look {v.look}"] * (v.look > 1) + ["one split"] * v.one_split + ["median"] * (v.quantity == "median")
    rests = [v.rests_on] * (v.rests_on not in EMPIRICAL)
    return f"{v.verdict}<br>" + ", ".join([f"{v.settings}{seeds}", *odd, *rests, *words.beside_print(v)])


def _numbers(v: Verdict) -> list[str]:
    """The deciding number of the print and ours."""
    return [words.deciding(m, v.names).replace("|", "\\|") or "–" for m in (v.printed, v.measured)]


def took(scale: str, artifact: str) -> str:
    """Processor time of the committed runs that an artifact reads; results from before it was recorded count with their
    time on the clock."""
    runs = [run for job in plan.artifact_jobs(scale, artifact) for run in results.standing(job).there]
    made = {id(run.training): run.training for run in runs}.values()
    seconds = sum(float(note.get("cpu_seconds", note.get("seconds")) or 0) for note in made)
    return duration(seconds) if seconds else "not trained" if plan.artifact_jobs(scale, artifact) else "no training"
