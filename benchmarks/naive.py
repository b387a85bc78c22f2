"""FedAvg as a plain loop: the first file to read, and the baseline of every ratio in docs/performance.md.

It is what federated-learning scripts do: a copy of the module per client, a DataLoader, an optimizer, averaged state
dicts. `python -m benchmarks.naive` trains logistic regression on scikit-learn's digits and prints the test accuracy.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

Data = tuple[Tensor, Tensor]
"""Samples [N, ...] and their labels [N]."""
State = dict[str, Tensor]


def naive_round(
    server: nn.Module, data: Sequence[Data], clients: Sequence[int], batch: int, lr: float, steps: int = 0
) -> None:
    """One round of FedAvg, which changes the server's module: broadcast, local training, aggregation."""
    states = [local_training(copy.deepcopy(server), data[c], batch, lr, steps) for c in clients]
    server.load_state_dict(average(states))


def local_training(model: nn.Module, data: Data, batch: int, lr: float, steps: int = 0) -> State:
    """A client's model after `steps` steps of SGD (0: one pass over its data)."""
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    loader = DataLoader(TensorDataset(*data), batch_size=batch, shuffle=True)
    passes = itertools.chain.from_iterable(itertools.repeat(loader))  # shuffled anew in every pass
    for x, y in itertools.islice(passes, steps or len(loader)):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model.state_dict()


def average(states: Sequence[State]) -> State:
    """The mean of the clients' models, parameter by parameter."""
    return {name: torch.stack([state[name].float() for state in states]).mean(0) for name in states[0]}


def main(rounds: int = 20, clients: int = 20, participants: int = 5) -> None:
    from sklearn.datasets import load_digits

    torch.manual_seed(0)
    digits = load_digits()
    x, y = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)  # [1797, 64], [1797]
    train, test = torch.randperm(len(y)).split([1400, len(y) - 1400])
    by_label = train[y[train].argsort()]  # non-IID: two shards of sorted labels per client
    shards = by_label.view(2 * clients, -1)[torch.randperm(2 * clients)].view(clients, -1)  # [20, 70]
    data = [(x[shard], y[shard]) for shard in shards]
    server = nn.Linear(64, 10)
    for r in range(rounds):
        sampled = torch.randperm(clients)[:participants].tolist()
        naive_round(server, data, sampled, batch=10, lr=0.5)
        accuracy = (server(x[test]).argmax(1) == y[test]).float().mean()
        print(f"round {r + 1}: {100 * accuracy:.1f} %")


if __name__ == "__main__":
    main()
