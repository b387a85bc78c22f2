"""Random crops and flips: against a loop over images, and independent of who else is in the stack."""

import numpy as np
import pytest
import torch

from reproduce.data.batches import Shuffled
from reproduce.engine.client_split import ClassificationSplit, ClientSplits
from reproduce.engine.kernels import library
from reproduce.engine.requests import Train
from reproduce.engine.stacking import Slot
from reproduce.engine.terms import Augmentation, crop_flip
from reproduce.engine.trainer import Trainer
from reproduce.models.declared import ConvNet, Softmax
from reproduce.partitions.labels import IID
from reproduce.problem import Classification
from reproduce.settings import settings

MODEL = ConvNet(1, 8, (4, 6), (12,), kernel=3, padding=1)


def task_of(augment: str) -> ClassificationSplit:
    problem = Classification(
        "digits", MODEL, IID(), 5, Shuffled(10), train_samples=233, mean=(0.3,), std=(0.5,), augment=augment
    )
    task = ClientSplits(settings(), torch.float64).get(problem, 3)
    assert isinstance(task, ClassificationSplit)
    return task


def test_crops_and_flips_pixel_by_pixel() -> None:
    x = np.random.default_rng(0).normal(size=(6, 2, 5, 7))
    draws = np.array([[4, 4, 0], [0, 8, 0], [8, 0, 1], [4, 4, 1], [3, 6, 1], [5, 4, 0]])
    black = np.array([-0.6, 0.25])
    expected = np.empty_like(x)
    for n, (top, left, mirrored) in enumerate(draws):
        for c in range(2):
            for i in range(5):
                for j in range(7):
                    row, column = i + top - 4, (6 - j if mirrored else j) + left - 4
                    inside = 0 <= row < 5 and 0 <= column < 7
                    expected[n, c, i, j] = x[n, c, row, column] if inside else black[c]
    actual = crop_flip(torch.from_numpy(x), torch.from_numpy(draws), torch.from_numpy(black).view(-1, 1, 1))
    np.testing.assert_allclose(actual.numpy(), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(actual.numpy()[0], x[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(actual.numpy()[3], x[3, :, :, ::-1], rtol=0, atol=1e-12)


def test_black_is_the_normalised_zero() -> None:
    task = task_of("crop_flip")
    slot = Slot(task, Train(np.array([2]), np.array([1]), task.initial(), 0.1, 0), 0)
    x = torch.full((200, 1, 8, 8), 9.0, dtype=torch.float64)
    values = Augmentation([slot], task.device_data, 200)(x).unique()
    torch.testing.assert_close(values, torch.tensor([-0.6, 9.0], dtype=torch.float64))


@pytest.mark.parametrize("strategy", ["stacked", "sequential", *["compiled"] * bool(library.compiler())])
def test_strategies_equal_the_reference(strategy: str) -> None:
    """Unequal steps, and short batches of unequal lengths (7 and 6 samples) that are not the last."""
    task = task_of("crop_flip")
    request = Train(np.arange(5), np.array([3, 7, 1, 7, 0]), task.initial(), 0.1, 4)
    expected = Trainer(strategy="reference").train([(task, request)])[0].rows
    actual = Trainer(strategy=strategy).train([(task, request)])[0].rows
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-10)
    plain = task_of("none")
    without = Trainer(strategy=strategy).train([(plain, request)])[0].rows
    assert (actual - without).abs().max() > 1e-3


def test_only_what_can_be_augmented() -> None:
    with pytest.raises(ValueError, match="features"):
        Classification("digits", Softmax(64, 10), IID(), 5, Shuffled(10), augment="crop_flip")
