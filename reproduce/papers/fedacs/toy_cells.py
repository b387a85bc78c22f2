"""Numbers of the quadratic experiments: distances of single runs, of the mean over seeds, and to the closed forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduce.experiment import Problem
from reproduce.papers.fedacs.closed_form import Floats, Ints, expected_step, fixed_point
from reproduce.problems import Quadratic

if TYPE_CHECKING:
    import pandas as pd

    from reproduce.systems import System


def minimisers(problem: Problem) -> Floats:
    """e_m [N, d]; their mean is X* (the toys of the paper have identity Hessians)."""
    assert isinstance(problem, Quadratic)
    return problem.minima()


def draws(system: System, clients: int, rounds: int = 1000) -> tuple[Ints, Floats]:
    """Steps and success probabilities [R, N] of the system's first rounds for seed 0; one row if it is static."""
    steps = np.stack([system.work.amounts(0, r, clients) for r in range(rounds)])
    success = np.stack([1 - system.link.failure(0, r, clients) for r in range(rounds)])
    if (steps == steps[0]).all() and (success == success[0]).all():
        return steps[:1], success[:1]
    return steps, success


def limit(algorithm: str, problem: Problem, system: System, lr: float, **options: Any) -> Floats:
    """The closed-form point of an algorithm (options: see `closed_form.expected_step`)."""
    e = minimisers(problem)
    return fixed_point(*expected_step(algorithm, *draws(system, len(e)), lr, e, **options))


def traces(frame: pd.DataFrame, labels: list[str]) -> Iterator[tuple[dict[str, Any], Floats, Ints, Ints]]:
    """For every experiment (value of the labels): x [seeds, times, d], the rounds [times], and the seeds [seeds].

    A run that diverged has no values where it stopped.
    """
    rows = frame[frame["metric"] == "x"]
    rows = rows.assign(key=rows["key"].astype(int))
    for values, group in rows.groupby(labels, sort=False, dropna=False):
        table = group.pivot_table(index=["seed", "round"], columns="key", values="value", dropna=False)
        seeds, rounds = (table.index.unique(level) for level in ("seed", "round"))
        x = table.to_numpy().reshape(len(seeds), len(rounds), -1)
        yield dict(zip(labels, values, strict=True)), x, rounds.to_numpy(), seeds.to_numpy()


def last_fifth(rounds: Ints) -> NDArray[np.bool_]:
    """Which of the rounds are in the plateau: the last 200 of 1000."""
    return rounds > 0.8 * rounds.max()


def mean_model(frame: pd.DataFrame, labels: list[str], problem: Problem) -> pd.DataFrame:
    """`distance_of_mean_model`: plateau of ||mean over seeds of X_r - X*||, see `jackknife`."""
    optimum = minimisers(problem).mean(0)

    def distance(x: Floats, rounds: Ints) -> float:
        return float(np.linalg.norm(x.mean(0)[last_fifth(rounds)] - optimum, axis=1).mean())

    found = ((names, jackknife(x, rounds, distance), seeds) for names, x, rounds, seeds in traces(frame, labels))
    return _per_seed(labels, "distance_of_mean_model", found)


def mean_to_limit(frame: pd.DataFrame, labels: list[str], limits: dict[tuple[Any, ...], Floats]) -> pd.DataFrame:
    """`distance_of_mean_model_to_closed_form`: ||mean of X_r over seeds and plateau - limit||, where one is known, see
    `jackknife`."""

    def values() -> Iterator[tuple[dict[str, Any], Floats, Ints]]:
        for names, x, rounds, seeds in traces(frame, labels):
            limit = limits.get(tuple(names.values()))
            if limit is not None:
                yield names, jackknife(x, rounds, partial(_mean_distance, limit)), seeds

    return _per_seed(labels, "distance_of_mean_model_to_closed_form", values())


def _mean_distance(limit: Floats, x: Floats, rounds: Ints) -> float:
    return float(np.linalg.norm(x.mean(0)[last_fifth(rounds)].mean(0) - limit))


def jackknife(x: Floats, rounds: Ints, number: Callable[[Floats, Ints], float]) -> Floats:
    """Tukey's pseudo-values [seeds] of a number of all seeds together: n times it, less n - 1 times the number without
    the seed. Their mean is the number (less its bias) and their spread its uncertainty. One seed: the number itself."""
    whole, n = number(x, rounds), len(x)
    if n == 1:
        return np.array([whole])
    return np.array([n * whole - (n - 1) * number(np.delete(x, i, axis=0), rounds) for i in range(n)])


def tail_average(frame: pd.DataFrame, metric: str, targets: dict[str, Floats]) -> pd.DataFrame:
    """||average of X_r over the second half of the run - target of the algorithm||, one row per run."""
    import pandas as pd

    labels = ["system", "algorithm"]
    rows = [
        {**names, "seed": int(seed), "metric": metric, "value": np.linalg.norm(end - targets[names["algorithm"]])}
        for names, x, rounds, seeds in traces(frame, labels)
        for seed, end in zip(seeds, x[:, rounds > rounds.max() / 2].mean(1), strict=True)
    ]
    return pd.DataFrame(rows)


def _per_seed(labels: list[str], metric: str, found: Iterator[tuple[dict[str, Any], Floats, Ints]]) -> pd.DataFrame:
    import pandas as pd

    rows = [
        {**names, "seed": int(seed), "metric": metric, "value": float(value)}
        for names, values, seeds in found
        for seed, value in zip(seeds, values, strict=True)
    ]
    return pd.DataFrame(rows, columns=[*labels, "seed", "metric", "value"])
