"""Any algorithm on any benchmark, a user's own included.

from reproduce import curves, play, summary

runs = play(["fedprox(mu=0.01)", "my_module:FedSlow"], on="fedacs-static", scale="smoke")
runs = play(["fedavg", "scaffold"], data=(x, y), partition="Dirichlet(0.3)", clients=20)
print(summary(runs)[["algorithm", "mean", "low", "high", "difference"]])
seaborn.lineplot(curves(runs), x="round", y="value", hue="algorithm")

specs          the algorithms of this package by name; how one is written, with a user's own class
benchmarks     declared panels that any algorithm can run on; what does not fit is refused with the reason
match, scores  what is trained, at which cost and rate; one number per seed, intervals
owndata        benchmarks on a user's own data and network
across: all on all, table and heat map
display        tables and figures
"""

import inspect
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

from reproduce.declare.isolation import settings_kept
from reproduce.declare.values import Seed
from reproduce.errors import UserError
from reproduce.play import scores
from reproduce.play.benchmarks import Benchmark
from reproduce.play.match import FACTORS, Match
from reproduce.play.owndata import benchmarks
from reproduce.play.scores import summary
from reproduce.play.specs import parse, strict
from reproduce.runs.plan import Job
from reproduce.settings import configure

__all__ = ["curves", "play", "summary"]

_PLAYED: dict[str, tuple[Job, Benchmark]] = {}
"""Name of a job -> the job and its benchmark, of all that this process has played."""


@strict
@settings_kept()
def play(
    algorithms: str | Iterable[str],
    on: str | Iterable[str] = (),
    scale: str = "reduced",
    seeds: Iterable[Seed] = range(5),
    tune: bool = False,
    grid: Iterable[float] = FACTORS,
    save: str | Path | None = None,
    **own: Any,
) -> pd.DataFrame:
    """Train algorithms on benchmarks and return one row per benchmark, algorithm and seed (`Match.frame`, and the name
    of its `run`); `summary` makes means and intervals of it, `curves` gives their evaluations. What was trained before
    is not trained again; the cost of the rest is said on stderr before it starts.

    algorithms: names with options ("fedprox(mu=0.01)"), or classes of files in the working directory
    ("my_module:FedSlow(lr=0.1)"). on: aliases of `reproduce play --list`, or panels ("fedacs/mnist-static").
    tune: first choose every algorithm's rate from a grid of equal size, by a tenth of the training data that no client
    has (`partitions.heldout`) and on seeds that are not reported.
    grid: what its own rate is multiplied with for that, in ascending order.
    save: a folder that gets the trained model of each run (`runs.saved`).
    own: data, label, model, partition, clients, epochs in place of the benchmarks', attack, by_client, metric,
    lr_decay, target, as `owndata.benchmarks` takes them (data: a path, arrays (x, y), a DataFrame, a data set of torch
    or of `datasets`, or a dict of "train" and "test" with one each); with data and without `on`, the plain benchmark of
    `play.owndata`.

    Raises UserError for unknown names, values of a wrong type, an algorithm that does not fit a benchmark, and data
    that are missing; a class of the user's own that raises while it trains is a row with its error.
    """
    configure({"REPRODUCE_SAVE": str(save or "")})
    texts = [algorithms] if isinstance(algorithms, str) else list(algorithms)
    places = [on] if isinstance(on, str) else list(on)
    if not places and own.get("data") is None:
        raise UserError("name a benchmark (on=...), or bring data (data=...)")
    match = Match(
        [parse(text) for text in texts], benchmarks(places, scale, **own), tuple(seeds), tune, factors=tuple(grid)
    )
    match.check()
    print(match.cost(), file=sys.stderr)
    match.train()
    frame, jobs = match.frame(), [(e, j) for e in match.entries if (j := match.reported(e)) is not None]
    _PLAYED.update({j.name: (j, e.benchmark) for e, j in jobs})
    names = {(e.benchmark.name, e.spec.text): j.name for e, j in jobs}
    return frame.assign(run=[names.get(pair, "") for pair in zip(frame["benchmark"], frame["algorithm"], strict=True)])


def curves(runs: pd.DataFrame, metric: str = "") -> pd.DataFrame:
    """Every evaluation of what `play` returned, or of some rows of it, as seaborn draws it: benchmark, algorithm, lr,
    seed, round, time (virtual seconds, NaN with rounds), metric, value, status.

    metric: "loss", say; by default the one of the score. Where a model has several sizes it is their mean. With
    by_client "per_client" has a row for each client, in the column `client`, and "per_client_tuned" its accuracy at the
    end after a local epoch. Raises UserError for rows of another process, and where later runs of the same names have
    replaced these.
    """
    named = runs[runs["run"] != ""] if "run" in runs else runs[:0]
    if named.empty or not {*named["run"]} <= {*_PLAYED}:
        raise UserError("curves are of runs that `play` returned in this process: call it again, nothing trains twice")
    parts = []
    for (name, algorithm), rows in named.groupby(["run", "algorithm"], sort=False):
        job, benchmark = _PLAYED[str(name)]
        measured = metric or benchmark.metric[0]
        evaluations = scores.evaluations(job, benchmark, metric)
        evaluations = evaluations[evaluations["seed"].isin(rows["seed"])]
        if evaluations.empty:
            raise UserError(f"{name} has no {measured}: name another metric, or play it again")
        parts.append(evaluations.assign(benchmark=benchmark.name, algorithm=str(algorithm), metric=measured))
    columns = ["benchmark", "algorithm", "lr", "seed", "round", "time", "metric", "value", "status"]
    joined = pd.concat(parts, ignore_index=True)
    return joined[[*columns, *({"client"} & {*joined.columns})]]


class _Package(ModuleType):
    """This package, which is called as its function: `from reproduce import play` means both."""

    __call__ = staticmethod(play)


__signature__ = inspect.signature(play)
sys.modules[__name__].__class__ = _Package
