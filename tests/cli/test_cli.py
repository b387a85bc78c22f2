"""The command line: what it prints for people and for programs, and how it refuses wrong input."""

import errno
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import miniature
import pytest
from miniature import reproduce

from reproduce.__main__ import COMMANDS, main
from reproduce.cli import list_
from reproduce.text import duration, paint, print_table, short
from reproduce.verdicts.scoreboard import Verdict
from reproduce.verdicts.verdict import Measured


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A miniature that no test of this module writes into, but for results of its own."""
    return miniature.build(tmp_path_factory.mktemp("project"))


def test_list_for_programs(project: Path) -> None:
    run = reproduce(project, "list", "--json")
    found = json.loads(run.stdout)
    assert [f["id"] for f in found] == [
        "dynamic_init/table3",
        "fedacs/fig2",
        "fedacs/fig10",
        "fedacs/fig11",
        "fedacs/table1",
        "fiarse/fig1",
    ]
    first = {
        "id": "fedacs/fig2",
        "paper": "fedacs",
        "kind": "figure",
        "title": "Title of fig2",
        "panels": 2,
        "runs": 12,
        "made": "no",
    }
    assert found[1] == first
    assert found[0]["runs"] == 0
    assert run.stderr == ""


def test_list_of_a_paper_says_what_is_made(tmp_path: Path) -> None:
    project = miniature.build(tmp_path)
    (project / "figures/smoke").mkdir(parents=True)
    (project / "figures/smoke/fedacs_fig2.pdf").touch()
    scale, empty, _, *lines = reproduce(project, "list", "fedacs", "--scale", "smoke").stdout.splitlines()
    assert (scale, empty) == ("At smoke scale (another one: --scale):", "")
    assert [line.split()[0] for line in lines] == ["fedacs/fig2", "fedacs/fig10", "fedacs/fig11", "fedacs/table1"]
    assert [line.split()[3] for line in lines] == ["no"] * 4, "a picture without numbers is not made"


def test_a_new_artifact_is_found_by_its_declaration(tmp_path: Path) -> None:
    project = miniature.build(tmp_path)
    miniature.add_artifact(project, "defedavg", "fig7", "(panel('new'),)")
    assert json.loads(reproduce(project, "list", "--json").stdout)[0]["id"] == "defedavg/fig7"
    miniature.add_artifact(project, "defedavg", "fig7", "()")
    run = reproduce(project, "list")
    assert run.returncode == 1
    assert "papers/defedavg/artifacts.py: two artifacts have the name 'fig7'" in run.stderr


def test_plan_for_programs_and_for_people(project: Path) -> None:
    jobs = json.loads(reproduce(project, "plan", "fedacs/fig10", "--scale", "reduced", "--json").stdout)
    assert [(j["job"], j["missing"]) for j in jobs] == [("shared", ""), ("needs", "needs svhn")]
    assert jobs[0]["artifacts"] == ["fedacs/fig2", "fedacs/fig10", "fedacs/fig11", "fedacs/table1"]
    assert jobs[0]["output"] == "results/reduced/fedacs/shared.parquet"
    assert (jobs[0]["seconds"], jobs[0]["samples"], jobs[0]["runs"]) == (60, 600, 6)
    states = json.loads(reproduce(project, "plan", "fedacs/fig11", "--scale", "smoke", "--json").stdout)
    assert [(j["state"], j["done"]) for j in states] == [("missing", False), ("missing", False)]
    assert "over the budget of 2 h a job" in reproduce(project, "plan", "fedacs/fig11", REPRODUCE_BUDGET="2").stdout
    text = reproduce(project, "plan", "fedacs").stdout
    lines = [line.split() for line in text.splitlines()]
    assert lines[0][:5] == ["ARTIFACT", "JOBS", "DUE", "TIME", "FLOPS"]
    assert lines[1] == ["fedacs/fig2", "4", "4", "4", "min", "4G"]
    assert lines[2][0] == "fedacs/fig10"
    assert lines[2][-2:] == ["svhn", "(2)"]
    assert "own--fed-acs" not in text
    assert "8 jobs, 24 runs; stored: 0 runs" in text
    assert "estimate for the 6 to train: 6GFLOP, 1 d 16 h on one core" in text
    assert "own--fed-acs" in reproduce(project, "plan", "fedacs", "--jobs").stdout


def test_a_bug_in_training_is_one_line_and_a_traceback_on_demand(project: Path) -> None:
    run = reproduce(project, "train", "--scale", "smoke", "fiarse", "diverge")
    assert run.returncode == 1
    line = "error in the program: ZeroDivisionError: the training fell over; `--debug` shows where"
    assert run.stderr.splitlines()[-1] == line
    assert "Traceback" not in run.stderr
    assert "Traceback" in reproduce(project, "--debug", "train", "--scale", "smoke", "fiarse", "diverge").stderr


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        *map(
            RuntimeError,
            ("std::bad_alloc", "DefaultCPUAllocator: can't allocate memory: you tried", "CUDA out of memory"),
        ),
    ],
)
def test_lack_of_memory_is_said_in_one_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As Python, the operating system, C++ and torch say it (`ulimit -v`)."""
    monkeypatch.setattr(list_, "run", Mock(side_effect=error))
    assert main(["list"]) == 2
    assert capsys.readouterr().err.startswith("error: there is not enough memory for this")


def test_it_trains_without_a_place_for_errors(tmp_path: Path) -> None:
    """`2>&-`: of Python's streams, one is then None."""
    job = [sys.executable, "-m", "reproduce", "train", "--scale", "smoke", "fedacs", "toy2d-comm-only"]
    run = subprocess.run(["sh", "-c", '"$@" 2>&-', "sh", *job], cwd=tmp_path, capture_output=True, check=False)
    assert (run.returncode, run.stdout) == (0, b"")
    assert [*tmp_path.glob("results/smoke/fedacs/*.parquet")]


