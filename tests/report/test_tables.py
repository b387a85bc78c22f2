"""From cells to printed tables."""

import re
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from table_cells import TABLE3, artifact, panel, printed, said, table

from reproduce.pages.page import to_html
from reproduce.report import formats, names, tables


class TestCells:
    def test_values_meet_whatever_their_type(self) -> None:
        groups = [[0.3, "0.3", "0.30", np.float64(0.3)], [1, 1.0, "1", "1.0"], [True, "true"]]
        for group in groups:
            assert len({names.canonical(v) for v in group}) == 1
        assert names.canonical("none") == "none"
        assert names.canonical(np.nan) == tables.canonical(None) == tables.canonical("") == ""
        assert names.canonical("nan") == "nan"

    def test_mean_spread_and_difference(self) -> None:
        cells = pd.DataFrame({"algorithm": "a", "metric": "acc", "seed": [0, 1, 2], "value": [91.0, 92.0, 93.0]})
        made = artifact(cells, columns=("metric",))
        got = table(made, cells, said("algorithm,metric,value,std\na,acc,92.50,0.16\n"))
        row = got.frame.iloc[0]
        assert (row["mean"], row["std"], row["seeds"]) == (92, 1, 3)
        assert (row["paper"], row["paper_std"], row["status"]) == (92.5, 0.16, "run")
        assert row["difference"] == pytest.approx(-0.5)
        text = formats.markdown(got)
        lines = [
            "| a | ours | 92.00 ± 1.00 |",
            "|  | paper | 92.50 ± 0.16 |",
            "|  | ours\xa0−\xa0paper | −0.50 |",
        ]
        assert "\n".join(lines) in text

    def test_words_that_look_like_numbers_are_not_compared_as_numbers(self) -> None:
        cells = pd.DataFrame(
            {"algorithm": ["a", "b"], "metric": "refs", "seed": -1, "value": np.nan, "text": ["41", "3;5"]}
        )
        got = table(artifact(cells), cells, said("algorithm,metric,value,std\na,refs,41,\nb,refs,3;5,\n"))
        assert "| a | ours = paper | 41 |\n| b | ours = paper | 3;5 |" in formats.markdown(got)
        other = table(artifact(cells), cells, said("algorithm,metric,value,std\na,refs,41,\nb,refs,3;6,\n"))
        assert "| b | ours | 3;5 |\n|  | paper | 3;6 |" in formats.markdown(other)

    def test_whole_numbers_and_lower_bounds(self) -> None:
        cells = pd.DataFrame(
            {
                "algorithm": ["a", "a", "b", "b", "c"], "metric": "rounds_to_target", "seed": [0, 1, 0, 1, 0],
                "value": [112.0, 113.0, 200.0, 200.0, 7.0], "censored": [False, False, True, True, False],
            }
        )  # fmt: skip
        paper = said("algorithm,metric,value,std\na,rounds_to_target,110,\nb,rounds_to_target,150,\n")
        got = table(artifact(cells), cells, paper.assign(paper_censored=[False, True]))
        text = formats.markdown(got)
        lines = "| a | ours | 112 ± 1 |\n|  | paper | 110 |\n|  | ours\xa0−\xa0paper | +2 |\n"
        assert lines + "| b | ours | >200 |\n|  | paper | >150 |\n| c | ours | 7 |" in text, "one seed is not bold"
        assert not re.search(r"^- [->+] ", text, re.M)  # a note must not become a quotation or a list in a list
        row = got.frame.set_index("algorithm").loc["b"]
        assert row["censored"]
        assert np.isnan(row["difference"])

    def test_one_bound_among_the_seeds_makes_the_mean_a_bound(self) -> None:
        cells = pd.DataFrame(
            {"algorithm": "a", "metric": "t", "seed": [0, 1], "value": [100.0, 200.0], "censored": [False, True]}
        )
        assert ">150" in formats.markdown(table(artifact(cells), cells))

    def test_diverged_seeds(self) -> None:
        cells = pd.DataFrame(
            {"algorithm": ["a", "a", "b"], "metric": "acc", "seed": [0, 1, 0], "value": [50.5, np.nan, np.nan]}
        )
        text = formats.markdown(table(artifact(cells), cells))
        assert "| a | 50.50† |" in text
        assert "fewest left: 1 of 2" in text
        assert "| b | n/a |" in text

    def test_cells_in_words_and_points(self) -> None:
        cells = pd.DataFrame(
            {"algorithm": "all", "metric": ["loss", "optimizer", "lr", "size"], "seed": -1,
             "value": [np.nan, np.nan, 0.1, 3.0], "text": ["nll", "sgd", None, None]}
        )  # fmt: skip
        paper = said("algorithm,metric,value,std\nall,loss,nll,\nall,optimizer,adam,\nall,lr,0.1,\nall,size,NA,\n")
        got = table(artifact(cells, rows=("metric",), columns=("algorithm",)), cells, paper)
        text = formats.markdown(got)
        assert "| loss | ours = paper | NLL |" in text
        assert "| optimizer | ours | SGD |\n|  | paper | adam |" in text
        assert "| LR | ours = paper | 0.1 |" in text
        assert "| size | ours | 3 |" in text
        assert "deviation" not in text

    def test_labels_describe_and_do_not_separate(self) -> None:
        cells = pd.DataFrame(
            {"target": [61.5, 62.0], "algorithm": "a", "metric": "t", "seed": [0, 1], "value": [1.0, 3.0]}
        )
        paper = said("target,algorithm,metric,value,std\n70,a,t,2,\n")
        with pytest.raises(ValueError, match=r"fiarse/none: two cells in one place.*they differ in 'target'"):
            table(artifact(cells), cells, paper)
        got = table(artifact(cells, labels=("target",)), cells, paper)
        assert len(got.frame) == 1
        assert got.frame.iloc[0]["difference"] == 0
        assert "Target: 61.5 here, 70 in the paper." in got.notes

    def test_columns_that_do_not_fit(self) -> None:
        paper = said("dataset,algorithm,metric,value,std\nx,a,t,2,\ny,a,t,2,\n")
        cells = pd.DataFrame({"algorithm": ["a"], "metric": "t", "seed": 0, "value": 1.0})
        with pytest.raises(ValueError, match=r"fiarse/none: the cells lack the column 'dataset'"):
            table(artifact(cells), cells, paper)
        two = pd.concat([cells, cells.assign(metric="u")])
        with pytest.raises(ValueError, match="two cells in one place of the table; they differ in 'metric'"):
            table(artifact(two, columns=("algorithm",)), two)
        assert table(artifact(two, columns=("algorithm",), metrics=("u",)), two).columns == (("a",),)


