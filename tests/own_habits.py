"""A file of a user's own with algorithms as people write them: where they draw from, remember, what they return.

Each has a hook that adds a small number to the model; own_habits_ends.py says how `play` must end.
"""

from __future__ import annotations

import ast

HELPER = "KEPT = {}\n"
LAZY = "N = [0]\n"

OWN = """
import collections, contextvars, functools, itertools, os, random, time, types
from dataclasses import dataclass
import numpy as np
import torch
from reproduce.algorithms.base import FedAvg
import habits_helper

STORE, LIST, SET, ARRAY, TENSOR = {}, [], set(), np.zeros(1), torch.zeros(1)
RNG, TORCH, PY = np.random.default_rng(0), torch.Generator().manual_seed(1), random.Random(3)
COUNT, DEQUE, SPACE = itertools.count(), collections.deque([0.0], maxlen=5), types.SimpleNamespace(n=0)
SERIES = (i for i in range(10**9))
CONTEXT = contextvars.ContextVar("c", default=0)

class Box:
    def __init__(self):
        self.n = 0

class Slots:
    __slots__ = ("n",)
    def __init__(self):
        self.n = 0

BOX, SLOTS = Box(), Slots()

def counter():
    kept = {"n": 0}
    def step():
        kept["n"] += 1
        return kept["n"]
    return step

STEP = counter()

def default(cache=[]):
    cache.append(1)
    return len(cache)

PART = functools.partial(lambda kept: (kept.append(1), len(kept))[1], [])

@functools.lru_cache
def memo(n):
    return n * 1e-3

def counted(owner):
    owner.n = getattr(owner, "n", 0) + 1
    return owner.n

def item(mapping):
    mapping["n"] = mapping.get("n", 0) + 1
    return mapping["n"]

def added(vector):
    vector += 1
    return float(vector[0])

class Habit(FedAvg):
    def aggregate(self, env, state, now, cohort, trained):
        super().aggregate(env, state, now, cohort, trained)
        state["x"] = state["x"] + 0.01 * self.number(env, state)

def habit(name, number, **more):
    body = {"number": lambda self, env, state: number(self, state), "__module__": __name__, **more}
    globals()[name] = dataclass(frozen=True)(type(name, (Habit,), body))

habit("GlobalNumpy", lambda self, state: float(np.random.normal()))
habit("GlobalTorch", lambda self, state: torch.randn_like(state["x"]))
habit("GlobalRandom", lambda self, state: random.random())
habit("Memo", lambda self, state: memo(state["round"]))
habit("Seeded", lambda self, state: float(np.random.default_rng(state["round"]).normal()))
habit("EntersState", lambda self, state: item(state))
habit("OnClass", lambda self, state: item(self.kept), kept={})
habit("SetsItself", lambda self, state: (object.__setattr__(self, "n", getattr(self, "n", 0) + 1), self.n)[1])
habit("Counts", lambda self, state: counted(type(self)))
habit("InModule", lambda self, state: item(STORE))
habit("InHelper", lambda self, state: item(habits_helper.KEPT))
habit("InList", lambda self, state: (LIST.append(1), len(LIST))[1])
habit("InSet", lambda self, state: (SET.add(len(SET)), len(SET))[1])
habit("InArray", lambda self, state: added(ARRAY))
habit("InTensor", lambda self, state: added(TENSOR))
habit("InSpace", lambda self, state: counted(SPACE))
habit("InBox", lambda self, state: counted(BOX))
habit("InSlots", lambda self, state: counted(SLOTS))
habit("InFunction", lambda self, state: counted(default))
habit("InPartial", lambda self, state: PART())
habit("InClosure", lambda self, state: STEP())
habit("InDefault", lambda self, state: default())
habit("InContext", lambda self, state: (CONTEXT.set(CONTEXT.get() + 1), CONTEXT.get())[1])
habit("InDeque", lambda self, state: (DEQUE.append(DEQUE[-1] + 1), DEQUE[-1])[1])
habit("FromCount", lambda self, state: next(COUNT))
habit("FromGenerator", lambda self, state: next(SERIES))
habit("FromNumpy", lambda self, state: float(RNG.normal()))
habit("FromTorch", lambda self, state: torch.rand(1, generator=TORCH).item())
habit("FromRandom", lambda self, state: PY.random())
habit("InAnother", lambda self, state: counted(np))
habit("NoSeed", lambda self, state: float(np.random.default_rng().normal()))
habit("Clock", lambda self, state: time.perf_counter() % 1)
habit("Entropy", lambda self, state: os.urandom(1)[0])

@dataclass(frozen=True)
class Cached(Habit):
    @functools.cached_property
    def two(self):
        return 2.0
    def number(self, env, state):
        return self.two

@dataclass(frozen=True)
class Remembers(Habit):
    def setup(self, env, state):
        state.update(n=0, start=torch.rand(1).item(), grid={"a": [np.zeros(2), (1, None)]})
    def number(self, env, state):
        state["n"] += 1
        return state["n"] * 0.01 + state["start"]

@dataclass(frozen=True)
class Early(FedAvg):
    def local(self, env, state, now, cohort):
        state["n"] = state.get("n", 0) + 1
        return super().local(env, state, now, cohort)

@dataclass(frozen=True)
class EarlyInPlace(FedAvg):
    def local(self, env, state, now, cohort):
        state["x"].mul_(0.999)
        return super().local(env, state, now, cohort)

@dataclass(frozen=True)
class EarlyInArray(FedAvg):
    def local(self, env, state, now, cohort):
        state["x"].numpy()[:] *= 0.999
        return super().local(env, state, now, cohort)

@dataclass(frozen=True)
class Evaluates(FedAvg):
    def models(self, env, state):
        state["x"] *= 0.9
        return {"": state["x"]}

@dataclass(frozen=True)
class HoldsSet(FedAvg):
    def setup(self, env, state):
        state["seen"] = set()

def leaves(name, end):
    def aggregate(self, env, state, now, cohort, trained):
        state["x"] = end(state["x"] + trained.sums[0])
    globals()[name] = dataclass(frozen=True)(type(name, (FedAvg,), {"aggregate": aggregate, "__module__": __name__}))

leaves("Half", lambda x: x.half())
leaves("Single", lambda x: x.float())
leaves("Longer", lambda x: torch.cat([x, x[:1]]))
leaves("Shorter", lambda x: x[:-1])
leaves("Empty", lambda x: x[:0])
leaves("Square", lambda x: x[None])
leaves("Numpy", lambda x: x.numpy())
leaves("List", lambda x: x.tolist())
leaves("Nothing", lambda x: None)
leaves("Graph", lambda x: x.requires_grad_())
leaves("Strided", lambda x: torch.stack([x, x], 1)[:, 0])

def asks(name, **fields):
    from dataclasses import replace
    def local(self, env, state, now, cohort):
        given = {k: v(env, state, cohort) for k, v in fields.items()}
        return replace(FedAvg.local(self, env, state, now, cohort), **given)
    globals()[name] = dataclass(frozen=True)(type(name, (FedAvg,), {"local": local, "__module__": __name__}))

asks("StartHalf", start=lambda env, state, cohort: state["x"].half())
asks("StartShort", start=lambda env, state, cohort: state["x"][:-1])
asks("StartRows", start=lambda env, state, cohort: state["x"].expand(len(cohort.ids) + 1, -1))
asks("CorrectionShort", correction=lambda env, state, cohort: state["x"][1:])
asks("StepsFloat", steps=lambda env, state, cohort: np.ones(len(cohort.ids)))
asks("StepsList", steps=lambda env, state, cohort: [1] * len(cohort.ids))
asks("StepsNegative", steps=lambda env, state, cohort: np.full(len(cohort.ids), -1))
asks("ClientsOutside", clients=lambda env, state, cohort: cohort.ids + env.clients)
asks("ClientsMask", clients=lambda env, state, cohort: np.ones(len(cohort.ids), dtype=bool))
asks("WeightsFlat", weights=lambda env, state, cohort: env.tensor(cohort.weight))
asks("RatesShort", lr=lambda env, state, cohort: np.full(len(cohort.ids) + 1, 0.1))

@dataclass(frozen=True)
class SumsAsRows(FedAvg):
    def aggregate(self, env, state, now, cohort, trained):
        state["x"] = state["x"] + trained.updates.median(0).values

@dataclass(frozen=True)
class RowsAsSums(FedAvg):
    def reduction(self, env, now, cohort):
        return None
    def aggregate(self, env, state, now, cohort, trained):
        state["x"] = state["x"] + trained.sums[0]

@dataclass(frozen=True)
class LooksElsewhere(FedAvg):
    def models(self, env, state):
        from reproduce.engine.requests import Evaluate
        return {"": Evaluate(state["x"][None], view="validation")}

@dataclass(frozen=True)
class NoModels(FedAvg):
    def models(self, env, state):
        return None

@dataclass(frozen=True)
class ModelsAsRows(FedAvg):
    def models(self, env, state):
        return {"": state["x"][None]}

@dataclass(frozen=True)
class AsksForText(FedAvg):
    def round(self, env, state, now):
        yield "train"

@dataclass(frozen=True)
class Same(FedAvg):
    mu: float = 1.0

# What acts late: no two rounds that are trained once more show it.
def late(n):
    return 0.0 if n < 3 else 50.0

import queue, threading

QUEUE, LOCAL, MAP = queue.Queue(), threading.local(), map(lambda i: i, range(10**9))
GRAD, NOTED, PARTIAL = torch.nn.Parameter(torch.zeros(1)), torch.zeros(1), functools.partial(int)
__hidden = [0]

class Private:
    __slots__ = ("__n",)
    def __init__(self):
        self.__n = 0
    def next(self):
        self.__n += 1
        return self.__n

PRIVATE = Private()

@functools.cache
def box():
    return {"n": 0}

def grown(parameter):
    parameter.grad = torch.ones(1) if parameter.grad is None else parameter.grad + 1
    return float(parameter.grad)

def hide():
    __hidden[0] += 1
    return __hidden[0]

def lazy():
    import habits_lazy
    habits_lazy.N[0] += 1
    return habits_lazy.N[0]

habit("LateQueue", lambda self, state: late((QUEUE.put(1), QUEUE.qsize())[1]))
habit("LateLocal", lambda self, state: late(counted(LOCAL)))
habit("LateMap", lambda self, state: late(next(MAP)))
habit("LateGrad", lambda self, state: late(grown(GRAD)))
habit("LateAttribute", lambda self, state: late(counted(NOTED)))
habit("LatePartial", lambda self, state: late(counted(PARTIAL)))
habit("LatePrivate", lambda self, state: late(PRIVATE.next()))
habit("LateHidden", lambda self, state: late(hide()))
habit("LateLazy", lambda self, state: late(lazy()))
habit("MutatedCache", lambda self, state: late(item(box())))

@dataclass(frozen=True)
class MutatedProperty(Habit):
    @functools.cached_property
    def kept(self):
        return {"n": 0}
    def number(self, env, state):
        return late(item(self.kept))

def reaches(name, hook):
    def aggregate(self, env, state, now, cohort, trained):
        FedAvg.aggregate(self, env, state, now, cohort, trained)
        hook(env, state)
    globals()[name] = dataclass(frozen=True)(type(name, (FedAvg,), {"aggregate": aggregate, "__module__": __name__}))

reaches("OnEnv", lambda env, state: counted(env))
reaches("OnTask", lambda env, state: counted(env.task))
reaches("OnArena", lambda env, state: counted(env.task.arena))
reaches("SharedWeights", lambda env, state: env.task.weights.__setitem__(0, 0.5))
reaches("SharedData", lambda env, state: env.task.arena.e.mul_(0.9))
reaches("SharedNumbers", lambda env, state: env.task.arena.e.numpy().__imul__(0.9))
reaches("ClocksRound", lambda env, state: state.update(round=state["round"] + 1))
reaches("ClocksDone", lambda env, state: state.update(done=True))
reaches("ClocksStatus", lambda env, state: state.update(status="odd"))
reaches("ClearsHistory", lambda env, state: state["history"].clear())
reaches("EditsHistory", lambda env, state: state["history"].__setitem__(0, (0, 0.0, "distance", "", 1.0)))
reaches("RemovesModel", lambda env, state: state.pop("x"))
reaches("HoldsDefault", lambda env, state: state.update(m=collections.defaultdict(int)))
reaches("HoldsOrdered", lambda env, state: state.update(m=collections.OrderedDict(a=1)))
reaches("HoldsSparse", lambda env, state: state.update(m=torch.eye(2).to_sparse()))
reaches("HoldsTwice", lambda env, state: state.update(dict.fromkeys("ab", [])))

def sets(env, state):
    torch.set_default_dtype(torch.float16)
    torch.set_grad_enabled(False)
    np.seterr(all="raise")

reaches("Sets64", sets)
reaches("AddsToHistory", lambda env, state: state["history"].append((state["round"], float("nan"), "mine", "", 1.0)))

def changes(name, tensor):
    @dataclass(frozen=True)
    class Changes(FedAvg):
        def setup(self, env, state):
            state["m"] = env.zeros(3) + 1
        def local(self, env, state, now, cohort):
            tensor(state["m"])
            return FedAvg.local(self, env, state, now, cohort)
    Changes.__name__ = Changes.__qualname__ = name
    globals()[name] = Changes

changes("EarlyData", lambda m: m.data.mul_(0.5))
changes("EarlyNumbers", lambda m: m.numpy().__imul__(0.5))

def answers(name, hook, answer):
    body = {hook: lambda self, env, *rest: answer(getattr(FedAvg, hook)(self, env, *rest)), "__module__": __name__}
    globals()[name] = dataclass(frozen=True)(type(name, (FedAvg,), body))

from reproduce.algorithms.base import Participants

answers("OneWeight", "choose", lambda c: Participants(c.ids, c.weight[:1]))
answers("NumberAsWeight", "choose", lambda c: Participants(c.ids, 0.3))
answers("TupleChosen", "choose", lambda c: (c.ids, c.weight))
answers("TwiceChosen", "choose", lambda c: Participants(np.repeat(c.ids, 2), np.repeat(c.weight, 2) / 2))
answers("OneMessageWeight", "message_weights", lambda w: w[:1])
answers("MetricsTwice", "metrics", lambda m: (r for r in [*m] * 2))
answers("MetricsNone", "metrics", lambda m: iter(()))
answers("MetricsNan", "metrics", lambda m: ((n, k, float("nan")) for n, k, v in m))
answers("ModelsByNumber", "models", lambda m: {1: m[""]})
answers("RoundAsTuple", "round", lambda r: ())
"""


def only(*names: str) -> str:
    """The file with these algorithms alone: all that a module holds is looked at around every hook."""
    tree = ast.parse(OWN)
    tree.body = [node for node in tree.body if _algorithm(node) in ("", *names)]
    return ast.unparse(tree)


def _algorithm(node: ast.stmt) -> str:
    """The name of the algorithm that a statement makes, "" if it makes none."""
    if isinstance(node, ast.ClassDef):
        return node.name if node.bases and node.name != "Habit" else ""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return getattr(node.value.args[0], "value", "")
    return ""
