"""Benchmarks: declared panels on which any algorithm can run that fits them.

A benchmark is what an algorithm is tried on: problem, system and clock of a panel's FedAvg (or of its first algorithm),
its learning rate and who takes part. An algorithm that the panel declares itself is run as declared there.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

from reproduce.algorithms.asynchronous import Asynchronous
from reproduce.algorithms.base import FedAvg, WeightedDraws
from reproduce.algorithms.fedagrac import Constant
from reproduce.clocks.events import Events
from reproduce.clocks.rounds import Rounds
from reproduce.clocks.sessions import Sessions
from reproduce.declare.experiment import Experiment, Label, Panel
from reproduce.declare.paper import artifacts, papers
from reproduce.declare.values import Count, NonNegative
from reproduce.engine.rule import Rule
from reproduce.errors import UserError, unknown
from reproduce.play.specs import NAMES, Named, Spec, checked, fields, owned, typed
from reproduce.runs import plan

ALIASES: Mapping[str, Mapping[str, str]] = {
    alias: {scale: f"{key}/{panel}" for scale, panel in scales.items()}
    for key, paper in papers().items()
    for alias, scales in paper.benchmarks.items()
}
"""Alias -> scale -> paper/panel; labels where a panel has several settings; how many rounds, if fewer than it has, and
the seed of one split for all runs, where those of a split each are not trained yet."""


class Refused(UserError):
    """An algorithm that cannot run on a benchmark; `reason` says why."""

    def __init__(self, algorithm: str, benchmark: str, reason: str) -> None:
        super().__init__(f"{algorithm} cannot run on {benchmark}: {reason}")
        self.reason = reason


@dataclass(frozen=True)
class Benchmark:
    """A benchmark. name: as it was asked for. panel: where it comes from. own: the panel's algorithms by label, as
    declared.

    reference: the label of the one that all are compared with. substitute: what stands in for the paper's setting.
    score: what is compared in place of accuracy. target: a score, of which it is said when runs reach it.
    """

    name: str
    scale: str
    panel: str
    own: Mapping[str, Experiment]
    reference: str
    substitute: str = ""
    score: str = ""
    target: float | None = None

    @property
    def declared(self) -> str:
        """The panel with the labels that choose a setting, and with the rounds that it is cut to."""
        return ALIASES.get(self.name, {}).get(self.scale, self.name)

    @property
    def template(self) -> Experiment:
        """Problem, system, clock and rates that other algorithms get."""
        return self.own[self.reference]

    @property
    def has_data(self) -> bool:
        problem: Any = self.template.problem
        return problem.model is not None

    @property
    def metric(self) -> tuple[str, str]:
        """The compared metric and its unit."""
        return (self.score or "accuracy", "%") if self.has_data else ("distance", "")

    @property
    def measured(self) -> str:
        """The compared metric with its unit, if it has one."""
        metric, unit = self.metric
        return f"{metric} ({unit})" if unit else metric

    @property
    def by_client(self) -> bool:
        """Tells whether values are per client."""
        return bool(getattr(self.template.clock, "by_client", False))

    @cached_property
    def slug(self) -> str:
        """The name as a part of file names."""
        return re.sub("[^a-z0-9]", "-", self.name.lower()).strip("-") or "data"

    def window(self, evaluations: int) -> int:
        """The number of a run's last evaluations in its score: a tenth; of sessions, one turn of all groups."""
        clock = self.template.clock
        if isinstance(clock, Sessions):
            return len(clock.membership.turns) * clock.rounds
        return math.ceil(evaluations / 10)

    def experiment(self, spec: Spec, lr: float | None = None) -> Experiment:
        """The run of an algorithm on this benchmark, to the end of its clock, at the rate `lr` if one is given.

        Raises Refused if the parts do not go together; UserError for an unknown algorithm or option.
        """
        with owned(spec.text):
            base, algorithm, clock = self._built(spec)
            algorithm = algorithm if lr is None else replace(algorithm, lr=lr)
            if not isinstance(algorithm.rule(), Rule):
                raise TypeError("`rule` gives a Rule")
        labels: dict[str, Label] = {"benchmark": self.name, "algorithm": spec.text, "lr": float(algorithm.lr)}
        try:
            with owned(spec.text):
                return Experiment(labels, base.problem, base.system, algorithm, _whole(clock))
        except UserError as error:
            if isinstance(error.__cause__, ValueError):
                raise Refused(spec.text, self.name, str(error.__cause__)) from error
            raise

    def _built(self, spec: Spec) -> tuple[Experiment, FedAvg, Any]:
        """The experiment that gives problem and system, the algorithm, the clock."""
        named = Named(spec.cls) if spec.cls else NAMES.get(spec.name)
        declared = None if spec.cls else self.own.get(spec.name)
        if declared and named and not isinstance(declared.clock, Events) and type(declared.algorithm) is not named.cls:
            declared = None  # the panel calls something else so
        if declared:
            clock, options = self._policed(declared.clock, dict(spec.options), spec.text)
            algorithm = declared.algorithm
            return declared, replace(algorithm, **_checked(type(algorithm), options, spec.text)), clock
        if named is None:
            raise unknown("algorithm", spec.name, {*NAMES, *self.own})
        clock = self.template.clock
        if named.policy and isinstance(clock, Events) and type(clock.policy) is not named.policy:
            clock = replace(clock, policy=named.policy(clock.policy.n))  # type: ignore[call-arg]
        clock, options = self._policed(clock, {**named.options, **dict(spec.options)}, spec.text)
        cls = Asynchronous if isinstance(clock, Events) and named.cls is FedAvg and named.policy else named.cls
        taken = {name: getattr(self.template.algorithm, name) for name in fields(FedAvg)}  # unless it is given
        if fields(cls)["server_lr"].default != FedAvg.server_lr:  # an optimizer's step has another size
            del taken["server_lr"]
        if cls.draws and not isinstance(taken["participation"], WeightedDraws):
            taken["participation"] = WeightedDraws(getattr(taken["participation"], "k", self._present))
        return self.template, cls(**{**taken, **_checked(cls, options, spec.text)}), clock

    @property
    def _present(self) -> int:
        """The number of clients in a round."""
        problem: Any = self.template.problem
        clock = self.template.clock
        return min(clock.membership.sizes) if isinstance(clock, Sessions) else int(problem.clients)

    def _policed(self, clock: Any, options: dict[str, Any], of: str) -> tuple[Any, dict[str, Any]]:
        """The clock with the options that are its policy's, and the other options."""
        if not isinstance(clock, Events):
            return clock, options
        kind = type(clock.policy)
        of_policy = {k: v for k, v in options.items() if k in fields(kind) and k not in ("n", "selections")}
        policy: Any = replace(clock.policy, **checked(kind, of_policy, of))  # type: ignore[type-var]
        return replace(clock, policy=policy), {k: v for k, v in options.items() if k not in of_policy}


