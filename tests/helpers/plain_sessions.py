"""The algorithms of dynamic_init once more, as one plain NumPy loop, and the small experiment it is compared on."""

from collections.abc import Sequence

import numpy as np

from reproduce.data.batches import Walk
from reproduce.engine.client_split import ClassificationSplit
from reproduce.models.declared import Softmax
from reproduce.partitions.groups import GroupedDirichlet
from reproduce.problem import Classification
from reproduce.streams import rng

N, S, T, P, B, K, LR, FLOOR = 3, 5, 3, 1, 32, 5, 0.05, 0.4
MOMENTUM = 0.9
CONTRAST, TEMPERATURE = 2.0, 0.5
GROUPS = ((0, 1, 2, 3, 4), (5, 6, 7, 8, 9))
VIEWS = tuple("labels:" + ",".join(map(str, g)) for g in GROUPS)
# About 108 samples per client make four batches, the last one short: nobody gets to the K-th step.
PROBLEM = Classification(
    "gaussian", Softmax(20, 10), GroupedDirichlet(0.3), clients=2 * N, batches=Walk(B), train_samples=650
)
Turn = tuple[range, tuple[int, ...]]
"""The clients of a session, and the labels it is evaluated on."""
ALTERNATING: tuple[Turn, ...] = ((range(N), GROUPS[0]), (range(N, 2 * N), GROUPS[1]))


