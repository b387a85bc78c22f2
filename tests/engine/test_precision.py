"""Reduced precision: asked for, applied where it is said to apply, recorded, shown, and never mixed with float32."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
from runs import DIGITS

from reproduce.algorithms.base import FedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Shuffled
from reproduce.declare.experiment import Experiment, Panel
from reproduce.engine.client_split import ClassificationSplit, ClientSplits
from reproduce.engine.kernels import library
from reproduce.engine.machine import set_cuda_arithmetic
from reproduce.engine.requests import Train
from reproduce.engine.trainer import Trainer
from reproduce.errors import UserError
from reproduce.models.declared import MLP, ConvNet, ResNet, Softmax
from reproduce.models.model import Model
from reproduce.partitions.labels import IID
from reproduce.problem import Classification
from reproduce.report.entries import scale_line
from reproduce.report.histories import Source, load
from reproduce.runs import plan
from reproduce.runs.job import train_job
from reproduce.settings import settings
from reproduce.systems import System
from reproduce.systems.work import Steps

CONV = ConvNet(1, 8, (4, 6), (12,), kernel=3, padding=1, dropout=0.3, channel_dropout=0.2)
RESNET = ResNet(1, 10, (4, 6), (1, 1), stem_stride=2)


def train(model: Model, trainer: Trainer, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Updates [3, P] of three clients after 2, 3 and 1 steps."""
    problem = Classification("digits", model, IID(), clients=5, batches=Shuffled(10), train_samples=233)
    task = ClientSplits(settings(), dtype).get(problem, 3)
    assert isinstance(task, ClassificationSplit)
    request = Train(np.arange(3), np.array([2, 3, 1]), task.initial(), 0.05, 0)
    return trainer.train([(task, request)])[0].rows


@pytest.mark.parametrize(("model", "strategy"), [(CONV, "stacked"), (CONV, "sequential"), (RESNET, "stacked")])
def test_bfloat16_rounds_the_passes_and_nothing_else(model: Model, strategy: str) -> None:
    exact = train(model, Trainer(strategy=strategy))
    trainer = Trainer(strategy=strategy, precision="bfloat16")
    rounded = train(model, trainer)
    assert rounded.dtype == torch.float32
    assert 1e-4 < float((rounded - exact).norm() / exact.norm()) < 0.2
    # Updates of float32 parameters: most have more digits than a bfloat16 holds.
    assert (rounded.bfloat16().float() != rounded).float().mean() > 0.5
    assert trainer.precision == "bfloat16"
    assert f"{strategy}+bfloat16" in trainer.used


def test_float64_is_never_reduced() -> None:
    exact, asked = (
        train(MLP(64, 12, 10), Trainer(strategy="stacked", precision=p), torch.float64) for p in ("float32", "bfloat16")
    )
    assert torch.equal(exact, asked)


@pytest.mark.parametrize("model", [Softmax(64, 10), CONV])
def test_strategies_without_automatic_differentiation_stay_float32_and_say_so(model: Model) -> None:
    if not library.available(torch.float32):
        pytest.skip("no C compiler")
    trainer = Trainer(precision="bfloat16")
    assert torch.equal(train(model, trainer), train(model, Trainer()))
    assert trainer.precision == "float32"


def test_tf32_is_on_only_if_asked_for() -> None:
    """torch's own default lets cuDNN round every convolution."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    if not hasattr(cudnn, "conv"):
        pytest.skip("torch before 2.9")
    try:
        for precision, wanted in (("tf32", "tf32"), ("float32", "ieee"), ("tf32", "tf32"), ("bfloat16", "ieee")):
            set_cuda_arithmetic(precision)
            assert (matmul.fp32_precision, cudnn.conv.fp32_precision) == (wanted, wanted)
    finally:
        Trainer()
    assert (matmul.fp32_precision, cudnn.conv.fp32_precision) == ("ieee", "ieee")
    assert cudnn.deterministic
    assert not cudnn.benchmark


@pytest.mark.parametrize(
    ("precision", "message"),
    [("half", "use float32, tf32 or bfloat16"), ("tf32", "REPRODUCE_PRECISION=tf32 is arithmetic of GPUs")],
)
def test_a_precision_that_makes_no_sense_is_refused(
    precision: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPRODUCE_PRECISION", precision)
    with pytest.raises(UserError, match=message):
        settings()
    monkeypatch.setenv("REPRODUCE_DEVICE", "cuda")
    if precision == "tf32":
        assert settings().precision == "tf32"


def test_another_precision_is_another_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """The digest names the checkpoint and triggers training anew; float32 keeps the names it always had."""
    job = plan.jobs("smoke")[0]
    digests = [plan.digest(job, settings().precision)]
    for precision in ("bfloat16", "float32"):
        monkeypatch.setenv("REPRODUCE_PRECISION", precision)
        digests.append(plan.digest(job, settings().precision))
    assert digests[0] == digests[2] != digests[1]


@pytest.mark.parametrize(("model", "shown"), [(RESNET, "bfloat16"), (MLP(64, 12, 10), "float32")])
def test_results_say_their_precision_and_so_does_every_caption(
    model: Model, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPRODUCE_PRECISION", "bfloat16")
    problem = Classification("digits", model, IID(), clients=3, batches=DIGITS.batches, train_samples=60)
    monkeypatch.setattr("reproduce.engine.strategies.LARGE", 0)
    e = Experiment({"algorithm": "fedavg"}, problem, System(work=Steps(1)), FedAvg(lr=0.1), Rounds(1))
    output = tmp_path / "r.parquet"
    train_job(plan.Job("reduced", "fedacs", "p", Panel("p", (e,), (0,)), (e,), ()), tmp_path / "r.pt", output)
    (record,) = json.loads(pq.read_table(output).schema.metadata[b"provenance"])["trainings"]
    assert record["precision"] == shown
    assert any("bfloat16" in how for how in record["strategies"]) == (shown == "bfloat16")
    histories = load([Source("p", output)], "reduced", ["fewer rounds"])
    caption = scale_line("reduced", histories.substitutes)
    assert caption.startswith("Reduced scale: fewer rounds")
    assert ("; local steps in bfloat16;" in caption) == (shown == "bfloat16")
    assert isinstance(histories.frame, pd.DataFrame)
