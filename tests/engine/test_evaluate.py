"""Losses and accuracies of many models against a plain loop over models and samples, in float64."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score, roc_auc_score

from reproduce.data.batches import Shuffled
from reproduce.engine.client_split import ClassificationSplit, ClientSplits
from reproduce.engine.evaluate import evaluate, score
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


def test_scores_of_classes_are_those_of_a_count_by_hand() -> None:
    """Two classes of three are confused; the area under a curve is the share of pairs in the right order."""
    y = np.array([0, 0, 0, 0, 1, 1, 2, 2])
    p = np.array([[8, 1, 1], [7, 2, 1], [6, 3, 1], [1, 8, 1], [2, 7, 1], [6, 3, 1], [1, 1, 8], [2, 2, 6]]) / 10
    f1 = np.mean([2 * 3 / (4 + 4), 2 * 1 / (2 + 2), 2 * 2 / (2 + 2)])  # 2 right / (those that are it + said to be it)
    assert score("macro_f1", y, p) == pytest.approx(f1)
    assert score("balanced_accuracy", y, p) == pytest.approx(np.mean([3 / 4, 1 / 2, 1]))
    areas = []
    for label in range(3):
        pairs = [(a, b) for a in p[y == label, label] for b in p[y != label, label]]
        areas.append(np.mean([1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs]))
    assert score("auc", y, p) == pytest.approx(np.mean(areas))
    assert np.isnan(score("auc", y, np.where(p == 0.8, np.nan, p)))


def test_scores_are_beside_loss_and_accuracy() -> None:
    """Of each of several models, however samples and models are cut."""
    plain = Classification("digits", Softmax(64, 10), IID(), 5, Shuffled(10), train_samples=50, evaluation_batch=100)
    tasks = ClientSplits(settings(), torch.float64)
    with_scores = tasks.get(replace(plain, scores=("auc", "macro_f1")), 3)
    assert isinstance(with_scores, ClassificationSplit)
    models = torch.stack([with_scores.initial() * factor for factor in (1.0, -2.0)])
    asked = [Evaluate(models)]
    (found,), (without,) = evaluate(with_scores, asked), evaluate(tasks.get(plain, 3), asked)
    assert list(found.metrics) == ["loss", "accuracy", "auc", "macro_f1"]
    assert all(np.array_equal(found.metrics[name], without.metrics[name]) for name in without.metrics)
    weight, bias = models.numpy().reshape(2, -1)[:, :640].reshape(2, 10, 64), models.numpy()[:, 640:]
    x, y = with_scores.device_data.test_x.numpy(), with_scores.device_data.test_labels
    for i in range(2):
        p = torch.softmax(torch.from_numpy(x.reshape(len(x), -1) @ weight[i].T + bias[i]), 1).numpy()
        assert found.metrics["auc"][i] == pytest.approx(100 * roc_auc_score(y, p, multi_class="ovr"))
        assert found.metrics["macro_f1"][i] == pytest.approx(100 * f1_score(y, p.argmax(1), average="macro"))
