"""`python -m reproduce schedule`: its numbers against the objects of the simulation, its pictures, its errors."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.text import Text

from reproduce.__main__ import main
from reproduce.cli import schedule
from reproduce.clocks import blocks
from reproduce.report import looks, schedule_numbers
from reproduce.report.names import pretty
from reproduce.report.schedule_numbers import summarise
from reproduce.report.schedule_picture import draw
from reproduce.runs import plan
from reproduce.systems.policies_arrivals import AsySGPolicy, DeFedAvgIIDPolicy, FedBuffPolicy
from reproduce.systems.policies_drawn import DeFedAvgNIIDPolicy, FavanoPolicy, FedAvgPolicy
from reproduce.systems.schedule import Policy, Schedule
from reproduce.systems.speeds import FASHION_MNIST, UniformSlowdown
from tests import event_loop

POLICIES: list[Policy] = [
    FedAvgPolicy(5), DeFedAvgNIIDPolicy(5), DeFedAvgNIIDPolicy(5, variant="hold"), DeFedAvgIIDPolicy(5),
    FedBuffPolicy(5), AsySGPolicy(5), FavanoPolicy(5),
]  # fmt: skip
OPTIONS: list[Policy] = [
    DeFedAvgNIIDPolicy(5, receive="keep"), DeFedAvgNIIDPolicy(5, variant="hold", receive="keep"),
    DeFedAvgNIIDPolicy(5, variant="hold", empty="skip"), DeFedAvgIIDPolicy(5, block_uplink=False),
    FedBuffPolicy(5, "n"), FavanoPolicy(5, "parallel", wait=1.5),
]  # fmt: skip


def timed(policy: Policy) -> Schedule:
    return Schedule(policy, 40, 1 if isinstance(policy, AsySGPolicy) else 50, FASHION_MNIST)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_numbers_are_those_of_the_schedule(policy: Policy) -> None:
    numbers = summarise(timed(policy), 0, 3000)
    line = timed(policy).timeline(0, 3000)
    stale = [s for a in line.aggregations for s in a.staleness]
    assert numbers.aggregations == 3000
    assert numbers.seconds == line.aggregations[-1].time
    assert numbers.scalars()["updates"] == len(stale)
    assert numbers.staleness.tolist() == np.bincount(stale).tolist()
    assert numbers.scalars()["staleness_mean"] == pytest.approx(np.mean(stale))

    assert numbers.idle.mean() == pytest.approx(line.idle)
    heard = {u.client for a in line.aggregations for u in a.updates}
    assert numbers.silent == 40 - len(heard)


@pytest.mark.parametrize("aggregations", [1, 4, 60, 700])
@pytest.mark.parametrize("policy", [*POLICIES, *OPTIONS])
def test_idle_is_of_the_whole_time(policy: Policy, aggregations: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of the clients that were not heard, and of jobs that nobody has asked for yet, nor soon afterwards."""
    monkeypatch.setattr(schedule_numbers, "blocks", partial(blocks.blocks, updates=10))
    numbers = summarise(timed(policy), 0, aggregations)
    expected = event_loop.idle(timed(policy), 0, aggregations)
    assert numbers.idle.tolist() == pytest.approx(expected, abs=1e-9)
    assert numbers.scalars()["concurrency_mean"] == pytest.approx(40 - sum(expected))


@pytest.mark.parametrize("policy", [*POLICIES, *OPTIONS])
def test_clients_at_work_are_those_of_the_whole_time(policy: Policy) -> None:
    line = timed(policy).timeline(0, 60)
    moments = (np.arange(schedule_numbers.MOMENTS) + 0.5) / schedule_numbers.MOMENTS * line.horizon
    expected = [sum(j.start <= t < j.end for j in line.jobs) for t in moments]
    assert summarise(timed(policy), 0, 60).working.tolist() == expected


def test_of_many_clients_some_of_all_speeds_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    large = Schedule(DeFedAvgNIIDPolicy(100), 1000, 50, FASHION_MNIST)
    whole = summarise(large, 0, 40)
    monkeypatch.setattr(schedule_numbers, "FOLLOWED", 50)
    some = summarise(large, 0, 40)
    followed = schedule_numbers.watched(large, 0)
    assert some.idle.tolist() == whole.idle[followed].tolist()
    assert len(followed) == 50
    assert some.idle.mean() == pytest.approx(whole.idle.mean(), abs=0.002)
    assert some.working.mean() == pytest.approx(whole.working.mean(), rel=0.005)