class Linear:
    """20 -> 10; the representation is the logits."""

    weights = (slice(0, 200),)

    def forward(self, w: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        z = x @ w[:200].reshape(10, 20).T + w[200:]
        return z, z

    def gradient(self, w: np.ndarray, x: np.ndarray, z: np.ndarray, dz: np.ndarray, d: np.ndarray) -> np.ndarray:
        """From the gradients with respect to representation and logits."""
        return np.concatenate([((dz + d).T @ x).ravel(), (dz + d).sum(0)])


class TwoLayer:
    """20 -> 7 ReLU -> 10; the representation is the hidden layer."""

    weights = (slice(0, 140), slice(147, 217))

    def forward(self, w: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        h = np.maximum(x @ w[:140].reshape(7, 20).T + w[140:147], 0)
        return h, h @ w[147:217].reshape(10, 7).T + w[217:]

    def gradient(self, w: np.ndarray, x: np.ndarray, z: np.ndarray, dz: np.ndarray, d: np.ndarray) -> np.ndarray:
        dh = (dz + d @ w[147:217].reshape(10, 7)) * (z > 0)
        return np.concatenate([(dh.T @ x).ravel(), dh.sum(0), (d.T @ z).ravel(), d.sum(0)])


def probabilities(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def contrast(z: np.ndarray, toward: np.ndarray, away: np.ndarray) -> np.ndarray:
    """Gradient with respect to z of -log(e^(a/t) / (e^(a/t) + e^(b/t))) per sample; 0 where a vector has no length."""
    share, slope = [], []
    for v in (toward, away):
        lengths = np.linalg.norm(z, axis=1, keepdims=True), np.linalg.norm(v, axis=1, keepdims=True)
        product = np.where(lengths[0] * lengths[1] > 0, lengths[0] * lengths[1], np.inf)
        cosine = (z * v).sum(1, keepdims=True) / product
        share.append(np.exp(cosine / TEMPERATURE))
        slope.append(v / product - cosine * z / np.where(lengths[0] > 0, lengths[0] ** 2, np.inf))
    rest = share[1] / (share[0] + share[1])
    return rest / TEMPERATURE * (slope[1] - slope[0])


class Plain:
    """One trajectory; `kind` names the algorithm ("moon_standard": moon whose fingerprints leave no trace)."""

    def __init__(
        self,
        kind: str,
        task: ClassificationSplit,
        network: Linear | TwoLayer | None = None,
        turns: Sequence[Turn] = ALTERNATING,
    ) -> None:
        self.kind, self.split, self.turns = kind, task, turns
        self.network = network or Linear()
        self.x, self.y = task.device_data.train_x.numpy(), task.device_data.labels
        self.zero = np.zeros_like(task.initial().numpy())
        self.previous: dict[int, np.ndarray] = {}
        self.fresh(None)

    def fresh(self, teacher: np.ndarray | None) -> None:
        """Memories at the start of a session; MOON's previous models stay."""
        self.m, self.c = self.zero.copy(), self.zero.copy()
        self.c_k = {k: self.zero for k in range(self.split.clients)}
        self.teacher = self.zero if teacher is None else teacher

    def local(self, w: np.ndarray, client: int, number: int, lr: float) -> tuple[np.ndarray, int]:
        """End point and number of steps of one client."""
        order = rng("batches", 2, number, client).permutation(self.split.indices[client])
        past = self.previous.get(client)
        past = self.split.initial("previous", client).numpy() if past is None else past
        y, v, steps = w.copy(), self.zero, 0
        for at in range(0, min(len(order), K * B), B):
            batch = order[at : at + B]
            x, onehot = self.x[batch], np.eye(10)[self.y[batch]]
            z, logits = self.network.forward(y, x)
            p, dz = probabilities(logits), np.zeros_like(z)
            d = (p - onehot) / len(batch)
            if self.kind.startswith("continuous"):
                d += 0.7 * (p - probabilities(self.network.forward(self.teacher, x)[1])) / len(batch)
            if self.kind.startswith("moon"):
                poles = (self.network.forward(other, x)[0] for other in (w, past))
                dz = CONTRAST * contrast(z, *poles) / len(batch)
            g = self.network.gradient(y, x, z, dz, d)
            if self.kind in ("fedprox", "continuous_prox"):
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
        members = self.turns[session % len(self.turns)][0]
        sizes = np.array([len(self.split.indices[k]) for k in members])
        p = sizes / sizes.sum()
        start = w + 0.85 * self.m if self.kind == "fedacg" else w
        ends = [self.local(start, k, number, lr) for k in members]
        self.previous |= {k: y for k, (y, _) in zip(members, ends, strict=True)}
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
        self,
        scheme: str,
        R: float = 10.0,
        V: int = 1,
        P: int = P,
        sessions: int = S,
        distance: str = "per_tensor_unit",
        early: bool = False,
        again: bool = False,
        carry: bool = False,
    ) -> tuple[np.ndarray, dict[int, float], dict[str, float]]:
        """Final model, accuracy per global round, alpha(s, z); `early`, `again`: lines 12 and 13 as printed;
        `carry`: session P goes on from the pilot sessions, which every scheme then has."""
        random = self.split.initial().numpy()
        w, accuracy, alphas, final, prints = random, {}, {}, {}, {}
        pilot = self.split.initial("pilot").numpy()
        if scheme == "proposed" or carry:
            for s in range(P):
                self.fresh(None)
                for t in range(T):
                    before, w = w, self.round(w, s, s * T + t, rate(t))
                final[s] = before if early else w
            pilot = np.mean([final.pop(s) for s in range(P)], axis=0)
        for s in range(P, sessions):
            if scheme in ("proposed", "random_pilot"):
                u, past = pilot, dict(self.previous)
                self.fresh(final.get(s - 1))
                for v in range(V):
                    u = self.round(u, s, sessions * T + s * V + v, LR / 2)
                prints[s] = u - pilot
                if self.kind == "moon_standard":
                    self.previous = past
            if s == P:
                w = w if carry else random
            elif not final:
                pass
            elif scheme == "average":
                w = np.mean(list(final.values()), axis=0)
            elif scheme in ("proposed", "random_pilot"):
                far = self.unit_distance if distance == "per_tensor_unit" else plain_distance
                e = {z: np.exp(-R * far(prints[s], prints[z])) for z in final}
                alpha = {z: e[z] / sum(e.values()) for z in e}
                alphas |= {f"{s}:{z}": a for z, a in alpha.items()}
                w = sum(alpha[z] * final[z] for z in alpha)
            self.fresh(final.get(s - 1))
            for t in range(T):
                before, w = w, self.round(w, s, s * T + t, rate(t))
                accuracy[s * T + t + 1] = self.accuracy(w, self.turns[s % len(self.turns)][1])
            final[s] = before if early else w
            if again and len(final) == P:
                pilot, final = np.mean(list(final.values()), axis=0), {}
        return w, accuracy, alphas

    def accuracy(self, w: np.ndarray, labels: tuple[int, ...]) -> float:
        x, y = self.split.device_data.test_x.numpy(), self.split.device_data.test_labels
        here = np.isin(y, labels)
        return float(100 * (self.network.forward(w, x[here])[1].argmax(1) == y[here]).mean())

    def unit_distance(self, a: np.ndarray, b: np.ndarray) -> float:
        """The mean over the weight tensors; biases do not count."""
        units = [(a[t] / np.linalg.norm(a[t]), b[t] / np.linalg.norm(b[t])) for t in self.network.weights]
        return float(np.mean([np.linalg.norm(u - v) for u, v in units]))


def rate(t: int) -> float:
    return FLOOR * LR + (LR - FLOOR * LR) * (1 - t / T) ** 0.9


def plain_distance(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(a - b))
