"""Cells as they are committed, with their record."""

import json
from pathlib import Path

import pandas as pd

from reproduce import store


def put(folder: Path, name: str, frame: pd.DataFrame) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    frame.to_csv(folder / f"{name}.csv", index=False)
    store.record(folder / f"{name}.csv").write_text(json.dumps(store.sealed({}, folder / f"{name}.csv")))
