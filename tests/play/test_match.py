"""Any algorithm on any benchmark: what fits, what is trained, what stands in the table, what is refused."""

import hashlib
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
from own_algorithms import OWN
from runs import run
from scipy import stats

from reproduce import store
from reproduce.__main__ import main
from reproduce.algorithms.asynchronous import Asynchronous
from reproduce.algorithms.base import FedAvg, WeightedDraws
from reproduce.algorithms.fedacs import Calibrated
from reproduce.algorithms.narrower import Narrower
from reproduce.algorithms.robust import Robust
from reproduce.algorithms.submodels import Submodels
from reproduce.declare import closure
from reproduce.declare.experiment import PARTS, code
from reproduce.errors import Stopped, UserError
from reproduce.papers.dynamic_init.variants import DistilledFedACG, DistilledFedProx, DistilledScaffold
from reproduce.papers.fedacs.variants import DrawnTwice, FedACSByLinks, FedACSDrawnTwice, FedAUByDraws
from reproduce.papers.fiarse.variants import FirstWindow, SteppedHeteroFL
from reproduce.play import curves, display, play, summary
from reproduce.play import match as matches
from reproduce.play.benchmarks import ALIASES, find
from reproduce.play.match import FACTORS, Match, joined
from reproduce.play.owndata import benchmarks
from reproduce.play.scores import BY_CLIENT, number
from reproduce.play.specs import NAMES, Spec, parse
from reproduce.runs import costs, plan, training

# --- names and benchmarks ---------------------------------------------------------------------------------------------


def test_every_class_that_is_an_algorithm_by_itself_has_a_name() -> None:
    found, stack = set(), [FedAvg]
    while stack:
        found.add(stack[-1])
        stack += stack.pop().__subclasses__()
    own = {c for c in found if c.__module__ in sys.modules and c.__module__.startswith("reproduce.")}
    choices = {DistilledFedProx, DistilledScaffold, DistilledFedACG, DrawnTwice, FedACSDrawnTwice}
    choices |= {SteppedHeteroFL, FirstWindow, FedACSByLinks, FedAUByDraws}
    assert own - {Calibrated, Submodels, Narrower, Robust, *choices} == {n.cls for n in NAMES.values()}


@pytest.mark.parametrize("scale", ["smoke", "reduced"])
@pytest.mark.parametrize("alias", ALIASES)
def test_the_reference_is_the_declared_one_but_for_an_end_at_a_target(alias: str, scale: str) -> None:
    benchmark = find(alias, scale)
    played, declared = benchmark.experiment(Spec(benchmark.reference)), benchmark.own[benchmark.reference]
    for part in PARTS[:3]:
        assert getattr(played, part) == getattr(declared, part)
    short, _, split = ALIASES[alias][scale].partition("@")[2].partition("/")
    if getattr(declared.clock, "until", None) is None:
        assert played.clock == (replace(declared.clock, rounds=int(short)) if short else declared.clock)
    else:
        assert played.clock == replace(declared.clock, until=None, least=0, train_view="", horizon=declared.clock.least)
    (panel,) = (j.panel for j in plan.jobs(scale) if f"{j.paper}/{j.panel.name}" == benchmark.panel)
    clocks = {e.clock for e in panel.experiments} if short else {declared.clock}
    if split:
        partition = panel.experiments[0].problem.partition
        declared = replace(declared, problem=replace(declared.problem, partition=partition))
    assert any(replace(declared, clock=clock) in panel.experiments for clock in clocks)


def test_what_an_algorithm_takes_over() -> None:
    static, sessions, steps = (find(a, "reduced") for a in ("fedacs-static", "sessions", "fedagrac-steps"))
    assert static.experiment(Spec("fedacs")).algorithm == static.own["fedacs"].algorithm, "as declared, calibrated"
    assert static.experiment(parse("fedacs(lr=1)")).algorithm == replace(static.own["fedacs"].algorithm, lr=1.0)
    prox = sessions.experiment(parse("fedprox(mu=0.5)")).algorithm
    assert (prox.mu, prox.momentum, prox.lr) == (0.5, 0.9, 0.0025)
    assert type(sessions.experiment(Spec("scaffold")).algorithm).__name__ == "Scaffold", "not what the panel calls so"
    assert steps.experiment(Spec("fedacs")).algorithm.participation == WeightedDraws(10)
    assert steps.experiment(parse("os(draws=3)")).algorithm.participation == WeightedDraws(3)
    assert steps.experiment(parse("fedagrac(lam=0.7)")).algorithm.calibration.value == 0.7
    timed = find("virtual-time", "reduced")
    assert type(timed.experiment(Spec("fedbuff")).clock.policy).__name__ == "FedBuffPolicy"
    assert timed.experiment(parse("defedavg_niid(variant='hold')")).clock.policy.variant == "hold"
    assert timed.experiment(Spec("defedavg_iid")).clock.policy.n == 10
    assert isinstance(timed.experiment(Spec("fedavg")).algorithm, Asynchronous)


