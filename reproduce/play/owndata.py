"""Benchmarks on a user's own data and network: a plain one, or a declared one with its data or network replaced."""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from reproduce.algorithms.base import FedAvg
from reproduce.clocks import attacks
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Shuffled
from reproduce.data.userdata import ByColumn, UserData, bring
from reproduce.data.userfiles import LABEL
from reproduce.declare.experiment import Experiment
from reproduce.declare.values import Count, Positive
from reproduce.errors import UserError, unknown
from reproduce.models.declared import ConvNet, Softmax
from reproduce.models.model import Model
from reproduce.models.network import Network
from reproduce.partitions import dirichlet, groups, labels, skews
from reproduce.partitions.exported import FromFile
from reproduce.play.benchmarks import Benchmark, find
from reproduce.play.specs import called, checked, fields, network, owned, strict
from reproduce.problem import Classification
from reproduce.systems import Epochs, System
from reproduce.text import spelled

CLIENTS, EPOCHS, BATCH, RATE = 20, 2, 16, 0.1
ROUNDS = {"smoke": 10, "reduced": 50, "paper": 200}
"""The plain benchmark: so many rounds by scale, in which all clients train so many epochs; samples are IID."""
PARTITIONS: dict[str, Any] = {
    name: kind
    for module in (labels, dirichlet, groups, skews)
    for name, kind in vars(module).items()
    if hasattr(kind, "split") and dataclasses.is_dataclass(kind) and kind.__module__ == module.__name__
} | {"Dirichlet": dirichlet.DirichletClass, "FeatureNoise": skews.FeatureNoise}
ATTACKS = {kind.__name__: kind for kind in (attacks.Scaled, attacks.Noise, attacks.FlippedLabels)}
COLUMN = "column:"


@dataclass(frozen=True)
class Own:
    """The replacements of a benchmark's own: `name` is of the data, `None` and "" leave what is there."""

    data: UserData | None = None
    name: str = ""
    model: Model | None = None
    partition: Any = None
    clients: int | None = None
    epochs: float | None = None
    by_client: bool = False
    metric: str = ""
    lr_decay: str = ""
    target: float | None = None
    attack: Any = None

    @property
    def title(self) -> str:
        """The replacements as they stand in the name of a benchmark."""
        records = [_words(record) for record in (self.model, self.partition, self.attack) if record is not None]
        counts = [f"{self.clients} clients" * bool(self.clients), f"{self.epochs} epochs" * bool(self.epochs)]
        options = ["by client" * self.by_client, self.metric, f"{self.lr_decay} rates" * bool(self.lr_decay)]
        options += ["bytes" * (self.target is not None)]
        return ", ".join(filter(None, [self.name, *records, *counts, *options]))

    def put(self, e: Experiment) -> Experiment:
        """The experiment with these replacements in place of its own parts."""
        problem: Any = e.problem
        system = replace(e.system, work=Epochs(self.epochs)) if self.epochs else e.system
        if self.by_client and not isinstance(e.clock, Rounds):
            raise ValueError("clients are told apart where there are rounds")
        problem = self.noisy(replace(problem, **self.fields)) if self.fields else problem
        return self.attacked(replace(e, problem=problem, system=system, clock=self.timed(e.clock)))

    def attacked(self, e: Experiment) -> Experiment:
        """The experiment with attackers, if there are to be any."""
        return e if self.attack is None else self.attack.put(e)  # type: ignore[no-any-return]

    def timed(self, clock: Any) -> Any:
        """The clock with what is asked for."""
        changes = {"by_client": self.by_client, "lr_decay": self.lr_decay, "traffic": self.target is not None}
        return replace(clock, **{name: value for name, value in changes.items() if value})

    def noisy(self, problem: Classification) -> Any:
        """The problem with clients that depend on its data: with noise, or of a file."""
        return self.partition.put(problem) if hasattr(self.partition, "put") else problem

    @property
    def fields(self) -> dict[str, Any]:
        """The fields for a problem. What was said of the samples of other data does not hold of these."""
        partition = labels.IID() if isinstance(self.partition, skews.FeatureNoise) else self.partition
        replacements = {"model": self.model, "partition": partition, "clients": self.clients, "data": self.data}
        changes: dict[str, Any] = {name: value for name, value in replacements.items() if value is not None}
        changes |= {"scores": (self.metric,)} if self.metric else {}
        if self.data:
            half = (0.5,) * self.data.shape[0] if len(self.data.shape) == 3 else ()
            changes |= {"mean": half, "std": half, "pad": 0, "tokenizer": "hashed"}
            changes |= {"train_samples": 0, "test_samples": 0, "subset_balanced": False}
            changes |= {} if half else {"augment": "none"}
        return changes

    @property
    def note(self) -> str:
        return self.data.copy.note if self.data else ""