def test_jobs_do_not_grow_with_the_horizon() -> None:
    """A client's start-up is a part of the time, not what is seen of it; each block tells its jobs and forgets them."""
    long = list(schedule_numbers.jobs(timed(FedBuffPolicy(5)), 0, 2000.0))
    assert len(long) > 2
    assert max(len(part.client) for part in long) <= blocks.UPDATES + 2 * 40


def test_rates_are_of_windows_with_enough_aggregations() -> None:
    """A policy whose rounds are all of one length has one rate, and few aggregations have one window."""
    steady = summarise(timed(FavanoPolicy(5, "parallel")), 0, 3000)
    assert 60 <= len(steady.rates) <= 3000 / schedule_numbers.LEAST
    counts = steady.rates * steady.seconds / len(steady.rates)
    assert counts.sum() == pytest.approx(3000)
    assert counts.tolist() == pytest.approx(np.rint(counts).tolist())
    assert counts[1:].max() - counts[1:].min() <= 1 + 1e-6, "the first has the start-up"
    assert len(steady.histograms()["aggregations_per_second"].shares) <= 3
    few = summarise(timed(FavanoPolicy(5)), 0, 10)
    assert few.rates.tolist() == [pytest.approx(10 / few.seconds)]


@pytest.mark.parametrize("policy", POLICIES)
def test_histograms_have_all_of_it(policy: Policy) -> None:
    numbers = summarise(timed(policy), 0, 300)
    of = {"staleness": numbers.staleness.nonzero()[0], "clients_at_work": numbers.working, "idle": numbers.idle}
    for name, found in numbers.histograms().items():
        assert len(found.edges) == len(found.shares) + 1 <= schedule_numbers.BINS + 1
        assert found.shares.sum() == pytest.approx(1)
        values = of.get(name, numbers.rates)
        assert found.edges[0] <= values.min() <= values.max() <= found.edges[-1]
    at_work = numbers.histograms()["clients_at_work"]
    inside = (at_work.edges[0] < numbers.working) & (numbers.working < at_work.edges[1])
    assert at_work.shares[0] == pytest.approx(inside.mean())


def test_of_a_schedule_without_aggregations() -> None:
    numbers = summarise(timed(FedAvgPolicy(5)), 0, horizon=0.01)
    assert numbers.scalars()["idle_mean"] == 1
    assert not len(numbers.histograms()["aggregations_per_second"].shares)


