"""The files of the package agree: dependencies, locked versions, environment, configuration, profiles, licence."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from packaging.requirements import Requirement

from reproduce.errors import UserError
from reproduce.files import read_yaml

ROOT = Path(__file__).parent.parent


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def load_yaml(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


def locked() -> dict[str, str]:
    """Name -> exact version of constraints.txt."""
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*", line) for line in lines), "exact, public versions"
    return {canonical(name): version for name, version in (line.split("==") for line in lines)}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_locked_versions_satisfy_the_dependencies() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    declared = [
        *project()["dependencies"],
        *project()["optional-dependencies"]["workflow"],
        *groups["dev"],
        *groups["docs"],
    ]
    versions = locked()
    for requirement in map(Requirement, declared):
        assert versions[canonical(requirement.name)] in requirement.specifier, requirement
        assert requirement.specifier, f"{requirement.name}: a dependency has a range of versions"


TORCH = {"torch", "torchvision", "sympy", "mpmath", "networkx"}
"""torch, and what nothing else needs."""


def test_the_locks_have_the_versions_of_the_constraints_with_hashes() -> None:
    found = {}
    for name in ("workflow", "dev"):
        text = (ROOT / f"locks/{name}.txt").read_text().replace("\\\n", " ")
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        assert all("--hash=sha256:" in line for line in lines)
        found[name] = {canonical(line.split("==")[0]): line.split("==")[1].split()[0] for line in lines}
    assert found["dev"] == {name: version for name, version in locked().items() if name not in TORCH}
    assert found["workflow"].items() < found["dev"].items()
    direct = [*project()["dependencies"], *project()["optional-dependencies"]["workflow"]]
    assert {canonical(Requirement(each).name) for each in direct} - TORCH <= set(found["workflow"])


def test_configuration_is_valid_and_shows_every_key_with_its_default() -> None:
    schema, config = load_yaml("config/config.schema.yaml"), load_yaml("config/config.yaml")
    jsonschema.validate(config, schema)
    assert config == {key: entry["default"] for key, entry in schema["properties"].items()}
    readme = (ROOT / "config/README.md").read_text()
    assert set(re.findall(r"^\| `(\w+)` \|", readme, flags=re.MULTILINE)) == set(config)


def test_licence_citation_and_what_archives_read_agree() -> None:
    assert "MIT License" in (ROOT / "LICENSE").read_text()
    cited, zenodo, code = load_yaml("CITATION.cff"), load_yaml(".zenodo.json"), load_yaml("codemeta.json")
    declared = project()
    assert declared["license"] == cited["license"] == zenodo["license"] == code["license"].rpartition("/")[2] == "MIT"
    assert declared["version"] == cited["version"] == zenodo["version"] == code["version"]
    assert declared["keywords"] == cited["keywords"] == zenodo["keywords"] == code["keywords"]
    assert (
        declared["authors"] == cited["authors"] == zenodo["creators"] == [{"name": a["name"]} for a in code["author"]]
    )
    assert cited["abstract"] == zenodo["description"] == code["description"]
    assert (declared["name"], cited["title"]) == (code["name"], zenodo["title"])
    assert code["runtimePlatform"] == f"Python {declared['requires-python']}"
    papers = [work["url"] for work in cited["references"]]
    assert papers == [work["url"] for work in code["referencePublication"]]
    numbers = [work["identifier"] for work in zenodo["related_identifiers"]]
    assert numbers == [f"arXiv:{url.rpartition('/')[2]}" for url in papers]
    assert len(papers) == 5


LARGEST = 1_000_000
LARGER = {
    "results/paper/cells/dynamic_init_table3.csv", "results/reduced/fedacs/fig7-dynamic.parquet",
    "results/reduced/fedacs/fig7-static.parquet",
}  # fmt: skip
"""Numbers of two hundred and more runs each, in one file as they are read."""


def test_no_file_of_the_repository_is_large() -> None:
    """A file that grows beyond it makes every clone larger for ever."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    if not listed:
        pytest.skip("no clone: nothing says which files are committed")
    large = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    large = {name for name in large if (ROOT / name).stat().st_size > LARGEST}
    assert large <= LARGER, f"too large: {', '.join(sorted(large - LARGER))}"


def test_every_file_of_data_in_the_package_is_shipped() -> None:
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["*"]
    files = [p for p in (ROOT / "reproduce").rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    data = {p.suffix for p in files if p.suffix != ".py"}
    assert data <= {pattern.removeprefix("*") for pattern in patterns}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a: 1\na: 2", "is not YAML: the key 'a' occurs twice"),
        (b"a: {b: 1, c: 2, b: 3}", "is not YAML: the key 'b' occurs twice"),
        (b"a: !!python/name:os.system", "is not YAML: could not determine a constructor"),
        (b"a: b: c", "is not YAML: "),
        (b"a: " + b"[" * 5000, "is not YAML: "),
        (b"? [1]\n: 2", "is not YAML: "),
        ("a: \N{LATIN SMALL LETTER U WITH DIAERESIS}".encode("latin-1"), "not text in UTF-8"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "a.yaml").write_bytes(data)
    with pytest.raises(UserError, match=words) as refused:
        read_yaml(tmp_path / "a.yaml")
    assert "\n" not in str(refused.value)


def test_every_file_of_the_repository_is_read() -> None:
    found = [*ROOT.glob("config/*.yaml"), *ROOT.glob("profiles/*/*.yaml"), *ROOT.glob("reproduce/papers/*/claims.yaml")]
    assert len(found) >= 8
    assert all(map(read_yaml, found))
