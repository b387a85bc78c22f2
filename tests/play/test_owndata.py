"""Playing on a user's own data, from an empty folder: by the command line and from Python; what cannot be."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import DatasetDict

from reproduce.__main__ import main
from reproduce.errors import UserError
from reproduce.models.declared import MLP, ConvNet, Softmax
from reproduce.models.network import Network
from reproduce.partitions.dirichlet import CappedDirichlet, DirichletClass
from reproduce.partitions.labels import Shards
from reproduce.play import owndata, play, specs
from reproduce.play.owndata import benchmarks, parse
from reproduce.report.histories import Source, load
from tests.data.test_userfiles import folder, library, pictures, saved, table

__all__ = ["folder"]

SMOKE = ["--scale", "smoke", "--seeds", "0"]


@pytest.fixture
def photos(folder: Path) -> Path:
    """30 + 12 pictures in three class folders, in a folder with a space in its name; results are made here."""
    (folder / "results").mkdir()
    for part, each, seed in (("train", 10, 0), ("test", 4, 1)):
        saved(folder / "my photos" / part, *pictures(1, each, (8, 8), seed))
    return folder


def said(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    """The rows that the command prints."""
    capsys.readouterr()
    assert main(["play", *words, *SMOKE, "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_pictures_train_in_every_form_to_the_same_numbers(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parts = {p: pictures(1, n, (8, 8), s) for p, n, s in (("train", 10, 0), ("test", 4, 1))}
    DatasetDict({p: library(*samples) for p, samples in parts.items()}).save_to_disk("a saved set")
    np.savez("arrays.npz", **{f"{p}_{k}": v for p, s in parts.items() for k, v in zip("xy", s, strict=True)})
    Path("tables").mkdir()
    for part, samples in parts.items():
        library(*samples).to_parquet(f"tables/{part}.parquet")
    curves = []
    for where in ("my photos", "a saved set", "arrays.npz", "tables"):
        words = ["fedavg", "scaffold", "--data", where, "--partition", "Dirichlet(0.3, min_size=1)", "--clients", "4"]
        rows = said(capsys, *words)
        assert [row["algorithm"] for row in rows] == ["fedavg", "scaffold"]
        assert all(row["status"] == "ok" for row in rows)
        assert rows[0]["benchmark"] == f"{where} (DirichletClass(alpha=0.3, min_size=1), 4 clients)"
        slug = re.sub("[^a-z0-9]", "-", where)
        files = [Source(f.stem, f) for f in sorted(Path("results/smoke/play").glob(f"{slug}*.parquet"))]
        frame = load(files, "smoke").frame
        frame = frame[frame["algorithm"] == "scaffold"]
        curves.append(frame[["round", "metric", "value"]].reset_index(drop=True))
    assert len(curves[0]) > 5
    assert all(curve.equals(curves[0]) for curve in curves)


def test_changed_files_train_anew_and_equal_ones_do_not(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["fedavg", "--data", "my photos", "--clients", "3", "--epochs", "0.5", *SMOKE]
    assert main(["play", *words, "--cost"]) == 0
    out = capsys.readouterr().out
    assert "1 of 1 results to train" in out
    for part in ("my photos: 30 + 12 pictures 8 x 8 x 1, 3 classes", "IID over 3 clients", "10 rounds of 0.5 epochs"):
        assert part in out
    assert main(["play", *words]) == 0
    assert main(["play", *words, "--cost"]) == 0
    assert "nothing to train" in capsys.readouterr().out
    next(Path("my photos/train/cat").iterdir()).unlink()
    assert main(["play", *words, "--cost"]) == 0
    assert "1 of 1 results to train" in capsys.readouterr().out


def test_a_table_whose_column_names_the_client(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table(60).rename(columns={"label": "kind"}).to_csv("mine.csv", index=False)
    words = ["fedavg", "--data", "mine.csv", "--label", "kind"]
    (row,) = said(capsys, *words, "--partition", "column:who")
    assert row["benchmark"] == "mine.csv (column:who, 3 clients)"
    assert row["status"] == "ok"
    assert main(["play", *words, "--partition", "column:who", "--clients", "4", *SMOKE]) == 2
    assert "column:who has 3 clients, not 4: leave --clients out" in capsys.readouterr().err
    assert main(["play", *words, "--clients", "4", *SMOKE]) == 2
    assert "mine.csv, train part: the column who has str x, and" in capsys.readouterr().err


def test_a_benchmark_keeps_all_but_its_data(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (declared,) = benchmarks(["fedacs-static"], "smoke")
    (found,) = benchmarks(["fedacs-static"], "smoke", data="my photos", partition="Shards(2)")
    assert found.name == "fedacs-static with my photos, Shards"
    for label, e in declared.own.items():
        mine = found.own[label]
        assert (mine.algorithm, mine.system, mine.clock) == (e.algorithm, e.system, e.clock)
        assert (mine.problem.model, mine.problem.clients) == (e.problem.model, e.problem.clients)
        assert mine.problem.batches == e.problem.batches
        assert mine.problem.partition == Shards(2)
        assert mine.problem.sizes == (30, 12)
    (row,) = said(capsys, "fedavg", "--data", "my photos", "--on", "fedacs-static", "--partition", "IID")
    assert row["status"] == "ok"
    (other,) = benchmarks(["fedagrac-steps"], "smoke", model=MLP(144, 8, 4), clients=6)
    assert {e.problem.model for e in other.own.values()} == {MLP(144, 8, 4)}
    assert {e.problem.clients for e in other.own.values()} == {6}
    assert {e.problem.data for e in other.own.values()} == {
        e.problem.data for e in benchmarks(["fedagrac-steps"], "smoke")[0].own.values()
    }


def test_from_python_with_a_data_set_and_a_record(photos: Path) -> None:
    data = DatasetDict(train=library(*pictures(1, 10, (8, 8))), test=library(*pictures(1, 4, (8, 8), 1)))
    options: dict[str, Any] = {"scale": "smoke", "seeds": [0, 1], "clients": 3, "partition": CappedDirichlet(1.0)}
    frame = play(["fedavg", "fedprox(mu=0.1)"], data=data, model=Softmax(64, 3), **options)
    assert len(frame) == 4
    assert (frame["status"] == "ok").all()
    again = play("fedavg", data="my photos", model=Softmax(64, 3), **options)
    assert again["value"].tolist() == frame["value"].tolist()[:2]
    with pytest.raises(UserError, match=r"name a benchmark .* or bring data"):
        play("fedavg")


NET = """
from torch import nn