def _checked(cls: type, options: Mapping[str, Any], of: str) -> dict[str, Any]:
    """The options of an algorithm, checked; `lam` is FedaGrac's calibration rate, `draws` says how many are drawn."""
    numbers = dict(options)
    records: dict[str, Any] = {}
    if "calibration" in fields(cls) and "lam" in numbers and "lam" not in fields(cls):
        records["calibration"] = Constant(typed(NonNegative, "lam", numbers.pop("lam"), of))
    if "draws" in numbers and "draws" not in fields(cls):
        records["participation"] = WeightedDraws(typed(Count, "draws", numbers.pop("draws"), of))
    return {**checked(cls, numbers, of), **records}


def _whole(clock: Any) -> Any:
    """The clock without an end at a target: all runs of a benchmark are equally long."""
    if isinstance(clock, Events):
        ended = clock.until is not None and clock.least
        return replace(clock, until=None, least=0.0, train_view="", horizon=clock.least if ended else clock.horizon)
    return replace(clock, until=None) if getattr(clock, "until", None) is not None else clock


# --- by name ----------------------------------------------------------------------------------------------------------


def find(name: str, scale: str) -> Benchmark:
    """The benchmark of an alias, or of a panel: "fedacs/mnist-static", "fedagrac/table6:k_variance=2,k_mode=fixed";
    with "@20" at the end the first 20 rounds of it, with "@20/1234" of runs that all have the split of seed 1234.

    Raises UserError for an unknown scale, alias, panel or label, for a panel with several settings or fewer rounds.
    """
    known = ALIASES.get(name, {})
    if known and plan.check_scale(scale) not in known:
        raise UserError(f"{name} is at {' and '.join(known)} scale; at {scale} scale name a panel, PAPER/PANEL")
    full, short, rounds = known.get(scale, name).partition("@")
    where, _, labels = full.partition(":")
    panels = _panels(where.partition("/")[0], plan.check_scale(scale))
    if where in NAMES:
        raise UserError(f"{where} is an algorithm, not a benchmark: name it before --on")
    if where not in panels:
        raise unknown("benchmark", name, [*ALIASES, *panels])
    experiments = [e for e in panels[where].experiments if _has(e, labels, name)]
    if not experiments:
        raise UserError(f"{name}: no experiment of the panel has these labels")
    if values := _settings(experiments):
        choices = "; ".join(f"{k} = {' or '.join(v)}" for k, v in values.items())
        example = ",".join(f"{k}={v[0]}" for k, v in values.items())
        raise UserError(f"{name} has several settings ({choices}): name one, {where}:{example}")
    own: dict[str, Experiment] = {}
    for e in experiments:
        own.setdefault(_label(e), e)
    benchmark = Benchmark(name, scale, where, own, _reference(experiments), panels[where].substitute)
    return _shortened(benchmark, rounds) if short else benchmark


