"""Settings by which this machine is faster without computing anything else: matrix products through oneDNN, and a quiet
heap; and those by which CUDA rounds as it is told."""

from __future__ import annotations

import ctypes
import math
import os
import resource
import sys
from functools import cache
from typing import Any

import torch
from torch import Tensor

TOLERANCE = 2e-6
"""Largest error, relative to the largest entry, of a float32 product that still counts as float32."""


def fast_products() -> bool:
    """Sends float32 matrix products to oneDNN if they stay float32 there; returns whether they go there."""
    if exact := _exact_products():
        torch.backends.mkldnn.matmul.fp32_precision = "bf16"  # type: ignore[attr-defined]
    return exact


@cache
def _exact_products() -> bool:
    """Returns whether float32 matrix products of oneDNN are those of float32.

    torch's default library runs old kernels on some processors and is then half as fast. The switch that selects oneDNN
    also permits bfloat16 where the processor has matrix units for it, so the result is compared with float64 first.
    """
    if not torch.backends.mkldnn.is_available():
        return False
    switch = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    before = switch.fp32_precision
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(96, 784, generator=generator), torch.randn(784, 160, generator=generator)
    exact = a.double() @ b.double()
    switch.fp32_precision = "bf16"
    error = ((a @ b).double() - exact).abs().max() / exact.abs().max()
    switch.fp32_precision = before
    return float(error) < TOLERANCE


def sent(values: Any, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """Numbers of the host as a tensor on `device`. A copy to a GPU out of pinned memory waits for nothing; any other
    waits until the GPU has done all that it was given."""
    tensor = torch.as_tensor(values, dtype=dtype)
    return tensor if device.type == "cpu" else tensor.pin_memory().to(device, non_blocking=True)


def free_memory(device: str) -> float:
    """Bytes of a GPU's memory that nobody uses; without limit on the CPU."""
    return float(torch.cuda.mem_get_info()[0]) if device == "cuda" else math.inf


def peak_memory() -> int:
    """Bytes of memory that this process, or one that it waited for, had at most (resident)."""
    unit = 1 if sys.platform == "darwin" else 1024
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) * unit


def keep_heap() -> None:
    """Stop glibc from returning freed activations to the kernel: page faults cost up to a third of a stacked step.

    All threads share one arena, because glibc gives back those of other threads whatever it is told.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(-3, 32 << 20)  # M_MMAP_THRESHOLD
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD
        libc.mallopt(-2, 256 << 20)  # M_TOP_PAD
        libc.mallopt(-8, 1)  # M_ARENA_MAX
    except (OSError, AttributeError):  # another C library: slower, nothing else
        return


def set_cuda_arithmetic(precision: str) -> None:
    """Products and convolutions on CUDA: TF32 exactly where `precision` is "tf32", and the same bits in every run.

    torch rounds convolutions to TF32 unless told otherwise, and cuDNN may choose among algorithms by the clock.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when cuBLAS starts; else streams may differ
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    matmul.allow_bf16_reduced_precision_reduction = False
    cudnn.deterministic, cudnn.benchmark = True, False
    matmul.fp32_precision = cudnn.conv.fp32_precision = "tf32" if precision == "tf32" else "ieee"  # type: ignore[attr-defined]
