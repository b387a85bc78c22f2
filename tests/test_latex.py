"""Tables in LaTeX: escapes, one environment each, breaks between groups, and that a LaTeX sets them on its pages."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from reproduce.papers import artifacts
from reproduce.report import formats
from reproduce.report.latex import latex, tex
from tests.test_report_tables import LAYOUTS, whole


def test_latex_escapes() -> None:
    text = tex(r"a_b & 50% $x$ #1 {c} ~ ^ \ < > | ± − — é")
    assert text == (
        r"a\_b \& 50\% \$x\$ \#1 \{c\} \textasciitilde{} \textasciicircum{} \textbackslash{} "
        r"\textless{} \textgreater{} \textbar{} $\pm$ $-$ --- é"
    )


def test_formulas_are_tex_in_latex_and_letters_in_markdown() -> None:
    text = r"for 5 % of \(m\): \(\|\nabla F_m\|^2 \leq \beta^2\) & so"
    assert tex(text) == r"for 5 \% of \(m\): \(\|\nabla F_m\|^2 \leq \beta^2\) \& so"
    assert formats.plain(text) == "for 5 % of m: ‖∇F_m‖² ≤ β² & so"
    named = [t for a in artifacts() for t in a.names.values() if "\\(" in t]
    assert len(named) == 5
    assert not [t for t in named if "\\" in formats.plain(t)], "every command has its letter"


@pytest.mark.parametrize(("paper", "name"), LAYOUTS)
def test_latex_is_one_environment_per_table(paper: str, name: str) -> None:
    text = latex(whole(paper, name))
    environments = re.findall(r"\\begin\{(table|longtable)\}", text)
    assert len(environments) == 1
    assert text.count(r"\caption{") == text.count(r"\label{") == 1
    for environment in ("table", "longtable", "tabular", "landscape"):
        assert text.count(rf"\begin{{{environment}}}") == text.count(rf"\end{{{environment}}}")
    assert text.count("{") == text.count("}")
    found = re.search(r"@\{\}(l+)(c+)@\{\}", text)
    assert found
    width = len(found[1] + found[2])
    lines = [line for line in text.splitlines() if re.search(r" \\\\\*?$", line) and "&" in line]
    assert [line for line in lines if "multicolumn" not in line and line.count("&") != width - 1] == []


def test_a_page_of_a_long_table_may_begin_with_any_row() -> None:
    """Each has all its labels, and its numbers in one line of the source; rows of a short one say what changes."""
    body = latex(whole("dynamic_init", "table3")).split(r"\endlastfoot")[1].split(r"\end{longtable}")[0].strip()
    rows = [row.split(" & ") for row in body.split(" \\\\\n")]
    assert len(rows) == 48, "data sets times overlaps times alphas times algorithms"
    assert all(row[0] in ("MNIST", "Fashion-MNIST", "SVHN") and row[3] in body for row in rows)
    assert [row[4].startswith(r"\lines{") for row in rows] == [True] * 48
    short = latex(whole("fedagrac", "table1")).split(r"\midrule")[1].splitlines()[1:5]
    assert [row.split(" & ")[:2] for row in short] == [["no", "no"], ["", "yes"], ["yes", "no"], ["", "yes"]]


def test_headings_over_columns_have_a_rule_below_them() -> None:
    text = latex(whole("fedacs", "table1"))
    line = next(line for line in text.splitlines() if "multicolumn" in line)
    assert line == r" & \multicolumn{4}{c}{MNIST} & \multicolumn{4}{c}{CIFAR-10} & \multicolumn{4}{c}{CINIC-10} \\"
    assert text.count(line + "\n" + r"\cmidrule(lr){2-5}\cmidrule(lr){6-9}\cmidrule(lr){10-13}" + "\n") == 2


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_compiles_and_fits_the_page(tmp_path: Path) -> None:
    """Every printed table of all papers with numbers of three seeds, and ours alone."""
    made = [latex(whole(*at, ours=only)) for at in LAYOUTS for only in (False, True)]
    used = r"\usepackage[margin=2cm]{geometry}\usepackage{booktabs,longtable,pdflscape}"
    start = rf"\documentclass[10pt,a4paper]{{article}}{used}\begin{{document}}"
    text = "\n".join([start, *(t + r"\clearpage" for t in made), r"\end{document}"])
    (tmp_path / "main.tex").write_text(text, encoding="utf-8")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "main.tex"]
    for _ in range(3):  # a longtable needs a few runs to know its columns
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, errors="replace")
        assert done.returncode == 0, done.stdout[-2000:]
    log = (tmp_path / "main.log").read_text(encoding="utf-8", errors="replace")
    wide = [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log)]
    assert max(wide, default=0) < 3, log[-3000:]
    assert "Missing character" not in log
