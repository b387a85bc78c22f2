"""The local loop on quadratics: all clients of all runs at once, elementwise on [C, d]."""

from __future__ import annotations

import torch

from reproduce.engine.local import Gradients, Rows, Stepper
from reproduce.engine.slots import Chunk
from reproduce.engine.task import QuadraticTask


class Flat:
    """The layout of a quadratic: its vector is its only parameter tensor."""

    def blocks(self, rows: torch.Tensor) -> list[torch.Tensor]:
        return [rows.clone()]

    def rows(self, blocks: list[torch.Tensor]) -> torch.Tensor:
        return blocks[0]


def quadratic_run(chunk: Chunk, task: QuadraticTask) -> Rows:
    """Deterministic full gradients; slots of all tasks in the chunk share the same objectives."""
    start = chunk.stack("start")
    assert start is not None
    y = [start.clone()]
    stepper, gradients = Stepper(chunk, y), Gradients(chunk, y)
    clients = torch.tensor([s.client for s in chunk.slots], device=task.device)
    for k in range(int(chunk.steps.max())):
        a = chunk.active(k)
        grads = [task.gradient(clients[:a], y[0][:a])]
        gradients.add(k, grads)
        stepper.step(k, y, grads)
    mean, first = gradients.rows(chunk)
    return Rows(y[0] - start, mean, first)
