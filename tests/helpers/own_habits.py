"""A file of a user's own with algorithms as people write them: where they draw from, remember, what they return."""

FILES = {"habits_helper.py": "KEPT = {}\n", "habits_lazy.py": "N = {}\n"}
OWN = """
import functools, os, random, threading, time
from dataclasses import dataclass, replace
import numpy as np
import torch
from reproduce.algorithms.base import FedAvg, Participants
from reproduce.engine.requests import Evaluate
import habits_helper

STORE, LOCAL, TENSOR, COUNT = {}, threading.local(), torch.zeros(1), iter(range(1, 10**9))

def counted(owner):
    owner.n = getattr(owner, "n", 0) + 1
    return owner.n

def item(mapping):
    mapping["n"] = mapping.get("n", 0) + 1
    return mapping["n"]

@functools.cache
def box():
    return {}

def lazy():
    import habits_lazy
    return item(habits_lazy.N)

def in_file():
    with open("count.txt", "a+") as file:
        return file.write("x") + file.tell()

class Habit(FedAvg):
    def aggregate(self, env, state, now, cohort, trained):
        super().aggregate(env, state, now, cohort, trained)
        state["x"] = state["x"] + 0.01 * self.number(env, state)

def made(name, base, **body):
    globals()[name] = dataclass(frozen=True)(type(name, (base,), {"__module__": __name__, **body}))

def habit(name, number, **more):
    made(name, Habit, number=lambda self, env, state: number(self, env, state), **more)

habit("InState", lambda self, env, state: item(state))
habit("OnClass", lambda self, env, state: item(self.kept), kept={})
habit("OnItself", lambda self, env, state: (object.__setattr__(self, "n", getattr(self, "n", 0) + 1), self.n)[1])
habit("InModule", lambda self, env, state: item(STORE))
habit("InHelper", lambda self, env, state: item(habits_helper.KEPT))
habit("InLazy", lambda self, env, state: lazy())
habit("InNumpy", lambda self, env, state: counted(np))
habit("InTensor", lambda self, env, state: float(TENSOR.add_(1)))
habit("InThread", lambda self, env, state: counted(LOCAL))
habit("InCache", lambda self, env, state: item(box()))
habit("InIterator", lambda self, env, state: next(COUNT))
habit("OnEnv", lambda self, env, state: counted(env))
habit("OnArena", lambda self, env, state: counted(env.split.device_data))

habit("GlobalNumpy", lambda self, env, state: float(np.random.normal()))
habit("GlobalTorch", lambda self, env, state: torch.randn_like(state["x"]))
habit("GlobalRandom", lambda self, env, state: random.random())
habit("Data", lambda self, env, state: float(env.split.device_data.e.mul_(0.9).sum()))
habit("Weights", lambda self, env, state: env.split.weights.__setitem__(0, env.split.weights[0]) or 1)
habit("NoSeed", lambda self, env, state: float(np.random.default_rng().normal()) if state["round"] > 0 else 0.0)
habit("Clock", lambda self, env, state: time.perf_counter() % 1)
habit("InFile", lambda self, env, state: in_file())

def early(env, state):
    state["n"] = state.get("n", 0) + 1
    state["x"].mul_(0.999)

def reaches(name, change, before=lambda env, state: None):
    def local(self, env, state, now, cohort):
        before(env, state)
        return FedAvg.local(self, env, state, now, cohort)
    def aggregate(self, env, state, now, cohort, trained):
        FedAvg.aggregate(self, env, state, now, cohort, trained)
        change(env, state)
    made(name, FedAvg, local=local, aggregate=aggregate)

reaches("Same", lambda env, state: None)
reaches("FedÄλ", lambda env, state: None)
reaches("Early", lambda env, state: None, early)
reaches("HoldsAnything", lambda env, state: state.update(m={1, 2}, f=(i for i in "ab"), s=torch.eye(2).to_sparse()))
reaches("AddsToHistory", lambda env, state: state["history"].append((state["round"], float("nan"), "mine", "", 1.0)))
reaches("RemovesModel", lambda env, state: state.pop("x"))
reaches("Ends", lambda env, state: os._exit(7))
reaches("Raises", lambda env, state: 1 / 0)

def leaves(name, end):
    reaches(name, lambda env, state: state.update(x=end(state["x"])))

leaves("Strided", lambda x: torch.stack([x, x], 1)[:, 0])
leaves("Half", lambda x: x.half())
leaves("Longer", lambda x: torch.cat([x, x[:1]]))
leaves("Numpy", lambda x: x.numpy())
leaves("Graph", lambda x: x.requires_grad_())

def asks(name, **fields):
    def local(self, env, state, now, cohort):
        given = {k: v(env, state, cohort) for k, v in fields.items()}
        return replace(FedAvg.local(self, env, state, now, cohort), **given)
    made(name, FedAvg, local=local)

asks("StartHalf", start=lambda env, state, cohort: state["x"].half())
asks("StartRows", start=lambda env, state, cohort: state["x"].expand(len(cohort.ids) + 1, -1))
asks("StepsFloat", steps=lambda env, state, cohort: np.ones(len(cohort.ids)))
asks("StepsNegative", steps=lambda env, state, cohort: np.full(len(cohort.ids), -1))
asks("OffsetNumber", offset=lambda env, state, cohort: 3)
asks("ClientsOutside", clients=lambda env, state, cohort: np.append(cohort.ids[:-1], env.clients))
asks("ClientsMask", clients=lambda env, state, cohort: np.ones(len(cohort.ids), dtype=bool))
asks("WeightsFlat", weights=lambda env, state, cohort: env.tensor(cohort.weight))
asks("RatesShort", lr=lambda env, state, cohort: np.full(len(cohort.ids) + 1, 0.1))

def answers(name, hook, answer):
    made(name, FedAvg, **{hook: lambda self, env, *rest: answer(getattr(FedAvg, hook)(self, env, *rest))})

answers("TupleChosen", "choose", lambda c: (c.ids, c.weight))
answers("TwiceChosen", "choose", lambda c: Participants(np.repeat(c.ids, 2), np.repeat(c.weight, 2) / 2))
answers("NoSums", "reduction", lambda w: None)
answers("MetricsPairs", "metrics", lambda m: ((n, v) for n, k, v in m))
answers("NoModels", "models", lambda m: None)
answers("ModelsAsRows", "models", lambda m: {"": m[""][None]})
answers("ModelsElsewhere", "models", lambda m: {"": Evaluate(m[""][None], view="validation")})
answers("RoundAsTuple", "round", lambda r: ())
answers("AsksForText", "round", lambda r: (word for word in ["train"]))
"""

