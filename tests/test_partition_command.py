"""`reproduce partition`: what it says and draws."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_partition_file import digits, problem_of

from reproduce.__main__ import main
from reproduce.engine.client_split import ClientSplits
from reproduce.partitions.labels import IID
from reproduce.partitions.split import split
from reproduce.report.partition import holdings
from reproduce.settings import settings

# --- the command ------------------------------------------------------------------------------------------------------


def test_the_table_against_a_plain_count(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["partition", "fedagrac-steps", "--scale", "smoke"]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["CLIENT", "SAMPLES", "CLASSES", "LARGEST", "SHARE", "ENTROPY", "TEST"]
    task = ClientSplits(settings()).get(problem_of("fedagrac-steps"), 0)
    for client, (part, line) in enumerate(zip(task.indices, lines, strict=False)):
        series = pd.Series(task.device_data.labels[part]).value_counts(normalize=True)
        entropy = -(series * np.log2(series)).sum()
        assert line.split() == [
            str(client), f"{len(part):,}", str(len(series)), str(series.idxmax()), f"{series.max():.1%}",
            f"{abs(entropy):.2f}", "-",
        ]  # fmt: skip
    sizes = sorted(map(len, task.indices))
    said = next(line for line in lines if line.startswith("samples per client"))
    found = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+) \(client", said)]
    assert found == [sizes[0], sizes[(len(sizes) - 1) // 2], sizes[-1]]


def test_holdings_of_clients_with_one_class_or_none() -> None:
    found = split(digits(IID(), 2), 0, settings())
    ones = np.flatnonzero(found.labels[0] == 1)
    one, none = holdings(replace(found, parts=([ones, ones[:0]],))).drop(columns=["client", "test"]).to_numpy().tolist()
    assert one == [len(ones), 1, 1, 1.0, 0.0]
    assert none == [0, 0, None, 0.0, 0.0]


@pytest.mark.parametrize("ending", [".png", ".pdf"])
def test_it_is_drawn(ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, other = tmp_path / "new" / f"who{ending}", tmp_path / "who.parquet"
    assert main(["partition", "virtual-time", "--scale", "smoke", "-o", str(file), "-o", str(other)]) == 0
    assert file.read_bytes()[:4] == {".png": b"\x89PNG", ".pdf": b"%PDF"}[ending]
    assert capsys.readouterr().out.endswith(f"written: {file}\nwritten: {other}\n")


def test_neither_the_help_nor_the_command_imports_torch() -> None:
    code = (
        "import sys; from reproduce.__main__ import main\ntry: main(sys.argv[1:])\n"
        "finally: print(*{'torch', 'transformers', 'datasets'} & set(sys.modules), file=sys.stderr)"
    )
    for words in (["--help"], ["sessions", "--scale", "smoke"]):
        line = [sys.executable, "-c", code, "partition", *words]
        assert subprocess.run(line, capture_output=True, text=True, check=True).stderr == "\n"
