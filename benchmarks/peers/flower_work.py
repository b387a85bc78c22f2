"""`python -m benchmarks.peers.flower_work W1`: a work in Flower's simulation on Ray, actors of one core each."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import cache
from typing import Any

import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict  # type: ignore
from flwr.clientapp import ClientApp  # type: ignore[import-not-found]
from flwr.serverapp import Grid, ServerApp  # type: ignore[import-not-found]
from flwr.serverapp.strategy import FedAvg  # type: ignore[import-not-found]
from flwr.simulation import run_simulation  # type: ignore[import-not-found]
from torch import nn

from benchmarks.peers.common import RATE, Clock, arguments, count, counted, data_of, flat, network, work_of

client = ClientApp()


@cache
def resident(name: str, counting: bool) -> nn.Module:
    """The one model of an actor."""
    torch.set_num_threads(1)
    net = network(name)
    if counting:
        count(net)
    return net


@client.train()
def train(message: Message, context: Context) -> Message:
    """One client's local run, on shuffled slices of its tensors."""
    config = message.content["config"]
    work, net = work_of(config["work"]), resident(config["work"], config["count"])
    x, y = data_of(config["work"])[context.node_config["partition-id"]]
    net.load_state_dict(message.content["arrays"].to_torch_state_dict())
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE)
    before, left = dict(counted), work.steps
    while left:
        for rows in torch.randperm(len(x)).split(work.batch)[:left]:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
            optimizer.step()
            left -= 1
    did = {k: counted[k] - before[k] for k in counted}
    content = {"arrays": ArrayRecord(net.state_dict()), "metrics": MetricRecord({"num-examples": len(x), **did})}
    return Message(content=RecordDict(content), reply_to=message)


class Timed(FedAvg):
    """Flower's strategy; the clock ticks when the round's arrays have been averaged."""

    clock: Clock

    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
        answer = super().aggregate_train(server_round, replies)
        self.clock.tick()
        return answer


def main() -> None:
    parser = arguments()
    parser.add_argument("--actors", type=int, default=2, help="Ray actors of one core each")
    args = parser.parse_args()
    logging.getLogger("flwr").setLevel(logging.ERROR)
    work, rounds = work_of(args.work), args.warm + args.rounds
    server = ServerApp()

    @server.main()
    def serve(grid: Grid, context: Context) -> None:
        net = network(args.work)
        strategy = Timed(
            fraction_train=work.per_round / work.clients, fraction_evaluate=0.0, min_available_nodes=work.clients
        )
        strategy.clock = Clock(args.warm)
        config = ConfigRecord({"work": args.work, "count": args.count})
        result = strategy.start(grid, ArrayRecord(net.state_dict()), rounds, train_config=config)
        start = flat(net)
        net.load_state_dict(result.arrays.to_torch_state_dict())
        extra: dict[str, object] = {"processes": args.actors, "threads": 1}
        if args.count:
            means = result.train_metrics_clientapp.values()
            extra |= {f"{k}_per_round": sum(m[k] for m in means) / rounds * work.per_round for k in counted}
        strategy.clock.report("Flower", "flwr", args.work, float((flat(net) - start).norm()), extra)

    ray = {"num_cpus": args.actors, "object_store_memory": 2**28, "include_dashboard": False}
    resources = {"num_cpus": 1, "num_gpus": 0.0}
    run_simulation(server, client, work.clients, backend_config={"init_args": ray, "client_resources": resources})


if __name__ == "__main__":
    # Ray pickles what belongs to __main__ by value, caches included; the imported module goes by name.
    from benchmarks.peers import flower_work

    flower_work.main()