@strict
def benchmarks(
    on: Iterable[str],
    scale: str,
    data: Any = None,
    model: Any = None,
    partition: Any = None,
    clients: Count | None = None,
    label: str = LABEL,
    epochs: Positive | None = None,
    by_client: bool = False,
    drop: Sequence[str] = (),
    metric: str = "",
    lr_decay: str = "",
    target: Positive | None = None,
    attack: Any = None,
) -> list[Benchmark]:
    """The benchmarks of these names; with what is the user's own in place of theirs, and without names a plain one.

    data: what `userdata.bring` takes. model: "module:name(number=1)", a class or a function that can be imported, or a
    record of `models.declared`. partition: "Dirichlet(0.3)", "column:NAME", a file
    (`exported.FromFile`), or a record. epochs: of a client in a
    round, 0.5 say. by_client: with columns `worst_client`, the accuracy of the worst client, and `client_spread`, the
    standard deviation over clients. drop: columns of the data that are left out. metric: what is compared in place of
    accuracy, "macro_f1", "balanced_accuracy" or "auc". lr_decay: of rates over rounds, "cosine", "step", "sqrt" or
    "constant". target: a score, with columns of the round and the bytes at which runs reach it. attack: "Scaled(0.2)"
    or another of `ATTACKS`, or a record. Raises UserError.
    """
    replacements = (data, model, partition, clients, epochs, target, attack)
    if all(value is None for value in replacements) and not (drop or by_client or metric or lr_decay):
        return [find(name, scale) for name in dict.fromkeys(on)]
    column = partition.removeprefix(COLUMN) if isinstance(partition, str) and partition.startswith(COLUMN) else ""
    if not on and data is None:
        raise UserError("what replaces a benchmark's own goes with --data FOLDER or --on BENCHMARK")
    if data is None and (named := [partition] * bool(column) or drop):
        raise UserError(f"{named[0]}: columns are those of your own data: name them with --data")
    if metric:
        import_module("sklearn.metrics")  # draws without a seed when it is loaded, which own code may not
    brought, name = None, ""
    if data is not None:
        brought = bring(data, label, column, drop)
        name = spelled(Path(data).resolve().name) if isinstance(data, str | Path) else "data"
    if column and brought:
        if clients not in (None, brought.holders):
            raise UserError(f"{partition} has {brought.holders} clients, not {clients}: leave --clients out")
        partition, clients = ByColumn(brought, column), brought.holders
    split, attack = parse(partition), parse(attack, "attack", ATTACKS)
    if isinstance(split, FromFile):
        if clients not in (None, split.clients):
            raise UserError(f"{partition} has {split.clients} clients, not {clients}: leave --clients out")
        clients = split.clients
    own = Own(brought, name, _model(model), split, clients, epochs, by_client, metric, lr_decay, target, attack)
    if metric == "auc" and brought and len(np.unique(brought.load().test_y)) < 2:
        raise UserError("--metric auc: the test part has one class, and the curve needs two")
    chosen = [_replaced(find(name, scale), own) for name in dict.fromkeys(on)] or [_plain(own, scale)]
    if target is not None and any(b.has_data and not 1 < target <= 100 for b in chosen):
        raise UserError(f"--target {target:g}: scores are in percent, 80 say")
    return chosen


def _model(model: Any) -> Model | None:
    if model is None or isinstance(model, Model):
        return model
    if isinstance(model, str):
        return network(model)
    module, name = getattr(model, "__module__", "__main__"), getattr(model, "__qualname__", "<")
    if module == "__main__" or "<" in name or "." in name:
        raise UserError(f"{model!r} cannot be imported by its name: put a class or a function into a file of its own")
    return network(f"{module}:{name}")