class Net(nn.Module):
    def __init__(self, hidden=4):
        super().__init__()
        self.hidden, self.last = nn.Linear(64, hidden), nn.Linear(hidden, 3)

    def forward(self, x):
        return self.last({0}self.hidden(x.view(len(x), -1)))
"""


def test_outputs_that_do_not_go_with_the_classes(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("ends.py").write_text(
        "from torch import nn\n\n"
        "def net(classes=3, end='Identity()'):\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(64, classes), eval('nn.' + end))\n"
    )
    warning = "warning: ends:net(classes=5) has 5 outputs for the 3 classes of my photos: no sample is of the others"
    for given, status, says in (
        ("classes=5", 0, warning),
        ("classes=2", 2, "error: ends:net(classes=2) has 2 outputs for the 3 classes of my photos"),
        ("end='LogSoftmax(1)'", 0, ""),
    ):
        words = ["fedavg", "scaffold", "--data", "my photos", "--model", f"ends:net({given})", *SMOKE]
        assert main(["play", *words, "--cost"]) == status
        found = [line for line in capsys.readouterr().err.splitlines() if line.startswith(("warning:", "error:"))]
        assert len(found) == bool(says), found
        assert says in "".join(found)


def test_a_network_is_named_by_its_module(photos: Path) -> None:
    for text in ("Net", "my_file:Net(3)", "my_file:Net(f())", "my_file:", "my file:Net"):
        with pytest.raises(UserError, match=r"names no network|options are name=value"):
            specs.network(text)
    known = specs.network("torchvision.models:resnet18(num_classes=10, zero_init_residual=True)")
    assert known.arguments == (("num_classes", 10), ("zero_init_residual", True))
    assert known.parameters == 11_181_642
    assert owndata._model(Shards) == Network("reproduce.partitions.labels:Shards")
    with pytest.raises(UserError, match="cannot be imported by its name"):
        owndata._model(lambda: None)


def test_a_module_of_ones_own_is_trained_and_changed(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is read anew; whatever is not trained yet is, under all synchronous algorithms."""
    asked = ("--data", "my photos", "--model", "mine_net:Net(hidden=5)", "--clients", "3")
    Path("mine_net.py").write_text(NET.replace("{0}", ""))
    found = said(capsys, "fedavg", "scaffold", "fednova", "moon", "fedagrac", *asked)
    assert [row["status"] for row in found] == ["ok"] * 5
    again = said(capsys, "fedavg", *asked)
    Path("mine_net.py").write_text(NET.replace("{0}", "-1000 * "))
    assert said(capsys, "fedavg", *asked)[0]["mean"] != again[0]["mean"] == found[0]["mean"]
    Path("mine_net.py").write_text(NET.replace("{0}", "").replace("hidden, 3)", "hidden, 2)"))
    assert main(["play", "fedavg", *asked, *SMOKE]) == 2
    assert "has 2 outputs for the 3 classes" in capsys.readouterr().err


