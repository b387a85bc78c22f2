"""Tables as Markdown and as CSV."""

from __future__ import annotations

import re

import pandas as pd
from table_cells import TABLE3, artifact, printed, said, table, whole

from reproduce.report import formats, tables
from reproduce.report.latex import latex


def test_ours_alone() -> None:
    cells = printed("dynamic_init", "table3", noise=0.5)
    cells = cells[cells["dataset"] == "fashion_mnist"]
    made = artifact(cells, "dynamic_init", "table3", **TABLE3)
    said_there = tables.reported("dynamic_init", "table3")
    full, ours = (table(made, cells, said_there, ours=only) for only in (False, True))
    assert (len(full.rows), len(ours.rows)) == (48, 16)
    assert full.rows[:16] == ours.rows, "ours first, rows of others' results after"
    assert [full.body[0, j]["ours"] for j in range(8)] == [ours.body[0, j]["ours"] for j in range(8)]
    assert {tuple(e) for e in ours.body.values()} == {("ours",)}
    assert "compared" not in " ".join(ours.notes)
    assert not any("not run" in text for text in (*ours.caption, *ours.notes))
    assert "no numbers" in latex(table(made, cells[:0], said_there, ours=True))


def test_the_papers_numbers_have_lines_everywhere_or_nowhere() -> None:
    paper = said("algorithm,metric,value,std\na,lr,0.1,\nb,lr,0.20,\nc,lr,NA,\n")
    cells = pd.DataFrame({"algorithm": ["a", "b", "c"], "metric": "lr", "seed": -1, "value": [0.1, 0.2, 0.3]})
    equal = formats.markdown(table(artifact(cells), cells, paper))
    assert "All that the paper prints here is equal to ours." in equal
    assert "| a | 0.1 |\n| b | 0.20 |\n| c | 0.30 |" in equal
    other = formats.markdown(table(artifact(cells), cells.assign(value=[0.1, 0.3, 0.3]), paper))
    assert "| a | ours = paper | 0.1 |" in other
    assert "| b | ours | 0.30 |\n|  | paper | 0.20 |\n|  | ours − paper | +0.10 |" in other
    assert "| c | ours | 0.30 |" in other
    assert "equal" not in other


def test_thousands() -> None:
    cells = pd.DataFrame(
        {"v": "10000", "algorithm": ["a", "a"], "metric": "t", "seed": [0, 1], "value": [11000.0, 12000.0]}
    )
    text = formats.markdown(
        table(artifact(cells, rows=("v",)), cells, said("v,algorithm,metric,value,std\n10000,a,t,-9876.5,\n"))
    )
    lines = (
        "| 10,000 | ours | 11,500.0 ± 707.1 |",
        "|  | paper | −9,876.5 |",
        "|  | ours − paper | +21,376.5<!--tint 2--> |",
    )
    assert "\n".join(lines) in text


def test_headings_of_two_levels() -> None:
    text = formats.markdown(whole("fedacs", "table1")).splitlines()
    head = next(i for i, line in enumerate(text) if line.startswith("| Algorithm"))
    assert re.findall(r"[\w-]+", text[head]) == ["Algorithm", "MNIST", "CIFAR-10", "CINIC-10"]
    assert text[head + 2].count("**Rounds**") == 3
    assert {line.count("|") for line in text[head : head + 9]} == {15}, "a column says whose number it is"


def test_markdown_escapes() -> None:
    cells = pd.DataFrame({"algorithm": ["a|b*c <d>"], "metric": "m", "seed": 0, "value": 1.5})
    text = formats.markdown(table(artifact(cells), cells))
    assert r"| a\|b\*c &lt;d> | 1.50 |" in text


def test_csv_has_a_row_per_cell_with_ten_digits() -> None:
    cells = pd.DataFrame({"algorithm": "a", "metric": "m", "seed": [0, 1, 2], "value": [0.1, 0.2, 0.4]})
    lines = formats.csv(table(artifact(cells), cells)).splitlines()
    head = "algorithm,metric,mean,std,seeds,paper,paper_std,difference,censored,status,paper_censored"
    assert lines[0] == head
    assert lines[1].split(",")[2] == "0.2333333333"
    assert len(lines) == 2
