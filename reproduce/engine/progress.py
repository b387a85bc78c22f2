"""How far a job is, on the terminal or in its log."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from threading import Event, Thread

from tqdm import tqdm

from reproduce.engine.cohort import Run


class Progress:
    """A bar over the rounds of all runs with the time left; one line per half minute where there is no terminal.

    A round of a large cohort takes minutes, and no run is further before its end. So a thread shows the time meanwhile.
    """

    def __init__(self, title: str, runs: Sequence[Run]) -> None:
        self.title, self.runs = title, runs
        self.total = sum(r.experiment.clock.length(r.experiment) for r in runs)
        terminal = sys.stderr.isatty()
        self.beat = 1.0 if terminal else 30.0
        self.bar = tqdm(
            total=self.total, desc=title, unit="round", mininterval=0.5 if terminal else 30, smoothing=0.1, leave=True
        )
        self.ended = Event()
        self.thread = Thread(target=self._show, daemon=True)

    def __enter__(self) -> Progress:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()
        self.update()
        self.bar.close()

    def update(self) -> None:
        done = sum(r.experiment.clock.length(r.experiment) if r.done else r.state.get("round", 0) for r in self.runs)
        self.bar.update(done - self.bar.n)

    def _show(self) -> None:
        while not self.ended.wait(self.beat):
            self.bar.refresh()
