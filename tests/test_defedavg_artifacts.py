"""DeFedAvg's declarations against what the paper prints, and its smoke runs from training to cells."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from reproduce.engine.cost import estimate
from reproduce.engine.train import train_job
from reproduce.experiment import PACKAGE, SCALES, Panel
from reproduce.papers.defedavg import cells, fig1, fig2, fig6, fig7, panels, rates, setup, table1, table2
from reproduce.report import figures
from reproduce.report.histories import Histories, load

REPORTED = PACKAGE / "papers" / "defedavg" / "reported"


def printed(name: str) -> list[dict[str, str]]:
    with (REPORTED / name).open() as file:
        return list(csv.DictReader(file))


def test_rates_are_those_of_table_2() -> None:
    expected: dict[tuple[str, str, str, int], list[float | None]] = {}
    for row in printed("table2.csv"):
        key = (row["dataset"], row["distribution"], row["algorithm"], int(row["n"]))
        pair = expected.setdefault(key, [None, None])
        if row["value"] != "NA":
            pair[row["metric"] == "local_lr"] = float(row["value"])
    assert {k: tuple(v) for k, v in expected.items() if v != [None, None]} == rates.PRINTED


def test_table_2_echoes_what_is_declared() -> None:
    ours = table2.ARTIFACT.cells(Histories(pd.DataFrame(), "paper"))
    theirs = [r for r in printed("table2.csv") if r["value"] != "NA"]
    assert len(ours) == len(theirs) == 112
    keys = ["distribution", "dataset", "n", "algorithm", "metric"]
    values = {tuple(str(row[k]) for k in keys): row["value"] for row in ours.to_dict("records")}
    assert values == {tuple(row[k] for k in keys): float(row["value"]) for row in theirs}


def test_table_1_is_declared_in_full() -> None:
    """All 64 cells with three seeds, targets of the paper, and six runs beside them."""
    found = [e for panel in table1.ARTIFACT.panels("paper") for e in panel.experiments]
    theirs = {
        (r["distribution"], r["dataset"], int(r["n"]), r["algorithm"]): float(r["target_accuracy_pct"])
        for r in printed("table1.csv")
    }
    labels = [e.labels for e in found]
    ours = {(x["distribution"], x["dataset"], x["n"], x["algorithm"]): x["target_accuracy_pct"] for x in labels}
    assert len(theirs) == 64
    assert theirs.items() <= ours.items()
    beside = Counter(a for *_, a in ours.keys() - theirs.keys())
    assert beside == {"fedavg_lr_n10": 3, "defedavg_iid_corrected": 2, "defedavg_niid_corrected": 1}
    assert all(panel.seeds == (0, 1, 2) for panel in table1.ARTIFACT.panels("paper"))
    assert {type(e.problem.partition).__name__ for e in found} == {"IID", "TwoClasses"}  # type: ignore[attr-defined]


def test_networks_and_clock_of_the_paper() -> None:
    numbers = setup.ARTIFACT.cells(Histories(pd.DataFrame(), "paper"))
    count = numbers[numbers["metric"] == "parameter_count"].set_index("dataset")["value"]
    assert count.to_dict() == {"fashion_mnist": 582_026, "cifar10": 878_538}
    macs = [s.problem.model.cost((c, d, d)).macs for s, c, d in zip(panels.PAPER, (1, 3), (28, 32), strict=True)]
    assert macs == [4_267_008, 7_825_920]
    seconds = numbers[numbers["metric"] != "parameter_count"]
    assert len(seconds) == 2 * 6 * 4 * 3
    chosen = seconds[(seconds["dataset"] == "cifar10") & (seconds["n"] == "40")].groupby("algorithm")["value"].mean()
    assert chosen[["fedavg", "defedavg_niid", "defedavg_iid"]].tolist() == pytest.approx(
        [0.9094, 0.4897, 0.1904], abs=5.1e-5
    )


def test_schedules_of_the_small_network_are_those_of_the_paper() -> None:
    """K = 10 steps of five times the length; AsySG keeps its step."""
    for name in ("fedavg", "favano", "asysg", "fedbuff", "defedavg_iid", "defedavg_niid"):
        small, large = (panels.schedule(s, name, 10).simulate(1, 40) for s in (panels.REDUCED, panels.PAPER[0]))
        for a, b in zip(small, large, strict=True):
            assert a.time == pytest.approx(b.time, abs=1e-9)
            assert [(u.client, u.job, u.start_version) for u in a.updates] == [
                (u.client, u.job, u.start_version) for u in b.updates
            ]


def test_figure_1_is_the_known_trace() -> None:
    numbers = fig1.ARTIFACT.cells(Histories(pd.DataFrame(), "smoke")).set_index(["algorithm", "metric"])["value"]
    idle = {a: numbers[a, "idle_fraction"] for a in fig1.POLICIES}
    assert list(idle.values()) == pytest.approx([0.488, 0.225, 0.28, 0.032], abs=5e-4)
    assert [numbers[a, "aggregations_in_horizon"] for a in fig1.POLICIES] == [4, 5, 5, 9]


@pytest.mark.parametrize("scale", SCALES)
def test_every_declaration_can_be_planned(scale: str) -> None:
    found: dict[str, Panel] = {}
    for artifact in (table1, fig2, fig6, fig7):
        for panel in artifact.ARTIFACT.panels(scale):
            assert found.setdefault(panel.name, panel) == panel
    for panel in found.values():
        digests = [e.digest for e in panel.experiments]
        assert len(set(digests)) == len(digests)
        assert all(estimate(e, panel.seeds).samples > 0 for e in panel.experiments)


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The results of all smoke panels."""
    folder = tmp_path_factory.mktemp("smoke")
    found = {}
    for artifact in (table1, fig7):
        for panel in artifact.ARTIFACT.panels("smoke"):
            found[panel.name] = folder / f"{panel.name}.parquet"
            train_job(panel, panel.experiments, "smoke", "defedavg", panel.name, "d", found[panel.name])
    return found


