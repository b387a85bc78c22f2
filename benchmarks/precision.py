"""What reduced precision is worth where it applies: ResNet-18, the only network of the papers beyond compiled code."""

from __future__ import annotations

import numpy as np

from benchmarks.measure import compare, engine_round
from benchmarks.works import WORKS
from reproduce.engine.client_split import ClassificationSplit, ClientSplits
from reproduce.engine.requests import Train
from reproduce.engine.trainer import Trainer
from reproduce.settings import settings

RESNET = next(work for work in WORKS if work.name.startswith("ResNet-18"))


def main() -> None:
    """ResNet-18, batch 20, on one core: bfloat16 against float32, and how far apart the first step's gradients are."""
    r = compare(engine_round(RESNET, 1), engine_round(RESNET, 1, precision="bfloat16"), 3, 0.1)
    split = ClientSplits(settings()).get(RESNET.problem, 0)
    assert isinstance(split, ClassificationSplit)
    job = (split, Train(np.arange(1), np.ones(1, dtype=int), split.initial(), 0.01, 0))
    exact, rounded = (Trainer(precision=p).train([job])[0].rows for p in ("float32", "bfloat16"))
    apart = float((exact - rounded).norm() / exact.norm())
    samples = RESNET.samples_per_round
    print("| work | float32 samples/s | bfloat16 samples/s | ratio | range | distance / gradient |")
    print("| --- | --- | --- | --- | --- | --- |")
    print(
        f"| {RESNET.name} | {samples / r.a:,.0f} | {samples / r.b:,.0f} | {r.median:.2f} | {r.low:.2f}-{r.high:.2f} |"
        f" {apart:.3f} |"
    )