def parse(value: Any, what: str = "partition", known: Mapping[str, Any] = PARTITIONS) -> Any:
    """The record that a text names, such as "Dirichlet(0.3)" or "Shards(per_client=3)"; a record, or None, as it is.

    what: it is called in errors. known: records by their names. Raises UserError.
    """
    if value is None or dataclasses.is_dataclass(value):
        return value
    files = f", a file that ends in .parquet or .csv, or {COLUMN}NAME" * (known is PARTITIONS)
    form = f"write NAME or NAME(number=1){files}"
    if not isinstance(value, str | Path):
        raise UserError(f"the {what} is a {type(value).__name__}: {form}")
    text = str(value)
    if files and text.endswith((".parquet", ".csv")):
        return FromFile.of(text)
    name = text.partition("(")[0].strip()
    if name not in known:
        raise unknown(what, name, known)
    kind = known[name]
    _, options = called(text, what, form, tuple(fields(kind)))
    args = checked(kind, dict(options), text)
    if missing := [f.name for f in fields(kind).values() if f.default is dataclasses.MISSING and f.name not in args]:
        raise UserError(f"{text}: give {missing[0]}, {name}({missing[0]}=...)")
    with owned(text):
        return kind(**args)


def _words(record: Any) -> str:
    """A network or a partition as it is written, without what is the default."""
    if isinstance(record, ByColumn | FromFile | Network):
        return str(record)
    options = {f.name: v for f in dataclasses.fields(record) if (v := getattr(record, f.name)) != f.default}
    return type(record).__name__ + (f"({', '.join(f'{k}={v!r}' for k, v in options.items())})" if options else "")


def _plain(own: Own, scale: str) -> Benchmark:
    """FedAvg on the user's data: the declaration that stands at the top of this file."""
    data: Any = own.data
    split, model = own.partition or labels.IID(), own.model or small(data)
    filled = replace(own, partition=split, clients=own.clients or CLIENTS, model=model)
    try:
        with owned(own.name):
            problem = filled.noisy(Classification(**filled.fields, batches=Shuffled(BATCH)))
    except UserError as error:
        raise UserError(f"{error}{_hint(own)}") from error
    clock, epochs = own.timed(Rounds(ROUNDS[scale])), own.epochs or EPOCHS
    template = own.attacked(Experiment({"algorithm": "fedavg"}, problem, System(Epochs(epochs)), FedAvg(RATE), clock))
    text = (
        f"{own.name}: {data.words}; {_words(filled.partition)} over {filled.clients} clients; {_words(filled.model)}; "
        f"{clock.rounds} rounds of {epochs} epochs, batches of {BATCH}, rate {RATE}"
    )
    title = replace(own, name="").title
    name = f"{own.name} ({title})" if title else own.name
    text = "; ".join(filter(None, [text, own.note]))
    return Benchmark(name, scale, own.name, {"fedavg": template}, "fedavg", text, own.metric, own.target)


def small(data: UserData) -> Model:
    """The default network: two convolutions for square pictures of 4 pixels and more; else one linear layer."""
    if len(data.shape) == 3 and data.shape[1] == data.shape[2] >= 4:
        return ConvNet(data.shape[0], data.shape[1], (16, 32), (64,), data.classes, kernel=3, padding=1)
    return Softmax(math.prod(data.shape), data.classes)


def _replaced(benchmark: Benchmark, own: Own) -> Benchmark:
    """The benchmark with what is the user's own, all else as declared; UserError if they do not go together."""
    name = f"{benchmark.name} with {own.title}"
    experiments = {}
    for label, e in benchmark.own.items():
        if (own.fields or own.epochs) and not isinstance(e.problem, Classification):
            raise UserError(f"{name}: {benchmark.name} has a function and no data to replace")
        try:
            experiments[label] = own.put(e)
        except (UserError, ValueError) as error:
            raise UserError(f"{name} cannot be: {error}{_hint(own)}") from error
    change = f"with {own.title}" + (f" ({own.data.words})" if own.data else "")
    words = "; ".join(filter(None, [benchmark.substitute, change, own.note]))
    return replace(benchmark, name=name, own=experiments, substitute=words, score=own.metric, target=own.target)


def _hint(own: Own) -> str:
    """Advice if data and network do not fit: another network, or what it was given."""
    if own.data is None or own.model is None:
        return "; name a network with --model" * (own.data is not None)
    return f"; it gets samples of shape {own.data.shape}" + ": channels, height, width" * (len(own.data.shape) > 1)
