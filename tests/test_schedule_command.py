"""`python -m reproduce schedule`: its numbers against the objects of the simulation, its pictures, its errors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from reproduce.__main__ import main
from reproduce.commands import schedule
from reproduce.report import schedule_numbers
from reproduce.report.schedule_numbers import summarise
from reproduce.report.schedule_picture import beginning, draw, working
from reproduce.systems.policies_arrivals import AsySGPolicy, DeFedAvgIIDPolicy, FedBuffPolicy
from reproduce.systems.policies_drawn import DeFedAvgNIIDPolicy, FavanoPolicy, FedAvgPolicy
from reproduce.systems.schedule import Policy, Schedule
from reproduce.systems.speeds import FASHION_MNIST
from tests import event_loop

POLICIES: list[Policy] = [
    FedAvgPolicy(5), DeFedAvgNIIDPolicy(5), DeFedAvgNIIDPolicy(5, variant="hold"), DeFedAvgIIDPolicy(5),
    FedBuffPolicy(5), AsySGPolicy(5), FavanoPolicy(5),
]  # fmt: skip


def timed(policy: Policy) -> Schedule:
    return Schedule(policy, 40, 1 if isinstance(policy, AsySGPolicy) else 50, FASHION_MNIST)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("compiled", [True, False])
def test_the_numbers_are_those_of_the_schedule(policy: Policy, compiled: bool) -> None:
    numbers = summarise(timed(policy), 0, 3000, compiled=compiled)
    line = timed(policy).timeline(0, 3000)
    stale = [s for a in line.aggregations for s in a.staleness]
    assert numbers.aggregations == 3000
    assert numbers.seconds == line.aggregations[-1].time
    assert numbers.updates == len(stale)
    assert numbers.staleness.tolist() == np.bincount(stale).tolist()
    assert numbers.record()["staleness_mean"] == pytest.approx(np.mean(stale))
    assert (numbers.rates * numbers.window).sum() == pytest.approx(3000)
    assert 64 <= len(numbers.rates) <= 256

    heard = {u.client for a in line.aggregations for u in a.updates}
    assert numbers.silent == 40 - len(heard)


@pytest.mark.parametrize("aggregations", [1, 4, 60])
@pytest.mark.parametrize("policy", POLICIES)
def test_clients_at_work_are_those_of_the_whole_time(policy: Policy, aggregations: int) -> None:
    """Also of the clients that were not heard, and of jobs that nobody has asked for yet."""
    numbers = summarise(timed(policy), 0, aggregations)
    expected = event_loop.idle(timed(policy), 0, aggregations)
    assert numbers.idle.tolist() == pytest.approx(expected, abs=1e-9)
    assert numbers.concurrency == pytest.approx(40 - sum(expected))
    assert numbers.watched == numbers.seconds


def test_of_a_long_schedule_the_beginning_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = summarise(timed(FedBuffPolicy(5)), 0, 3000)
    monkeypatch.setattr(schedule_numbers, "JOBS", 2000)
    part = summarise(timed(FedBuffPolicy(5)), 0, 3000)
    assert part.watched < whole.watched == whole.seconds == part.seconds
    assert part.concurrency == pytest.approx(whole.concurrency, rel=0.01)


def test_clients_at_work() -> None:
    begin = beginning(timed(FedBuffPolicy(5)), 0, 3.0)
    moments = (np.arange(400) + 0.5) / 400 * begin.horizon
    expected = [sum(j.start <= t < j.end for j in begin.jobs) for t in moments]
    assert working(begin).tolist() == expected


def test_of_an_artifact(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Runs of the same schedule are one: speeds and draws do not depend on the data."""
    picture = tmp_path / "new" / "all.png"
    assert main(["schedule", "defedavg/fig2", "--scale", "smoke", "--json", "-o", str(picture)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found) == 4 + 3
    assert {f["clients"] for f in found} == {10}
    assert all(f["seconds"] <= 10 for f in found)
    assert sorted(f.name for f in picture.parent.iterdir()) == [f"all-{k}.png" for k in range(1, 8)]
    assert main(["schedule", "defedavg/fig2", "--scale", "smoke"]) == 0
    assert capsys.readouterr().out.count("\n") == 1 + 4 + 3 + 1


def test_of_a_system_of_ones_own(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    own = ["defedavg_niid", "--clients", "40", "--n", "5", "--option", "variant=hold", "--aggregations", "300"]
    assert main(["schedule", *own, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found.pop("schedule") == "defedavg_niid, n = 5 of 40, K = 50, variant=hold"
    assert found == summarise(timed(DeFedAvgNIIDPolicy(5, variant="hold")), 0, 300).record()
    file = tmp_path / "one.pdf"
    assert main(["schedule", "favano", "--option", "wait=1", "--horizon", "20", "-o", str(file)]) == 0
    assert file.read_bytes().startswith(b"%PDF")
    assert "favano, n = 10 of 100, K = 50, wait=1" in capsys.readouterr().out


def test_the_title_is_clear_of_the_legend() -> None:
    picture = draw(
        timed(FedAvgPolicy(5)),
        0,
        summarise(timed(FedAvgPolicy(5)), 0, 20),
        "a title, n = 10 of 100, K = 50, variant=hold",
    )
    FigureCanvasAgg(picture).draw()
    top = picture.axes[0]
    legend, title = (
        top.get_legend(),
        next(c for c in top.get_children() if isinstance(c, Text) and c.get_text().startswith("a title")),
    )
    assert legend is not None
    assert not legend.get_window_extent().overlaps(title.get_window_extent())


def test_options_that_the_help_names_are_there() -> None:
    for policy, options in (part.split(": ") for part in schedule.KNOWN.split("; ")):
        words = [word for option in options.split(", ") for word in ("--option", option)]
        assert main(["schedule", policy, *words, "--aggregations", "5"]) == 0


def test_the_help_and_the_table_explain_the_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit):
        main(["schedule", "-h"])
    told = capsys.readouterr().out
    assert all(title in told for title, _ in schedule.COLUMNS.values())
    monkeypatch.setattr(schedule_numbers, "JOBS", 10)
    assert main(["schedule", "fedavg", "--aggregations", "100"]) == 0
    *_, meaning, part = capsys.readouterr().out.splitlines()
    assert "IDLE: not training, transfers included" in meaning
    three_cycles = 3 * schedule_numbers.cycle(Schedule(FedAvgPolicy(10), 100, 50, FASHION_MNIST), 0)
    assert part == f"IDLE and AT WORK: of the first {three_cycles:.3g} s"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["fedprox"], "unknown policy 'fedprox'"),
        (["defedavg_iid", "--n", "101"], "deadlock: the server would wait forever for 101 updates"),
        (["favano", "--n", "101"], "cannot draw 101 of 100 clients"),
        (["fedavg", "--n", "0"], "at least 1 client"),
        (["fedavg", "--step", "-1"], "not negative"),
        (["fedavg", "--upload", "nan"], "not negative"),
        (["fedavg", "--step", "0", "--upload", "0", "--download", "0"], "not all zero"),
        (["fedavg", "--slowdown", "0", "5"], "0 < low <= high"),
        (["fedavg", "--horizon", "inf"], "--horizon inf: use a positive number of seconds"),
        (["fedavg", "--horizon", "-5"], "--horizon -5: use a positive number of seconds"),
        (["fedavg", "--aggregations", "0"], "--aggregations 0: use a number from 1 to 100,000,000"),
        (["fedbuff", "--option", "buffer=20"], "--option buffer=20: fedbuff has no options"),
        (["favano", "--option", "buffer=20"], "favano has no option 'buffer'; favano knows contact, wait"),
        (["defedavg_niid", "--option", "variant=wait"], "unknown variant 'wait'"),
        (["defedavg_iid", "--option", "block_uplink=no"], "true or false"),
        (["favano", "--option", "wait=long"], "a number is needed"),
        (["asysg", "--steps", "5"], "one gradient per job"),
        (["fedavg", "-o", "x.svg"], ".png or .pdf"),
        (["fedavg", "--horizon", "0.01", "-o", "x.png"], "the first aggregation comes after the horizon"),
        (["defedavg/fig1"], "none of its runs at scale paper has a schedule"),
        (["defedavg/fig99"], "unknown artifact"),
        (["defedavg/fig2", "--scale", "big"], "unknown scale 'big'"),
        (["defedavg/fig2", "--clients", "10"], "--clients is for a policy; defedavg/fig2 declares its own system"),
        (["defedavg/fig2", "--option", "wait=1"], "--option is for a policy"),
        (["defedavg/fig2", "--slowdown", "1", "5"], "--slowdown is for a policy"),
        (["fedavg", "--scale", "paper"], "--scale is for an artifact; fedavg is a policy"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["schedule", *arguments]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())