def test_a_panel_with_several_settings_asks_for_one() -> None:
    with pytest.raises(UserError, match=r"several settings \(k_variance = 0 or 1 or 2; k_mode = "):
        find("fedagrac/table6", "smoke")
    assert find("fedagrac/table6:k_variance=2,k_mode=fixed", "smoke").template.labels["k_variance"] == 2


def test_pairs_that_cannot_work_say_why() -> None:
    def why(algorithm: str, alias: str) -> str:
        return Match([Spec(algorithm)], [find(alias, "smoke")], lenient=True).entries[-1].refused

    assert why("fedprox", "virtual-time") == "FedProx has rounds; the event clock needs an asynchronous rule"
    assert why("fedbuff", "sessions") == "Asynchronous is a rule of the event clock and has no rounds"
    assert why("scalefl", "fedacs-static") == "ScaleFL needs a network with exits, and a ConvNet has none"
    assert not any(why(name, "sessions") for name in ("fedacs", "scaffold", "fiarse"))
    assert why("scaffold", "capacities") == "Scaffold trains the whole model, but some clients hold only a part"
    assert not any(why(name, "capacities") for name in ("heterofl", "fiarse", "scalefl"))
    assert "has no network for `contrast`" in why("moon", "fedacs/fig7-static")


@pytest.mark.parametrize("alias", [*ALIASES, "fedacs/fig7-static", "fedagrac/fig1"])
def test_every_pair_that_is_not_refused_runs(alias: str) -> None:
    """What fits runs to its end; and every run has its score."""
    benchmark = find(alias, "smoke")
    entries = Match([*map(Spec, NAMES)], [benchmark], lenient=True).entries
    experiments = [e.experiment for e in entries if e.experiment]
    for played in run(experiments):
        assert played.state["status"] == "ok", played.experiment.labels
        assert any(metric == benchmark.metric[0] for _, _, metric, _, _ in played.state["history"])
    assert len(experiments) >= 5


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_scores_intervals_and_files_are_those_of_the_runs(folder: Path) -> None:
    """Against the histories of the same cohort, played without files, and scipy's intervals."""
    frame = play(["fednova", "fedprox(mu=2)"], on="fedagrac-steps", scale="smoke", seeds=(3, 1, 2))
    benchmark = find("fedagrac-steps", "smoke")
    specs = [Spec("fedavg"), Spec("fednova"), parse("fedprox(mu=2)")]
    runs = iter(run([benchmark.experiment(s) for s in specs], seeds=(3, 1, 2)))
    for spec in specs:
        for seed in (3, 1, 2):
            history = [v for _, _, metric, _, v in next(runs).state["history"] if metric == "accuracy"]
            mine = frame[(frame["algorithm"] == spec.text) & (frame["seed"] == seed)]
            assert mine["value"].item() == pytest.approx(history[-1], rel=1e-12), "six evaluations: the last"
    value = frame.set_index(["algorithm", "seed"])["value"].unstack()
    assert (frame["difference"] == frame["value"] - frame["seed"].map(value.loc["fedavg"])).all()
    table = summary(frame).set_index("algorithm")
    for name in ("fednova", "fedprox(mu=2)"):
        if np.ptp(value.loc[name] - value.loc["fedavg"]) > 1e-9:
            t = stats.ttest_rel(value.loc[name], value.loc["fedavg"]).confidence_interval(0.95)
            assert table.loc[name, ["difference_low", "difference_high"]].tolist() == pytest.approx([t.low, t.high])
    assert table.loc["fedprox(mu=2)", "difference_low"] < 0, "the test tests something"
    means = value.mean(axis=1)
    assert table["rank"].to_dict() == means.rank(ascending=False, method="min").to_dict()


