"""The switch to faster matrix products keeps float32 accuracy, or is taken back; how much memory there is."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from reproduce.engine import hardware, machine


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


def test_the_memory_is_that_of_the_machine_or_what_a_container_may_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "memory.max"
    monkeypatch.setattr(hardware, "ALLOWED", file)
    whole = hardware.memory()
    for text, said in (("max\n", whole), ("123456\n", 123456.0), (f"{10 * int(whole)}\n", whole)):
        file.write_text(text)
        assert hardware.memory() == said
    file.unlink()
    assert hardware.memory() == whole
