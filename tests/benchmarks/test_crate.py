"""The RO-Crate: what it says is what lies there, and the profile's validator finds nothing to say."""

import hashlib
import json
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from benchmarks.crate import write
from reproduce import store
from reproduce.__main__ import main

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place to work in, with what the crate is told of."""
    for name in ("CITATION.cff", "Snakefile"):
        shutil.copy(ROOT / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def made(folder: Path) -> dict[str, Any]:
    """The crate of one job and one figure."""
    assert main(["train", "fedagrac", "fig1", "--scale", "smoke"]) == 0
    assert main(["render", "fedagrac/fig1", "--scale", "smoke"]) == 0
    write()
    return json.loads(Path("ro-crate-metadata.json").read_text(encoding="utf-8"))


def test_files_actions_and_inputs_are_those_of_the_results(made: dict[str, Any]) -> None:
    graph = {entity["@id"]: entity for entity in made["@graph"]}
    assert len(graph) == len(made["@graph"])
    named = [part["@id"] for part in graph["./"]["hasPart"]]
    for name in named:
        assert name == "Snakefile" or graph[name]["sha256"] == hashlib.sha256(Path(name).read_bytes()).hexdigest()
    trained = {str(f) for f in Path("results").glob("*/*/*.parquet")}
    drawn = {str(f) for f in Path("figures").glob("*/*")}
    assert trained | drawn < set(named)
    actions = [graph[action["@id"]] for action in graph["./"]["mentions"]]
    for action in actions:
        if action["name"].startswith("reproduce train"):
            ((_, first),) = [(r["@id"], store.result(Path(r["@id"]))[1][0].training) for r in action["result"]]
            software = graph[action["instrument"]["@id"]]
            needs = {
                graph[n["@id"]]["name"]: graph[n["@id"]]["softwareVersion"] for n in software["softwareRequirements"]
            }
            assert (software["softwareVersion"], needs) == (first["git"], first["versions"])
            values = {graph[v["@id"]]["name"]: graph[v["@id"]]["value"] for v in action["object"]}
            assert values.items() >= first["data"].items()
            assert action["endTime"] == first["date"]
        assert all(made["@id"] in named for made in action["result"])
    assert {r["@id"] for a in actions for r in a["result"]} >= trained | drawn


@pytest.mark.filterwarnings("ignore")
def test_the_validator_of_the_profile_passes_it_and_not_another(
    made: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without network: the context of JSON-LD, which is all that it fetches, is that of the package rocrate."""
    services = pytest.importorskip("rocrate_validator.services", reason="roc-validator is not installed")
    http = pytest.importorskip("rocrate_validator.utils.http")
    text = (files(pytest.importorskip("rocrate")) / "data/ro-crate.jsonld").read_text(encoding="utf-8")

    class Answer:
        status_code, ok, headers, links, content = 200, True, {"Content-Type": "application/ld+json"}, {}, text.encode()
        json, raise_for_status = staticmethod(lambda: json.loads(text)), staticmethod(lambda: None)

    asked = set()

    def get(self: Any, url: str, **_: Any) -> Answer:
        asked.add(url)
        return Answer()

    for method in ("get", "head", "fetch_fresh"):
        monkeypatch.setattr(http.HttpRequester, method, get, raising=False)

    def passes() -> bool:
        found = services.validate(services.ValidationSettings(rocrate_uri=".", profile_identifier="workflow-run-crate"))
        return bool(found.passed())

    assert passes()
    assert asked == {"https://w3id.org/ro/crate/1.1/context"}
    for entity in made["@graph"]:
        if entity["@type"] == "CreateAction":
            del entity["instrument"]
    Path("ro-crate-metadata.json").write_text(json.dumps(made), encoding="utf-8")
    assert not passes()
