"""Writes the files of an artifact, its cells and its table or figure, from results files."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from reproduce import files
from reproduce.declare.artifact import Artifact, no_panels
from reproduce.errors import UserError
from reproduce.report import captions, drawing, entries, figures, formats, metrics, tables
from reproduce.report.histories import NOTHING, Histories, Source, load

REQUIRED = ("algorithm", "seed", "metric", "value")
LAST = ("algorithm", "metric", "seed", "value", "censored", "text")


def read(
    artifact: Artifact, scale: str, sources: Iterable[Source] = (), seeds: Mapping[str, Iterable[int]] = NOTHING
) -> Histories:
    """The histories of the artifact's panels. seeds: those to read of a panel, by its name (one without: all).

    Substitutes of panels that were not run stay in the caption: the gaps in the table are theirs.
    """
    panels = artifact.panels(scale)
    experiments = [e for panel in panels for e in panel.experiments]
    return load(sources, scale, (panel.substitute for panel in panels), experiments, seeds)


@contextmanager
def lacking(artifact: Artifact, histories: Histories) -> Iterator[None]:
    """Context that turns an error into a UserError naming the missing results, if there are any. Most artifacts show
    what there is, but some compare or draw together what only all algorithms give."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if not histories.missing:
            raise
        absent = ", ".join(f"{panel} ({reason})" for panel, reason in histories.missing)
        raise UserError(f"{artifact.id} cannot be made of what is there alone; missing: {absent}") from error


def make(artifact: Artifact, histories: Histories, root: Path, width: float = 0.0) -> list[Path]:
    """Write the cells and the table or figure of `artifact` under `root`; returns the files written.

        results/<scale>/cells/<paper>_<name>.csv             per-seed cells: sorted, full precision
        tables/<scale>/<paper>_<name>.{md,csv,tex}           or
        figures/<scale>/<paper>_<name>.{pdf,png,txt,tex}     picture, the same, caption and notes, caption
        figures/<scale>/<paper>_<name>-<width>in.{...}       the same of another width, in inches, and nothing else

    Raises UserError where some results are missing without which the artifact cannot be made; ValueError for cells
    that do not fit the artifact.
    """
    stem = f"{artifact.paper}_{artifact.name}"
    place = root / f"{artifact.kind}s" / histories.scale / (f"{stem}-{width:g}in" if width else stem)
    with lacking(artifact, histories):
        cells = artifact_cells(artifact, histories)
        if artifact.kind == "figure":
            written = _figure(artifact, histories, cells, place, width)
        else:
            written = _table(artifact, histories, cells, place, width)
    if width:
        return written
    file = root / "results" / histories.scale / "cells" / f"{stem}.csv"  # last: of what can be drawn
    return [files.write_text(file, cells_csv(artifact, cells)), *written]


def _table(artifact: Artifact, histories: Histories, cells: pd.DataFrame, stem: Path, width: float) -> list[Path]:
    paper, commits = tables.reported(artifact.paper, artifact.name), entries.commits(histories)
    table = tables.build(artifact, cells, paper, histories.scale, histories.substitutes, histories.missing)
    texts: dict[str, str] = {}
    if not width:
        texts = {".md": formats.markdown(table) + f"\n{commits}\n" * bool(commits), ".csv": formats.csv(table)}
    texts[".tex"] = f"% {commits}\n" * bool(commits) + formats.latex(table, width)
    return [files.write_text(stem.with_name(stem.name + ending), text) for ending, text in texts.items()]


def artifact_cells(artifact: Artifact, histories: Histories) -> pd.DataFrame:
    """The cells of an artifact, none where nothing was trained; raises what `check` raises."""
    nothing = artifact.panels is not no_panels and histories.frame.empty
    return check(artifact, _no_cells() if nothing else metrics.cells(artifact, histories))


def check(artifact: Artifact, cells: pd.DataFrame) -> pd.DataFrame:
    """`cells` if they are what the contract says; ValueError naming the artifact and the column if not.

    Required: `algorithm`, `seed` (whole numbers), `metric`, `value` (numbers; NaN where a run has none). Optional:
    `censored` (true or false) and `text` (the cell in words, for tables of settings). One row per setting and seed.
    """
    absent = [c for c in REQUIRED if c not in cells]
    if cells.empty:
        return _no_cells() if absent else cells
    # Metrics that cannot miss a target come without the column; put together with others they have gaps.
    bound = cells["censored"].fillna(False) if "censored" in cells else pd.Series(False, index=cells.index)
    names = [c for c in cells.columns if c not in ("value", "censored", "text")]
    if absent:
        raise ValueError(f"{artifact.id}: the cells lack the column '{absent[0]}'")
    if (twice := cells[names].duplicated()).any():
        row = ", ".join(f"{c}={v}" for c, v in cells.loc[twice, names].iloc[0].items())
        raise ValueError(f"{artifact.id}: two cells for {row}; a column that tells them apart is missing")
    return cells.assign(censored=bound.astype(bool)) if "censored" in cells else cells


def cells_csv(artifact: Artifact, cells: pd.DataFrame) -> str:
    """The cells as CSV: settings in the paper's order, then `LAST`; rows sorted, so equal cells give equal files."""
    paper = tables.reported(artifact.paper, artifact.name)
    known = [] if paper is None else list(paper.columns)
    extra = sorted(c for c in cells.columns if c not in known)
    settings = [c for c in [*(k for k in known if k in cells.columns), *extra] if c not in LAST]
    columns = [*settings, *(c for c in LAST if c in cells.columns)]
    names = [c for c in columns if c not in ("value", "censored", "text")]
    kinds = cells.astype({c: "int64" for c in ["seed"] if len(cells)})[columns]
    ordered = kinds.sort_values(names, key=lambda c: c if c.name == "seed" else c.astype(str), kind="stable")
    return str(ordered.to_csv(index=False, lineterminator="\n"))


def _figure(artifact: Artifact, histories: Histories, cells: pd.DataFrame, stem: Path, width: float) -> list[Path]:
    with figures.style(width or figures.FULL):
        fig = drawing.draw(artifact, histories, cells)
        title, sentences = captions.title(artifact, fig), captions.caption(artifact, histories, fig)
        written = figures.save(fig, stem)
    text = " ".join([title, *sentences])
    notes = "".join(f"{line}\n" for line in captions.note(artifact, histories, fig))
    texts = {".txt": f"{text}\n{notes}", ".tex": f"{formats.tex(text)}\n"}
    return written + [files.write_text(stem.with_name(stem.name + k), v) for k, v in texts.items()]


def _no_cells() -> pd.DataFrame:
    return pd.DataFrame({c: [] for c in REQUIRED})