def test_of_an_artifact(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    picture = tmp_path / "new" / "all.png"
    assert main(["schedule", "defedavg/fig2", "--scale", "smoke", "--json", "-o", str(picture)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {f["clients"] for f in found} == {10}
    assert all(f["seconds"] <= 10 for f in found)
    assert sorted(f.name for f in picture.parent.iterdir()) == [f"all-{k}.png" for k in range(1, len(found) + 1)]
    assert main(["schedule", "defedavg/fig2", "--scale", "smoke"]) == 0
    assert "\nnon-IID, Gaussian classes, n = 3, DeFedAvg-nIID, hold " in capsys.readouterr().out


def test_runs_of_the_same_schedule_are_simulated_once_and_all_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Speeds and draws do not depend on the data: the same for IID and non-IID, and for all rates."""
    (table,) = plan.select("defedavg/table1")
    runs = {
        f"{pretty(e.labels['distribution'])}, {pretty(e.labels['dataset'])}, n = {e.labels['n']}, "
        f"{pretty(e.labels['algorithm'], table.names)}"
        for panel in table.panels("paper")
        for e in panel.experiments
    }
    assert main(["schedule", "defedavg/table1", "--aggregations", "5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found) < len(runs)
    assert sorted(name for f in found for name in (f["schedule"], *f["same"])) == sorted(runs)
    assert main(["schedule", "defedavg/table1", "--aggregations", "5"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in runs)
    first = "IID, Fashion-MNIST, n = 20, FedAvg"
    assert f"The same schedule: {first} = {first} (rates of n = 10) = non-{first}\n" in told


def test_of_a_system_of_ones_own(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    own = ["defedavg_niid", "--clients", "40", "--n", "5", "--option", "variant=hold", "--aggregations", "300"]
    assert main(["schedule", *own, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    numbers = summarise(timed(DeFedAvgNIIDPolicy(5, variant="hold")), 0, 300)
    assert found.pop("schedule") == "DeFedAvg-nIID, n = 5 of 40, K = 50, variant=hold"
    assert found.pop("same") == []
    for name, shown in found.pop("histograms").items():
        assert shown["edges"] == numbers.histograms()[name].edges.tolist()
        assert shown["shares"] == numbers.histograms()[name].shares.tolist()
    assert found == numbers.scalars()
    file = tmp_path / "one.pdf"
    assert main(["schedule", "favano", "--option", "wait=1", "--horizon", "20", "-o", str(file)]) == 0
    assert file.read_bytes().startswith(b"%PDF")
    assert "FAVANO, n = 10 of 100, K = 50, wait=1" in capsys.readouterr().out


def test_what_is_uniform_can_be_the_rates(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", "fedbuff", "--speeds", "rate", "--aggregations", "300", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    rates = replace(FASHION_MNIST, speeds=UniformSlowdown(model="rate"))
    assert found["seconds"] == summarise(Schedule(FedBuffPolicy(10), 100, 50, rates), 0, 300).seconds


def test_uploads_lie_above_jobs_and_lanes_are_whole_numbers() -> None:
    small = Schedule(DeFedAvgNIIDPolicy(2), 3, 50, FASHION_MNIST)
    lanes = draw(small, 0, summarise(small, 0, 40), "a title").axes[0]
    uploads = [p for p in lanes.patches if p.get_facecolor() == to_rgba(looks.VERMILLION)]
    assert uploads
    assert min(p.get_zorder() for p in uploads) > max(p.get_zorder() for p in lanes.patches if p not in uploads)
    assert all(tick == int(tick) for tick in lanes.get_yticks())
    legend = lanes.get_legend()
    assert legend is not None
    assert "aggregation" in [text.get_text() for text in legend.get_texts()]


@pytest.mark.parametrize("policy", POLICIES)
def test_all_texts_are_within_the_picture(policy: Policy) -> None:
    picture = draw(timed(policy), 0, summarise(timed(policy), 0, 300), "a title")
    canvas = FigureCanvasAgg(picture)
    canvas.draw()
    texts = [t for ax in picture.axes for t in (ax.xaxis.label, ax.yaxis.label, ax.title)]
    for text in texts:
        box = text.get_window_extent()
        assert 0 <= box.x0 <= box.x1 <= picture.bbox.x1, text.get_text()


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
    monkeypatch.setattr(schedule_numbers, "FOLLOWED", 50)
    assert main(["schedule", "defedavg_niid", "--aggregations", "100"]) == 0
    lines = capsys.readouterr().out.split("\n\n")[1].splitlines()
    assert max(map(len, lines)) <= 80
    told = " ".join(lines)
    assert "IDLE: not training, transfers included" in told
    assert "from 0 to the last aggregation" in told
    assert told.endswith("IDLE and AT WORK: of 50 of the 100 clients, evenly chosen in the order of their speeds")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["fedprox"], "unknown policy 'fedprox'"),
        (["defedavg_iid", "--n", "101"], "deadlock: the server would wait forever for 101 updates"),
        (["favano", "--n", "101"], "cannot draw 101 of 100 clients"),
        (["fedavg", "--n", "0"], "1 to 1,000,000 clients are drawn or heard"),
        (["fedavg", "--step", "-1"], "not negative"),
        (["fedavg", "--upload", "nan"], "not negative"),
        (["fedavg", "--step", "0", "--upload", "0", "--download", "0"], "not all zero"),
        (["fedavg", "--slowdown", "0", "5"], "0 < low <= high"),
        (["fedavg", "--horizon", "inf"], "--horizon inf: use a positive number of seconds"),
        (["fedavg", "--horizon", "-5"], "--horizon -5: use a positive number of seconds"),
        (["fedavg", "--aggregations", "0"], "--aggregations 0: use a number from 1 to 100,000,000"),
        (["fedavg", "--option", "buffer=20"], "--option buffer=20: fedavg has no options"),
        (["fedavg", "--speeds", "fast"], "model is one of 'slowdown', 'rate', not 'fast'"),
        (["favano", "--option", "buffer=20"], "favano has no option 'buffer'; favano knows contact, wait"),
        (["defedavg_niid", "--option", "variant=wait"], "variant is one of 'continue', 'hold', not 'wait'"),
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
