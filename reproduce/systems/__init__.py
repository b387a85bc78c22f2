"""The clients' speed, uplink, capacity and presence.

    System  = work (how much each client does per round), link (whose update is lost), capacity (how large a model fits)
              and pace (the seconds that it takes)
    `clients`     how large a model fits, who takes part in which session
    `schedule`    who trains when, simulated from the pace and a policy (`policies`)

All are frozen values; nothing here knows about models or data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from reproduce.systems.clients import Capacity, FullCapacity
from reproduce.systems.link import Link, Reliable
from reproduce.systems.schedule import Pace
from reproduce.systems.work import Epochs, Steps, Work

__all__ = ["Capacity", "Epochs", "FullCapacity", "Link", "Pace", "Reliable", "Steps", "System", "Work"]


@dataclass(frozen=True)
class System:
    """The clients of an experiment. The default: one step each, nothing lost, the full model fits.

    The event clock asks for `pace` and, as steps per job, for `work`; to the clocks in rounds, time is of no account.
    """

    work: Work = field(default_factory=lambda: Steps(1))
    link: Link = field(default_factory=Reliable)
    capacity: Capacity = field(default_factory=FullCapacity)
    pace: Pace | None = None

    def check(self, clients: int) -> None:
        """Raises ValueError if the parts are not made for so many clients."""
        _check(self, clients)


@cache
def _check(system: System, clients: int) -> None:
    system.work.amounts(0, 0, clients)
    system.link.failure(0, 0, clients)
    system.capacity.capacities(clients)
    if system.pace is not None:
        system.pace.step_seconds(0, clients)
