"""Bytes that travel in a server step, counted from its requests.

Each client is sent the model that it starts from, or its part of it, and gives an update of that size back. With the
model comes a vector that corrects its steps (SCAFFOLD's c, FedLin's gradient, FedaGrac's nu), or a teacher; with the
update goes the mean or the first gradient of its steps. A client keeps what is its own: c_m, MOON's previous model. Not
counted are single numbers beside a vector (steps, rates, thresholds), and what encoding or repeating a message would
take; a message that the link loses was sent.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from reproduce.algorithms.base import Env, FedAvg
from reproduce.declare.values import Ints
from reproduce.engine.requests import Evaluated, Gradient, Request, Train, Trained


def sent(
    env: Env, algorithm: FedAvg, round: int, played: Iterable[tuple[Request, Trained | Evaluated | object]]
) -> Ints:
    """Returns the bytes that all clients are sent and send, int64 [down, up], for the requests and answers of one
    server step."""
    number, traffic = env.zeros(1).element_size(), np.zeros(2, dtype=np.int64)
    vector = number * (env.parameters - len(env.statistics))
    probe: Gradient | None = None
    for request, answer in played:
        if isinstance(request, Gradient) and (size := algorithm.probe_bytes(env, round)):
            probe = request
            traffic += len(request.clients) * np.array([number * env.parameters, size])
        if isinstance(request, Train):
            assert isinstance(answer, Trained)
            down, up = algorithm.message_bytes(env, request)  # [C] each
            if probe is not None and request.start is probe.x:  # they have it
                down = np.where(np.isin(request.clients, probe.clients), 0, down)
            if answer.sent is not None:  # by the norm of the update, which all send
                up = up * answer.sent + number
            extra = vector if request.model is None else up[0]
            beside = sum(v is not None for v in (request.correction, request.anchor, request.teacher))
            gradient = bool(request.rule.mean_gradient or request.rule.first_gradient)
            traffic += np.array([down.sum(), up.sum()]) + len(down) * extra * np.array([beside, gradient])
    return traffic
