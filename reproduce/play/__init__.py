"""Any algorithm on any benchmark, a user's own included.

from reproduce.play import play, summary

runs = play(["fedprox(mu=0.01)", "my_module:FedSlow"], on="fedacs-static", scale="smoke")
runs = play(["fedavg", "scaffold"], data="photos", partition="Dirichlet(0.3)", clients=20)
print(summary(runs)[["algorithm", "mean", "low", "high", "difference"]])

specs          the algorithms of this package by name; how one is written, with a user's own class
benchmarks     declared panels that any algorithm can run on; what does not fit is refused with the reason
match, scores  what is trained, at which cost and rate; one number per seed, intervals
owndata        benchmarks on a user's own data and network
across: all on all, table and heat map
shown          tables and figures
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from reproduce.declare.isolation import settings_kept
from reproduce.errors import UserError
from reproduce.play.match import FACTORS, Match
from reproduce.play.owndata import benchmarks
from reproduce.play.scores import summary
from reproduce.play.specs import parse

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["play", "summary"]


@settings_kept()
def play(
    algorithms: str | Iterable[str],
    on: str | Iterable[str] = (),
    scale: str = "reduced",
    seeds: Iterable[int] = range(5),
    tune: bool = False,
    grid: Iterable[float] = FACTORS,
    **own: Any,
) -> pd.DataFrame:
    """Train algorithms on benchmarks and return one row per benchmark, algorithm and seed (`Match.frame`); `summary`
    makes means and intervals of it. What was trained before is not trained again; the cost of the rest is said on
    stderr before it starts.

    algorithms: names with options ("fedprox(mu=0.01)"), or classes of files in the working directory
    ("my_module:FedSlow(lr=0.1)"). on: aliases of `reproduce play --list`, or panels ("fedacs/mnist-static").
    tune: first choose every algorithm's rate from a grid of equal size, by a tenth of the training data that no client
    has (`partitions.heldout`) and on seeds that are not reported.
    grid: what its own rate is multiplied with for that, in ascending order.
    own: data, label, model, partition, clients, epochs in place of the benchmarks', by_client, as `owndata.benchmarks`
    takes them; with data and without `on`, the plain benchmark of `play.owndata`.

    Raises UserError for unknown names, options of a wrong type, an algorithm that does not fit a benchmark, and data
    that are missing; a class of the user's own that raises while it trains is a row with its error.
    """
    asked = [algorithms] if isinstance(algorithms, str) else list(algorithms)
    places = [on] if isinstance(on, str) else list(on)
    if not places and own.get("data") is None:
        raise UserError("name a benchmark (on=...), or bring data (data=...)")
    match = Match(
        [parse(text) for text in asked], benchmarks(places, scale, **own), tuple(seeds), tune, factors=tuple(grid)
    )
    match.check()
    print(match.cost(), file=sys.stderr)
    match.train()
    return match.frame()