class TestPaper:
    """Against the files of the papers."""

    def build(self, name: str, cells: pd.DataFrame, paper: str = "dynamic_init", **more: Any) -> tables.Table:
        layout: dict[str, Any] = {k: more.pop(k) for k in ("rows", "columns", "options") if k in more}
        return table(artifact(cells, paper, name, **(layout or TABLE3)), cells, tables.reported(paper, name), **more)

    def test_all_cells_of_a_table_appear(self) -> None:
        got = self.build("table3", printed("dynamic_init", "table3", noise=0.5))
        assert (len(got.rows), len(got.columns), len(got.body)) == (48, 8, 384)
        assert len(got.frame) == 384
        assert (got.frame["status"] == "run").all()
        assert got.frame["difference"].abs().max() < 1e-9
        assert np.allclose(got.frame["std"], 0.5)
        text = formats.markdown(got)
        assert len(re.findall(r'<td align="right">0\.00</td>', text)) == 384
        assert '<td>ours</td><td align="right"><b>90.97 ± 0.50</b></td>' in text
        assert '<td>paper</td><td align="right"><b>90.97 ± 0.16</b></td>' in text
        assert '<th></th><th colspan="4">First</th><th colspan="4">Second</th></tr>' in text
        assert to_html(text).count('scope="colgroup" colspan="4"') == 2

    def test_rows_and_columns_in_the_papers_order(self) -> None:
        shuffled = printed("dynamic_init", "table3").sample(frac=1, random_state=0)
        got = self.build("table3", shuffled.assign(label_overlap=shuffled["label_overlap"].astype(float)))
        assert got.rows[0] == ("mnist", "0.0", "0.3", "fedavg")
        assert got.rows[-1] == ("svhn", "0.2", "0.7", "fedacg")
        assert [c[1] for c in got.columns] == ["proposed", "continuous", "previous", "average"] * 2
        assert list(got.frame["dataset"].unique()) == ["mnist", "fashion_mnist", "svhn"]

    def test_gaps_have_the_reasons_of_what_is_missing(self) -> None:
        missing = (("a", "no results yet on SVHN"), ("b", "no results yet on Fashion-MNIST"))
        cells = printed("dynamic_init", "table3")
        got = self.build("table3", cells[cells["dataset"] == "mnist"], missing=missing)
        status = got.frame.set_index("dataset")["status"]
        assert (set(status["svhn"]), set(status["mnist"])) == ({"not run"}, {"run"})
        text = formats.markdown(got)
        gap = "not run: no results yet on SVHN; no results yet on Fashion-MNIST."
        assert f"| \N{EM DASH} | {gap} |" in text
        assert text.count("\N{EM DASH}<") == 256
        nothing = self.build("table3", cells[:0], scale="smoke")
        assert "not run: not part of the smoke scale." in formats.markdown(nothing)

    def test_metrics_as_columns(self) -> None:
        layout = {"rows": ("algorithm",), "columns": ("dataset", "metric")}
        cells = printed("fedacs", "table1")
        cells = cells[~cells["metric"].str.endswith("printed")]
        more = cells[cells["metric"] == "rounds_to_target"].assign(metric="ours_only")
        got = self.build("table1", pd.concat([cells, more]), "fedacs", **layout)
        assert [c[1] for c in got.columns] == ["rounds_to_target", "computation_time_to_target_s"] * 3
        text = formats.markdown(got)
        first = '<td align="right"><b>68 ± 0</b></td><td align="right"><b>3,548.6 ± 0.0</b></td>'
        assert f"<td>FedACS</td><td>ours</td>{first}" in text
        assert '<td>FedAU</td><td>ours</td><td align="right">n/a</td>' in text
        assert "Rounds to target ratio printed: in the paper, not measured here." in text
        assert "ours_only" in formats.csv(got)


