"""From results files to the files a reader wants: an artifact's cells, and its table or figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from reproduce import files
from reproduce.declare.artifact import Artifact
from reproduce.errors import UserError
from reproduce.report import captions, formats, metrics, tables
from reproduce.report.code import function
from reproduce.report.histories import NOTHING, Histories, Job, load
from reproduce.report.latex import latex, tex

if TYPE_CHECKING:
    import pandas as pd

REQUIRED = ("algorithm", "seed", "metric", "value")
LAST = ("algorithm", "metric", "seed", "value", "censored", "text")


def render(
    artifact: Artifact,
    scale: str,
    root: Path,
    jobs: Sequence[Job] = (),
    standing: str = "",
    seeds: Mapping[str, Iterable[int]] = NOTHING,
    width: float = 0.0,
) -> list[Path]:
    """Write the cells and the table or figure of `artifact` under `root`; returns the files written.

    jobs: (panel name, results file or None, reason if None) for every job of the artifact's panels.
    standing: what is to be said of the results' origin (`reproduce.runs.results.stamp`).
    seeds: those to read of a panel, by its name (one without: all that its results have).
    width: of a figure in inches; it is written beside the one of the usual width, and nothing else is.

        results/<scale>/cells/<paper>_<name>.csv             per-seed cells: sorted, full precision
        tables/<scale>/<paper>_<name>.{md,csv,tex,ours.tex}  or
        figures/<scale>/<paper>_<name>.{pdf,png,txt,tex}     picture, picture with a stamp, caption twice
        figures/<scale>/<paper>_<name>.note.txt              what the caption has no room for
        figures/<scale>/<paper>_<name>-<width>in.{...}       the same of another width

    Raises UserError for an unreadable results file, and where some results are missing without which the artifact
    cannot be made; ValueError for cells that do not fit the artifact.
    """
    if artifact.name.startswith("fig") and artifact.draw is None:
        raise ValueError(f"{artifact.id}: a figure needs a draw function")
    panels = artifact.panels(scale)
    # Stand-ins of panels that were not run stay in the caption: the gaps in the table are theirs.
    experiments = [e for panel in panels for e in panel.experiments]
    histories = load(jobs, scale, (panel.substitute for panel in panels), experiments, seeds)
    with lacking(artifact, histories):
        return make(artifact, histories, root, standing, width)


@contextmanager
def lacking(artifact: Artifact, histories: Histories) -> Iterator[None]:
    """What fails where results are missing fails for want of them: most artifacts show what there is, but some compare
    or draw together what only all algorithms give."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if not histories.missing:
            raise
        absent = ", ".join(f"{panel} ({why})" for panel, why in histories.missing)
        raise UserError(
            f"{artifact.id} cannot be made of the results that are there alone; missing: {absent}"
        ) from error


def make(artifact: Artifact, histories: Histories, root: Path, standing: str = "", width: float = 0.0) -> list[Path]:
    """Write what `render` writes, of histories that are read; returns the files written."""
    panels, scale = artifact.panels(histories.scale), histories.scale
    nothing = bool(panels) and histories.frame.empty
    cells = check(artifact, _no_cells() if nothing else metrics.cells(artifact, histories))
    stem = f"{artifact.paper}_{artifact.name}"
    if width:
        return _figure(artifact, histories, cells, root / "figures" / scale / f"{stem}-{width:g}in", standing, width)
    if artifact.kind == "figure":
        written = _figure(artifact, histories, cells, root / "figures" / scale / stem, standing)
    else:
        written = _table(artifact, histories, cells, root / "tables" / scale / stem, standing, nothing)
    file = root / "results" / scale / "cells" / f"{stem}.csv"  # last: nothing is written of what cannot be drawn
    return [files.write_text(file, cells_csv(artifact, cells)), *written]


