"""`reproduce partition`: what it says."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from reproduce.__main__ import main
from reproduce.cli.partition import holdings
from reproduce.engine.client_split import ClientSplits
from reproduce.partitions.labels import IID
from reproduce.partitions.split import split
from reproduce.play.benchmarks import find
from reproduce.settings import settings
from tests.partitions.test_exported import digits


def test_the_table_against_a_plain_count(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["partition", "fedagrac-steps", "--scale", "smoke"]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["CLIENT", "SAMPLES", "CLASSES", "LARGEST", "SHARE", "ENTROPY", "TEST"]
    task = ClientSplits(settings()).get(find("fedagrac-steps", "smoke").template.problem, 0)
    for client, (part, line) in enumerate(zip(task.indices, lines, strict=False)):
        series = pd.Series(task.device_data.labels[part]).value_counts(normalize=True)
        entropy = -(series * np.log2(series)).sum()
        assert line.split() == [
            str(client), f"{len(part):,}", str(len(series)), str(series.idxmax()), f"{series.max():.1%}",
            f"{abs(entropy):.2f}", "-",
        ]  # fmt: skip


def test_holdings_of_clients_with_one_class_or_none() -> None:
    found = split(digits(IID(), 2), 0, settings())
    ones = np.flatnonzero(found.labels[0] == 1)
    one, none = holdings(replace(found, parts=([ones, ones[:0]],))).drop(columns=["client", "test"]).to_numpy().tolist()
    assert one == [len(ones), 1, 1, 1.0, 0.0]
    assert none == [0, 0, None, 0.0, 0.0]


def test_neither_the_help_nor_the_command_imports_torch() -> None:
    code = (
        "import sys; from reproduce.__main__ import main\ntry: main(sys.argv[1:])\n"
        "finally: print(*{'torch', 'transformers', 'datasets'} & set(sys.modules), file=sys.stderr)"
    )
    for words in (["--help"], ["sessions", "--scale", "smoke"]):
        line = [sys.executable, "-c", code, "partition", *words]
        assert subprocess.run(line, capture_output=True, text=True, check=True).stderr == "\n"
