from reproduce.workflow import PAPER, Asked, file, job_of, kept
from reproduce.runs import costs, plan
from reproduce.settings import settings


configfile: file(workflow)


asked = Asked(workflow, config)


onstart:
    asked.begin()


onsuccess:
    asked.end()


wildcard_constraints:
    scale="|".join(plan.SCALES),
    paper="[a-z_]+",
    name="[a-z0-9]+",
    job="[a-z0-9-]+",
    part="[0-9]+",


for each, files in asked.aliases().items():

    rule:
        name:
            each
        default_target: each == asked.default
        input:
            files,
        localrule: True


for each, made in asked.made().items():

    rule:
        name:
            each
        input:
            made.inputs,
        output:
            made.files,
        log:
            made.log,
        localrule: True
        params:
            commands=made.commands,
        shell:
            "({params.commands}) 2>&1 | tee {log}"


# The results file is not what this rule makes: if a training fails on whatever machine, Snakemake removes the output.
rule train:
    input:
        asked.before,
    output:
        touch("logs/{scale}/{paper}/{job}.due/trained"),
    log:
        "logs/{scale}/{paper}/{job}.log",
    threads: config["threads"]
    resources:
        runtime=lambda w, attempt: costs.minutes(job_of(w), attempt),
        mem_mb=lambda w, attempt: costs.megabytes(job_of(w), attempt),
        gpu=int(settings().device == "cuda"),
    params:
        command=asked.training,
    shell:
        "({params.command}) > {log} 2>&1"


# The first parts of a training that takes longer than a cluster lets a job run: each ends in time, with a checkpoint.
use rule train as part with:
    output:
        temp(touch("logs/{scale}/{paper}/{job}.due/part{part}")),
    log:
        "logs/{scale}/{paper}/{job}.part{part}.log",


rule result:
    input:
        asked.again,
    output:
        "results/{scale}/{paper}/{job}.parquet",
    localrule: True


for kind, endings in plan.ENDINGS.items():

    rule:
        name:
            kind
        input:
            jobs=asked.results,
            due=asked.marker,
        output:
            kept(f"{kind}s/{{scale}}/{{paper}}_{{name}}{ending}" for ending in endings),
            kept(multiext("results/{scale}/cells/{paper}_{name}", ".csv", ".json")),
        log:
            "logs/{scale}/render/{paper}_{name}.log",
        wildcard_constraints:
            paper=PAPER[kind],
        localrule: True
        params:
            command=asked.command,
        shell:
            "set -o pipefail; "
            "{params.command} render --scale {wildcards.scale} {wildcards.paper}/{wildcards.name} 2>&1 | tee {log}"
