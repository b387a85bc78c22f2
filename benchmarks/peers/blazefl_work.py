"""`python -m benchmarks.peers.blazefl_work W1`: a work in BlazeFL; one process with threads, or processes.

Its fast mode is threads on a free-threaded Python; the line of JSON names the Python, free-threaded with a t.
"""

from __future__ import annotations

import argparse
import threading
from dataclasses import dataclass
from functools import cache
from queue import Empty, SimpleQueue

import torch
import torch._dynamo  # else the first optimizer of every forked process imports it
from blazefl.core import (  # type: ignore[import-not-found]
    BaseServerHandler,
    ProcessPoolClientTrainer,
    SHMHandle,
    ThreadPoolClientTrainer,
    deserialize_model,
    serialize_model,
)
from torch import Tensor, nn

from benchmarks.peers.common import RATE, Clock, arguments, count, counted, data_of, flat, network, work_of


@dataclass
class Down:
    """What a client gets."""

    parameters: Tensor


@dataclass
class Up:
    """What a client answers; `did` is what the client's process counted."""

    parameters: Tensor | SHMHandle
    did: dict[str, int]


@dataclass
class Client:
    """What a process of the pool is told of a client."""

    work: str
    number: int
    counting: bool


resident: SimpleQueue[nn.Module] = SimpleQueue()
"""Models that no client trains at the moment: BlazeFL starts new threads every round."""


@cache
def generator_of(number: int) -> torch.Generator:
    """A client's own stream, as BlazeFL advises."""
    return torch.Generator().manual_seed(number)


def model_of(client: Client) -> nn.Module:
    """A model to train: one that is free, else a new one."""
    try:
        return resident.get_nowait()
    except Empty:
        net = network(client.work)
        if client.counting:
            count(net)
        return net


def local_run(client: Client, parameters: Tensor) -> tuple[Tensor, dict[str, int]]:
    """A client's parameters after his local run, on shuffled slices of his tensors, and what was counted."""
    work, net, (x, y) = work_of(client.work), model_of(client), data_of(client.work)[client.number]
    deserialize_model(net, parameters)
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE)
    before, left = dict(counted), work.steps
    while left:
        for rows in torch.randperm(len(x), generator=generator_of(client.number)).split(work.batch)[:left]:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
            optimizer.step()
            left -= 1
    trained = serialize_model(net)
    resident.put(net)
    return trained, {k: counted[k] - before[k] for k in counted}


class Threads(ThreadPoolClientTrainer[Up, Down]):
    """Clients in threads of this process."""

    device, device_count = "cpu", 0

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.num_parallels = args, args.workers
        self.cache: list[Up] = []
        self.stop_event = threading.Event()

    def worker(self, cid: int, device: str, payload: Down, stop_event: threading.Event) -> Up:
        return Up(*local_run(Client(self.args.work, cid, self.args.count), payload.parameters))


class Processes(ProcessPoolClientTrainer[Up, Down, Client, Up]):
    """Clients in processes: BlazeFL starts a pool every round; answers come through shared memory."""

    device, device_count = "cpu", 0

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.num_parallels = args, args.workers
        self.cache: list[Up] = []
        self.manager = torch.multiprocessing.Manager()
        self.stop_event = self.manager.Event()
        self.size = sum(p.numel() for p in network(args.work).parameters())

    def get_client_config(self, cid: int) -> Client:
        return Client(self.args.work, cid, self.args.count)

    def prepare_uplink_package_buffer(self) -> Up:
        return Up(torch.empty(self.size), dict.fromkeys(counted, 0))

    def convert_buffer_to_uplink(self, buffer: Up) -> Up:
        return buffer

    @staticmethod
    def worker(config: Client, payload: Down, device: str, stop_event: threading.Event, *, shm_buffer: Up) -> Up:
        parameters, did = local_run(config, payload.parameters)
        shm_buffer.parameters.copy_(parameters)
        return Up(SHMHandle(), did)


class Server(BaseServerHandler[Up, Down]):
    """The uniform mean of a round's clients; the clock ticks when it is taken."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.work, self.net, self.clock = work_of(args.work), network(args.work), Clock(args.warm)
        self.rounds = args.warm + args.rounds
        self.stream = torch.Generator().manual_seed(0)
        self.did = dict.fromkeys(counted, 0)

    def sample_clients(self) -> list[int]:
        return torch.randperm(self.work.clients, generator=self.stream)[: self.work.per_round].tolist()

    def downlink_package(self) -> Down:
        return Down(serialize_model(self.net))

    def is_stopped(self) -> bool:
        return len(self.clock.ticks) == self.rounds

    def global_update(self, buffer: list[Up]) -> None:
        deserialize_model(self.net, torch.stack([up.parameters for up in buffer]).mean(0))
        self.did = {k: v + sum(up.did[k] for up in buffer) for k, v in self.did.items()}
        self.clock.tick()


def main() -> None:
    parser = arguments()
    parser.add_argument("--mode", choices=("threads", "processes"), default="threads")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    if args.count and args.mode == "threads":
        args.workers = 1  # the counters are not a thread's own
    torch.set_num_threads(1)
    torch.multiprocessing.set_start_method("fork")  # a pool a round: any other way imports torch in every one
    data_of(args.work)
    server = Server(args)
    start = flat(server.net)
    trainer = (Threads if args.mode == "threads" else Processes)(args)
    while not server.is_stopped():
        trainer.local_process(server.downlink_package(), server.sample_clients())
        answers, trainer.cache = trainer.cache, []
        server.global_update(answers)
    extra: dict[str, object] = {"processes": args.workers, "threads": 1}
    if args.mode == "threads":
        extra = {"processes": 1, "threads": args.workers}
    if args.count:
        extra |= {f"{k}_per_round": v / server.rounds for k, v in server.did.items()}
    server.clock.report("BlazeFL", "blazefl", args.work, float((flat(server.net) - start).norm()), extra)


if __name__ == "__main__":
    main()