def histories(artifact: object, smoke: dict[str, Path]) -> Histories:
    wanted = artifact.ARTIFACT.panels("smoke")  # type: ignore[attr-defined]
    return load([(panel.name, smoke[panel.name], "") for panel in wanted], "smoke")


def test_smoke_runs_learn(smoke: dict[str, Path]) -> None:
    frame = histories(table1, smoke).frame
    rows = frame[frame["metric"] == "train_loss"].sort_values("round")
    loss = rows.groupby(["distribution", "algorithm", "seed"])["value"].agg(["first", "last"])
    assert len(loss) == 2 * (4 + 5)
    assert (loss["last"] < 0.7 * loss["first"]).all()


def test_cells_of_table_1(smoke: dict[str, Path]) -> None:
    """Against a walk through the histories."""
    all_of = histories(table1, smoke)
    numbers = table1.ARTIFACT.cells(all_of).set_index(["distribution", "algorithm", "seed", "metric"])
    for (distribution, algorithm, seed), run in all_of.frame.groupby(["distribution", "algorithm", "seed"]):
        accuracy = run[run["metric"] == "accuracy"].sort_values("time")
        target = 80 if distribution == "iid" else 70
        hit = accuracy[accuracy["value"] >= target].iloc[0]
        for metric, column in (("time_to_target_s", "time"), ("rounds_to_target", "round")):
            cell: Any = numbers.loc[(distribution, algorithm, seed, metric), :]  # type: ignore[index]
            assert cell["value"] == hit[column]
            assert not cell["censored"]


def test_cells_of_the_figures_over_time(smoke: dict[str, Path]) -> None:
    all_of = histories(fig2, smoke)
    numbers = fig2.ARTIFACT.cells(all_of)
    assert set(Counter(numbers["metric"]).values()) == {2 * (4 + 5)}
    ours = numbers[numbers["algorithm"] == numbers["distribution"].map(rates.PROPOSED)]
    at_target = ours[ours["metric"] == "test_accuracy_pct_at_target_time"]
    assert (at_target["value"] >= at_target["distribution"].map({"iid": 80, "noniid": 70})).all()
    times = pd.DataFrame({"distribution": ["iid"], "dataset": "gaussian", "n": 3, "seed": 1, "at": [0.95]})
    loss = cells.at_times(all_of.frame, "train_loss", times, "x").set_index("algorithm")["value"]
    frame = all_of.frame
    run = frame[(frame["distribution"] == "iid") & (frame["seed"] == 1) & (frame["metric"] == "train_loss")]
    early = run[run["time"] <= 0.95]
    assert loss.to_dict() == {a: rows.sort_values("time")["value"].iloc[-1] for a, rows in early.groupby("algorithm")}


def test_cells_of_the_figures_over_aggregations(smoke: dict[str, Path]) -> None:
    six, seven = histories(fig6, smoke), histories(fig7, smoke)
    numbers = fig6.ARTIFACT.cells(six)
    assert set(Counter(numbers["metric"]).values()) == {2 * 3 * 2}
    frame = six.frame
    chosen = (frame["distribution"] == "noniid") & (frame["n"] == 6) & (frame["seed"] == 0)
    curve = frame[chosen & (frame["metric"] == "accuracy") & (frame["round"] >= 20)].sort_values("round")["value"]
    cell = numbers[(numbers["distribution"] == "noniid") & (numbers["n"] == 6) & (numbers["seed"] == 0)]
    jumps = cell[cell["metric"] == "std_of_test_accuracy_differences"]["value"].item()
    assert jumps == pytest.approx(np.std(np.diff(curve), ddof=1))
    last = fig7.ARTIFACT.cells(seven)
    assert set(last["K"]) == {2, 5, 10}
    assert set(last["n"]) == {3}
    assert len(last) == 2 * 3 * 2 * 2


def test_figures_can_be_drawn(smoke: dict[str, Path]) -> None:
    for module in (fig1, fig2, fig6, fig7, setup):
        artifact = module.ARTIFACT
        all_of = histories(module, smoke) if module not in (fig1, setup) else Histories(pd.DataFrame(), "smoke")
        assert artifact.draw is not None
        with figures.style():
            fig = artifact.draw(all_of, artifact.cells(all_of))
        assert all(ax.has_data() for ax in fig.axes)
    text = table1.extra(histories(table1, smoke), table1.ARTIFACT.cells(histories(table1, smoke)))
    assert text.count("\n| ") == 2 + 4 + 5
