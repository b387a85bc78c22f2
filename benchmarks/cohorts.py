"""What sharing a cohort is worth: seeds, sweep points, submodels."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.measure import compare, engine_round, seconds
from benchmarks.works import WORKS, Work
from reproduce.declare.experiment import Experiment
from reproduce.engine.client_split import ClassificationSplit, ClientSplits
from reproduce.engine.requests import Train
from reproduce.engine.trainer import Trainer
from reproduce.models.declared import ResNet
from reproduce.runs.job import begin, finish
from reproduce.runs.plan import artifact
from reproduce.settings import settings

LOGISTIC = WORKS[1]


def seeds() -> None:
    """Five seeds of logistic regression in one cohort, as a multiple of one seed's time (two threads)."""
    r = compare(engine_round(LOGISTIC, 2, seeds=1), engine_round(LOGISTIC, 2, seeds=5))
    print(f"a round of training steps: {1 / r.median:.2f} x one seed (range {1 / r.high:.2f}-{1 / r.low:.2f})")
    r = compare(partial(_job, 1), partial(_job, 5), 3, 0)
    print(f"a whole job of {ROUNDS} rounds, from the start of Python: {r.b:.2f} s, {1 / r.median:.2f} x one seed")


ROUNDS = 100
JOB = """
import sys
from benchmarks.cohorts import LOGISTIC, ROUNDS
from benchmarks.measure import engine_round
call = engine_round(LOGISTIC, 2, seeds=int(sys.argv[1]))
for _ in range(ROUNDS):
    call()
"""


def _job(seeds: int) -> None:
    subprocess.run([sys.executable, "-c", JOB, str(seeds)], check=True)


def sweep() -> None:
    """42 learning rates of logistic regression, 20 clients: one cohort against one after another (two threads)."""
    split = ClientSplits(settings()).get(LOGISTIC.problem, 0)
    assert isinstance(split, ClassificationSplit)
    trainer = Trainer(2)
    clients = np.arange(LOGISTIC.clients)
    steps = np.full(LOGISTIC.clients, LOGISTIC.steps)
    start = split.initial()
    counter = iter(range(10**9))

    def requests() -> list[tuple[ClassificationSplit, Train]]:
        r = next(counter)
        return [(split, Train(clients, steps, start, 0.001 * (i + 1), r)) for i in range(42)]

    def one_by_one() -> None:
        for job in requests():
            trainer.train([job])

    r = compare(one_by_one, lambda: trainer.train(requests()), 3, 1.0)
    points = 42 * LOGISTIC.samples_per_round
    print(f"one cohort is {r.median:.2f} x as fast (range {r.low:.2f}-{r.high:.2f}); {points / r.b:,.0f} samples/s")


def fig4() -> None:
    """The 42 points of FedaGrac's Fig. 4 on a9a (one seed): whole runs in one cohort against one after another."""
    panel = next(p for p in artifact("fedagrac/fig4").panels("paper") if p.name == "fig4-lr-equal")
    here = replace(settings(), threads=2)
    splits = ClientSplits(here)  # the data are read once; else this were `reproduce.train`

    def train(experiments: Sequence[Experiment]) -> None:
        finish(begin(experiments, [0], here, splits))

    train(panel.experiments[:1])
    together = seconds(lambda: train(panel.experiments), 0)
    apart = seconds(lambda: [train([e]) for e in panel.experiments], 0)
    print(f"{apart:.1f} s one after another, {together:.1f} s in one cohort: {apart / together:.1f} x as fast")


def width() -> None:
    """Seconds per step of a ResNet-18 client, batch 20, full width against widths 1/2, 1/4, 1/8 (one thread)."""
    full = Work("full", ResNet(), (3, 32, 32), 1, 1, 40, 20, 2)
    base = seconds(engine_round(full, 1), 2.0) / full.steps
    print(f"width 1: {base:.3f} s per step")
    for w in (0.5, 0.25, 0.125):
        narrow = Work("narrow", ResNet(width=w), (3, 32, 32), 1, 1, 40, 20, 2)
        time = seconds(engine_round(narrow, 1), 1.0) / narrow.steps
        print(f"width {w}: {time:.4f} s per step, {base / time:.1f} x cheaper")
