"""The plan: jobs of a scale, names, digests, what is missing, and what asking does not import."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from written import Unplayed

from reproduce import workflow
from reproduce.declare.artifact import Artifact
from reproduce.declare.experiment import Experiment, Panel
from reproduce.declare.paper import artifacts, papers
from reproduce.errors import UserError
from reproduce.runs import catalogue, costs, outdated, plan


@dataclass(frozen=True)
class Toy:
    requires: tuple[str, ...] = ()

    model, clients = None, 1


@dataclass(frozen=True)
class Record:
    value: float = 1.0
    name: str = ""

    per_client = 0


def experiment(algorithm: str = "fedavg", lr: float = 0.1, requires: tuple[str, ...] = (), **labels: str) -> Experiment:
    return Experiment({"algorithm": algorithm, **labels}, Toy(requires), Record(), Record(lr, algorithm), Unplayed(10))


def panel(name: str, *experiments: Experiment, seeds: tuple[int, ...] = (0, 1)) -> Panel:
    return Panel(name, experiments or (experiment("fedavg"), experiment("local_only")), seeds)


def artifact(name: str, *panels: Panel, paper: str = "fedacs") -> Artifact:
    return Artifact(paper, name, f"Title of {name}", lambda scale: panels, cells=lambda histories: None)  # type: ignore


def available(name: str, settings: object) -> SimpleNamespace:
    return SimpleNamespace(state="missing" if name == "svhn" else "present")


@pytest.fixture
def declare(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., None]:
    """Replace the artifacts of the papers by those given; the plan is made anew."""

    def declare(*found: Artifact) -> None:
        monkeypatch.setattr(plan, "artifacts", lambda paper="": tuple(a for a in found if paper in ("", a.paper)))
        forget()

    def forget() -> None:
        shutil.rmtree(store, ignore_errors=True)
        for asked in (plan._jobs, catalogue._catalogue, outdated.jobs, outdated.training):
            asked.cache_clear()

    store = tmp_path_factory.mktemp("store")
    monkeypatch.setenv("REPRODUCE_STORE", str(store))
    plan._available.cache_clear()
    monkeypatch.setitem(sys.modules, "reproduce.data.load", SimpleNamespace(available=available))
    yield declare
    forget()
    plan._available.cache_clear()


def test_one_job_a_panel_at_small_scales_and_one_an_algorithm_at_paper_scale(declare: Callable[..., None]) -> None:
    both = panel("mnist", experiment("fedavg"), experiment("local_only"), experiment("fedavg", lr=0.2, q="x"))
    declare(artifact("fig1", both), artifact("table1", both, panel("other")))
    assert [j.name for j in plan.jobs("smoke")] == ["mnist", "other"]
    assert [j.name for j in plan.jobs("reduced")] == ["mnist", "other"]
    names = ["mnist--fedavg", "mnist--local-only", "other--fedavg", "other--local-only"]
    assert [j.name for j in plan.jobs("paper")] == names
    first = plan.job("paper", "fedacs", "mnist--fedavg")
    assert first.experiments == (both.experiments[0], both.experiments[2])
    assert first.artifacts == ("fedacs/fig1", "fedacs/table1")
    assert first.runs == 4
    assert [j.output for j in plan.artifact_jobs("paper", "fedacs/fig1")] == [
        "results/paper/fedacs/mnist--fedavg.parquet",
        "results/paper/fedacs/mnist--local-only.parquet",
    ]


def test_one_panel_name_for_two_panels_is_an_error_that_names_both(declare: Callable[..., None]) -> None:
    declare(artifact("fig1", panel("mnist")), artifact("table1", panel("mnist", experiment(lr=0.2))))
    with pytest.raises(UserError, match="panel 'mnist' of fedacs/table1 at scale smoke is not the one of fedacs/fig1"):
        plan.jobs("smoke")
    other = artifact("table1", panel("mnist", experiment(lr=0.2)), paper="fiarse")
    declare(artifact("fig1", panel("mnist")), other)
    assert [(j.paper, j.name) for j in plan.jobs("smoke")] == [("fedacs", "mnist"), ("fiarse", "mnist")]


def test_an_artifact_may_read_a_part_of_a_panel(declare: Callable[..., None]) -> None:
    """The job trains the whole; at paper scale an artifact waits for the algorithms only that it reads."""
    whole = panel("mnist")
    part = replace(whole, experiments=whole.experiments[1:])
    for order in ((part, whole), (whole, part)):
        declare(*(artifact(f"fig{len(p.experiments)}", p) for p in order))
        assert [j.experiments for j in plan.jobs("smoke")] == [whole.experiments]
        readers = {j.name: set(j.artifacts) for j in plan.jobs("paper")}
        both = {"fedacs/fig1", "fedacs/fig2"}
        assert readers == {"mnist--fedavg": {"fedacs/fig2"}, "mnist--local-only": both}
    fewer = replace(part, seeds=whole.seeds[:1])
    declare(artifact("fig1", whole), artifact("fig2", fewer))
    assert {j.panel.seeds for j in plan.jobs("smoke")} == {whole.seeds}
    assert plan.seeds_read("smoke", "fedacs/fig2") == {"mnist": whole.seeds[:1]}
    declare(artifact("fig1", whole), artifact("fig2", replace(part, seeds=(5,))))
    with pytest.raises(UserError, match="is not the one of fedacs/fig1"):
        plan.jobs("smoke")


def test_what_differs_in_its_labels_only_is_trained_once(declare: Callable[..., None]) -> None:
    """Under the first, also across algorithms; who reads the others reads its results."""
    a, b = experiment("a", scheme="x"), experiment("b", scheme="x")
    twin = replace(a, labels={**a.labels, "algorithm": "b", "scheme": "y"})
    whole = panel("p", a, b, twin)
    declare(artifact("fig1", whole), artifact("fig2", replace(whole, experiments=(twin,))))
    assert [j.experiments for j in plan.jobs("smoke")] == [(a, b)]
    jobs = {j.name: (j.experiments, j.artifacts) for j in plan.jobs("paper")}
    assert jobs == {"p--a": ((a,), ("fedacs/fig1", "fedacs/fig2")), "p--b": ((b,), ("fedacs/fig1",))}


def test_digest_changes_with_numbers_labels_and_seeds_only(declare: Callable[..., None]) -> None:
    base = panel("a")
    changed = (
        panel("a", experiment("fedavg", lr=0.2), experiment("local_only")),
        panel("a", experiment("fedavg", q="x"), experiment("local_only", q="x")),
        panel("a", seeds=(0, 2)),
        panel("a", experiment("fedavg")),
    )
    digests = []
    for p in (base, replace(base, substitute="smaller"), *changed):
        declare(artifact("fig1", p))
        digests.append(plan.digest(plan.job("smoke", "fedacs", "a"), "float32"))
    assert digests[0] == digests[1]
    assert len(set(digests[1:])) == 1 + len(changed)


def test_seeds_override(declare: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    declare(artifact("fig1", panel("a")))
    declared = plan.digest(plan.job("smoke", "fedacs", "a"), "float32")
    monkeypatch.setenv("REPRODUCE_SEEDS", "3,5")
    assert plan.job("smoke", "fedacs", "a").panel.seeds == (3, 5)
    assert plan.digest(plan.job("smoke", "fedacs", "a"), "float32") != declared
    monkeypatch.delenv("REPRODUCE_SEEDS")
    assert plan.job("smoke", "fedacs", "a").panel.seeds == (0, 1)


def test_a_job_without_its_data_is_left_out_and_says_why(
    declare: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(costs, "together", lambda *_: costs.Cost(0, 0, 1, 0))
    state = {"svhn": SimpleNamespace(state="missing"), "mnist": SimpleNamespace(state="present")}
    monkeypatch.setattr(plan, "available", lambda name, _: state[name])
    mixed = panel("mixed", experiment("fedavg", requires=("svhn", "mnist")), experiment("local_only"))
    declare(artifact("fig1", mixed, panel("fine")))
    assert [plan.missing(j) for j in plan.jobs("smoke")] == ["needs svhn", ""]
    assert plan.artifact_files("smoke") == plan.outputs("smoke", "fedacs/fig1")
    due_, left = outdated.training("smoke", "fedacs/fig1", outdated.Budget())
    assert [j.name for j in due_] == ["fine"]
    assert [(j.name, why) for j, why in left] == [("mixed", "needs svhn")]
    found = plan.sources("smoke", "fedacs/fig1")[0]
    assert (found.panel, found.without) == ("mixed", "no results yet on MNIST and SVHN"), "whatever data is here"
    monkeypatch.setattr(costs, "due", lambda job: costs.Cost(0, 0, 3600.5, 0))
    declare(artifact("fig1", mixed, panel("fine")))
    assert [
        [j.name for j in outdated.training("smoke", "fedacs/fig1", outdated.Budget(hours))[0]] for hours in (1, 2)
    ] == [
        [],
        ["fine"],
    ]
    at_paper_scale = {j.name: plan.missing(j) for j in plan.jobs("paper") if j.panel.name == "mixed"}
    assert at_paper_scale == {"mixed--fedavg": "needs svhn", "mixed--local-only": ""}


def test_the_catalogue_is_kept_until_something_changes(
    declare: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(costs, "together", lambda *_: costs.Cost(0, 0, 1, 0))
    declare(artifact("fig1", panel("a")))
    made = catalogue.catalogue("smoke")
    catalogue._catalogue.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(plan, "jobs", lambda scale: pytest.fail("declared again"))
        assert catalogue.catalogue("smoke") == made
    Path(made.jobs[0].output).parent.mkdir(parents=True)
    Path(made.jobs[0].output).touch()
    assert [job.exists for job in (*made.jobs, *catalogue.catalogue("smoke").jobs)] == [False, True]
    monkeypatch.setenv("REPRODUCE_SEEDS", "5")
    assert catalogue.catalogue("smoke").jobs[0].seeds == (5,)


def test_what_a_cluster_is_asked_for(declare: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Three times the estimated time, one and a half times the memory, states included, and 2 GB for torch."""
    declare(artifact("fig1", panel("a", experiment("fedavg"), experiment("fedprox", lr=0.2))))
    monkeypatch.setattr(costs, "together", lambda those, *_: costs.Cost(40, 10.0, 400.0 * len(those), 10**9))
    monkeypatch.setattr(costs, "state_bytes", lambda job: 2e9)
    job = catalogue.known(plan.job("smoke", "fedacs", "a"))
    assert (costs.minutes(job), costs.megabytes(job)) == (40, 6500)


