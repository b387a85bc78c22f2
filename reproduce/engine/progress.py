"""How far a job is, on the terminal or in its log."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Sequence

from reproduce.engine.scheduler import Run
from reproduce.text import counted, duration


class Progress:
    """A bar over the rounds of all runs with the time left; a line at the end where there is no terminal.

    Where a target may end runs earlier, it also shows how near they are: "accuracy 71.2 to 73.0, ends at 90".
    """

    def __init__(self, title: str, runs: Sequence[Run]) -> None:
        from tqdm import tqdm  # the benchmark of a GPU runs where only torch and numpy are

        self.runs, self.title, self.terminal = runs, title, sys.stderr.isatty()
        self.rounds = sum(r.experiment.clock.length(r.experiment) for r in runs)
        self.aims = [(r, *aim) for r in runs if (aim := _aim(r))]
        most = shutil.get_terminal_size().columns // 2  # the rest is for the bar and the time left
        self.bar = tqdm(
            total=self.rounds,
            desc=title if len(title) <= most else f"…{title[1 - most :]}",
            unit="round",
            mininterval=0.5,
            smoothing=0.1,
            delay=0 if self.terminal else math.inf,
        )

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.update()
        self.bar.close()
        if not self.terminal:
            taken = duration(self.bar.format_dict["elapsed"])
            print(f"{self.title}: {self.bar.n:,} of {counted(self.rounds, 'round')} in {taken}", file=sys.stderr)

    def update(self) -> None:
        done = sum(r.experiment.clock.length(r.experiment) if r.done else r.state.get("round", 0) for r in self.runs)
        self.bar.set_postfix_str(self._near(), refresh=False)
        self.bar.update(done - self.bar.n)

    def _near(self) -> str:
        """The least and the greatest latest value of the runs that a target may still end; "" without any."""
        going = [(metric, end, _latest(r, metric)) for r, metric, end in self.aims if not r.done]
        found = [value for *_, value in going if value is not None]
        if not found:
            return ""
        metric, end, _ = going[0]
        values = " to ".join(dict.fromkeys((f"{min(found):.1f}", f"{max(found):.1f}")))
        return f"{metric} {values}, ends at {end:g}"


def _aim(run: Run) -> tuple[str, float] | None:
    """(metric, value) at which the run ends, if its clock has such a target."""
    until = getattr(run.experiment.clock, "until", None)
    return until if until is None or isinstance(until, tuple) else (until.metric, until.value)


def _latest(run: Run, metric: str) -> float | None:
    rows = reversed(run.state.get("history", ()))
    return next((value for _, _, name, key, value in rows if (name, key) == (metric, "")), None)
