"""`python -m reproduce partition`: what it says and draws."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from test_partition_file import digits, problem_of

from reproduce.__main__ import main
from reproduce.engine.task import Tasks
from reproduce.partitions.named import IID, BalancedDirichlet
from reproduce.partitions.split import split
from reproduce.report import partition_picture
from reproduce.report.partition_numbers import counts, holdings, ranked
from reproduce.settings import settings

# --- the command ------------------------------------------------------------------------------------------------------


def test_the_table_against_a_plain_count(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["partition", "fedagrac-steps", "--scale", "smoke"]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["CLIENT", "SAMPLES", "CLASSES", "LARGEST", "SHARE", "ENTROPY", "TEST"]
    task = Tasks(settings()).get(problem_of("fedagrac-steps"), 0)
    for client, (part, line) in enumerate(zip(task.indices, lines, strict=False)):
        series = pd.Series(task.arena.labels[part]).value_counts(normalize=True)
        entropy = -(series * np.log2(series)).sum()
        assert line.split() == [
            str(client), f"{len(part):,}", str(len(series)), str(series.idxmax()), f"{series.max():.1%}",
            f"{abs(entropy):.2f}", "-",
        ]  # fmt: skip
    sizes = sorted(map(len, task.indices))
    said = next(line for line in lines if line.startswith("samples per client"))
    found = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+) \(client", said)]
    assert found == [sizes[0], sizes[(len(sizes) - 1) // 2], sizes[-1]]


def test_holdings_of_clients_with_one_class_or_none() -> None:
    found = split(digits(IID(), 2), 0, settings())
    ones = np.flatnonzero(found.labels[0] == 1)
    one, none = holdings(replace(found, parts=([ones, ones[:0]],)))
    assert (one.samples, one.classes, one.largest, one.share, one.entropy) == (len(ones), 1, 1, 1.0, 0.0)
    assert (none.samples, none.classes, none.largest, none.share, none.entropy) == (0, 0, None, 0.0, 0.0)
    assert [h.client for h in ranked([one, none]).values()] == [1, 1, 0]


def test_of_many_clients_the_first_are_in_the_table_and_all_in_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from reproduce.cli import partition

    monkeypatch.setattr(partition, "ROWS", 3)
    assert main(["partition", "sessions", "--scale", "smoke"]) == 0
    told = capsys.readouterr().out
    assert "... and 5 more clients (`--json` has all)" in told
    assert main(["partition", "sessions", "--scale", "smoke", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [h["client"] for h in found["holdings"]] == list(range(8))
    assert sum(h["samples"] for h in found["holdings"]) == found["samples"]["train"]["used"]


def test_it_says_whether_the_seed_of_the_run_enters(capsys: pytest.CaptureFixture[str]) -> None:
    for panel, words in (("virtual-time", "TwoClasses() among 10 clients; seed 4\n"), ("capacities", "for all seeds")):
        assert main(["partition", panel, "--scale", "smoke", "--seed", "4"]) == 0
        told = capsys.readouterr().out
        assert words in told
        assert ("for all seeds" in told) is (panel == "capacities")


@pytest.mark.parametrize("ending", [".png", ".pdf"])
def test_it_is_drawn(ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, other = tmp_path / "new" / f"who{ending}", tmp_path / "who.parquet"
    assert main(["partition", "virtual-time", "--scale", "smoke", "-o", str(file), "-o", str(other)]) == 0
    assert file.read_bytes()[:4] == {".png": b"\x89PNG", ".pdf": b"%PDF"}[ending]
    assert capsys.readouterr().out.endswith(f"written: {file}\nwritten: {other}\n")


def test_neither_the_help_nor_the_command_imports_torch() -> None:
    code = (
        "import sys; from reproduce.__main__ import main\ntry: main(sys.argv[1:])\n"
        "finally: print(*{'torch', 'transformers', 'datasets'} & set(sys.modules), file=sys.stderr)"
    )
    for words in (["--help"], ["sessions", "--scale", "smoke"]):
        line = [sys.executable, "-c", code, "partition", *words]
        assert subprocess.run(line, capture_output=True, text=True, check=True).stderr == "\n"


# --- the picture ------------------------------------------------------------------------------------------------------


def _table(clients: int, classes: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 400, (clients, classes)) * (np.arange(clients) % 3 > 0)[:, None]


@pytest.mark.parametrize(("clients", "classes"), [(1, 1), (2, 2), (10, 10), (20, 2), (51, 10), (200, 20)])
def test_areas_of_bubbles_are_numbers_of_samples(clients: int, classes: int) -> None:
    table = _table(clients, classes) + (clients == 1)
    fig = partition_picture.draw(table, "a title")
    found: dict[tuple[int, int], float] = {}
    for ax in fig.axes[1::2]:
        bubbles = ax.collections[0]
        places = np.asarray(bubbles.get_offsets()).astype(int).tolist()
        found |= {(x, y): s for (x, y), s in zip(places, bubbles.get_sizes(), strict=True)}
    assert sorted(found) == [tuple(p) for p in np.argwhere(table).tolist()]
    area = found[tuple(np.unravel_index(table.argmax(), table.shape))] / table.max()
    assert all(size == pytest.approx(area * table[place]) for place, size in found.items())
    for text, handle in zip(*(fig.legends[0].get_texts(), fig.legends[0].legend_handles), strict=True):
        (size,) = handle.get_sizes()  # type: ignore[union-attr]
        assert size == pytest.approx(area * int(text.get_text().split()[0].replace(",", "")))
    heights = [bar.get_height() for ax in fig.axes[::2] for bar in ax.patches]
    assert heights == table.sum(axis=1).tolist()


def test_bubbles_do_not_overlap() -> None:
    for clients, classes in ((10, 10), (50, 10), (100, 20), (20, 2)):
        table = np.full((clients, classes), 7)
        fig = partition_picture.draw(table, "a title")
        FigureCanvasAgg(fig).draw()
        for ax in fig.axes[1::2]:
            (x0, y0), (x1, y1) = ax.transData.transform([(0, 0), (1, 1)])
            wide = np.sqrt(ax.collections[0].get_sizes().max()) * fig.dpi / 72
            assert wide <= min(abs(x1 - x0), abs(y1 - y0)), (clients, classes)


def test_of_many_clients_or_classes_there_is_a_heat_map() -> None:
    for clients, classes in ((10, 100), (300, 4), (700, 3)):
        table = _table(clients, classes)
        fig = partition_picture.draw(table, "a title")
        (image,) = fig.axes[1].images
        shown = np.ma.filled(image.get_array(), 0).T
        assert np.array_equal(shown, table[: partition_picture.MOST])
        first = "; the first 500 of 700 clients" if clients == 700 else ""
        assert fig.axes[0].get_title(loc="left") == f"a title{first}"


def test_all_texts_are_within_the_picture() -> None:
    for clients, classes in ((1, 1), (20, 2), (100, 10), (100, 100)):
        fig = partition_picture.draw(_table(clients, classes) + 1, "a title")
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
