"""dynamic_init, Figure 1: the numbers beside the drawing."""

from __future__ import annotations

import pandas as pd
import pytest

from reproduce.papers.dynamic_init import fig1
from reproduce.report.histories import COLUMNS, Histories

ALPHA = {"2:1": 1.0, "3:1": 0.75, "3:2": 0.25, "4:1": 0.1, "4:2": 0.6, "4:3": 0.3}


def histories() -> Histories:
    labels = {"dataset": "gaussian", "init_scheme": "proposed", "algorithm": "fedavg"}
    row = {"seed": 0, "time": float("nan"), "status": "ok", **labels}
    rows = [{**row, "round": 8 * int(k[0]), "metric": "alpha", "key": k, "value": v} for k, v in ALPHA.items()]
    rows += [{**row, "round": r, "metric": "accuracy", "key": "", "value": 50.0 + r} for r in range(9, 49)]
    return Histories(pd.DataFrame(rows)[[*labels, *COLUMNS]], "smoke")


def test_cells_of_given_weights() -> None:
    """Sessions 1 and 3 belong to group B, 2 and 4 to A."""
    cells = fig1.cells(histories()).set_index(["session", "metric"])["value"].to_dict()
    assert cells[3, "matching_group_weight"] == pytest.approx(0.75)
    assert cells[4, "matching_group_weight"] == pytest.approx(0.6)
    assert cells[4, "alpha_weights_min"] == pytest.approx(0.1)
    assert cells[4, "alpha_weights_sum_error"] == pytest.approx(0, abs=1e-12)
    assert len(cells) == 6


def test_the_drawing_shows_the_weights() -> None:
    drawn = fig1.draw(histories(), fig1.cells(histories()))
    texts = [t.get_text() for t in drawn.axes[0].texts]
    assert [t for t in texts if t.startswith("0.")] == ["0.75", "0.10", "0.60"]  # the latest model's arrow is short
    assert sum(t.startswith("session") for t in texts) == 5
    assert "pilot" in texts
