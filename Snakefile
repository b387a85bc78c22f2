import sys
from pathlib import Path
from snakemake.utils import min_version

from reproduce.errors import check_platform

check_platform()
from reproduce.cli import configuration, plays, watch
from reproduce.runs import costs, due, plan

min_version("9.20")
CONFIG = configuration.folder(workflow)
configuration.read(CONFIG / "config.yaml", *workflow.overwrite_configfiles)


configfile: str(CONFIG / "config.yaml")


configuration.apply(config, Path(workflow.basedir, "config/config.schema.yaml"))
PYTHON = sys.executable
TRAINS = set()
watch.follow(workflow, TRAINS, config["threads"])
# A table has no picture, whatever it is called; one that does not exist is named as one.
TABLES = [f"{a.paper}_{a.name}" for a in plan.artifacts() if a.kind == "table"]
MADE = [f.replace(".", r"\.") for scale in plan.SCALES for f in plan.artifact_files(scale)]
TABLE = rf"(?:{'|'.join(TABLES)}|[a-z_]+_table[a-z0-9]*)\."


onstart:
    configuration.check_writable(f for job in workflow.dag.needrun_jobs() for f in [*job.output, *job.log])
    if TRAINS:
        print("To train:", due.total(TRAINS), file=sys.stderr)


wildcard_constraints:
    scale="|".join(plan.SCALES),
    paper="[a-z_]+",
    name="[a-z0-9]+",
    job="[a-z0-9-]+",


def question(wildcards):
    return wildcards.scale, f"{wildcards.paper}/{wildcards.name}", due.budget(workflow.dag_settings.targets)


@configuration.one_line()
def results(wildcards):
    due.announce(*question(wildcards))
    return [job.output for job in due.training(*question(wildcards))[0]]


@configuration.one_line()
def marker(wildcards):
    return due.render_marker(*question(wildcards))


@configuration.one_line()
def again(wildcards):
    TRAINS.update(due.to_train(wildcards.scale, wildcards.paper, wildcards.job))
    return due.train_marker(wildcards.scale, wildcards.paper, wildcards.job)


@configuration.one_line()
def play_tables(wildcards):
    return plays.tables(config)


@configuration.one_line()
def play_marker(wildcards):
    return plays.marker(wildcards.scale, wildcards.benchmark, config)


def play_words(wildcards):
    """Of a text itself Snakemake would fill in what stands in braces."""
    return plays.words(config)


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
    input:
        again,
    output:
        # Seeds may be added to what is there; if the training fails, it stays.
        update("results/{scale}/{paper}/{job}.parquet"),
    log:
        "logs/{scale}/{paper}/{job}.log",
    benchmark:
        "logs/{scale}/{paper}/{job}.jsonl"
    threads: config["threads"]
    resources:
        runtime=lambda w, attempt: attempt * costs.minutes(w.scale, w.paper, w.job),
        mem_mb=lambda w, attempt: attempt * costs.megabytes(w.scale, w.paper, w.job),
        gpu=costs.gpus(),
    shell:
        "{PYTHON:q} -m reproduce train {wildcards.scale} {wildcards.paper} {wildcards.job} -o {output} > {log} 2>&1"


rule figure:
    input:
        jobs=results,
        due=marker,
    output:
        multiext("figures/{scale}/{paper}_{name}", ".pdf", ".png", ".txt", ".tex"),
        multiext("results/{scale}/cells/{paper}_{name}", ".csv", ".json"),
    log:
        "logs/{scale}/render/{paper}_{name}.log",
    wildcard_constraints:
        paper=f"(?!{TABLE})[a-z_]+",
    localrule: True
    shell:
        "{PYTHON:q} -m reproduce render {wildcards.scale} {wildcards.paper}/{wildcards.name} 2>&1 | tee {log}"


rule table:
    input:
        jobs=results,
        due=marker,
    output:
        multiext("tables/{scale}/{paper}_{name}", ".md", ".csv", ".tex", ".ours.tex"),
        multiext("results/{scale}/cells/{paper}_{name}", ".csv", ".json"),
    log:
        "logs/{scale}/render/{paper}_{name}.log",
    wildcard_constraints:
        paper=f"(?={TABLE})[a-z_]+",
    localrule: True
    shell:
        "{PYTHON:q} -m reproduce render {wildcards.scale} {wildcards.paper}/{wildcards.name} 2>&1 | tee {log}"


rule plays:
    input:
        play_tables,
    localrule: True


rule across:
    input:
        f"play/{config['play']['scale']}/across.md",
    localrule: True


rule play_across:
    input:
        play_tables,
    output:
        multiext("play/{scale}/across", ".md", ".csv", ".png", ".pdf"),
    log:
        "logs/play/{scale}/across.log",
    localrule: True
    params:
        asked=play_words,
        on=lambda w: " ".join(config["play"]["benchmarks"]),
    shell:
        "{PYTHON:q} -m reproduce play {params.asked} --on {params.on} --scale {wildcards.scale} --finished"
        " -o play/{wildcards.scale}/across > {log} 2>&1"


rule play:
    input:
        play_marker,
    output:
        multiext("play/{scale}/{benchmark}", ".md", ".csv", ".png", ".pdf"),
    log:
        "logs/play/{scale}/{benchmark}.log",
    wildcard_constraints:
        benchmark="(?!across\\.)[a-z0-9_/-]+",
    threads: config["threads"]
    resources:
        gpu=costs.gpus(),
    params:
        asked=play_words,
    shell:
        "{PYTHON:q} -m reproduce play {params.asked} --on {wildcards.benchmark} --scale {wildcards.scale}"
        " -o play/{wildcards.scale}/{wildcards.benchmark} > {log} 2>&1"


rule report:
    input:
        lambda w: plan.artifact_files(w.scale),
    output:
        "report/{scale}/index.html",
    log:
        "logs/{scale}/report.log",
    localrule: True
    shell:
        "{PYTHON:q} -m reproduce report {wildcards.scale} 2>&1 | tee {log}"


ruleorder: figure > table > misnamed


rule misnamed:
    """A figure or table that is none: said in one line, where Snakemake would say that no rule makes it."""
    input:
        lambda wildcards: configuration.check(wildcards.misnamed),
    output:
        "{misnamed}",
    wildcard_constraints:
        misnamed=rf"(?!(?:{'|'.join(MADE)})$)(?:figures|tables)/.+|/.+",
    localrule: True
