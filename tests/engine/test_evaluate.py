"""Losses and accuracies of many models against a plain loop over models and samples, in float64."""

import numpy as np
import pytest
import torch

from reproduce.data.batches import Shuffled
from reproduce.engine.client_split import ClassificationSplit, ClientSplits
from reproduce.engine.evaluate import evaluate
from reproduce.engine.requests import Evaluate
from reproduce.engine.trainer import Trainer
from reproduce.models.declared import MLP, ConvNet, Softmax
from reproduce.models.model import Model
from reproduce.modules.ops import One
from reproduce.partitions.labels import IID
from reproduce.problem import Classification
from reproduce.settings import settings

MODELS = [
    Softmax(64, 10),
    MLP(64, 12, 10),
    ConvNet(1, 8, (4, 6), (12,), kernel=3, padding=1, dropout=0.3, channel_dropout=0.2),
]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("view", ["test", "train"])
def test_every_model_is_judged_as_if_alone(model: Model, view: str) -> None:
    """Dropout is off; two requests share a pass; the number of threads does not show."""
    problem = Classification("digits", model, IID(), clients=5, batches=Shuffled(10), train_samples=233)
    task = ClientSplits(settings(), torch.float64).get(problem, 3)
    assert isinstance(task, ClassificationSplit)
    models = torch.stack([task.initial() * factor for factor in (1.0, -2.0, 3.0)])
    requests = [Evaluate(models[:2], view), Evaluate(models[2:], view)]
    alone, shared = Trainer(1), Trainer(3)
    answers = evaluate(task, requests, alone.map)
    x, y = (
        (task.device_data.test_x, task.device_data.test_y)
        if view == "test"
        else (task.device_data.train_x, task.device_data.train_y)
    )
    x, y = (v[torch.from_numpy(task.view(view))] for v in (x, y))
    for i, parameters in enumerate(models):
        answer, row = (answers[0], i) if i < 2 else (answers[1], 0)
        ops = One()
        logits = model.forward(ops, task.device_data.layout.named(parameters), ops.images(x))
        loss = (logits.logsumexp(1) - logits[torch.arange(len(y)), y]).mean()
        right = (logits.argmax(1) == y).numpy()
        assert answer.metrics["loss"][row] == pytest.approx(float(loss), abs=1e-10)
        assert answer.metrics["accuracy"][row] == pytest.approx(100 * right.mean())
        np.testing.assert_array_equal(answer.correct[row], right)
    again = evaluate(task, requests, shared.map)
    for one, other in zip(answers, again, strict=True):
        for name in one.metrics:
            np.testing.assert_array_equal(one.metrics[name], other.metrics[name])
    shared.close()