def test_a_score_of_a_module_that_runs_by_itself_in_a_new_process(photos: Path) -> None:
    """scikit-learn draws without a seed when it is loaded, which own code may not."""
    Path("by_itself.py").write_text(
        "import torch\n"
        "class Odd(torch.nn.Linear):\n"
        "    def __init__(self): super().__init__(64, 3)\n"
        "    def forward(self, x): return torch.tanh(super().forward(x.flatten(1)))\n"
    )
    asked = ["fedavg", "--data", "my photos", "--model", "by_itself:Odd", "--clients", "3", "--metric", "auc", *SMOKE]
    subprocess.run([sys.executable, "-m", "reproduce", "play", *asked], check=True)


def test_without_a_network_it_fits_the_samples(photos: Path) -> None:
    table().drop(columns="who").to_csv("mine.csv", index=False)
    saved(photos / "wide", *pictures(3, 10, (6, 8)))
    models = [benchmarks([], "smoke", data=d)[0].template.problem.model for d in ("my photos", "mine.csv", "wide")]
    assert models == [
        ConvNet(1, 8, (16, 32), (64,), 3, kernel=3, padding=1), Softmax(4, 3), Softmax(3 * 6 * 8, 3)
    ]  # fmt: skip


def test_partitions_are_written_as_records() -> None:
    assert parse("Dirichlet(0.3)") == parse("DirichletClass(alpha=0.3)") == DirichletClass(0.3)
    assert parse("CappedDirichlet(1, data_seed=None)") == CappedDirichlet(1.0, None)
    assert parse("Shards") == Shards(2)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--data", "my photos", "--partition", "Diri(0.3)"], "unknown partition 'Diri'; did you mean Dirichlet"),
        (["--data", "my photos", "--partition", "Dirichlet"], r"Dirichlet: give alpha, Dirichlet\(alpha=...\)"),
        (["--data", "my photos", "--partition", "Dirichlet(a())"], "options are name=value"),
        (["--data", "my photos", "--partition", "Dirichlet(-1)"], "alpha is a number above 0 .*, not -1"),
        (["--data", "my photos", "--partition", "Shards(colour=1)"], "unknown option of Shards.* 'colour'"),
        (["--data", "my photos", "--partition", "column:who"], "my photos has no column who of clients"),
        (["--data", "my photos", "--clients", "31"], "30 samples cannot give 31 clients 1 each; use fewer clients"),
        (["--data", "my photos", "--clients", "0"], "clients is a whole number at least 1 .*, not 0"),
        (
            ["--data", "my photos", "--partition", "Dirichlet(0.3)"],
            "no partition among 20 clients .*at least 10 samples each",
        ),
        (["--data", "my photos", "--clients", "2", "--partition", "ClassPerClient"], "2 clients cannot hold 3 classes"),
        (["--data", "their photos"], "their photos is not there: name a folder, or a file"),
        (["--data", "my photos", "--on", "sessions"], "sessions with my photos cannot be: .*; name a network"),
        (["--data", "my photos", "--model", "Net"], "'Net' names no network: write module:Class"),
        (["--model", "my_file:Net"], "own goes with --data FOLDER or --on BENCHMARK"),
        (["--data", "my photos", "--epochs", "0"], "epochs is a number above 0 or None, not 0.0"),
        (["--on", "virtual-time", "--epochs", "0.5"], "the event clock counts steps"),
        (
            ["--data", "my photos", "--clients", "31", "--partition", "FeatureNoise(1)"],
            "30 samples cannot give 31 clients",
        ),
        (["--data", "my photos", "--attack", "Scale(0.2)"], "unknown attack 'Scale'; did you mean Scaled"),
        (["--on", "fedagrac/fig1", "--attack", "FlippedLabels(0.2)"], "a function has no labels to flip"),
        (["--on", "sessions", "--by-client"], "sessions with by client cannot be: clients are told apart where"),
        (
            ["--on", "fedacs-static", "--partition", "column:who"],
            "column:who: columns are those of your own data: name them with --data",
        ),
    ],
)
def test_what_cannot_be_is_one_line(
    photos: Path, words: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["play", "fedavg", *words, *SMOKE]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert re.search(f"^error: .*{line}", lines[-1])
    assert not list(Path("results").rglob("*.parquet"))


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"target": "80"}, "target is a number above 0 or None, not '80'"),
        ({"seeds": 0}, "seeds is a tuple, each a whole number at least 0 .*, not 0"),
        ({"metrics": "auc"}, "unknown option of play 'metrics'; did you mean metric"),
        ({"metric": 3}, "metric is a word in quotes, not 3"),
        ({"grid": 3}, "grid is a tuple, each a number, not 3"),
        ({"partition": np.zeros(30)}, "the partition is a ndarray: write NAME"),
        ({"partition": Path("who.csv")}, "the partition who.csv has no rows with client and index"),
    ],
)
def test_a_value_of_another_type_is_one_line(photos: Path, given: dict[str, Any], line: str) -> None:
    with pytest.raises(UserError, match=f"^{line}") as error:
        play("fedavg", **{"data": "my photos", "clients": 3, "scale": "smoke", **given})
    assert "\n" not in str(error.value)


def test_what_can_be_iterated_is_a_list(photos: Path) -> None:
    options: dict[str, Any] = {"data": "my photos", "clients": 3, "scale": "smoke"}
    found = [play((name for name in ["fedavg"]), seeds=s, **options) for s in ([0, 1], np.arange(2), range(2))]
    assert [frame["seed"].tolist() for frame in found] == [[0, 1]] * 3


def test_a_library_says_nothing_besides_the_line(photos: Path) -> None:
    """In a process of its own, where the loggers of `datasets` write to stderr, and in a home that stays empty."""
    Path("mine.csv").write_text("a,label\n1,x\n2,y,3\n", encoding="utf-8")
    table().drop(columns="who").to_csv("good.csv", index=False)
    Path("home").mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(specs.__file__).parents[2]),
        "HOME": str(Path("home").resolve()),
    }
    for where, status, lines in (("mine.csv", 2, 1), ("good.csv", 0, 0)):
        command = [sys.executable, "-m", "reproduce", "play", "fedavg", "--data", where, *SMOKE, "--cost"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert (done.returncode, done.stderr.count("\n")) == (status, lines), done.stderr
    assert not list(Path("home").iterdir())
