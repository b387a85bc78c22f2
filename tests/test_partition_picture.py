"""The picture of a partition: areas, places, and texts within it."""

from __future__ import annotations

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg

from reproduce.partitions.dirichlet import BalancedDirichlet
from reproduce.partitions.split import split
from reproduce.report import partition as report
from reproduce.report.partition import counts
from reproduce.settings import settings
from tests.test_partition_command import digits


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
