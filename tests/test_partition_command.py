"""`reproduce partition`: what it says and draws."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from test_partition_file import digits

from reproduce.__main__ import main
from reproduce.engine.client_split import ClientSplits
from reproduce.partitions.dirichlet import BalancedDirichlet
from reproduce.partitions.labels import IID
from reproduce.partitions.split import split
from reproduce.play.benchmarks import find
from reproduce.report import partition as report
from reproduce.report.partition import counts, holdings
from reproduce.settings import settings


def test_the_table_against_a_plain_count(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["partition", "fedagrac-steps", "--scale", "smoke"]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["CLIENT", "SAMPLES", "CLASSES", "LARGEST", "SHARE", "ENTROPY", "TEST"]
    task = ClientSplits(settings()).get(find("fedagrac-steps", "smoke").template.problem, 0)
    for client, (part, line) in enumerate(zip(task.indices, lines, strict=False)):
        series = pd.Series(task.device_data.labels[part]).value_counts(normalize=True)
        entropy = -(series * np.log2(series)).sum()
        assert line.split() == [
            str(client), f"{len(part):,}", str(len(series)), str(series.idxmax()), f"{series.max():.1%}",
            f"{abs(entropy):.2f}", "-",
        ]  # fmt: skip


def test_holdings_of_clients_with_one_class_or_none() -> None:
    found = split(digits(IID(), 2), 0, settings())
    ones = np.flatnonzero(found.labels[0] == 1)
    one, none = holdings(replace(found, parts=([ones, ones[:0]],))).drop(columns=["client", "test"]).to_numpy().tolist()
    assert one == [len(ones), 1, 1, 1.0, 0.0]
    assert none == [0, 0, None, 0.0, 0.0]


@pytest.mark.parametrize("ending", [".png", ".pdf"])
def test_it_is_drawn(ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "new" / f"who{ending}"
    assert main(["partition", "virtual-time", "--scale", "smoke", "-o", str(file)]) == 0
    assert file.read_bytes()[:4] == {".png": b"\x89PNG", ".pdf": b"%PDF"}[ending]
    assert capsys.readouterr().out.endswith(f"written: {file}\n")


def test_neither_the_help_nor_the_command_imports_torch() -> None:
    code = (
        "import sys; from reproduce.__main__ import main\ntry: main(sys.argv[1:])\n"
        "finally: print(*{'torch', 'transformers', 'datasets'} & set(sys.modules), file=sys.stderr)"
    )
    for words in (["--help"], ["sessions", "--scale", "smoke"]):
        line = [sys.executable, "-c", code, "partition", *words]
        assert subprocess.run(line, capture_output=True, text=True, check=True).stderr == "\n"


def _table(clients: int, classes: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 400, (clients, classes)) * (np.arange(clients) % 3 > 0)[:, None]


def test_a_heat_map_of_counts_below_their_sums() -> None:
    for clients, classes in ((1, 1), (10, 100), (300, 4), (700, 3)):
        table = _table(clients, classes) + (clients == 1)
        fig = report.draw(table, "a title")
        (image,) = fig.axes[1].images
        shown = np.ma.filled(image.get_array(), 0).T
        assert np.array_equal(shown, table[: report.MOST])
        heights = [bar.get_height() for bar in fig.axes[0].patches]
        assert heights == table[: report.MOST].sum(axis=1).tolist()
        first = "; the first 500 of 700 clients" if clients == 700 else ""
        assert fig.axes[0].get_title(loc="left") == f"a title{first}"


def test_all_texts_are_within_the_picture() -> None:
    for clients, classes in ((1, 1), (20, 2), (100, 10), (100, 100)):
        fig = report.draw(_table(clients, classes) + 1, "a title")
        FigureCanvasAgg(fig).draw()
        for ax in fig.axes[:2]:
            for text in (ax.xaxis.label, ax.yaxis.label, ax.title):
                box = text.get_window_extent()
                assert 0 <= box.x0 <= box.x1 <= fig.bbox.x1
                assert 0 <= box.y0 <= box.y1 <= fig.bbox.y1


def test_counts_are_those_of_the_parts() -> None:
    found = split(digits(BalancedDirichlet(0.3), test_partition=True), 0, settings())
    for which in (0, 1):
        table = counts(found, which)
        for row, part in zip(table, found.parts[which], strict=True):
            assert row.tolist() == [int((found.labels[which][part] == c).sum()) for c in range(10)]
