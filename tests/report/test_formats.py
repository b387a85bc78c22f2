"""What is read back is text in all that is written of it: LaTeX, Markdown, HTML, pictures."""

import re
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from table_cells import whole

from reproduce.pages.html import to_html
from reproduce.report import captions, entries, figures, formats
from reproduce.report.entries import OURS, PAPER, Text
from reproduce.report.latex import latex, tex
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
    made = tex(text)
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
    made = latex(odd)
    assert made.count(r"\begin{") == latex(table).count(r"\begin{")
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
