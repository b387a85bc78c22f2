"""Parameter counts, budgets and thresholds of ResNet-18 that follow from Section 6.1 and PyTorch's initialisation."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from reproduce.algorithms.fiarse import group, held, maskable, thresholds
from reproduce.engine.client_split import Env
from reproduce.engine.layout import layout_of
from reproduce.models.declared import ResNet
from reproduce.papers.fiarse.settings import RESNET10N


class Bare:
    """A task of which only the model exists."""

    def __init__(self, model: ResNet) -> None:
        self.problem = type("Problem", (), {"model": model})()
        layout = layout_of(model)
        self.blocks = {n: slice(o, o + s) for (n, o), s in zip(layout.offsets.items(), layout.sizes, strict=True)}
        self.dtype, self.device, self.parameters = torch.float32, torch.device("cpu"), layout.total


def env_of(model: ResNet) -> Env:
    task: Any = Bare(model)
    return Env(task, None, 0)


def budget(model: ResNet) -> int:
    return sum(w.stop - w.start for w in maskable(env_of(model)).values())


def test_parameters() -> None:
    assert ResNet().parameters == 11_173_962
    assert ResNet(classes=100).parameters == 11_220_132
    assert budget(ResNet()) == 11_164_362
    assert budget(ResNet(classes=100)) == 11_210_532
    assert RESNET10N.parameters == 307_098 + 1_440
    assert budget(RESNET10N) == 307_098


def test_groups_of_the_layerwise_variant() -> None:
    sizes: dict[str, int] = {}
    for name, where in maskable(env_of(ResNet())).items():
        sizes[group(name, "stage")] = sizes.get(group(name, "stage"), 0) + where.stop - where.start
    assert sizes == {
        "conv1": 1_728, "layer1": 147_456, "layer2": 524_288, "layer3": 2_097_152, "layer4": 8_388_608, "fc": 5_130,
    }  # fmt: skip
    layers = {group(name, "layer") for name in maskable(env_of(ResNet()))}
    assert len(layers) == 21
    assert {group(name, "model") for name in maskable(env_of(ResNet()))} == {""}


@pytest.mark.parametrize(
    ("width", "parameters", "mmacs"),
    [
        (1 / 8, 176_402, 8.9), (1 / 4, 701_466, 35.1), (1 / 2, 2_797_610, 139.3), (1.0, 11_173_962, 555.4),
        (0.2, 457_578, 23.1), (0.4, 1_803_314, 91.1), (0.6, 4_049_352, 203.0), (0.8, 7_175_586, 360.4),
    ],
)  # fmt: skip
def test_sliced_networks(width: float, parameters: int, mmacs: float) -> None:
    model = replace(ResNet(), width=width)
    assert model.parameters == parameters
    assert model.cost((3, 32, 32)).macs / 1e6 == pytest.approx(mmacs, abs=0.06)


BUDGETS = {1 / 64: 174_443, 1 / 4: 2_791_090, 0.04: 446_574, 0.64: 7_145_191}
# size -> theta and the kept shares of conv1, layer1, ..., layer4, linear at initialisation (analytic).
INITIAL = {
    1 / 64: (0.02919, 0.848, 0.300, 0.062, 0.012, 0.008, 0.340),
    1 / 4: (0.01278, 0.934, 0.693, 0.589, 0.419, 0.178, 0.711),
    0.04: (0.02094, 0.891, 0.497, 0.327, 0.053, 0.010, 0.526),
    0.64: (0.00614, 0.968, 0.853, 0.803, 0.721, 0.606, 0.861),
}


Start = tuple[Env, torch.Tensor, dict[float, torch.Tensor]]


@pytest.fixture(scope="module")
def resnet18() -> Start:
    """ResNet-18, its initial vector, and the thresholds of all sizes."""
    env, x = env_of(ResNet()), layout_of(ResNet()).initial(0)
    return env, x, dict(zip(INITIAL, thresholds(env, x, [*INITIAL]), strict=True))


@pytest.mark.parametrize("size", INITIAL)
def test_thresholds_at_initialisation(resnet18: Start, size: float) -> None:
    env, x, thetas = resnet18
    theta = thetas[size]
    mask = held(env, x, theta)
    where = maskable(env)
    first = list(env.blocks).index("conv1.weight")
    assert float(theta[first]) == pytest.approx(INITIAL[size][0], rel=0.01)
    kept: dict[str, list[int]] = {}
    for name, part in where.items():
        count = kept.setdefault(group(name, "stage"), [0, 0])
        count[0] += int(mask[part].sum())
        count[1] += part.stop - part.start
    assert sum(k for k, _ in kept.values()) == pytest.approx(BUDGETS[size], abs=40)  # equal floats at the threshold
    for (name, (k, n)), share in zip(kept.items(), INITIAL[size][1:], strict=True):
        noise = 4 * math.sqrt(share * (1 - share) / n)  # small groups scatter; the printed shares have three digits
        assert k / n == pytest.approx(share, rel=0.01, abs=max(noise, 6e-4)), name