def _table(
    artifact: Artifact, histories: Histories, cells: pd.DataFrame, stem: Path, standing: str, nothing: bool
) -> list[Path]:
    panels, scale = artifact.panels(histories.scale), histories.scale
    reason = tables.reasons(panels, histories.missing, scale)
    paper = tables.reported(artifact.paper, artifact.name)
    table, ours = (
        tables.build(artifact, cells, paper, scale, histories.substitutes, reason, ours=only) for only in (False, True)
    )
    markdown = formats.markdown(table)
    if artifact.extra and not nothing:
        markdown += "\n" + function(artifact.paper, artifact.extra)(histories, cells).strip("\n") + "\n"
    said = captions.provenance(histories, standing)
    markdown += "".join(f"\n{formats.block(line)}\n" for line in said)
    tex_, ours_tex = ("".join(f"% {line}\n" for line in said) + latex(each) for each in (table, ours))
    texts = {".md": markdown, ".csv": formats.csv(table), ".tex": tex_, ".ours.tex": ours_tex}
    return [files.write_text(stem.with_name(stem.name + ending), text) for ending, text in texts.items()]


def check(artifact: Artifact, cells: pd.DataFrame) -> pd.DataFrame:
    """`cells` if they are what the contract says; ValueError naming the artifact and the column if not.

    Required: `algorithm`, `seed` (whole numbers), `metric`, `value` (numbers; NaN where a run has none). Optional:
    `censored` (true or false) and `text` (the cell in words, for tables of settings). One row per setting and seed.
    """
    import pandas as pd

    absent = [c for c in REQUIRED if c not in cells]
    if cells.empty:
        return _no_cells() if absent else cells
    # Metrics that cannot miss a target come without the column; put together with others they have gaps.
    bound = cells["censored"].fillna(False) if "censored" in cells else pd.Series(False, index=cells.index)
    names = [c for c in cells.columns if c not in ("value", "censored", "text")]
    wrong = ""
    if absent:
        wrong = f"the cells lack the column '{absent[0]}'"
    elif text := [c for c in ("value", "seed") if not pd.api.types.is_numeric_dtype(cells[c])]:
        wrong = f"the column '{text[0]}' of the cells is not numeric"
    elif (cells["seed"] % 1 != 0).any():
        wrong = "the column 'seed' of the cells is not whole numbers"
    elif not bound.isin([True, False]).all():
        wrong = "the column 'censored' of the cells is not true or false"
    elif (twice := cells[names].duplicated()).any():
        row = ", ".join(f"{c}={v}" for c, v in cells.loc[twice, names].iloc[0].items())
        wrong = f"two cells for {row}; a column that tells them apart is missing"
    if wrong:
        raise ValueError(f"{artifact.id}: {wrong}")
    return cells.assign(censored=bound.astype(bool)) if "censored" in cells else cells


def cells_csv(artifact: Artifact, cells: pd.DataFrame) -> str:
    """The cells as CSV: settings in the paper's order, then `LAST`; rows sorted, so equal cells give equal files."""
    paper = tables.reported(artifact.paper, artifact.name)
    known = [] if paper is None else list(paper.columns)
    own = sorted(c for c in cells.columns if c not in known)
    settings = [c for c in [*(k for k in known if k in cells.columns), *own] if c not in LAST]
    columns = [*settings, *(c for c in LAST if c in cells.columns)]
    names = [c for c in columns if c not in ("value", "censored", "text")]
    kinds = cells.astype({c: "int64" for c in ["seed"] if len(cells)})[columns]
    ordered = kinds.sort_values(names, key=lambda c: c if c.name == "seed" else c.astype(str), kind="stable")
    return str(ordered.to_csv(index=False, lineterminator="\n"))


def _figure(
    artifact: Artifact, histories: Histories, cells: pd.DataFrame, stem: Path, standing: str, width: float = 0.0
) -> list[Path]:
    from reproduce.report import drawing, figures

    with figures.style(width or figures.FULL):
        fig = drawing.draw(artifact, histories, cells)
        title, sentences = captions.title(artifact, fig), captions.caption(artifact, histories, fig)
        said = captions.provenance(histories, standing)
        written = figures.save(fig, stem, " ".join([*sentences[1:], *said]))
    text, note = " ".join([title, *sentences]), captions.note(artifact, histories, fig, standing)
    texts = {".txt": text, ".tex": tex(text), ".note.txt": "\n".join(note)}
    return written + [files.write_text(stem.with_name(stem.name + k), f"{v}\n") for k, v in texts.items()]


def _no_cells() -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({c: [] for c in REQUIRED})
