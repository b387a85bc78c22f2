"""One model in several sizes: every client trains the part that fits it (FIARSE, Wu et al., NeurIPS 2024, Sec. 3).

gamma_m is the capacity of client m, the share of the parameters that it can hold; sizes are the distinct capacities.
Subclasses say which part has which size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from reproduce.algorithms.base import Env, FedAvg, Names, Participants, RoundContext, State, Tensor, record
from reproduce.declare.values import Floats, Fraction, Share
from reproduce.engine.requests import Evaluate, Evaluated
from reproduce.engine.rule import Rule


@dataclass(frozen=True)
class Submodels(FedAvg):
    """Evaluation of submodels; the server step is `partial_average`.

    sweep: further sizes that are evaluated at the end of the run.
    betas: of AdamW, which is the clients' optimiser then; () is SGD.
    explore: "shares" records in every round which weights the submodels reach (`explored`); "masks" besides the
        model before the round (`weight`) and what the sizes hold of it (`mask`, 0 or 1), number by number: for toys.

    Recorded are, per size, `accuracy` on the whole test set and `local_accuracy`, the mean over the clients of that
    size on their own test sets; at the end also `client_accuracy` of every client with the submodel of its size.
    """

    memory: ClassVar[tuple[str, ...]] = ("exploration",)
    names: ClassVar[Names] = {}
    trains_parts: ClassVar[bool] = True

    sweep: tuple[Share, ...] = ()
    explore: Literal["", "shares", "masks"] = ""
    betas: tuple[Fraction, ...] = ()

    def check(self, problem: Any, system: Any) -> None:
        super().check(problem, system)
        if problem.model is None:
            raise ValueError(f"{type(self).__name__} trains parts of a network, and a quadratic has none")

    def rule(self) -> Rule:
        return replace(super().rule(), betas=self.betas)

    def capacity(self, env: Env) -> Floats:
        """gamma [N]."""
        return np.asarray(env.system.capacity.capacities(env.clients), dtype=float)

    def extract(self, env: Env, state: State, sizes: Sequence[float]) -> list[Tensor | Evaluate]:
        """The submodels of the given sizes, as models to evaluate."""
        raise NotImplementedError

    def holds(self, env: Env, state: State, sizes: Sequence[float]) -> list[Tensor]:
        """Masks of the submodels of the given sizes in this round, over the prunable coordinates: booleans [D]."""
        raise NotImplementedError

    def watch(self, env: Env, state: State, now: RoundContext, cohort: Participants) -> None:
        """Record what `explore` asks for; called in the server step, while `state` is still that before the round."""
        if not self.explore:
            return
        sizes = env.system.capacity.sizes
        masks = self.holds(env, state, sizes)
        gamma = self.capacity(env)[cohort.ids[now.arrived[cohort.ids]]]
        present = [int((gamma == size).sum()) for size in sizes]
        memory = state.setdefault("exploration", {})
        for metric, i, value in explored(memory, list(map(packed, masks)), len(masks[0]), present):
            record(state, now.round, metric, value, "" if i is None else size_key(sizes[i]))
        if self.explore == "masks":
            for size, mask in zip(sizes, masks, strict=True):
                for i, value in enumerate(mask.tolist()):
                    record(state, now.round, "mask", value, f"{size_key(size)}:{i}")
            for i, value in enumerate(state["x"].tolist()):
                record(state, now.round, "weight", value, str(i))

    def models(self, env: Env, state: State) -> Mapping[str, Tensor | Evaluate]:
        sizes = set(env.system.capacity.sizes) | (set(self.sweep) if state.get("ending") else set())
        ordered = sorted(sizes, reverse=True)
        return dict(zip(map(size_key, ordered), self.extract(env, state, ordered), strict=True))

    def metrics(self, env: Env, state: State, answers: Mapping[str, Evaluated]) -> Iterator[tuple[str, str, float]]:
        for key, answer in answers.items():
            yield from ((m, key, float(v[0])) for m, v in answer.metrics.items() if m != "loss")
        tests = env.split.test_indices
        if tests is None:
            return
        ends = np.cumsum([len(test) for test in tests])
        keys = [size_key(size) for size in self.capacity(env)]
        own: list[float] = []
        for client, key in enumerate(keys):
            correct = answers[key].correct
            assert correct is not None
            own.append(100 * float(correct[0, ends[client] - len(tests[client]) : ends[client]].mean()))
        for key in dict.fromkeys(keys):
            yield "local_accuracy", key, float(np.mean([a for a, k in zip(own, keys, strict=True) if k == key]))
        if state.get("ending"):
            yield from (("client_accuracy", str(client), accuracy) for client, accuracy in enumerate(own))


def size_key(size: float) -> str:
    """The text of a size in the results."""
    return format(float(size), ".10g")


def partial_average(x: Tensor, total: Tensor, count: Tensor, server_lr: float) -> Tensor:
    """x + server_lr * total / count, [P] each; where count is 0 the coordinate of x stays as it is, bit for bit.

    total: sum of the clients' updates; count: how many clients held the coordinate (FIARSE Sec. 3 and eq. 12; with
    the sign of Algorithm 1, line 13 - the display in Sec. 3 has the opposite one).
    """
    return (x + server_lr * total / count.clamp(min=1)).where(count > 0, x)


# --- which weights submodels reach: the metrics of Figs. 7 and 8 (App. D.4, without definitions) ----------------------

Bits = NDArray[np.uint8]


def packed(mask: Any) -> Bits:
    """A boolean tensor [D] in D / 8 bytes."""
    return np.packbits(mask.cpu().numpy())


def count(bits: Bits) -> int:
    """The number of coordinates in a set."""
    return int(np.bitwise_count(bits).sum())


def explored(
    memory: dict[str, Any], masks: Sequence[Bits], coordinates: int, present: Sequence[int]
) -> Iterator[tuple[str, int | None, float]]:
    """The metrics of a round as (metric, position of the size or None, value).

    memory: of the rounds before, empty at first; brought up to this one. masks: M_g(t), the coordinates of the submodel
    of size g of the model before round t, the largest size first; coordinates: D, of which they are; present: how many
    participants have each size.

    explored    |union of M_g up to t| / D
    replaced    1 - |M_g(t) and M_g(t - 1)| / |M_g(t)|, from the second round on
    held        |M_g(t)|;  holders: participants of size g or more
    unnested    coordinates of M_g(t) that the set of the next larger size does not have
    untrained   1 - |union of the sets of all participants up to t| / D
    """
    before, union = memory.get("masks"), memory.get("explored", masks)
    explored = [bits | old for bits, old in zip(masks, union, strict=True)]
    trained = memory.get("trained", np.zeros_like(masks[0]))
    for i, bits in enumerate(masks):
        yield "explored", i, count(explored[i]) / coordinates
        yield "held", i, count(bits)
        yield "holders", i, sum(present[: i + 1])
        if before:
            yield "replaced", i, 1 - count(bits & before[i]) / max(count(bits), 1)
        if i:
            yield "unnested", i, count(bits & ~masks[i - 1])
        if present[i]:
            trained = trained | bits
    yield "untrained", None, 1 - count(trained) / coordinates
    memory.update(masks=list(masks), explored=explored, trained=trained)
