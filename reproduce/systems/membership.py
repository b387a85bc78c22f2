"""Who is present: the clients that take part in a session (all its rounds). Sessions and clients count from 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Alternating:
    """Groups of clients that take turns: session s belongs to group s mod `groups` (dynamic initial models, Sec. 4).

    Group g consists of the clients g * clients_per_group, ..., (g + 1) * clients_per_group - 1.
    """

    groups: int
    clients_per_group: int

    def __post_init__(self) -> None:
        if self.groups < 1 or self.clients_per_group < 1:
            raise ValueError(
                f"alternation needs at least one group of one client, not {self.groups} of {self.clients_per_group}"
            )

    @property
    def clients(self) -> int:
        """Number of clients in all groups together."""
        return self.groups * self.clients_per_group

    def group(self, session: int) -> int:
        """The group whose turn `session` is."""
        if session < 0:
            raise ValueError(f"sessions are counted from 0, there is no session {session}")
        return session % self.groups

    def members(self, session: int) -> np.ndarray:
        """Ids of the clients of `session`: int64, shape (clients_per_group,), ascending."""
        first = self.group(session) * self.clients_per_group
        return np.arange(first, first + self.clients_per_group, dtype=np.int64)