def test_environment_leaves_what_the_configuration_leaves_open() -> None:
    open_ = dict.fromkeys(("data", "device", "checkpoint", "memory"))
    named = {"store": "s", "precision": "bfloat16", "threads": 2, "longest": 24, "budget": 0.5}
    config = open_ | named | {"scale": "paper", "seeds": ["0", 1], "to_target": True}
    expected = {f"REPRODUCE_{name.upper()}": str(value) for name, value in named.items()}
    assert workflow.environment(config) == expected | {"REPRODUCE_SEEDS": "0,1", "REPRODUCE_TO_TARGET": "1"}
    for flag, said in ((False, "0"), ("true", "1"), ("false", "0"), (None, None)):
        assert workflow.environment(config | {"to_target": flag}).get("REPRODUCE_TO_TARGET") == said


def test_importing_the_plan_and_the_artifacts_needs_no_heavy_library() -> None:
    code = (
        "import sys; from reproduce.runs import costs, plan; from reproduce.declare.paper import artifacts;"
        "[a.panels(s) for a in artifacts() for s in ('smoke', 'reduced', 'paper')];"
        "print(*{'torch', 'pandas', 'matplotlib', 'seaborn', 'scipy', 'numpy'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(run.stdout.split()) <= {"numpy"}


@pytest.mark.parametrize("scale", ["smoke", "reduced", "paper"])
def test_every_artifact_of_every_paper_has_a_plan(scale: str) -> None:
    jobs = plan.jobs(scale)
    digests = {plan.digest(j, "float32") for j in jobs}
    assert len(digests) > 0.8 * len(jobs)
    assert {a.paper for a in artifacts()} == set(papers())
    assert all(costs.cost(j).seconds > 0 for j in jobs)
