"""Which strategy is the fastest for each piece of work, and which one the trainer takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from benchmarks.measure import engine_round, seconds
from benchmarks.works import CNN28, CNN_CIFAR, WORKS, Work
from reproduce.engine.client_split import ClientSplits
from reproduce.engine.strategies import TABLE, Demand, choose
from reproduce.engine.trainer import demand
from reproduce.settings import settings

SLOWER = 0.9
"""A choice below this share of the best is marked."""
REPEATS = 3


def works() -> Iterator[Work]:
    """The works of the other benchmarks, and their networks with batches that fill the lanes more or less well."""
    yield from WORKS
    for work in WORKS:
        if work.model in (CNN28, CNN_CIFAR) or work.name == "defedavg CNN":
            for batch in (5, 16, 20, 32, 50):
                samples = batch * max(1, 100 // batch)
                yield replace(
                    work,
                    name=f"{work.name.split(', ')[0]}, batch {batch}",
                    batch=batch,
                    steps=samples // batch,
                    samples=samples,
                    per_round=min(6, work.per_round),
                )


def choice() -> None:
    """Samples per second of every strategy that can run a work, on one core; * is what the trainer takes."""
    names = [s.name for s in TABLE if s.name != "quadratic"]
    print(f"| work | {' | '.join(names)} | chosen / best | |\n|{' --- |' * (len(names) + 3)}", flush=True)
    marked = 0
    for work in works():
        rates, chosen = measured(work)
        share = rates[chosen] / max(rates.values())
        cells = [f"{rates[n]:,.0f}{'*' * (n == chosen)}" if n in rates else "" for n in names]
        marked += share < SLOWER
        print(f"| {work.name} | {' | '.join(cells)} | {share:.2f} | {'<--' if share < SLOWER else ''} |", flush=True)
    print(f"\n{marked} of the choices are more than {1 - SLOWER:.0%} slower than the best.")


def measured(work: Work) -> tuple[dict[str, float], str]:
    """Samples per second of each strategy, the best of some repeats in turn; and the trainer's choice."""
    demand = _asked(work)
    chosen = choose(demand).name
    able = [s.name for s in TABLE if not s.obstacle(demand)]
    calls = {name: engine_round(work, 1, name) for name in able}
    best: dict[str, float] = {}
    for name, call in calls.items():
        best[name] = seconds(call, 0)  # builds what has to be built
    for _ in range(REPEATS):
        for name, call in calls.items():
            best[name] = min(best[name], seconds(call, 0.2))
    return {name: work.samples_per_round / time for name, time in best.items()}, chosen


def _asked(work: Work) -> Demand:
    return demand(ClientSplits(settings()).get(work.problem, 0).device_data, work.model)