def test_labels_stand_in_the_papers_order() -> None:
    """Numbers too, whichever were run and wherever they first appear; of outer names those with results come first."""
    rows = [("b", "120", 0), ("b", "140", 0), ("a", "110", 1), ("a", "130", 0), ("a", "150", 3)]
    shown = pd.DataFrame(rows, columns=["dataset", "R", "runs"])
    assert tables._labels(["R"], shown) == [("110",), ("120",), ("130",), ("140",), ("150",)]
    assert tables._labels(["dataset"], shown) == [("b",), ("a",)]
    assert tables._labels(["dataset", "R"], shown)[0] == ("a", "110")
    down = shown.assign(R=["150", "140", "130", "120", "110"])
    assert tables._labels(["R"], down) == [("150",), ("140",), ("130",), ("120",), ("110",)]


def test_printed_numbers_that_cannot_be_compared_are_said_to_be_of_another_scale() -> None:
    """Stand-in data: no difference, never equal; the table counts the paper's numbers without one of ours."""
    there = {scale: (panel("p", dataset="d"),) for scale in ("reduced", "paper")}
    cells = pd.DataFrame(
        {"dataset": "d", "algorithm": ["a", "b"], "metric": "accuracy", "seed": 0, "value": [1.5, 2.5]}
    )
    paper = said("dataset,algorithm,metric,value,std\nd,a,accuracy,5.25,\nfar,a,accuracy,6.25,\n")
    made = artifact(cells, rows=("dataset", "algorithm"), panels=there.__getitem__)
    got = table(made, cells, paper, scale="reduced")
    text = formats.markdown(got)
    lines = ["| d | a | ours | 1.50 |", "|  |  | paper, its scale | 5.25 |", "| d | b | ours | **2.50** |"]
    assert "\n".join(lines) in text
    assert got.frame["difference"].isna().all()
    assert "far" not in text
    assert "Of the paper's 2 numbers 1 have none of ours: not part of the reduced scale." in got.notes
    assert not [line for line in got.caption if "paper's each" in line]
    assert got.frame["paper"].dropna().tolist() == [5.25, 6.25]
    assert got.frame["difference"].isna().all()
    assert "| d | a | ours | 1.50 |\n|  |  | paper | 5.25 |" in formats.markdown(table(made, cells, paper))


