from reproduce.workflow import PAPER, PYTHON, Asked, apply, file
from reproduce.runs import costs, plan
from reproduce.settings import settings


configfile: file(workflow)


shell.prefix(apply(workflow, config))
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
        default_target: each == "all"
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
            update(made.files),
        log:
            made.log,
        localrule: True
        params:
            commands=made.commands,
        shell:
            "({params.commands}) 2>&1 | tee {log}"


rule train:
    input:
        asked.again,
        before=asked.before,
    output:
        update("results/{scale}/{paper}/{job}.parquet"),  # if the training fails, what is there stays
    log:
        "logs/{scale}/{paper}/{job}.log",
    threads: config["threads"]
    resources:
        runtime=lambda w, attempt: costs.minutes(w.scale, w.paper, w.job, attempt),
        mem_mb=lambda w, attempt: costs.megabytes(w.scale, w.paper, w.job, attempt),
        gpu=int(settings().device == "cuda"),
    params:
        command=asked.command,
    shell:
        "({params.command}) > {log} 2>&1"


# The first parts of a training that takes longer than a cluster lets a job run: each ends in time, with a checkpoint.
use rule train as part with:
    input:
        before=asked.before,
    output:
        temp(touch("logs/{scale}/{paper}/{job}.due/part{part}")),
    log:
        "logs/{scale}/{paper}/{job}.part{part}.log",


for kind, endings in plan.ENDINGS.items():

    rule:
        name:
            kind
        input:
            jobs=asked.results,
            due=asked.marker,
        output:
            [f"{kind}s/{{scale}}/{{paper}}_{{name}}{ending}" for ending in endings],
            multiext("results/{scale}/cells/{paper}_{name}", ".csv", ".json"),
        log:
            "logs/{scale}/render/{paper}_{name}.log",
        wildcard_constraints:
            paper=PAPER[kind],
        localrule: True
        params:
            python=PYTHON,
        shell:
            "set -o pipefail; "
            "{params.python:q} -m reproduce render --scale {wildcards.scale} {wildcards.paper}/{wildcards.name} 2>&1 | tee {log}"
