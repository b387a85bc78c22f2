"""The local loop of quadratics: full gradients, elementwise on [A, d], all clients of all runs at once."""

from __future__ import annotations

import torch

from reproduce.engine.local import Gradients, Rows, Stepper
from reproduce.engine.objectives import Objectives
from reproduce.engine.stacking import Chunk


def quadratic_run(chunk: Chunk, device_data: Objectives) -> Rows:
    """Train a chunk of A clients; its iterates y [A, d] are their only block."""
    start = chunk.start
    y = [start.clone()]
    stepper, gradients = Stepper(chunk, y), Gradients(chunk, y)
    clients = torch.tensor([s.client for s in chunk.slots], device=device_data.device)
    for k in range(int(chunk.steps.max())):
        a = chunk.active(k)
        grads = [device_data.gradient(clients[:a], y[0][:a])]
        gradients.add(k, grads)
        stepper.step(k, y, grads)
    mean, first = gradients.rows(chunk)
    return Rows(y[0] - start, mean, first)
