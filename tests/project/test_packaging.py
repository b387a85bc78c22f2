"""The files of the package agree: dependencies, locked versions, environment, configuration, profiles, licence."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from packaging.requirements import Requirement

from reproduce.errors import UserError
from reproduce.files import read_yaml

ROOT = Path(__file__).parents[2]


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
    "results/paper/cells/dynamic_init_table3.csv", "results/paper/cells/dynamic_init_readings.csv",
    "results/reduced/fedacs/fig7-dynamic.parquet",
    "results/reduced/fedacs/fig7-static.parquet", "results/paper/dynamic_init/crossed-half-mnist--fedavg.parquet",
    "results/paper/dynamic_init/crossed-partial-overlap-fashion-mnist--fedavg.parquet",
    "results/paper/dynamic_init/crossed-partial-overlap-mnist--fedavg.parquet",
    "results/paper/dynamic_init/crossed-distinct-mnist--fedavg.parquet",
    *(f"results/paper/dynamic_init/shards-{n}-groups-of-{m}-mnist--fedavg.parquet" for n in (2, 3) for m in (1, 2)),
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


def test_what_the_package_imports_is_what_it_asks_for() -> None:
    """Without an extra all commands run; only the Snakefile needs Snakemake."""
    imported = set()
    for file in (ROOT / "reproduce").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            imported |= {(name.partition(".")[0], file.name) for name in names}
    of = packages_distributions()
    found = {
        canonical(of[name][0]) for name, file in imported if name in of and (name, file) != ("snakemake", "workflow.py")
    }
    of_transformers = {"safetensors", "tokenizers"}
    assert found - {"reproduce"} - of_transformers == {
        canonical(Requirement(d).name) for d in project()["dependencies"]
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution and the wheel, made of what git knows, unpacked."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    if not listed:
        pytest.skip("no clone: nothing says which files are committed")
    folder, made = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("built")
    for name in filter(None, listed.split("\0")):
        if not re.match(r"(results|figures|tables|play)/.*/", name) and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    build = "from setuptools import build_meta as b; b.build_sdist('{0}'), b.build_wheel('{0}')"
    subprocess.run([sys.executable, "-c", build.format(made)], cwd=folder, capture_output=True, check=True)
    for archive, form in ((next(made.glob("*.tar.gz")), "gztar"), (next(made.glob("*.whl")), "zip")):
        shutil.unpack_archive(archive, made / form, form, **({"filter": "data"} if form == "gztar" else {}))
    return made


def test_the_source_distribution_has_what_a_build_and_the_workflow_read(built: Path) -> None:
    """Every committed file that is no result, and what `make smoke` compares with."""
    (source,) = (built / "gztar").iterdir()
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    elsewhere = re.compile(r"(results|figures|tables|play)/.*/|\.ci/|\.git|\.dockerignore|Containerfile")
    assert [name for name in listed if not elsewhere.match(name) and not (source / name).is_file()] == []


def test_a_wheel_works_outside_a_clone(built: Path, tmp_path: Path) -> None:
    """What needs results says so in a line; with results, though nothing was made of them, there is a page."""

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("REPRODUCE_")}
        environment["PYTHONPATH"] = str(built / "zip")
        command = [sys.executable, "-m", "reproduce", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert (built / "zip/reproduce/__main__.py").is_file()
    for arguments in (("verify",), ("report",), ("render", "fedacs/fig1")):
        run = call(*arguments)
        assert (run.returncode, len(run.stderr.splitlines())) == (2, 1)
        assert f"{tmp_path} is not the folder of the project" in run.stderr
    (tmp_path / "results/reduced").mkdir(parents=True)
    for arguments in (("verify", "--scale", "reduced", "fiarse"), ("report", "--scale", "reduced")):
        run = call(*arguments)
        assert run.returncode == 0, run.stderr
    assert (tmp_path / "report/reduced/index.html").is_file()


def test_conda_brings_a_python_that_was_tried() -> None:
    """torch has no wheels for every newer one."""
    (wanted,) = (Requirement(d) for d in load_yaml("environment.yml")["dependencies"] if str(d).startswith("python"))
    minors = [int(line.rpartition(".")[2]) for line in project()["classifiers"] if "Python :: 3." in line]
    assert [minor for minor in range(30) if f"3.{minor}" in wanted.specifier] == [*range(min(minors), max(minors) + 1)]
