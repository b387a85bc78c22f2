"""The switch to faster matrix products keeps float32 accuracy, or is taken back."""

from __future__ import annotations

import torch

from reproduce.engine import machine


def test_products_stay_float32() -> None:
    machine.fast_products()
    a, b = torch.randn(64, 300), torch.randn(300, 80)
    exact = a.double() @ b.double()
    assert ((a @ b).double() - exact).abs().max() / exact.abs().max() < machine.TOLERANCE


def test_switch_is_taken_back_when_the_products_are_not_float32(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    before = torch.backends.mkldnn.matmul.fp32_precision
    monkeypatch.setattr(machine, "TOLERANCE", 0.0)
    torch.backends.mkldnn.matmul.fp32_precision = "none"
    assert machine.fast_products.__wrapped__() is False
    assert torch.backends.mkldnn.matmul.fp32_precision == "none"
    torch.backends.mkldnn.matmul.fp32_precision = before
