"""Provenance of DeFedAvg's results: the pace moves from the clock into the system. Run once, then delete.

`python migrate_events.py` checks; `migrate(experiment)` transforms one declared record as it stands in a provenance.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def migrate(old: dict[str, Any]) -> dict[str, Any]:
    """A record {labels, problem, system, algorithm, clock} of before -> of now; a record of now stays as it is."""
    clock = old["clock"]
    if "schedule" not in clock:
        return old
    schedule = clock["schedule"]
    policy = schedule["policy"]
    assert old["system"] is None
    assert schedule["clients"] == old["problem"]["clients"]
    system = {
        "type": "System",
        "work": {"type": "Steps", "k": schedule["steps"]},
        "link": {"type": "Reliable"},
        "capacity": {"type": "FullCapacity"},
        "pace": {**schedule["costs"], "type": "Pace", "speeds": schedule["speeds"]},
    }
    new = {k: v for k, v in clock.items() if k != "schedule"}
    return {**old, "system": system, "clock": {**new, "policy": {**policy, "type": policy["type"] + "Policy"}}}


def check() -> None:
    """Every committed record of the paper, transformed, is what is declared now."""
    from pyarrow import parquet

    from reproduce.experiment import same
    from reproduce.papers.defedavg.artifacts import ARTIFACTS

    checked = 0
    for file in sorted(Path("results").glob("*/defedavg/*.parquet")):
        note = json.loads(parquet.read_schema(file).metadata[b"provenance"])
        panels = {p.name: p for a in ARTIFACTS for p in a.panels(note["scale"])}
        declared = {json.dumps(dict(e.labels), sort_keys=True): e for e in panels[note["panel"]].experiments}
        for record in note["experiments"]:
            new = migrate(record)
            assert migrate(new) == new
            e = declared[json.dumps(new["labels"], sort_keys=True)]
            parts = {name: getattr(e, name) for name in ("problem", "system", "algorithm", "clock")}
            wrong = [name for name, part in parts.items() if not same(new[name], part)]
            assert not wrong, (file, new["labels"], wrong)
            assert set(new) == {"labels", *parts}
            checked += 1
        print(f"{file}: {len(note['experiments'])} records are today's declarations")
    assert checked


if __name__ == "__main__":
    check()
