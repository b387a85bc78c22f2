"""Tables in LaTeX: escapes, one environment each, breaks between groups, and that a LaTeX sets them on its pages."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from table_cells import LAYOUTS, whole

from reproduce.report.entries import OURS, Text
from reproduce.report.latex import BETWEEN, latex


@pytest.mark.parametrize(("paper", "name"), LAYOUTS)
def test_latex_is_a_float_over_one_column_or_two_in_parts(paper: str, name: str) -> None:
    text = latex(whole(paper, name))
    (environment,) = set(re.findall(r"^\\begin\{((?:sideways)?table\*?)\}", text, re.M))
    parts = text.count(r"\caption{")
    assert text.count(rf"\begin{{{environment}}}") == text.count(rf"\end{{{environment}}}") == parts
    assert text.count(r"\label{") == 1
    assert text.count(r"\addtocounter{table}{-1}") == parts - 1, "parts have one number"
    assert text.count(r"\toprule") == parts, "and rows each"
    assert text.count(f" of {parts}") >= parts if parts > 1 else not re.search(r"\(part \d", text)
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}")
    assert text.count("{") == text.count("}")
    for width, body in re.findall(r"\\begin\{tabular\}\{@\{\}(l[lr]+)@\{\}\}\n(.*?)\\end\{tabular\}", text, re.S):
        lines = [line for line in body.splitlines() if line.endswith(r" \\") and "multicolumn" not in line]
        assert {line.count("&") for line in lines} == {len(width) - 1}
    assert "`" not in text


def test_a_row_has_a_line_of_ours_and_one_of_the_paper() -> None:
    """Labels are said where they change, and again at the beginning of a part."""
    text = latex(whole("fedagrac", "table1"))
    lines = text.split(r"\midrule")[1].splitlines()[1:7]
    assert [line.startswith(BETWEEN) for line in lines] == [False, False, False, True, False, False]
    rows = [line.removeprefix(BETWEEN).split(" & ")[:4] for line in lines]
    assert [row[:3] for row in rows] == [
        ["no", "no", "ours"], ["", "", "paper"], ["", "", "ours $-$ paper"],
        ["", "yes", "ours"], ["", "", "paper"], ["", "", "ours $-$ paper"],
    ]  # fmt: skip
    parts = latex(whole("dynamic_init", "table3")).split(r"\midrule")[1:]
    assert len(parts) > 1
    assert all(re.match(r"(MNIST|Fashion-MNIST|SVHN) & 0\.\d & 0\.\d & \w+ & ours & ", part.strip()) for part in parts)
    assert sum(part.count(" & ours & ") for part in parts) == 48, (
        "data sets times overlaps times alphas times algorithms"
    )


def test_the_best_is_bold_and_notes_are_comments() -> None:
    table = whole("fedacs", "table1")
    place = next(iter(table.body))
    best = {**table.body[place], OURS: Text("1.5", bold=True)}
    text = latex(replace(table, body=table.body | {place: best}, notes=("50 %\nof all",)))
    assert r"\textbf{1.5}" in text
    assert text.endswith("\n% 50 % of all\n")


@pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="needs pdflatex: apt-get install texlive-latex-recommended"
)
@pytest.mark.parametrize("columns", ["", "twocolumn,"])
def test_latex_compiles_and_fits_the_page(tmp_path: Path, columns: str) -> None:
    """Every printed table of all papers with numbers of three seeds; no letter is shrunk below 6 pt."""
    fit = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}"
    made = [latex(whole(*at)) for at in LAYOUTS]
    assert all(fit in text for text in made)
    used = r"\usepackage[margin=2cm]{geometry}\usepackage{booktabs,graphicx,rotating}"
    size = r"\sbox0{#1}\typeout{WIDTH \the\wd0 of \the\linewidth}" + fit + r"{\usebox0}"
    start = rf"\documentclass[{columns}10pt,a4paper]{{article}}{used}\newcommand\fitted[1]{{{size}}}\begin{{document}}"
    floats = (text.replace(fit, r"\fitted") + r"\clearpage" for text in made)
    (tmp_path / "main.tex").write_text("\n".join([start, *floats, r"\end{document}"]), encoding="utf-8")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "main.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
    log = (tmp_path / "main.log").read_text(encoding="utf-8", errors="replace")
    wide = [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log)]
    assert max(wide, default=0) < 3, log[-3000:]
    assert "Float too large" not in log
    assert "Missing character" not in log
    sizes = [float(of) / float(points) for points, of in re.findall(r"WIDTH ([\d.]+)pt ?of ([\d.]+)pt", log)]
    assert len(sizes) > len(made)
    assert 8 * min(sizes) >= 6