def test_reproduce_alone_shows_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = re.findall(r"^    (\w+)(?: |$)", capsys.readouterr().out, flags=re.M)
    assert shown == [module.NAME for module in COMMANDS]
    with pytest.raises(SystemExit):
        main(["plan", "-h"])
    assert capsys.readouterr().out.startswith("usage: reproduce plan [-h]")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["rendr", "fedacs/fig2"], "unknown command 'rendr'; did you mean render"),
        (["verify", "--only", "support"], "unknown --only 'support'; did you mean supported"),
    ],
)
def test_a_word_that_is_not_known_has_the_nearest_beside_it(words: list[str], says: str, capsys: Any) -> None:
    assert main(words) == 2
    assert says in capsys.readouterr().err


def test_verify_says_in_a_line_that_there_is_no_claim(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(
        "reproduce.verdicts.scoreboard.scoreboard", lambda scale, files: [claim("fedacs/a", "supported")]
    )
    for words, said in ((["fiarse"], "about fiarse is declared"), (["--only", "refuted"], "has the verdict 'refuted'")):
        assert main(["verify", *words]) == 0
        assert capsys.readouterr().out == f"no claim {said}\n"


def test_a_reader_that_leaves_early_is_no_error(project: Path) -> None:
    for i in range(100):
        miniature.add_artifact(project, "fedagrac", f"fig{i + 100}", "()")
    with subprocess.Popen(
        [*miniature.command("reproduce"), "list", "--json"],
        cwd=project,
        env=miniature.environment(project),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=60) == 0


def test_table_is_aligned_and_its_last_column_wrapped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [["fedacs/fig2", "7", "A title that is rather long"], ["x", "1234", "Short"]]
    monkeypatch.setenv("COLUMNS", "39")
    print_table(["ID", "RUNS", "TITLE"], rows, right=["RUNS"])
    assert capsys.readouterr().out.splitlines() == [
        "ID           RUNS  TITLE",
        "fedacs/fig2     7  A title that is",
        "                   rather long",
        "x            1234  Short",
    ]


def test_colour_is_for_terminals_that_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert paint("word", "red") == "word"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert paint("word", "red") == "\033[31mword\033[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert paint("word", "red") == "word"


def claim(name: str, verdict: str, **more: Any) -> Verdict:
    given = {"id": name, "artifact": "fedacs/fig1", "statement": "S.", "reason": "no values of a/b"}
    return Verdict(verdict, **(given | more))


def test_verify_groups_claims_by_verdict_in_eighty_columns(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    number = Measured("lead", "percent", "fedacs ahead of fedavg " * 5, 2.0, 1.0, 3.0, (1.5, math.inf), False, False, 3)
    board = [
        claim("fedacs/a", "supported", measured=number, rests_on="quadratics", reason="many words " * 20),
        claim("fedacs/b", "not run"),
        claim("fedacs/c", "refuted", measured=number, rests_on="quadratics"),
        claim("fiarse/d", "not run", artifact="fiarse/fig1", reason="no rows with n = 3"),
        claim("fiarse/e", "not run", artifact="fiarse/fig1", reason="it names a network", unasked=True),
        claim("fiarse/f", "refuted", artifact="fiarse/fig1", rests_on="check", note="ours"),
    ]
    monkeypatch.setattr("reproduce.verdicts.scoreboard.scoreboard", lambda scale, files: board)

    def printed(*arguments: str) -> list[str]:
        assert main(["verify", "--scale", "smoke", *arguments]) == 0
        return str(capsys.readouterr().out).splitlines()

    lines = printed()
    heads = [line for line in lines if re.match(r"\S.*: \d+$", line)]
    assert heads == ["refuted: 1", "supported: 1", "not run: 3"]
    assert max(map(len, lines)) <= 80
    head, *rows = (line.split() for line in lines[:5])
    assert head == ["VERDICT", "fedacs", "fiarse", "ALL"]
    assert rows == [
        ["refuted", "1", "1"],
        ["supported", "1", "1"],
        ["not", "run", "1", "2", "3"],
        ["all", "3", "2", "5"],
    ]
    assert "  fedacs/a  S." in lines
    text = " ".join(" ".join(lines).split())
    assert "required" not in text
    assert "fedacs/b" not in text
    assert "1 no values yet, 1 no rows with n = 3, 1 it names a network" in text
    assert "1 checks, true or false whatever is trained: 1 refuted refuted: fiarse/f (ours)" in text
    full = " ".join(" ".join(printed("--only", "supported")).split())
    assert "lead 2 points (1 to 3), 3 seeds; required: at least 1.5 points" in full
    assert "FedACS ahead of FedAvg" in full
    whole = printed("fedacs", "--only", "supported")
    assert "many words many words" in " ".join(whole)
    assert '    "S."' in whole
    assert "fedacs/c" not in " ".join(whole)
    assert any(line.startswith("  fiarse/d") for line in printed("fiarse", "--only", "not run"))
    assert [v["id"] for v in json.loads("\n".join(printed("fiarse/fig1", "--json")))] == [f"fiarse/{x}" for x in "def"]


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (999, "999"), (1000, "1k"), (1234567, "1.23M"), (999.7e6, "1G"), (5e22, "5e+04E")]
)
def test_short(number: float, text: str) -> None:
    assert short(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (90, "2 min"),
        (3599, "1 h 0 min"),
        (90000, "1 d 1 h"),
        (60 * 31_557_600, "60.0 years"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text
