"""The C sources on a 64-bit Arm processor: cross-compiled and emulated, against the reference, in float64.

Needs Debian's gcc-aarch64-linux-gnu and qemu-user.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from test_levels import MODELS, request, task_of

from reproduce.data.batches import Shuffled
from reproduce.engine.kernels import compiled, library
from reproduce.engine.layout import Layout
from reproduce.engine.rule import Rule
from reproduce.engine.trainer import Trainer
from reproduce.models.declared import MLP, Softmax

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
LANES = library.LEVELS["neon"].width // 8
lacking = [name for name in (COMPILER, EMULATOR) if not shutil.which(name)]
pytestmark = [
    pytest.mark.skipif(bool(lacking), reason=f"not installed: {', '.join(lacking)}"),
    pytest.mark.skipif(library.compiler() is None or not library.levels(), reason="no C compiler"),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The driver with the engine's sources, for Arm."""
    out = tmp_path_factory.mktemp("neon") / "neon"
    sources = [Path(__file__).parent / "neon.c", *library.SOURCES]
    flags = [f for f in library.FLAGS if f not in ("-shared", "-fPIC")]
    types = ("-DREAL=double", "-DBITS=int64_t", "-static", f"-I{library.HERE}")
    subprocess.run([COMPILER, *flags, *types, "-o", str(out), *map(str, sources), "-lm"], check=True)
    return out


@pytest.mark.parametrize("wide", [False, True], ids=["samples", "channels"])
@pytest.mark.parametrize("rule", [Rule(), Rule(momentum=0.5, decay=0.1, mu=0.3)], ids=["plain", "full"])
@pytest.mark.parametrize("name", [n for n, m in MODELS.items() if not isinstance(m, Softmax)])
def test_neon_equals_reference(program: Path, tmp_path: Path, name: str, rule: Rule, wide: bool) -> None:
    model = MODELS[name]
    task = task_of(model, Shuffled(10))
    trace = compiled.Trace(model, (64,) if isinstance(model, MLP) else (1, 8, 8))
    code = compiled.Program(trace, Layout(model), torch.float64, LANES)
    if wide and not code.wide:
        pytest.skip("channels that do not fill vectors")
    job = request(task, rule)
    job.correction = None
    client, steps = 1, int(job.steps[1])
    expected = Trainer(strategy="reference").train([(task, job)])[0].rows[client]
    start = job.start[client]
    assert task.test_indices is None
    plan = task.plan(client, steps, 4, int(job.offset[client]))  # type: ignore[index]
    from reproduce.engine.stacking import Chunk, Plans, Slot

    chunk = Chunk([Slot(task, job, client)], task.arena.layout, Plans())
    masks = code.masks(chunk.generators(torch.device("cpu"))[0], steps, plan.shape[1])
    piece = 10 if wide else code.piece(10)
    scratch = compiled.Scratch(code, piece, wide)
    anchor = start if job.anchor is None else job.anchor
    y = start.clone()
    pull = anchor.clone()
    if wide:
        code.turned(y), code.turned(pull)
    at = np.cumsum([0, *(10 * n for _, n in trace.masks)])
    arrays = [
        np.array([wide, piece, plan.shape[1], steps, len(trace.masks), masks.shape[1]], dtype=np.int64),
        np.array([job.lr, rule.momentum, rule.decay, rule.mu]),
        code.layers,
        scratch.buffers,
        np.array(list(code.layout.offsets.values()), dtype=np.int64),
        np.array([max(1, *(f.numel() for f in scratch.filters)) if scratch.filters else 1], dtype=np.int64),
        *(v.numpy() for v in (y, pull, task.arena.train_x, task.arena.train_y)),
        plan.astype(np.int64),
        at.astype(np.int64),
        masks.double().numpy(),
        *(v.numpy() for v in (scratch.work, scratch.rows)),
    ]
    data = tmp_path / "arrays"
    data.write_bytes(b"".join(np.int64(a.nbytes).tobytes() + np.ascontiguousarray(a).tobytes() for a in arrays))
    said = subprocess.run([EMULATOR, str(program), str(data)], capture_output=True, check=True, timeout=120).stdout
    end = torch.from_numpy(np.frombuffer(said).copy())
    if wide:
        code.turned(end, back=True)
    torch.testing.assert_close(end - start, expected, rtol=0, atol=1e-10)
    assert expected.abs().max() > 1e-4
