"""The picture of a partition: areas, places, and texts within it."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from reproduce.partitions.dirichlet import BalancedDirichlet
from reproduce.partitions.split import split
from reproduce.report import partition as report
from reproduce.report.partition import counts
from reproduce.settings import settings
from tests.test_partition_command import digits


def _table(clients: int, classes: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 400, (clients, classes)) * (np.arange(clients) % 3 > 0)[:, None]


@pytest.mark.parametrize(("clients", "classes"), [(1, 1), (2, 2), (10, 10), (20, 2), (51, 10), (200, 20)])
def test_areas_of_bubbles_are_numbers_of_samples(clients: int, classes: int) -> None:
    table = _table(clients, classes) + (clients == 1)
    fig = report.draw(table, "a title")
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
        fig = report.draw(table, "a title")
        FigureCanvasAgg(fig).draw()
        for ax in fig.axes[1::2]:
            (x0, y0), (x1, y1) = ax.transData.transform([(0, 0), (1, 1)])
            wide = np.sqrt(ax.collections[0].get_sizes().max()) * fig.dpi / 72
            assert wide <= min(abs(x1 - x0), abs(y1 - y0)), (clients, classes)


def test_of_many_clients_or_classes_there_is_a_heat_map() -> None:
    for clients, classes in ((10, 100), (300, 4), (700, 3)):
        table = _table(clients, classes)
        fig = report.draw(table, "a title")
        (image,) = fig.axes[1].images
        shown = np.ma.filled(image.get_array(), 0).T
        assert np.array_equal(shown, table[: report.MOST])
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
