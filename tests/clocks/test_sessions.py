"""The session clock and the schemes of initial models, against a plain NumPy loop of the paper's algorithm."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from plain_sessions import CONTRAST, FLOOR, LR, MOMENTUM, PROBLEM, TEMPERATURE, VIEWS, K, N, P, Plain, S, T
from runs import run as play_all

from reproduce.algorithms.base import FedAvg
from reproduce.algorithms.fedacg import FedACG
from reproduce.algorithms.fedprox import FedProx
from reproduce.algorithms.moon import Distillation, Moon
from reproduce.algorithms.scaffold import Scaffold, ScaffoldAsReleased
from reproduce.algorithms.session_starts import Average, Previous, Proposed, RandomPilot, Start
from reproduce.clocks.sessions import Sessions
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClassificationSplit, ClientSplits
from reproduce.engine.scheduler import Run, Scheduler, prepare
from reproduce.engine.trainer import Trainer
from reproduce.papers.dynamic_init.suggested import CarriedAverage, CarriedPrevious
from reproduce.papers.dynamic_init.variants import DistilledFedProx
from reproduce.settings import settings
from reproduce.systems import Steps, System
from reproduce.systems.clients import Alternating

ALGORITHMS: dict[str, FedAvg] = {
    "fedavg": FedAvg(LR, momentum=MOMENTUM),
    "fedprox": FedProx(LR, momentum=MOMENTUM, mu=1.0),
    "fedacg": FedACG(LR, momentum=MOMENTUM, lam=0.85, beta=0.3),
    "as_released": ScaffoldAsReleased(LR, momentum=MOMENTUM),
    "scaffold": Scaffold(LR, momentum=MOMENTUM, control="displacement"),
    "continuous": Distillation(LR, momentum=MOMENTUM, kappa=0.7),
    "continuous_prox": DistilledFedProx(LR, momentum=MOMENTUM, kappa=0.7, mu=1.0),
    "moon": Moon(LR, momentum=MOMENTUM, mu=CONTRAST, temperature=TEMPERATURE),
    "moon_standard": Moon(LR, momentum=MOMENTUM, mu=CONTRAST, temperature=TEMPERATURE, from_fingerprint=False),
}
STARTS: dict[str, Start] = {
    "previous": Previous(),
    "average": Average(),
    "proposed": Proposed(R=3.0, V=2),
    "random_pilot": RandomPilot(R=3.0, V=2),
}

CARRIED: dict[str, Start] = {
    "previous": CarriedPrevious(),
    "average": CarriedAverage(),
    "proposed": Proposed(R=3.0, session_p_start="carry"),
}


def clock(start: Start, **changes: Any) -> Sessions:
    return replace(Sessions(S, T, Alternating(2, N), VIEWS, start, P, FLOOR), **changes)


def play(
    algorithm: FedAvg, start: Start, tasks: ClientSplits | None = None, **changes: Any
) -> tuple[Run, ClassificationSplit]:
    tasks = tasks or ClientSplits(settings(), torch.float64)
    experiment = Experiment({"algorithm": "a"}, PROBLEM, System(work=Steps(K)), algorithm, clock(start, **changes))
    (run,) = play_all([experiment], [2], tasks=tasks)
    task = tasks.get(PROBLEM, 2)
    assert isinstance(task, ClassificationSplit)
    return run, task


def values(run: Run, metric: str) -> dict[Any, float]:
    """round -> accuracy, or key -> alpha, distance."""
    rows = [row for row in run.state["history"] if row[2] == metric]
    return {row[3] or row[0]: row[4] for row in rows}


@pytest.mark.parametrize("scheme", STARTS)
@pytest.mark.parametrize("kind", ALGORITHMS)
def test_every_scheme_with_every_algorithm_equals_the_plain_loop(kind: str, scheme: str) -> None:
    run, task = play(ALGORITHMS[kind], STARTS[scheme])
    x, accuracy, alphas = Plain(kind, task).trajectory(scheme, R=3.0, V=2)
    np.testing.assert_allclose(run.state["x"].numpy(), x, rtol=0, atol=1e-10)
    measured = values(run, "accuracy")
    assert measured.pop(0) == pytest.approx(Plain(kind, task).accuracy(task.initial().numpy(), tuple(range(10))))
    assert measured == pytest.approx(accuracy, abs=1e-9)
    if alphas:
        assert {k: v for k, v in values(run, "alpha").items() if k in alphas} == pytest.approx(alphas, abs=1e-9)
        assert 0.01 < min(alphas.values()) < 0.45, "the test must see weights that matter"


@pytest.mark.parametrize("distance", ["per_tensor_unit", "global_l2"])
def test_the_pilot_model_is_the_mean_of_all_pilot_sessions(distance: str) -> None:
    start = Proposed(R=3.0, V=2, distance=distance)
    run, task = play(ALGORITHMS["fedacg"], start, pilots=2, sessions=6)
    x, _, alphas = Plain("fedacg", task).trajectory("proposed", R=3.0, V=2, P=2, sessions=6, distance=distance)
    np.testing.assert_allclose(run.state["x"].numpy(), x, rtol=0, atol=1e-10)
    assert {k: v for k, v in values(run, "alpha").items() if k in alphas} == pytest.approx(alphas, abs=1e-9)


@pytest.mark.parametrize("pilots", [1, 2, 3])
@pytest.mark.parametrize("options", [{"save_point": "before_last"}, {"trigger": "every_time"}, {"history": 2}])
def test_algorithm_1_as_printed(options: dict[str, Any], pilots: int) -> None:
    """The save point and the trigger of eq. (3) and line 13; with a history the last models alone are mixed."""
    start = Proposed(R=3.0, **options)
    run, task = play(ALGORITHMS["fedavg"], start, pilots=pilots, sessions=7)
    plain = Plain("fedavg", task)
    if "history" in options:
        assert {k: v for k, v in values(run, "alpha").items() if v} == pytest.approx(latest(run, 3.0, 2), abs=1e-12)
        return
    early, again = start.save_point == "before_last", start.trigger == "every_time"
    x, accuracy, alphas = plain.trajectory("proposed", R=3.0, P=pilots, sessions=7, early=early, again=again)
    np.testing.assert_allclose(run.state["x"].numpy(), x, rtol=0, atol=1e-10)
    assert {k: v for k, v in values(run, "accuracy").items() if k} == pytest.approx(accuracy, abs=1e-9)
    mixed = values(run, "alpha")
    assert {k: v for k, v in mixed.items() if k in alphas} == pytest.approx(alphas, abs=1e-9)
    if again:
        assert set(mixed) == set(alphas)
        assert bool(mixed) == (pilots > 1), "with one pilot session no model is left to mix"


def latest(run: Run, R: float, count: int) -> dict[str, float]:
    """alpha(s, z) over the last `count` models alone, from the distances on record."""
    found: dict[str, float] = {}
    distance = values(run, "distance")
    for session in sorted({int(key.split(":")[0]) for key in distance}):
        kept = [key for key in distance if int(key.split(":")[0]) == session][-count:]
        e = np.exp([-R * distance[key] for key in kept])
        found |= dict(zip(kept, e / e.sum(), strict=True))
    return found


def test_the_printed_gradient_index_makes_all_weights_equal() -> None:
    """Eq. (4) stops at w^(V-1), which for V = 1 is the pilot model itself."""
    run, _ = play(ALGORITHMS["fedavg"], Proposed(gradient_index="V-1"))
    average, _ = play(ALGORITHMS["fedavg"], Average())
    assert values(run, "alpha") == values(average, "alpha")
    assert set(values(run, "distance").values()) == {0.0}


@pytest.mark.parametrize("kind", ["fedavg", "fedacg", "moon"])
@pytest.mark.parametrize("scheme", CARRIED)
def test_session_p_goes_on_from_the_pilot_session(scheme: str, kind: str) -> None:
    run, task = play(ALGORITHMS[kind], CARRIED[scheme], pilots=2, sessions=6)
    x, accuracy, _ = Plain(kind, task).trajectory(scheme, R=3.0, P=2, sessions=6, carry=True)
    np.testing.assert_allclose(run.state["x"].numpy(), x, rtol=0, atol=1e-10)
    assert {k: v for k, v in values(run, "accuracy").items() if k} == pytest.approx(accuracy, abs=1e-9)


def counted(pairs: Sequence[tuple[FedAvg, Start]], seeds: Sequence[int] = (2,)) -> tuple[list[Run], dict[str, int]]:
    """The runs of algorithms and schemes, played together, and how many local runs were asked for and computed."""
    experiments = [
        Experiment({"algorithm": str(i)}, PROBLEM, System(Steps(K)), a, clock(s)) for i, (a, s) in enumerate(pairs)
    ]
    scheduler = Scheduler(prepare(experiments, seeds, ClientSplits(settings())), Trainer())
    scheduler.run()
    return list(scheduler.runs), scheduler.shared


def graph(algorithm: FedAvg, start: Start, seed: int) -> set[tuple[Any, ...]]:
    """The rounds of a run, each named by all that it depends on: equal names are the same training."""
    trained = start.pilot == "trained"
    pilot = {("pilot", g) for g in range(P * T if trained else 0)}
    prints = {("print", start.pilot, s, v) for s in range(P, S) for v in range(start.rounds)}
    # Until session P + 1 there is one model to start from at most; MOON remembers the fingerprints.
    common = start.pilot if isinstance(algorithm, Moon) else ""
    branch = {("branch", common if s < P + 2 else start, s, t) for s in range(P, S) for t in range(T)}
    return {(algorithm, seed, *node) for node in pilot | prints | branch}


def test_what_runs_have_in_common_is_trained_once() -> None:
    """Schemes, algorithms and seeds: as many local runs as the graph of rounds has nodes."""
    starts = (*(STARTS[name] for name in ("previous", "average", "proposed", "random_pilot")), Proposed(R=8.0, V=2))
    pairs = [(ALGORITHMS[name], start) for name in ("fedavg", "fedacg", "moon") for start in starts]
    _, shared = counted(pairs, (2, 3))
    rounds = [graph(a, s, seed) for a, s in pairs for seed in (2, 3)]
    assert shared == {"asked": N * sum(map(len, rounds)), "computed": N * len(set().union(*rounds))}
    assert shared["computed"] < 0.7 * shared["asked"]


def test_points_of_a_sweep_over_r_share_all_until_they_differ() -> None:
    """Pilot, fingerprints and two sessions once; R = 0 goes on as the average does, a huge R as the nearest model."""
    scales = (0.0, 3.0, 800.0, 1e308)
    runs, shared = counted(
        [*((ALGORITHMS["fedavg"], Proposed(R=R)) for R in scales), (ALGORITHMS["fedavg"], Average())]
    )
    once = P * T + (S - P) + 2 * T
    # Sessions P + 2 and P + 3: at R = 0 with the average, at 3 alone, at 800 and 1e308 together.
    assert shared["computed"] == N * (once + (S - P - 2) * 3 * T)
    assert runs[0].state["x"].equal(runs[4].state["x"])
    assert runs[2].state["x"].equal(runs[3].state["x"])
    assert not runs[1].state["x"].equal(runs[2].state["x"])


def test_a_diverged_run_ends_and_says_so() -> None:
    run, _ = play(FedAvg(3e38, momentum=MOMENTUM), Previous(), ClientSplits(settings()))
    assert run.state["status"] == "diverged"
    assert run.state["round"] == P * T + 1
    assert list(values(run, "accuracy")) == [0]


def test_a_fingerprint_that_diverged_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its distances are not numbers; the sessions before have their results."""
    monkeypatch.setattr(Proposed, "_distance", lambda *_: math.nan)
    run, _ = play(FedAvg(LR, momentum=MOMENTUM), Proposed(), ClientSplits(settings()))
    assert run.state["status"] == "diverged"
    assert run.state["round"] == (P + 1) * T
    assert len(values(run, "accuracy")) == T + 1


def test_pilot_sessions_leave_others() -> None:
    with pytest.raises(ValueError, match="5 pilot sessions do not leave any of 5"):
        clock(Previous(), pilots=S)
