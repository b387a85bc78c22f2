"""Being asked to stop: the training goes on to the next moment at which a checkpoint can be taken, and ends there."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any

from reproduce.errors import Stopped

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Stopping:
    """Context in which the first SIGINT, SIGTERM or SIGHUP is a wish; a second one ends the process as usual.

    Checkpoints are possible only where every run stands at the beginning of a round, so the wish has to wait for that.
    """

    def __init__(self) -> None:
        self.wish = 0
        self.before: dict[int, Any] = {}

    def __enter__(self) -> Stopping:
        if threading.current_thread() is threading.main_thread():
            self.before = {number: signal.signal(number, self._asked) for number in SIGNALS}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._restore()

    def _asked(self, number: int, frame: FrameType | None) -> None:
        self.wish = number
        self._restore()
        print(f"\n{signal.Signals(number).name}: stopping at the end of this round", file=sys.stderr, flush=True)

    def _restore(self) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def end(self) -> None:
        """Raises `Stopped`; to be called when the checkpoint is written."""
        name = signal.Signals(self.wish).name
        raise Stopped(f"stopped by {name}; the checkpoint is written, the same command goes on from it", self.wish)