def _shortened(benchmark: Benchmark, rounds: str) -> Benchmark:
    """The benchmark with fewer rounds. Raises UserError if it has no more, or none at all."""
    clock, (rounds, _, split) = benchmark.template.clock, rounds.partition("/")
    decimal, problem = f"{rounds}{split}".isdecimal(), benchmark.template.problem
    if split and not hasattr(getattr(problem, "partition", None), "data_seed"):
        raise UserError(f"{benchmark.name}: after / comes the seed of one split, which its partition does not have")
    if not isinstance(clock, Rounds) or not decimal or not 0 < int(rounds or 0) <= clock.rounds:
        most = f"1 to {clock.rounds}" if isinstance(clock, Rounds) else "nothing: its clock is not that of rounds"
        raise UserError(f"{benchmark.name}: after @ comes a number of rounds, here {most}")
    own = {n: replace(e, clock=replace(e.clock, rounds=int(rounds))) for n, e in benchmark.own.items()}
    note = f"the first {rounds} of {clock.rounds} rounds"
    if split:
        parts = {n: replace(e.problem.partition, data_seed=int(split)) for n, e in own.items()}
        own = {n: replace(e, problem=replace(e.problem, partition=parts[n])) for n, e in own.items()}
        note += ", one split of the data"
    return replace(benchmark, own=own, substitute="; ".join(filter(None, [benchmark.substitute, note])))


def _label(e: Experiment) -> str:
    return str(e.labels.get("algorithm", ""))


def _reference(experiments: list[Experiment]) -> str:
    """The algorithm that the others are compared with: FedAvg, or the first one."""
    labels = [_label(e) for e in experiments]
    return "fedavg" if "fedavg" in labels else labels[0]


def _settings(experiments: list[Experiment]) -> dict[str, list[str]]:
    """Label -> values by which the settings of a panel differ; empty if it has one."""
    references = [e for e in experiments if _label(e) == _reference(experiments)]
    if len({(e.problem, e.system, e.clock) for e in references}) == 1:
        return {}
    differ = [k for k in references[0].labels if len({str(e.labels.get(k)) for e in references}) > 1]
    return {k: list(dict.fromkeys(str(e.labels.get(k)) for e in references)) for k in differ}


def _has(e: Experiment, labels: str, name: str) -> bool:
    """Tells whether the experiment has all labels of "a=1,b=x"."""
    for part in filter(None, labels.split(",")):
        label, equals, value = part.partition("=")
        if not equals or label not in e.labels:
            raise UserError(f"{name}: labels are given as label=value, and the panel has {', '.join(e.labels)}")
        if str(e.labels[label]) != value:
            return False
    return True


@cache
def _panels(paper: str, scale: str) -> Mapping[str, Panel]:
    """The panels of a paper (of all, if there is no such paper) as "paper/panel"; of several of a name the largest."""
    panels: dict[str, Panel] = {}
    for a in artifacts():
        if paper in (a.paper, "") or paper not in papers():
            for p in a.panels(scale):
                key = f"{a.paper}/{p.name}"
                if key not in panels or len(p.experiments) > len(panels[key].experiments):
                    panels[key] = p
    return panels
