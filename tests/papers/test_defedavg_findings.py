"""What DeFedAvg's printed tables give away: from the reported files, and lost when these are changed."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from reproduce.declare.experiment import changed
from reproduce.papers.defedavg import findings, measures, runs, settings
from reproduce.report.histories import Histories
from reproduce.report.tables import reported


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> Iterator[pd.DataFrame]:
    """Table I, to be changed."""
    table = reported("defedavg", "table1")
    assert table is not None
    monkeypatch.setattr(findings, "reported", lambda *_: table)
    return table


def test_favano_is_timed_in_whole_contacts(printed: pd.DataFrame) -> None:
    """424.25 s are 4,821 contacts of 0.088 s, and 4,820 are 482 rounds of ten."""
    unit = findings.CONTACT["fashion_mnist"]
    assert unit == pytest.approx(2 * 2.2e6 * 8 / 400e6)
    mine = findings.times("fashion_mnist", "favano")["paper"]
    assert [round(t / unit) - 1 for t in mine] == [4820, 5100, 6320, 4740, 4340, 5020]
    assert findings.on_grid("fashion_mnist", "favano") == (6, 6), "two are bounds"
    assert findings.on_grid("fashion_mnist", *set(runs.POLICIES) - {"favano"}) == (0, 22)
    assert "Of FAVANO's 6 times on Fashion-MNIST 6 are" in findings.serial_contacts()
    printed["paper_text"] = printed["paper_text"].replace({"424.25": "424.26", "448.89": "448.88", "556.25": "556.2"})
    assert findings.on_grid("fashion_mnist", "favano") == (3, 5)


def test_aggregations_to_the_target_do_not_fall_with_participants(printed: pd.DataFrame) -> None:
    """At one pair of rates."""
    assert {runs.table2()["fashion_mnist", "noniid", "defedavg_niid", n] for n in findings.N} == {(0.1, 0.05)}
    counts = findings.aggregations("defedavg_niid")
    assert list(counts) == [10, 20, 40, 80]
    assert max(counts.values()) / min(counts.values()) < 1.05
    assert "1.40, 1.91, 2.29 times" in findings.no_speed_up()
    # 100 clients that never wait for others: a job is 50 steps of 1.7 ms s, s from 1 to 5, and an upload of 44 ms.
    each = np.log((0.044 + 5 * 0.085) / (0.044 + 0.085)) / (4 * 0.085)
    assert findings.seconds("defedavg_iid", 40) == pytest.approx(40 / (100 * each), rel=0.02)
    printed.loc[(printed["algorithm"] == "defedavg_niid") & (printed["n"] == "40"), "paper"] /= 4
    assert findings.aggregations("defedavg_niid")[40] == pytest.approx(counts[40] / 4)


def test_a_tenth_of_the_rate_at_80_makes_as_much_progress_as_elsewhere(printed: pd.DataFrame) -> None:
    """Seconds over those of an aggregation, times 0.005 or 0.1."""
    ours = [0.005 * findings.aggregations("defedavg_iid")[n] for n in (10, 20, 40)]
    last = 0.1 * findings.aggregations("defedavg_iid")[80]
    assert 8 * max(ours) < last < 10 * max(ours)
    said = findings.rates_at_80()
    assert f"{ours[0]:.1f}, {ours[1]:.1f}, {ours[2]:.1f} for n = 10, 20, 40. For n = 80 it is {last:.0f} with" in said
    assert f"{last / 10:.1f} with (1.0, 0.01)" in said


def test_a_reading_differs_from_table_1_in_its_rate_alone() -> None:
    """Each run ends at its target; at other scales than the paper's there is none, and no cells."""
    (panel,) = runs.readings_panels("paper")
    declared = {e.labels["algorithm"]: e for e in runs.times_panel(settings.PAPER[0], "noniid", 10).experiments}
    assert [e.labels["algorithm"] for e in panel.experiments] == ["fedavg", "defedavg_niid"]
    for e in panel.experiments:
        whole = declared[e.labels["algorithm"]]
        lower = changed(whole.to_target, {"algorithm.lr": 0.01, "clock.train_view": "", "clock.train_every": 1})
        assert whole.algorithm.lr == 0.05
        assert (e.parts, e.labels["table"], panel.seeds) == (lower.parts, "table1", (0, 1, 2))
    assert runs.readings_panels("reduced") == ()
    assert measures.of_readings(Histories(pd.DataFrame(), "reduced")).empty
