"""W1 and W2 in other simulators, in turn with the engine: A B A B, each peer in its own interpreter.

BENCHMARK_PEERS names a Python that has the peers installed: pfl, flwr[simulation], fedlab, blazefl, jax, and torch for
the data (nothing here installs anything), or several Pythons with colons between them, each peer running in the first
that has it: BlazeFL 3 needs Python 3.14, the others do not all run there. Every script also runs alone, with the
repository on PYTHONPATH:

    python -m benchmarks.peers.pfl_work W1 --rounds 20 --warm 3 [--count]

`--count` counts local steps and samples instead of being fast: 240 and 6,000 per round of W1, 10,000 and 200,000 of W2.

| peer | processes x threads | how it is configured |
| --- | --- | --- |
| pfl 0.6 | 2 x 1, torchrun and gloo | SimulatedBackend, FederatedAveraging, tensors in memory, batches unshuffled |
| Flower 1.41 | 2 Ray actors x 1 | FedAvg, resident model and data per actor, shuffled slices, no DataLoader |
| FedLab 1.3 | 1 x 2 (W1), 1 x 1 (W2) | StandalonePipeline, SGDSerialClientTrainer, whole batches from a DataLoader |
| BlazeFL 3.0 | 1 x 2 (Python threads) | ThreadPoolClientTrainer, resident models and data, shuffled slices |
| JAX 0.10 | 1 x 2 devices | no simulator: a round as one compiled call (`jax_work.py`), vmap over clients, shuffled |
| FedJAX 0.0.17 | - | imports on JAX 0.10, but calls jax.tree_map, which JAX removed: does not run |

All: plain SGD, rate 0.01, float32, CPU, uniform mean, no evaluation (pfl always evaluates its first round, a warm one),
no files that stay. Choices favour the peer where its interface leaves one: threads as were fastest on two idle cores,
data loaded once. pfl's missing shuffle is its own. BlazeFL's threads are meant for a free-threaded Python, and on one
with the GIL were still faster than its processes, of which it starts a pool every round (`--mode processes`); the rows
name the Python, free-threaded with a t. Times run from the end of one round to the end of a later one, so that starting
processes does not count.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.peers.launch import PeerError, anywhere, interpreters

WORK_NAMES = ("W1", "W2")


@dataclass(frozen=True)
class Peer:
    """A script of this folder; `options` by work."""

    name: str
    module: str
    options: dict[str, tuple[str, ...]]


PEERS = (
    Peer("pfl", "pfl_work", {}),
    Peer("Flower", "flower_work", {}),
    Peer("FedLab", "fedlab_work", {"W1": ("--threads", "2"), "W2": ("--threads", "1")}),
    Peer("BlazeFL", "blazefl_work", {}),
    Peer("JAX", "jax_work", {}),
)
FEDJAX = """
try:
    import fedjax, jax
    print("no script" if hasattr(jax, "tree_map") else f"does not run on JAX {jax.__version__}")
except ModuleNotFoundError:
    raise
except Exception:
    print("does not run on this JAX")
"""


def run(peer: Peer, work: str, rounds: int, warm: int, *options: str) -> dict[str, object]:
    """One process of a peer: its line of JSON."""
    arguments = ["-m", f"benchmarks.peers.{peer.module}", work, "--rounds", str(rounds), "--warm", str(warm)]
    output = anywhere([*arguments, *peer.options.get(work, ()), *options])
    lines = [line for line in output.splitlines() if line.startswith("{")]
    if not lines:
        raise PeerError("printed no result")
    answer: dict[str, object] = json.loads(lines[-1])
    return answer


def compare(peer: Peer, work: str, ours: Callable[[], object], repeats: int, rounds: int, warm: int) -> str:
    """A Markdown row: peer and engine in turn; medians, and the ratio with its smallest and largest value."""
    from benchmarks.measure import seconds

    pairs, failed, answer = [], "", {}
    for i in range(repeats):
        try:
            answer = run(peer, work, rounds, warm)
        except PeerError as error:
            failed = f" (run {i + 1} of {repeats} failed: {error})"
            print(f"{peer.name} {work}{failed}", file=sys.stderr, flush=True)
            continue
        pairs.append((float(str(answer["rounds_per_second"])), 1 / seconds(ours, 2.0)))
    if not pairs:
        return f"| {work} | {peer.name} | {failed.partition(': ')[2].removesuffix(')')} | - | - |"
    ratios = [b / a for a, b in pairs]
    a, b = np.median(pairs, axis=0)
    how = f"{answer['processes']} x {answer['threads']}, torch {answer['torch']}, {answer['python']}"
    name = f"{peer.name} {answer['version']}, {how}{failed}"
    return f"| {work} | {name} | {a:.2f} | {b:.1f} | {np.median(ratios):.1f} [{min(ratios):.1f}, {max(ratios):.1f}] |"


def table(repeats: int = 3, rounds: int = 20, warm: int = 3) -> str:
    """Markdown: work, peer, rounds/s of the peer and of the engine, ratio engine / peer."""
    from benchmarks.measure import engine_round
    from benchmarks.works import WORKS

    rows = ["| work | peer | rounds/s | ours rounds/s | ratio |", "| --- | --- | --- | --- | --- |"]
    for name in WORK_NAMES:
        ours = engine_round(next(w for w in WORKS if w.name.startswith(name)), threads=2)
        ours()
        rows += [compare(peer, name, ours, repeats, rounds, warm) for peer in PEERS]
    try:
        fedjax = anywhere(["-c", FEDJAX]).strip().splitlines()[-1]
    except PeerError as error:
        fedjax = str(error)
    return "\n".join([*rows, f"| W1, W2 | FedJAX | {fedjax} | - | - |"])


def main() -> int:
    """Print the table; 2 without an interpreter."""
    try:
        interpreters()
    except PeerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(table())
    return 0
