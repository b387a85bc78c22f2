"""Variants of Table I: other readings of the paper's gaps, and the grid of rates that Table II was chosen from."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from reproduce.data.batches import Shuffled
from reproduce.declare.experiment import Experiment, Panel, changed
from reproduce.models.declared import MLP, ConvNet, KaimingMLP
from reproduce.papers.defedavg import runs, settings
from reproduce.papers.defedavg.settings import ClockSetting
from reproduce.partitions.heldout import judged
from reproduce.partitions.labels import Shards
from reproduce.report.names import pretty
from reproduce.systems.policies import POLICIES
from reproduce.systems.schedule import UniformSlowdown


class Choice(NamedTuple):
    """Another reading of a gap, `text` in words: an algorithm with something changed (`changed`), and its rates, global
    and local, times `factors`."""

    algorithm: str
    name: str
    text: str
    changes: Mapping[str, Any]
    factors: tuple[float, float] = (1.0, 1.0)
    panel: str = "sensitivity"


def _choice(
    algorithm: str, name: str, text: str, changes: Mapping[str, Any] | None = None,
    factors: tuple[float, float] = (1.0, 1.0), panel: str = "sensitivity", **policy: Any,
) -> Choice:  # fmt: skip
    of_policy = {f"clock.policy.{field}": value for field, value in policy.items()}
    return Choice(algorithm, f"{algorithm}_{name}", text, {**(changes or {}), **of_policy}, factors, panel)


PUBLISHED = {"algorithm.normalisation": "deterministic"}
PAIR = {distribution: ("fedavg", proposed) for distribution, proposed in runs.PROPOSED.items()}
SHARDS = {"problem.partition": Shards(2)}
RATE = {"system.pace.speeds": UniformSlowdown(model="rate")}


def _transfers(factor: float) -> Mapping[str, Any]:
    """Transfers that take so many times as long."""
    return {f"system.pace.{way}load": lambda seconds: factor * seconds for way in ("up", "down")}


HONEST, COUNTED = _transfers(1 / 15), _transfers(2.33 / 2.2)
"""A step of ten samples costs 15 times the printed FLOP (multiplications and additions, forwards and backwards). Where
that is the unit of time, transfers are a fifteenth. The network has 2.33 MB for the printed 2.2."""
HEAVY = {"algorithm.momentum": 0.9}
ORDER = {"problem.batches": lambda batches: Shuffled(batches.size)}
CENTRED = {"problem": lambda problem: replace(problem, mean=(0.5,), std=(0.5,))}
LONGER = {"system.work.k": lambda k: 2 * k}


def kaiming(model: MLP | ConvNet) -> MLP | ConvNet:
    """The network from Kaiming's start."""
    return replace(model, initialisation="kaiming") if isinstance(model, ConvNet) else KaimingMLP(**vars(model))


def _of_both(distribution: str) -> tuple[Choice, ...]:
    """The batches' order, pixels, another start of the network, and twice the local steps at the same rate and at half
    of it (Fig. 7)."""
    ours = runs.PROPOSED[distribution]
    return (
        *(_choice(a, "order", "batches in a new order per pass", ORDER, panel="data") for a in PAIR[distribution]),
        *(_choice(a, "centred", "pixels from -1 to 1", CENTRED, panel="data") for a in PAIR[distribution]),
        *(
            _choice(a, "kaiming", "Kaiming's start", {"problem.model": kaiming}, panel="start")
            for a in PAIR[distribution]
        ),
        _choice(ours, "longer", "twice the steps", LONGER, panel="start"),
        _choice(ours, "longer_half", "twice the steps, local rate / 2", LONGER, (1, 0.5), "start"),
    )


