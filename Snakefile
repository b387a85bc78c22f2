import os
import sys
from snakemake.utils import min_version, validate

from reproduce import plan

min_version("9.20")


configfile: "config/config.yaml"


validate(config, "config/config.schema.yaml")
os.environ.update(plan.environment(config))


wildcard_constraints:
    scale="|".join(plan.SCALES),
    paper="[a-z_]+",
    name="[a-z0-9]+",
    job="[a-z0-9-]+",


def results(wildcards):
    return plan.job_files(wildcards.scale, f"{wildcards.paper}/{wildcards.name}")


def everything(scale):
    return [*plan.artifact_files(scale), f"report/{scale}/index.html"]


rule all:
    default_target: True
    input:
        lambda w: everything(config["scale"]),
    localrule: True


rule smoke:
    input:
        lambda w: everything("smoke"),
    localrule: True


rule reduced:
    input:
        lambda w: everything("reduced"),
    localrule: True


rule paper:
    input:
        lambda w: everything("paper"),
    localrule: True


rule report_smoke:
    input:
        "report/smoke/index.html",
    localrule: True


rule report_reduced:
    input:
        "report/reduced/index.html",
    localrule: True


rule report_paper:
    input:
        "report/paper/index.html",
    localrule: True


rule train:
    output:
        "results/{scale}/{paper}/{job}.parquet",
    log:
        "logs/{scale}/{paper}/{job}.log",
    benchmark:
        "logs/{scale}/{paper}/{job}.jsonl"
    threads: config["threads"]
    resources:
        runtime=lambda w, attempt: attempt * plan.minutes(w.scale, w.paper, w.job),
        mem_mb=lambda w, attempt: attempt * plan.megabytes(w.scale, w.paper, w.job),
        gpu=plan.gpus(),
    params:
        python=sys.executable,
        digest=lambda w: plan.digest(w.scale, w.paper, w.job),
    shell:
        "{params.python} -m reproduce train {wildcards.scale} {wildcards.paper} {wildcards.job} -o {output} > {log} 2>&1"


rule figure:
    input:
        results,
    output:
        multiext("figures/{scale}/{paper}_{name}", ".pdf", ".png"),
        "results/{scale}/cells/{paper}_{name}.csv",
    log:
        "logs/{scale}/render/{paper}_{name}.log",
    wildcard_constraints:
        name="(?!table)[a-z0-9]+",
    localrule: True
    params:
        python=sys.executable,
        digest=lambda w: plan.render_digest(f"{w.paper}/{w.name}"),
    shell:
        "{params.python} -m reproduce render {wildcards.scale} {wildcards.paper}/{wildcards.name} 2>&1 | tee {log}"


rule table:
    input:
        results,
    output:
        multiext("tables/{scale}/{paper}_{name}", ".md", ".csv", ".tex"),
        "results/{scale}/cells/{paper}_{name}.csv",
    log:
        "logs/{scale}/render/{paper}_{name}.log",
    wildcard_constraints:
        name="table[a-z0-9]*",
    localrule: True
    params:
        python=sys.executable,
        digest=lambda w: plan.render_digest(f"{w.paper}/{w.name}"),
    shell:
        "{params.python} -m reproduce render {wildcards.scale} {wildcards.paper}/{wildcards.name} 2>&1 | tee {log}"


rule report:
    input:
        lambda w: plan.artifact_files(w.scale),
    output:
        "report/{scale}/index.html",
    log:
        "logs/{scale}/report.log",
    localrule: True
    params:
        python=sys.executable,
    shell:
        "{params.python} -m reproduce report {wildcards.scale} 2>&1 | tee {log}"
