from reproduce.workflow import configuration, questions
from reproduce.runs import costs, plan


configfile: configuration.file(workflow)


shell.prefix(configuration.apply(workflow, config))
PYTHON, asked = questions.PYTHON, questions.Asked(workflow, config)


onstart:
    asked.begin()


onsuccess:
    asked.end()


wildcard_constraints:
    scale="|".join(plan.SCALES),
    paper="[a-z_]+",
    name="[a-z0-9]+",
    job="[a-z0-9-]+",
    misnamed=questions.MISNAMED,


ruleorder: figure > table > misnamed


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
            update([questions.shown(file) for file in made.files]),
        log:
            made.log,
        priority: made.numbers
        localrule: True
        params:
            commands=made.commands,
        shell:
            "({params.commands}) 2>&1 | tee {log}"


rule train:
    input:
        asked.again,
    output:
        update("results/{scale}/{paper}/{job}.parquet"),  # if the training fails, what is there stays
    log:
        "logs/{scale}/{paper}/{job}.log",
    threads: config["threads"]
    resources:
        runtime=lambda w, attempt: attempt * costs.minutes(w.scale, w.paper, w.job),
        mem_mb=lambda w, attempt: attempt * costs.megabytes(w.scale, w.paper, w.job),
        gpu=costs.gpus(),
    params:
        python=PYTHON,
    shell:
        "{params.python:q} -m reproduce train --scale {wildcards.scale} {wildcards.paper} {wildcards.job} "
        "-o {output} > {log} 2>&1"


for kind, endings in plan.ENDINGS.items():

    rule:
        name:
            kind
        input:
            jobs=asked.results,
            due=asked.marker,
        output:
            [questions.shown(f"{kind}s/{{scale}}/{{paper}}_{{name}}{ending}") for ending in endings],
            multiext("results/{scale}/cells/{paper}_{name}", ".csv", ".json"),
        log:
            "logs/{scale}/render/{paper}_{name}.log",
        wildcard_constraints:
            paper=questions.PAPER[kind],
        localrule: True
        params:
            python=PYTHON,
        shell:
            "set -o pipefail; "
            "{params.python:q} -m reproduce render --scale {wildcards.scale} {wildcards.paper}/{wildcards.name} 2>&1 | tee {log}"


rule misnamed:
    input:
        lambda w: configuration.check(w.misnamed),
    output:
        "{misnamed}",
    localrule: True