REMEMBER = (
    *("OnClass", "OnItself", "InModule", "InHelper", "InLazy", "InNumpy", "InTensor", "InThread"),
    *("InCache", "InIterator", "OnEnv", "OnArena"),
)
"""Each counts its rounds, as `InState` does, in another place."""
WORK = (
    *("GlobalNumpy", "GlobalTorch", "GlobalRandom", "Data", "Weights", "Early"),
    *("HoldsAnything", "AddsToHistory", "Strided"),
)
UNREPEATED = ("Clock", "InFile")
REFUSED = {
    "NoSeed": "a generator without a seed gives other numbers each time",
    "RemovesModel": "KeyError: 'x'",
    "Ends": "its process ended with status 7",
    "Raises": "ZeroDivisionError: division by zero (habits.py, line ",
    "Half": "is torch.float16",
    "Longer": "has shape [1, 5], not [M, 4]",
    "Numpy": "AttributeError: 'numpy.ndarray' object has no attribute",
    "Graph": "has gradients (detach it)",
    "StartHalf": "`start` of Train is torch.float16",
    "StartRows": "`start` of Train has shape [3, 4], not [4] or [2, 4]",
    "StepsFloat": "`steps` of Train are whole numbers in an array [2], not float64 [2]",
    "StepsNegative": "`steps` of Train lie in 0 .. ",
    "OffsetNumber": "`offset` of Train are whole numbers in an array",
    "ClientsOutside": "`clients` of Train lie in 0 .. ",
    "ClientsMask": "`clients` of Train are whole numbers",
    "WeightsFlat": "`weights` of Train has shape [2], not [M, 2]",
    "RatesShort": "`lr` of Train are numbers in an array [2], not float64 [3]",
    "TupleChosen": "'tuple' object has no attribute",
    "TwiceChosen": "participants are distinct whole numbers [C]",
    "NoSums": "nothing was added up: `reduction` returned None",
    "MetricsPairs": "not enough values to unpack (expected 3, got 2)",
    "NoModels": "'NoneType' object has no attribute 'values'",
    "ModelsAsRows": "`x` of Evaluate has shape [1, 1, 4], not [M, 4]",
    "ModelsElsewhere": "a quadratic has no evaluation view 'validation'",
    "RoundAsTuple": "'tuple' object has no attribute 'send'",
    "AsksForText": "it asks for str 'train', which is no Train",
}
