"""A clock of experiments that are declared, stored and shown, but never run."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Unplayed:
    value: float = 0.0

    def check(self, experiment: object) -> None:
        """Everything goes with everything."""
