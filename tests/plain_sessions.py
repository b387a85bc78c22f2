"""The algorithms of dynamic_init once more, as one plain NumPy loop, and the small experiment it is compared on."""

from __future__ import annotations

import numpy as np

from reproduce.engine.task import ClassificationTask
from reproduce.problems import Classification
from reproduce.problems.batches import Walk
from reproduce.problems.models import Softmax
from reproduce.problems.partitions import GroupedDirichlet
from reproduce.streams import rng

N, S, T, P, B, K, LR, FLOOR = 3, 5, 3, 1, 32, 5, 0.05, 0.4
MOMENTUM = 0.9
GROUPS = ((0, 1, 2, 3, 4), (5, 6, 7, 8, 9))
VIEWS = tuple("labels:" + ",".join(map(str, g)) for g in GROUPS)
# About 108 samples per client make four batches, the last one short: nobody gets to the K-th step.
PROBLEM = Classification(
    "gaussian", Softmax(20, 10), GroupedDirichlet(0.3), clients=2 * N, batches=Walk(B), train_samples=650
)


def probabilities(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    z = x @ w[:200].reshape(10, 20).T + w[200:]
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


class Plain:
    """One trajectory; `kind` names the algorithm."""

    def __init__(self, kind: str, task: ClassificationTask) -> None:
        self.kind, self.task = kind, task
        self.x, self.y = task.arena.train_x.numpy(), task.arena.labels
        self.fresh(None)

    def fresh(self, teacher: np.ndarray | None) -> None:
        """Memories at the start of a session."""
        self.m = np.zeros(210)
        self.c, self.c_k = np.zeros(210), np.zeros((2 * N, 210))
        self.teacher = np.zeros(210) if teacher is None else teacher

    def local(self, w: np.ndarray, client: int, number: int, lr: float) -> tuple[np.ndarray, int]:
        """End point and number of steps of one client."""
        order = rng("batches", 2, number, client).permutation(self.task.indices[client])
        y, v, steps = w.copy(), np.zeros(210), 0
        for at in range(0, min(len(order), K * B), B):
            batch = order[at : at + B]
            p, onehot = probabilities(y, self.x[batch]), np.eye(10)[self.y[batch]]
            d = (p - onehot) / len(batch)
            if self.kind == "continuous":
                d += 0.7 * (p - probabilities(self.teacher, self.x[batch])) / len(batch)
            g = np.concatenate([(d.T @ self.x[batch]).ravel(), d.sum(0)])
            if self.kind == "fedprox":
                g += 1.0 * (y - w)
            if self.kind == "fedacg":
                g += 0.3 * (y - w)
            if self.kind == "scaffold":
                g += self.c - self.c_k[client]
            v = MOMENTUM * v + g
            y = y - lr * v
            steps += 1
        return y, steps

    def round(self, w: np.ndarray, session: int, number: int, lr: float) -> np.ndarray:
        members = range(N) if session % 2 == 0 else range(N, 2 * N)
        sizes = np.array([len(self.task.indices[k]) for k in members])
        p = sizes / sizes.sum()
        start = w + 0.85 * self.m if self.kind == "fedacg" else w
        ends = [self.local(start, k, number, lr) for k in members]
        delta = sum(share * (y - start) for share, (y, _) in zip(p, ends, strict=True))
        if self.kind == "fedacg":
            self.m = 0.85 * self.m + delta
            return w + self.m
        if self.kind == "as_released":
            return w + lr * delta
        if self.kind == "scaffold":
            c = self.c.copy()
            for share, k, (y, steps) in zip(p, members, ends, strict=True):
                length = sum((1 - MOMENTUM**i) / (1 - MOMENTUM) for i in range(1, steps + 1))
                new = self.c_k[k] - c + (start - y) / (length * lr)
                self.c = self.c + share * (new - self.c_k[k])
                self.c_k[k] = new
        return w + delta

    def trajectory(
        self, scheme: str, R: float = 10.0, V: int = 1, P: int = P, sessions: int = S, distance: str = "per_tensor_unit"
    ) -> tuple[np.ndarray, dict[int, float], dict[str, float]]:
        """Final model, accuracy per global round, alpha(s, z)."""
        random = self.task.initial().numpy()
        w, accuracy, alphas, final, prints = random, {}, {}, {}, {}
        pilot = self.task.initial("pilot").numpy()
        if scheme == "proposed":
            for s in range(P):
                self.fresh(None)
                for t in range(T):
                    w = self.round(w, s, s * T + t, rate(t))
                final[s] = w
            pilot = np.mean([final.pop(s) for s in range(P)], axis=0)
        for s in range(P, sessions):
            if scheme in ("proposed", "random_pilot"):
                u = pilot
                self.fresh(final.get(s - 1))
                for v in range(V):
                    u = self.round(u, s, sessions * T + s * V + v, LR / 2)
                prints[s] = u - pilot
            if s == P:
                w = random
            elif scheme == "average":
                w = np.mean(list(final.values()), axis=0)
            elif scheme in ("proposed", "random_pilot"):
                far = unit_distance if distance == "per_tensor_unit" else plain_distance
                e = {z: np.exp(-R * far(prints[s], prints[z])) for z in range(P, s)}
                alpha = {z: e[z] / sum(e.values()) for z in e}
                alphas |= {f"{s}:{z}": a for z, a in alpha.items()}
                w = sum(alpha[z] * final[z] for z in alpha)
            self.fresh(final.get(s - 1))
            for t in range(T):
                w = self.round(w, s, s * T + t, rate(t))
                accuracy[s * T + t + 1] = self.accuracy(w, GROUPS[s % 2])
            final[s] = w
        return w, accuracy, alphas

    def accuracy(self, w: np.ndarray, labels: tuple[int, ...]) -> float:
        x, y = self.task.arena.test_x.numpy(), self.task.arena.test_labels
        here = np.isin(y, labels)
        return float(100 * (probabilities(w, x[here]).argmax(1) == y[here]).mean())


def rate(t: int) -> float:
    return FLOOR * LR + (LR - FLOOR * LR) * (1 - t / T) ** 0.9


def unit_distance(a: np.ndarray, b: np.ndarray) -> float:
    """The biases do not count, so one tensor is left."""
    u, v = a[:200], b[:200]
    return float(np.linalg.norm(u / np.linalg.norm(u) - v / np.linalg.norm(v)))


def plain_distance(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(a - b))
