"""`python -m benchmarks.crate` (`make crate`): where all committed results come from, for machines.

A Workflow Run RO-Crate, made from the provenance in the files.

An action for each training (a job may have several), one for each table or figure. Files have their checksums, as they
lie there; the data sets, which are not part of the crate, those that they had when they were read.

https://www.researchobject.org/workflow-run-crate/profiles/workflow_run_crate/ (version 0.5)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from reproduce.declare.artifact import Artifact
from reproduce.declare.experiment import SCALES
from reproduce.declare.paper import artifacts
from reproduce.errors import UserError
from reproduce.files import read_yaml, write_text
from reproduce.runs import plan, results
from reproduce.store import Stored
from reproduce.text import counted, named_seeds

FILE = Path("ro-crate-metadata.json")
WORKFLOW = "Snakefile"
RUN = "https://w3id.org/ro/wfrun/"
PROFILES = {
    f"{RUN}process/0.5": "Process Run Crate",
    f"{RUN}workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
TERMS = {"sha256": "http://schema.org/sha256", "ComputationalWorkflow": "https://bioschemas.org/ComputationalWorkflow"}
"""What versions of the context of RO-Crate lack, or say otherwise."""
Entity = dict[str, Any]


class Graph:
    """Entities by their id, each once."""

    def __init__(self) -> None:
        self.entities: dict[str, Entity] = {}

    def add(self, id: str, type: str | list[str], **properties: Any) -> Entity:
        """A reference to the entity; it is made unless it is there."""
        self.entities.setdefault(id, {"@id": id, "@type": type, **properties})
        return {"@id": id}

    def file(self, path: str) -> Entity:
        """A file of the working directory, with its checksum."""
        if path in self.entities:
            return {"@id": path}
        held = Path(path).read_bytes()
        told = {"contentSize": str(len(held)), "sha256": hashlib.sha256(held).hexdigest()}
        return self.add(path, "File", name=Path(path).name, **told)

    def of(self, type: str) -> list[Entity]:
        """References to the entities of a type."""
        return [{"@id": id} for id, entity in self.entities.items() if type in (entity["@type"], *entity["@type"][:1])]


def crate() -> Entity:
    """The metadata of a crate whose root is the working directory. UserError if nothing is trained there."""
    cited = read_yaml(Path("CITATION.cff"))
    graph = Graph()
    author = graph.add("#authors", "Organization", name=cited["authors"][0]["name"])
    language = graph.add("#snakemake", "ComputerLanguage", name="Snakemake", url="https://snakemake.github.io")
    what = ["File", "SoftwareSourceCode", "ComputationalWorkflow"]
    graph.add(WORKFLOW, what, name=cited["title"], programmingLanguage=language, version=cited["version"])
    made = [when for scale in SCALES for job in plan.jobs(scale) for when in _trainings(graph, job, author)]
    for scale in SCALES:
        for artifact in artifacts():
            _drawing(graph, artifact, scale, author)
    if not made:
        raise UserError("nothing is trained here: `snakemake paper --cores 2` trains what the papers ran")
    told = {"name": cited["title"], "description": cited["abstract"], "datePublished": max(made)[:10]}
    id = cited["license"]
    license = graph.add(f"https://spdx.org/licenses/{id}", "CreativeWork", name=f"{id} licence")
    named = PROFILES.items()
    profiles = [graph.add(id, "CreativeWork", name=name, version=id.rpartition("/")[2]) for id, name in named]
    root = {"conformsTo": profiles, "license": license, "author": author, "mainEntity": {"@id": WORKFLOW}}
    parts = {"hasPart": graph.of("File"), "mentions": graph.of("CreateAction")}
    graph.add("./", "Dataset", **told, **root, **parts)
    of = [{"@id": "https://w3id.org/ro/crate/1.1"}, {"@id": [*PROFILES][2]}]
    graph.add(FILE.name, "CreativeWork", conformsTo=of, about={"@id": "./"})
    context = ["https://w3id.org/ro/crate/1.1/context", TERMS]
    return {"@context": context, "@graph": [*graph.entities.values()]}


def _trainings(graph: Graph, job: plan.Job, author: Entity) -> Iterable[str]:
    """An action for each training of the runs of a job that can be used; yields when each was made."""
    trainings: dict[int, list[Stored]] = {}
    for run in results.standing(job).stored:
        trainings.setdefault(id(run.training), []).append(run)
    for number, runs in enumerate(trainings.values()):
        note = runs[0].training
        end = datetime.fromisoformat(note["date"])
        begin = end - timedelta(seconds=float(note.get("seconds") or 0))
        data = [_value(graph, f"data/{name}", sha256, "sha256") for name, sha256 in sorted(note["data"].items())]
        codes = [_value(graph, "code/package", code, "digest of the code") for code in sorted({r.code for r in runs})]
        seeds = named_seeds(sorted({run.seed for run in runs}))
        graph.add(
            f"#{job.scale}/{job.paper}/{job.name}/{number}", "CreateAction",
            name=f"reproduce train {job.paper} {job.name} --scale {job.scale}",
            description=f"{counted(len(runs), 'run')}, {seeds}, {note['device']}, {runs[0].precision}",
            instrument=_software(graph, note), agent=author, object=[*data, *codes], result=[graph.file(job.output)],
            startTime=begin.isoformat(), endTime=end.isoformat(),
        )  # fmt: skip
        yield end.isoformat()


def _software(graph: Graph, note: Mapping[str, Any]) -> Entity:
    """This package at a commit ("+": and changes that were not committed), with what it ran on."""
    versions = dict(sorted(note["versions"].items()))
    needs = [graph.add(f"#{n}-{v}", "SoftwareApplication", name=n, softwareVersion=v) for n, v in versions.items()]
    id = f"#reproduce-{note['git']}-{'-'.join(versions.values())}"
    told = {"name": "reproduce", "softwareVersion": note["git"], "softwareRequirements": needs}
    return graph.add(id, "SoftwareApplication", **told)


def _value(graph: Graph, name: str, value: str, kind: str) -> Entity:
    told = {"name": name.partition("/")[2], "propertyID": kind, "value": value}
    return graph.add(f"#{name}/{value[:16]}", "PropertyValue", **told)


def _drawing(graph: Graph, artifact: Artifact, scale: str, author: Entity) -> None:
    """The action that made a table or figure of results files, if it is there."""
    made = [path for path in plan.outputs(scale, artifact.id) if Path(path).is_file()]
    read = [job.output for job in plan.artifact_jobs(scale, artifact.id) if results.standing(job).usable]
    if made:
        graph.add(
            f"#{scale}/{artifact.id}", "CreateAction", name=f"reproduce render {artifact.id} --scale {scale}",
            description=f"{artifact.title}, at {scale} scale", instrument={"@id": WORKFLOW}, agent=author,
            object=[graph.file(path) for path in dict.fromkeys(read)], result=[graph.file(path) for path in made],
        )  # fmt: skip


def write() -> None:
    """`FILE` in the working directory."""
    write_text(FILE, json.dumps(crate(), indent=1, ensure_ascii=False) + "\n")
    print(f"Written: {FILE}")


if __name__ == "__main__":
    write()