def test_models_of_several_sizes_count_alike(folder: Path) -> None:
    frame = play("fiarse", on="capacities", scale="smoke", seeds=(0,))
    (played,) = run([find("capacities", "smoke").experiment(Spec("fiarse"))])
    last = max(r for r, *_ in played.state["history"])
    sizes = [v for r, _, metric, _, v in played.state["history"] if metric == "accuracy" and r == last]
    assert len(sizes) == 5
    assert frame["value"].iloc[-1] == pytest.approx(np.mean(sizes), rel=1e-5)


def test_clients_are_told_apart_where_it_is_asked_for(folder: Path) -> None:
    """The numbers of the last evaluations beside the mean, and nothing else changes."""
    asked = {"on": "fedagrac-steps", "scale": "smoke", "seeds": (0, 1)}
    frame, plain = play("fednova", **asked, by_client=True), play("fednova", **asked)
    assert frame["value"].tolist() == plain["value"].tolist()
    benchmark = benchmarks(["fedagrac-steps"], "smoke", by_client=True)[0]
    runs = run([benchmark.experiment(Spec(name)) for name in ("fedavg", "fednova")], seeds=(0, 1))
    for name in BY_CLIENT:
        last = [[v for _, _, metric, _, v in r.state["history"] if metric == name][-1] for r in runs]
        assert frame[name].tolist() == pytest.approx(last, rel=1e-12)
        assert summary(frame)[name].tolist() == pytest.approx([np.mean(last[:2]), np.mean(last[2:])])
    assert display.rows(summary(frame))[1][-4:-2] == [number(summary(frame)[name][1]) for name in BY_CLIENT]
    heads = [display.header(summary(f)) for f in (frame, plain)]
    assert len(heads[0]) == len(heads[1]) + 2 == len(display.rows(summary(frame))[0])


