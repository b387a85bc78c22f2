"""The operators against torch's own, and what torch does not survive."""

import os
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

from reproduce.modules.ops import One, Stacked

SHORTCUTS = """
import torch
from reproduce.modules.ops import One, Stacked
torch.set_num_threads(1)
for _ in range(300):
    for inputs, outputs, side in ((2, 4, 14), (3, 6, 14), (4, 8, 16), (5, 10, 14)):
        for ops, models in ((One(), ()), (Stacked(2), (2,))):
            x = ops.images(torch.randn(*models, 20, inputs, side, side)).requires_grad_()
            p = {"c.weight": torch.randn(*models, outputs, inputs, 1, 1, requires_grad=True)}
            y = ops.conv(x, p, "c", stride=2)
            torch.autograd.grad(y.square().sum(), (x, *p.values()))
print("survived")
"""


def test_narrow_shortcuts_with_a_stride_do_not_corrupt_memory() -> None:
    """In a process of its own, which dies without the guard; the fault is in what oneDNN takes on AVX2."""
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"}
    run = subprocess.run(
        [sys.executable, "-c", SHORTCUTS], capture_output=True, text=True, env=environment, timeout=300
    )
    assert (run.returncode, run.stdout) == (0, "survived\n"), run.stderr


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize(("kernel", "padding"), [(1, 0), (1, 1), (3, 1)])
@pytest.mark.parametrize("bias", [False, True])
def test_convolutions_equal_torchs(stride: int, kernel: int, padding: int, bias: bool) -> None:
    """Outputs and gradients of one model and of a stack of two, odd and even sides, in float64."""
    for side in (7, 8):
        x = torch.randn(2, 5, 3, side, side, dtype=torch.float64)
        p = {"c.weight": torch.randn(2, 4, 3, kernel, kernel, dtype=torch.float64)}
        if bias:
            p["c.bias"] = torch.randn(2, 4, dtype=torch.float64)
        leaves = [v.requires_grad_() for v in p.values()]
        expected = [F.conv2d(x[a], *(v[a] for v in leaves), stride=stride, padding=padding) for a in range(2)]
        slopes = torch.autograd.grad(sum(y.square().sum() for y in expected), leaves)
        one, stacked = One(), Stacked(2)
        alone = [one.conv(one.images(x[a]), {k: v[a] for k, v in p.items()}, "c", stride, padding) for a in range(2)]
        together = stacked.conv(stacked.images(x), p, "c", stride, padding)
        for found in (alone, together.unflatten(1, (2, 4)).unbind(1)):
            for y, wanted in zip(found, expected, strict=True):
                torch.testing.assert_close(y, wanted, rtol=0, atol=1e-10)
            grads = torch.autograd.grad(sum(y.square().sum() for y in found), leaves, retain_graph=True)
            torch.testing.assert_close(grads, slopes, rtol=0, atol=1e-10)