class TestBest:
    NUMBERS: ClassVar[dict[str, Any]] = {"dataset": ["x", "x", "y", "y"], "algorithm": ["a", "b"] * 2, "seed": 0}

    def bold(self, metric: str, value: list[float], **fields: Any) -> list[str]:
        cells = pd.DataFrame({**self.NUMBERS, "metric": metric, "value": value, **fields})
        got = table(artifact(cells, columns=("dataset",), rows=("algorithm",)), cells)
        return [got.body[i, j]["ours"].text for j in range(2) for i in range(2) if got.body[i, j]["ours"].bold]

    def test_the_largest_or_the_smallest_of_each_column(self) -> None:
        assert self.bold("test_accuracy_percent", [1.0, 2.0, 4.0, 3.0]) == ["2", "4"]
        assert self.bold("rounds_to_target", [1.0, 2.0, 4.0, 3.0]) == ["1", "3"]
        assert self.bold("learning_rate", [1.0, 2.0, 4.0, 3.0]) == [], "a setting has no better side"
        assert self.bold("rounds_to_target_ratio_printed", [1.0, 2.0, 4.0, 3.0]) == []
        assert self.bold("test_accuracy_percent", [2.0, 2.0, 4.0, 3.0]) == ["2", "2", "4"], "ties are all best"

    def test_one_alone_and_bounds_are_not_best(self) -> None:
        assert self.bold("rounds_to_target", [9.0, 2.0, 4.0, 3.0], censored=[False, False, True, True]) == ["2"]
        assert self.bold("test_accuracy_percent", [np.nan, 2.0, 4.0, 3.0]) == ["4"]

    def test_the_series_that_an_artifact_declares_is_compared(self) -> None:
        cells = pd.DataFrame({**self.NUMBERS, "metric": "accuracy", "value": [1.0, 2.0, 4.0, 3.0]})
        made = artifact(cells, columns=("dataset",), rows=("algorithm",), series="dataset")
        assert [key for key, entry in table(made, cells).body.items() if entry["ours"].bold] == [(0, 1), (1, 1)]
        assert not any(
            e["ours"].bold
            for e in table(artifact(cells, rows=("algorithm",), columns=("dataset",), series="x"), cells).body.values()
        )


# --- Markdown and CSV -------------------------------------------------------------------------------------------------


def test_equal_numbers_are_printed_once() -> None:
    paper = said("algorithm,metric,value,std\na,lr,0.1,\nb,lr,0.20,\nc,lr,NA,\n")
    cells = pd.DataFrame({"algorithm": ["a", "b", "c"], "metric": "lr", "seed": -1, "value": [0.1, 0.2, 0.3]})
    other = formats.markdown(table(artifact(cells), cells.assign(value=[0.1, 0.3, 0.3]), paper))
    assert "| a | ours = paper | 0.1 |" in other
    assert "| b | ours | 0.30 |\n|  | paper | 0.20 |\n|  | ours\xa0−\xa0paper | +0.10 |" in other
    assert "| c | ours | 0.30 |" in other
    assert "| a | 0.1" in formats.markdown(table(artifact(cells), cells)), "nothing is published"


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
        "|  | ours\xa0−\xa0paper | +21,376.5 |",
    )
    assert "\n".join(lines) in text


def test_csv_has_a_row_per_cell_with_ten_digits() -> None:
    cells = pd.DataFrame({"algorithm": "a", "metric": "m", "seed": [0, 1, 2], "value": [0.1, 0.2, 0.4]})
    lines = formats.csv(table(artifact(cells), cells)).splitlines()
    head = "algorithm,metric,mean,std,seeds,paper,paper_std,difference,censored,status,paper_censored"
    assert lines[0] == head
    assert lines[1].split(",")[2] == "0.2333333333"
    assert len(lines) == 2