def test_scores_targets_bytes_and_models_where_they_are_asked_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first evaluation at the target, read from the history; a model that is gone is trained again."""
    asked: dict[str, Any] = {"on": "fedagrac-steps", "scale": "smoke", "seeds": (0, 1), "metric": "auc"}
    (benchmark,) = benchmarks(["fedagrac-steps"], "smoke", metric="auc", lr_decay="step", target=1.5)
    runs = run([benchmark.experiment(Spec("scaffold"))], seeds=(0, 1))
    curves_ = [[v for _, _, m, _, v in r.state["history"] if m == "auc"] for r in runs]
    target = (sorted(curves_[0])[1] + sorted(curves_[0])[2]) / 2
    frame = play("scaffold", **asked, lr_decay="step", target=target, save="models")
    mine = frame[frame["algorithm"] == "scaffold"]
    assert curves(mine)["value"].tolist() == pytest.approx([v for curve in curves_ for v in curve])
    for row, one in zip(mine.to_dict("records"), runs, strict=True):
        rows = one.state["history"]
        first = next(r for r, _, m, _, v in rows if m == "auc" and v >= target)
        assert 0 < first == row["to_target"]
        assert row["bytes_to_target"] == sum(v for r, _, m, _, v in rows if r == first and m.startswith("bytes"))
    assert display.rows(summary(frame))[1][-3] == number(summary(frame)["bytes_to_target"][1] / 1e6)
    missed = play("scaffold", **asked, lr_decay="step", target=100.0)
    assert "nothing to train" in capsys.readouterr().err
    assert missed["to_target"].isna().all()
    models = {file.name: file.read_bytes() for file in Path("models").iterdir()}
    assert len(models) == 4
    gone = Path("models") / min(models)
    gone.unlink()
    play("scaffold", **asked, lr_decay="step", target=100.0, save="models")
    assert "1 of 2 results to train" in capsys.readouterr().err
    tensors = safetensors.numpy.load(gone.read_bytes())
    assert all(np.array_equal(v, safetensors.numpy.load(models[gone.name])[k]) for k, v in tensors.items())


def test_every_client_is_a_row_of_the_curves(folder: Path) -> None:
    frame = play("fedavg", on="fedagrac-steps", scale="smoke", seeds=(0,), by_client=True)
    each, worst = curves(frame, "per_client"), curves(frame, "worst_client")
    assert each.groupby("round")["value"].min().tolist() == worst["value"].tolist()
    tuned = curves(frame, "per_client_tuned")
    assert {*tuned["round"]} == {each["round"].max()}
    assert tuned["client"].tolist() == each[each["round"] == each["round"].max()]["client"].tolist()


# --- training ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("runs", "cohorts"), [(2.5, 2), (0.0, 4)])
def test_cohorts_are_as_large_as_half_of_the_memory_allows_and_give_the_same_bits(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], runs: float, cohorts: int
) -> None:
    asked: dict[str, Any] = {"on": "fedagrac-steps", "scale": "smoke", "seeds": (0,)}
    together = play(["fednova", "fedprox", "fedavg(lr=0.2)"], **asked)
    assert "4 runs in 1 cohort" in capsys.readouterr().err
    shutil.rmtree("results")
    monkeypatch.setattr(matches, "memory", lambda: 2 * runs * costs.held(job))
    job = Match([Spec("fednova")], [find("fedagrac-steps", "smoke")], (0,), False)._jobs()[0][1]
    apart = play(["fednova", "fedprox", "fedavg(lr=0.2)"], **asked)
    assert f"4 runs in {cohorts} cohorts" in capsys.readouterr().err
    pd.testing.assert_frame_equal(apart, together, check_exact=True)


def test_nothing_is_trained_twice_and_a_changed_class_alone_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["fednova", "mine:Slow"]
    first = play(asked, on="fedagrac-steps", scale="smoke", seeds=(0,))
    assert "3 of 3 results to train, 3 runs in 2 cohorts" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setenv("REPRODUCE_REUSE", "1")
        patch.setattr(training, "train", lambda *job: pytest.fail("trained again"))
        pd.testing.assert_frame_equal(play(asked, on="fedagrac-steps", scale="smoke", seeds=(0,)), first)
    capsys.readouterr()
    (folder / "mine.py").write_text(OWN.replace("FACTOR * self", "2 * FACTOR * self"))
    changed = play(asked, on="fedagrac-steps", scale="smoke", seeds=(0,))
    assert "1 of 3 results to train" in capsys.readouterr().err
    pd.testing.assert_frame_equal(changed[:2], first[:2])
    files = sorted(Path("results/smoke/play").iterdir())
    assert [file.name for file in files] == ["fedagrac-steps.parquet"]
    runs = store.usable(files[0])[1]
    assert len(runs) == 3
    (own,) = (run for run in runs if "own" in run.training)
    assert own.experiment["algorithm"]["type"] == "mine:Slow"
    sums = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in ("mine.py", "helper.py")}
    assert sums.items() <= own.training["own"].items()


def test_own_code_is_in_the_digest_and_comments_are_not(folder: Path) -> None:
    def digest() -> str:
        return code([find("fedagrac-steps", "smoke").experiment(parse("mine:Slow"))])

    before = digest()
    assert before == digest()
    (folder / "mine.py").write_text(OWN + "\n# a remark\n")
    assert before == digest()
    (folder / "helper.py").write_text("FACTOR = 3.0\n")
    assert digest() == before, "what is imported is compared when a result is used again"
    assert sys.modules["mine"].FACTOR == 3.0, "what runs is what is there"
    (folder / "mine.py").write_text(OWN.replace("share: float = 0.5\n    steps", "share: float = 0.25\n    steps"))
    assert before != digest()
    assert "reproduce.algorithms.fednova" in closure.packaged(frozenset({folder / "mine.py"}))


def test_a_class_that_fails_has_its_own_line_and_the_others_their_bits(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = play("fednova", on="fedagrac-steps", scale="smoke", seeds=(0, 1))
    for file in Path("results/smoke/play").iterdir():
        file.unlink()
    asked = ["mine:Raises", "fednova", "mine:Diverges"]
    frame = play(asked, on="fedagrac-steps", scale="smoke", seeds=(0, 1))
    mine = frame[frame["algorithm"].isin(["fedavg", "fednova"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(mine, alone)
    said = "ZeroDivisionError: division by zero (mine.py, line"
    assert frame.set_index("algorithm").loc["mine:Raises", "status"].str.contains(said, regex=False).all()
    assert frame.set_index(["algorithm", "seed"])["status"]["mine:Diverges"].to_dict() == {0: "ok", 1: "diverged"}
    table = summary(frame).set_index("algorithm")
    assert table.loc["mine:Diverges", "status"] == "diverged (1 of 2)"
    assert table.loc[["mine:Raises", "mine:Diverges"], ["mean", "low", "rank"]].isna().all(axis=None)
    assert main(["play", *asked, "--on", "fedagrac-steps", "--scale", "smoke", "--seeds", "0,1", "-o", "out/all"]) == 2
    shown = capsys.readouterr()
    assert f"mine:Raises on fedagrac-steps failed: {said}" in " ".join(shown.out.split()), "below the table"
    assert "diverged (1 of 2)" in shown.out
    assert shown.err.splitlines()[-1].startswith(f"error: mine:Raises failed in all its runs: {said}")
    assert {f.name for f in Path("out").iterdir()} == {"all.md", "all.csv", "all.png", "all.pdf"}


def test_an_own_algorithm_that_is_stopped_has_not_failed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object) -> None:
        raise Stopped("stopped by SIGINT", 2)

    monkeypatch.setattr("reproduce.play.match.guarded", stopped)
    assert main(["play", "mine:Slow", "--on", "fedagrac-steps", "--scale", "smoke", "--seeds", "0"]) == 130
    shown = capsys.readouterr()
    assert (shown.out, shown.err.splitlines()[-1]) == ("", "stopped by SIGINT")


def test_what_a_kill_left_of_a_cohort_is_divided_and_not_trained_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    match = Match([Spec("fednova")], [find("fedagrac-steps", "smoke")], (0,))
    whole = joined([j for e in match.entries if (j := match.reported(e))])
    training.train(whole)
    monkeypatch.setattr(training, "train", lambda job: pytest.fail("trained again"))
    match.train()
    assert len(match.frame()) == 2


def test_tuning_takes_the_best_rate_of_its_grid_on_seeds_that_are_not_reported(folder: Path) -> None:
    frame = play("fednova", on="fedacs/fig7-static", scale="smoke", seeds=(0, 1), tune=True)
    for algorithm, rows in frame.groupby("algorithm"):
        base = find("fedacs/fig7-static", "smoke").experiment(Spec(str(algorithm))).algorithm.lr
        tried = {}
        for factor in FACTORS:
            given = f"{algorithm}(lr={base * factor:.12g})"
            runs = play(given, on="fedacs/fig7-static", scale="smoke", seeds=(1000, 1001))
            tried[base * factor] = runs[runs["algorithm"] == given]["value"].fillna(np.inf).mean()
        assert rows["lr"].unique() == pytest.approx([min(tried, key=lambda lr: tried[lr])])
        assert rows["edge"].all() == (min(tried, key=lambda lr: tried[lr]) in (min(tried), max(tried)))
    with pytest.raises(UserError, match="must not be reported"):
        play("fednova", on="sessions", scale="smoke", seeds=(0, 1000), tune=True)


def test_the_cost_counts_what_is_reported_at_the_rate_that_wins(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not at today's rate, which nobody may report; while the grid is not there, it is an upper bound."""

    def asked() -> Match:
        grid = {"tune": True, "factors": (0.01, 0.1)}
        return Match([], [find("fedacs/fig7-static", "smoke")], (0,), **grid)  # type: ignore[arg-type]

    assert asked().cost().startswith("at most 3 of 3 results to train")
    asked().train()
    assert asked().cost() == "3 results are there and hold; nothing to train"
    capsys.readouterr()
    asked().train()
    assert capsys.readouterr().err == ""
    whole = asked()
    whole.train()
    (entry,) = whole.entries
    assert [j.name for j in whole.grid(entry)] == [j.name for j in asked().grid(asked().entries[0])]


def test_a_benchmark_may_have_fewer_rounds_and_one_split() -> None:
    whole, short = find("fiarse/five-fashion-mnist", "reduced").template, find("capacities", "reduced")
    problem = replace(whole.problem, partition=replace(whole.problem.partition, data_seed=0))
    assert problem != whole.problem
    assert short.template == replace(whole, problem=problem, clock=replace(whole.clock, rounds=10))
    assert short.substitute.endswith("the first 10 of 60 rounds, one split of the data")
