from reproduce.workflow import PAPER, RuleInputs, file, job_of, updated
from reproduce.runs import costs, plan
from reproduce.settings import settings


configfile: file(workflow)


inputs = RuleInputs(workflow, config)


onstart:
    inputs.begin()


onsuccess:
    inputs.end()


wildcard_constraints:
    scale="|".join(plan.SCALES),
    paper="[a-z_]+",
    name="[a-z0-9]+",
    job="[a-z0-9-]+",
    part="[0-9]+",


for each, files in inputs.aliases().items():

    rule:
        name:
            each
        default_target: each == inputs.default
        input:
            files,
        localrule: True


for each, fixed in inputs.fixed_rules().items():

    rule:
        name:
            each
        input:
            fixed.inputs,
        output:
            fixed.files,
        log:
            fixed.log,
        localrule: True
        params:
            commands=fixed.commands,
        shell:
            "({params.commands}) 2>&1 | tee {log}"


# The results file is not what this rule makes: if a training fails on whatever machine, Snakemake removes the output.
rule train:
    input:
        inputs.before,
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
        command=inputs.training,
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
        inputs.again,
    output:
        "results/{scale}/{paper}/{job}.parquet",
    localrule: True


for kind, endings in plan.ENDINGS.items():

    rule:
        name:
            kind
        input:
            jobs=inputs.results,
            due=inputs.marker,
        output:
            updated(f"{kind}s/{{scale}}/{{paper}}_{{name}}{ending}" for ending in endings),
            updated(multiext("results/{scale}/cells/{paper}_{name}", ".csv", ".json")),
        log:
            "logs/{scale}/render/{paper}_{name}.log",
        wildcard_constraints:
            paper=PAPER[kind],
        localrule: True
        params:
            command=inputs.command,
        shell:
            "set -o pipefail; "
            "{params.command} render --scale {wildcards.scale} {wildcards.paper}/{wildcards.name} 2>&1 | tee {log}"