FIRST = (
    _choice("fedavg", "rate", "speeds read as rates", RATE),
    _choice("favano", "parallel", "contacts at once", contact="parallel"),
    _choice("favano", "published", "as published", PUBLISHED, contact="parallel", wait=4 / 3),
)
CHOICES: Mapping[str, tuple[Choice, ...]] = {
    "iid": (
        *FIRST,
        _choice("asysg", "all", "all clients at work", concurrency="N"),
        _choice("asysg", "sum", "sum of the gradients", factors=(10, 1), panel="sum"),
        _choice("defedavg_iid", "free_uplink", "upload does not block", block_uplink=False),
        _choice("defedavg_iid", "fetch", "download on the path", download_on_path=True),
        _choice("defedavg_iid", "keep", "trains again without news", receive="keep"),
        _choice("defedavg_iid", "rate", "speeds read as rates", RATE),
        _choice("defedavg_iid", "global10", "global rate x 10, supposed misprint", factors=(10, 1)),
        _choice("defedavg_iid", "local5", "local rate / 5, supposed misprint", factors=(1, 0.2)),
        _choice("fedavg", "local10", "local rate / 10, as Table II for n >= 20", factors=(1, 0.1), panel="more"),
        *(_choice(a, "honest", "transfers / 15: honest cost of steps", HONEST, panel="more") for a in PAIR["iid"]),
        *(_choice(a, "counted", "size counted from the network", COUNTED, panel="more") for a in PAIR["iid"]),
        *_of_both("iid"),
    ),
    "noniid": (
        *FIRST,
        _choice("fedbuff", "few", "n clients at work", concurrency="n"),
        _choice("fedbuff", "scaled", "weights 1/√(1 + staleness)", {"algorithm.staleness_power": 0.5}),
        _choice("fedbuff", "no_server_rate", "without a server rate (1)", {"algorithm.server_lr": 1.0}),
        _choice("defedavg_niid", "skip", "empty buffers are skipped", empty="skip"),
        _choice("defedavg_niid", "keep", "trains again without news", receive="keep"),
        _choice("defedavg_niid", "rate", "speeds read as rates", RATE),
        _choice("defedavg_niid", "local2", "local rate x 2, supposed misprint", factors=(1, 2)),
        *(_choice(a, "shards", "two shards at random", SHARDS, panel="more") for a in PAIR["noniid"]),
        *(_choice(a, "heavy", "momentum 0.9, local rate / 10", HEAVY, (1, 0.1), "more") for a in PAIR["noniid"]),
        *_of_both("noniid"),
    ),
}
"""The gaps' other readings, run beside those of Table I (`defedavg_niid_hold` is there already)."""

TEXTS = {v.name: v.text for group in CHOICES.values() for v in group}
TEXTS |= {f"tuned_{name}": "best rates of the grid, by held-out data" for name in POLICIES}
"""In words: what differs from the algorithm."""
SHOWN = TEXTS | {f"tuned_{name}": f"{pretty(name)}, {TEXTS[f'tuned_{name}']}" for name in POLICIES}
"""The same as the picture has it, where tuned rates stand for the algorithm."""


def panels(scale: str) -> tuple[Panel, ...]:
    """The middle column of Table I, its variants, and the grid of rates, once as it is reported and once, on seeds that
    are not, as it is judged (`heldout.judged`); at paper scale of Fashion-MNIST only."""
    setting = settings.SETTINGS[scale][0]
    n = setting.participants[0]
    order = ("given", "sensitivity", "tuned", "more", "sum", "data", "start", "validated")
    groups: dict[str, list[Panel]] = {name: [] for name in order}
    for distribution in settings.DISTRIBUTIONS:
        column = runs.times_panel(setting, distribution, n)
        # The seeds of the variants (the column may have more), and without those that are run here.
        rest = tuple(e for e in column.experiments if e.labels["algorithm"] not in TEXTS)
        groups["given"].append(replace(column, experiments=rest, seeds=setting.seeds))
        for name in ("sensitivity", "more", "sum", "data", "start"):
            chosen = [v for v in CHOICES[distribution] if v.panel == name and fits(v, setting)]
            varied = [_varied(setting, distribution, n, v) for v in chosen]
            if varied:
                groups[name].append(runs.panel(f"{name}-{{}}-{distribution}", setting, varied))
        tuned = [e for name in runs.GROUPS[distribution] for e in _tuned(setting, distribution, n, name)]
        groups["tuned"].append(runs.panel(f"tuned-{{}}-{distribution}", setting, tuned))
        unseen = tuple(1000 + seed for seed in setting.seeds)
        groups["validated"].append(runs.panel(f"validated-{{}}-{distribution}", setting, map(judged, tuned), unseen))
    return tuple(panel for group in groups.values() for panel in group)


def fits(v: Choice, setting: ClockSetting) -> bool:
    """Tells whether the choice makes sense here: only images have pixels, and networks to start otherwise."""
    return (v.changes != CENTRED and v.panel != "start") or len(setting.problem.sample.shape) == 3


def _varied(setting: ClockSetting, distribution: str, n: int, v: Choice) -> Experiment:
    rates = runs.rates(setting, distribution, n)[v.algorithm]
    server, local = (None if r is None else r * f for r, f in zip(rates, v.factors, strict=True))
    e: Experiment = changed(runs.run(setting, distribution, n, v.name, (server, local), further=False), v.changes)
    return e


def _tuned(setting: ClockSetting, distribution: str, n: int, algorithm: str) -> Iterator[Experiment]:
    """The grid of Table II, global rates 0.1 and 1 and the local ones of the setting, with the rates as labels."""
    servers: tuple[float | None, ...] = (None,) if algorithm == "favano" else (0.1, 1.0)
    clients: tuple[float | None, ...] = (None,) if algorithm == "asysg" else setting.searched
    for pair in itertools.product(servers, clients):
        server, local = ("" if rate is None else f"{rate:g}" for rate in pair)
        labels = {"global_lr": server, "local_lr": local}
        yield runs.run(setting, distribution, n, f"tuned_{algorithm}", pair, further=False, **labels)
