"""Tables in LaTeX, one environment each, which a LaTeX sets on its pages; and what is read back is text in all that is
written of it: LaTeX, Markdown, HTML, pictures."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from table_cells import LAYOUTS, whole

from reproduce.pages.page import to_html
from reproduce.report import captions, entries, figures, formats
from reproduce.report.entries import OURS, PAPER, Text
from reproduce.text import markdown

NASTY = (
    r"\input{/etc/passwd}", r"\(\input{x}\)", r"a_b % c & d # {e} ~f^g $h$ \\", "50 %\n\\end{document}",
    "a\rb\u2028c\x0bd\x0ce\x85f\tg", "x | y `z` *a* _b_ ~~c~~ [d](javascript:x) ![e](http://f/g)",
    "<script>1</script>", "<!-- gone -->", "&lt;b&gt; &amp;", "| --- |", "- item", "1. one", "=cmd()", "[1, 2]",
    r"\(a__b\)", r"\(\|\nabla F_m\|^2 \leq \beta^2\)", "\ud800", "\U0001f600", "é ß Ł ₿", "\\|", "``` x",
)  # fmt: skip
TEXTS = st.text(st.sampled_from("ab1 \\{}$&#_%^~|`*<>[]()!-=+@\n\r\t\"'é€\u2028") | st.characters(), max_size=40)


def examples(test: object) -> object:
    for text in NASTY:
        test = example(text)(test)  # type: ignore[arg-type]
    return test


@examples
@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_latex_has_nothing_of_a_text_but_letters(text: str) -> None:
    """Every special sign is escaped, and every command is one of ours."""
    made = formats.tex(text)
    assert "\n" not in made
    assert "\r" not in made
    ours = r"\\(textbackslash|textasciitilde|textasciicircum|textless|textgreater|textbar)\{\}"
    rest = re.sub(rf"{ours}|\\[&%$#_{{}}]|\$(\^\{{\\d?dagger\}}|-|\^2|_m|\\\||\\[a-z]+)\$", "", made)
    assert not re.search(r"[\\{}$&#_%^~<>|]", rest)


@examples
@example("__0__")
@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_markdown_keeps_a_text_in_its_cell_and_makes_nothing_of_it(text: str) -> None:
    """In GitHub's tables as on our page: two columns, no tag but those of the table, and the text as it was."""
    page = to_html(f"| a | b |\n| --- | --- |\n| {formats.md(text)} | x |\n")
    assert page.count("<td") + page.count('<th scope="row"') == 2, page
    allowed = "div|table|thead|tbody|tr|th|td"
    assert not re.findall(rf"<(?!/?(?:{allowed})[ >])", page)
    listed = to_html(f"- {formats.block(text)}\n")
    assert re.sub(r"</?(ul|li)>", "", listed).count("<") == 0, listed
    assert listed.count("<li>") == 1


@pytest.mark.parametrize("text", NASTY[::5])
def test_a_whole_table_and_a_line_of_the_scoreboard_keep_their_columns(text: str) -> None:
    """As a label, a note, a caption, an entry."""
    table = whole("fedagrac", "table1")
    body = {place: {**entry, OURS: Text(text), PAPER: Text(f"({text})")} for place, entry in table.body.items()}
    rows = tuple((text, *labels[1:]) for labels in table.rows)
    odd = replace(table, body=body, rows=rows, notes=(text, *table.notes), caption=(text, *table.caption[1:]), signs=())
    lines = formats.markdown(odd).split("\n")
    widths = {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in lines if line.startswith("|")}
    assert widths == {6}
    assert len(lines) == len(formats.markdown(replace(table, signs=())).split("\n")) + 1
    made = formats.latex(odd)
    assert made.count(r"\begin{") == formats.latex(table).count(r"\begin{")
    assert not re.search(r"^[^%\n]*\\input", made, re.M), "but in comments"
    board = markdown(("a", "b"), [(formats.md(text), "x")], ":-").splitlines()
    assert [len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in board] == [3, 3, 3]


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("text", NASTY[::5])
def test_what_stands_above_a_picture_is_text(text: str) -> None:
    """A dollar sign of a reason is no formula: matplotlib ends at half of one."""
    fig, _ = figures.sheet()
    clean = text.encode("utf-8", "replace").decode()
    captions.absent(fig, [(f"panel {clean}", f"its results are not used ('${clean}{{')")])
    captions.say(fig, entries.scale_line("reduced", [f"local steps in ${clean}"]))
    fig.draw_without_rendering()


@pytest.mark.parametrize(("paper", "name"), LAYOUTS)
def test_latex_is_a_float_over_one_column_or_two_in_parts(paper: str, name: str) -> None:
    text = formats.latex(whole(paper, name))
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
    text = formats.latex(whole("fedagrac", "table1"))
    lines = text.split(r"\midrule")[1].splitlines()[1:7]
    assert [line.startswith(formats.BETWEEN) for line in lines] == [False, False, False, True, False, False]
    rows = [line.removeprefix(formats.BETWEEN).split(" & ")[:4] for line in lines]
    assert [row[:3] for row in rows] == [
        ["no", "no", "ours"], ["", "", "paper"], ["", "", "ours $-$ paper"],
        ["", "yes", "ours"], ["", "", "paper"], ["", "", "ours $-$ paper"],
    ]  # fmt: skip
    parts = formats.latex(whole("dynamic_init", "table3")).split(r"\midrule")[1:]
    assert len(parts) > 1
    assert all(re.match(r"(MNIST|Fashion-MNIST|SVHN) & 0\.\d & 0\.\d & \w+ & ours & ", part.strip()) for part in parts)
    assert sum(part.count(" & ours & ") for part in parts) == 48, (
        "data sets times overlaps times alphas times algorithms"
    )


def test_the_best_is_bold_and_notes_are_comments() -> None:
    table = whole("fedacs", "table1")
    place = next(iter(table.body))
    best = {**table.body[place], OURS: Text("1.5", bold=True)}
    text = formats.latex(replace(table, body=table.body | {place: best}, notes=("50 %\nof all",)))
    assert r"\textbf{1.5}" in text
    assert text.endswith("\n% 50 % of all\n")


@pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="needs pdflatex: apt-get install texlive-latex-recommended"
)
@pytest.mark.parametrize("columns", ["", "twocolumn,"])
def test_latex_compiles_and_fits_the_page(tmp_path: Path, columns: str) -> None:
    """Every printed table of all papers with numbers of three seeds; no letter is shrunk below 6 pt."""
    fit = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}"
    made = [formats.latex(whole(*at)) for at in LAYOUTS]
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
