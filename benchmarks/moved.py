"""How far rounding carries: `python -m benchmarks.moved SCALE PAPER JOB [--seed N]` trains one seed of a job twice, as
declared and from a start that is moved by 1e-7, and prints how far the accuracies come apart: the last ones, and in any
round. On another processor every step rounds otherwise, which is no less."""

from __future__ import annotations

import argparse
from dataclasses import replace

from reproduce.runs import plan
from reproduce.runs.job import begin, finish
from reproduce.runs.replay import moved
from reproduce.settings import settings
from reproduce.text import markdown

SIZE = 1e-7
Curves = dict[tuple[str, str, str], dict[int, float]]
"""(labels, metric, key) -> the value of each round."""


def curves(job: plan.Job, seed: int) -> Curves:
    found: Curves = {}
    for run in finish(begin(job.experiments, [seed], settings())):
        label = ", ".join(str(value) for value in run.experiment.labels.values())
        for now, _time, metric, key, value in run.state["history"]:
            if "accuracy" in metric and "client" not in metric:
                found.setdefault((label, metric, str(key)), {})[now] = value
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.moved", description=__doc__)
    for name in ("scale", "paper", "job"):
        parser.add_argument(name)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", metavar="ALGORITHM", default="")
    args = parser.parse_args()
    job = plan.job(args.scale, args.paper, args.job)
    job = replace(job, experiments=tuple(e for e in job.experiments if args.only in ("", e.labels["algorithm"])))
    declared, rows = curves(job, args.seed), []
    with moved(SIZE):
        other = curves(job, args.seed)
    for run, one in declared.items():
        both = sorted(one.keys() & other[run].keys())  # a run may end earlier, at its target
        apart, last = [abs(other[run][now] - one[now]) for now in both], both[-1]
        rows.append([*run, f"{one[last]:.2f}", f"{other[run][last]:.2f}", f"{apart[-1]:.2f}", f"{max(apart):.2f}"])
    rows.sort(key=lambda row: -float(row[-2]))
    print(markdown(("run", "metric", "of", "as declared", "moved", "points apart", "in any round"), rows))


if __name__ == "__main__":
    main()
