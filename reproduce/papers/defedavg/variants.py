"""What Table I depends on: other readings of the paper's gaps, and the grid of rates that Table II was chosen from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from reproduce.declare.experiment import Experiment, Panel
from reproduce.papers.defedavg import runs
from reproduce.systems.speeds import UniformSlowdown


@dataclass(frozen=True)
class Variant:
    """Another reading of a gap, `text` in words: an algorithm with some part exchanged."""

    algorithm: str
    name: str
    text: str
    policy: Mapping[str, Any]
    rule: Mapping[str, Any]
    factors: tuple[float, float] = (1.0, 1.0)
    rate: bool = False


def _variant(
    algorithm: str, name: str, text: str, rule: Mapping[str, Any] | None = None,
    factors: tuple[float, float] = (1.0, 1.0), rate: bool = False, **policy: Any,
) -> Variant:  # fmt: skip
    return Variant(algorithm, f"{algorithm}_{name}", text, policy, rule or {}, factors, rate)


PUBLISHED = {"normalisation": "deterministic"}
VARIANTS: Mapping[str, tuple[Variant, ...]] = {
    "iid": (
        _variant("fedavg", "rate", "speeds read as rates", rate=True),
        _variant("favano", "parallel", "contacts at once", contact="parallel"),
        _variant("favano", "published", "as published", PUBLISHED, contact="parallel", wait=4 / 3),
        _variant("asysg", "all", "all clients at work", concurrency="N"),
        _variant("defedavg_iid", "free_uplink", "upload does not block", block_uplink=False),
        _variant("defedavg_iid", "fetch", "download on the path", download_on_path=True),
        _variant("defedavg_iid", "keep", "trains again without news", receive="keep"),
        _variant("defedavg_iid", "rate", "speeds read as rates", rate=True),
        _variant("defedavg_iid", "global10", "global rate x 10, supposed misprint", factors=(10, 1)),
        _variant("defedavg_iid", "local5", "local rate / 5, supposed misprint", factors=(1, 0.2)),
    ),
    "noniid": (
        _variant("fedavg", "rate", "speeds read as rates", rate=True),
        _variant("favano", "parallel", "contacts at once", contact="parallel"),
        _variant("favano", "published", "as published", PUBLISHED, contact="parallel", wait=4 / 3),
        _variant("fedbuff", "few", "n clients at work", concurrency="n"),
        _variant("fedbuff", "scaled", "weights 1/√(1 + staleness)", {"staleness_power": 0.5}),
        _variant("fedbuff", "no_server_rate", "without a server rate (1)", {"server_lr": 1.0}),
        _variant("defedavg_niid", "skip", "empty buffers are skipped", empty="skip"),
        _variant("defedavg_niid", "keep", "trains again without news", receive="keep"),
        _variant("defedavg_niid", "rate", "speeds read as rates", rate=True),
        _variant("defedavg_niid", "local2", "local rate x 2, supposed misprint", factors=(1, 2)),
    ),
}
"""The gaps' other readings, run beside those of Table I (`defedavg_niid_hold` is there already)."""

TEXTS = {v.name: v.text for group in VARIANTS.values() for v in group}
TEXTS |= {f"tuned_{name}": "best rates of the grid" for name in runs.POLICIES}
"""In words: what differs from the algorithm."""


def sensitivity_panels(scale: str) -> tuple[Panel, ...]:
    """The middle column of Table I, its variants, and the grid of rates; at paper scale of Fashion-MNIST only."""
    setting = runs.SETTINGS[scale][0]
    return tuple(
        make(setting, distribution)
        for make in (_given, _varied, _tuned)
        for distribution in runs.DISTRIBUTIONS
    )  # fmt: skip


def _given(setting: runs.ClockSetting, distribution: str) -> Panel:
    """Table I's column with the seeds of its variants (it may have more), and without those that are run here."""
    column = runs.times_panel(setting, distribution, setting.participants[0])
    others = tuple(e for e in column.experiments if e.labels["algorithm"] not in TEXTS)
    return replace(column, experiments=others, seeds=setting.seeds)


def _varied(setting: runs.ClockSetting, distribution: str) -> Panel:
    n = setting.participants[0]
    experiments = []
    for v in VARIANTS[distribution]:
        given = runs.rates(setting, distribution, n)[v.algorithm]
        server, local = (None if r is None else r * f for r, f in zip(given, v.factors, strict=True))
        under = replace(runs.policy(v.algorithm, n), **v.policy)  # type: ignore[type-var]
        where = runs.system(setting, under)
        if v.rate:
            assert where.pace is not None
            where = replace(where, pace=replace(where.pace, speeds=UniformSlowdown(model="rate")))
        told = {**runs.labels(setting, distribution, n), "algorithm": v.name}
        clock = runs.until_target(setting, distribution, under, further=False)
        made = replace(runs.rule((server, local)), **v.rule)
        experiments.append(Experiment(told, runs.problem(setting, distribution), where, made, clock))
    name = f"sensitivity-{setting.slug}-{distribution}"
    return Panel(name, tuple(experiments), setting.seeds, setting.substitute)


def _grid(setting: runs.ClockSetting, algorithm: str) -> list[runs.Pair]:
    """Global rates 0.1 and 1, and the local ones of the setting."""
    servers: tuple[float | None, ...] = (None,) if algorithm == "favano" else (0.1, 1.0)
    clients: tuple[float | None, ...] = (None,) if algorithm == "asysg" else setting.searched
    return [(server, local) for server in servers for local in clients]


def _tuned(setting: runs.ClockSetting, distribution: str) -> Panel:
    """The grid of Table II, with the rates as labels."""
    n = setting.participants[0]
    experiments = []
    for name in runs.GROUPS[distribution]:
        for pair in _grid(setting, name):
            server, local = ("" if rate is None else f"{rate:g}" for rate in pair)
            told = {"global_lr": server, "local_lr": local}
            under = runs.policy(name, n)
            experiments.append(
                Experiment(
                    {**runs.labels(setting, distribution, n), **told, "algorithm": f"tuned_{name}"},
                    runs.problem(setting, distribution),
                    runs.system(setting, under),
                    runs.rule(pair),
                    runs.until_target(setting, distribution, under, further=False),
                )
            )
    return Panel(f"tuned-{setting.slug}-{distribution}", tuple(experiments), setting.seeds, setting.substitute)
