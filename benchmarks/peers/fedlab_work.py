"""`python -m benchmarks.peers.fedlab_work W1`: a work in FedLab's standalone simulation (serial trainer)."""

from __future__ import annotations

import logging

from reproduce import vision  # noqa: F401 (first: FedLab imports torchvision)

# isort: split
import torch
from fedlab.contrib.algorithm.basic_client import SGDSerialClientTrainer  # type: ignore[import-not-found]
from fedlab.contrib.algorithm.basic_server import SyncServerHandler  # type: ignore[import-not-found]
from fedlab.contrib.dataset.basic_dataset import FedDataset  # type: ignore[import-not-found]
from fedlab.core.standalone import StandalonePipeline  # type: ignore[import-not-found]
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from benchmarks.peers.common import RATE, Clock, arguments, count, counted, data_of, flat, network, work_of


class Federation(FedDataset):
    """All clients' tensors; the loader fetches a whole shuffled batch by one index, its fastest way."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.clients = [TensorDataset(*xy) for xy in data_of(name)]
        self.num = len(self.clients)

    def get_dataloader(self, id: int, batch_size: int, type: str = "train") -> DataLoader:
        data = self.clients[id]
        return DataLoader(data, batch_size=None, sampler=BatchSampler(RandomSampler(data), batch_size, False))


class Timed(StandalonePipeline):
    """FedLab's loop; its evaluation after every round is replaced by a tick of the clock."""

    clock: Clock

    def evaluate(self) -> None:
        self.clock.tick()


def main() -> None:
    parser = arguments()
    parser.add_argument("--threads", type=int, default=2, help="intra-op threads")
    args = parser.parse_args()
    logging.getLogger().setLevel(logging.WARNING)
    torch.set_num_threads(args.threads)
    work, net = work_of(args.work), network(args.work)
    if args.count:
        count(net)
    rounds = args.warm + args.rounds
    epochs, rest = divmod(work.steps * work.batch, work.samples)
    assert rest == 0, "FedLab counts local work in epochs"
    trainer = SGDSerialClientTrainer(net, work.clients)
    trainer.setup_dataset(Federation(args.work))
    trainer.setup_optim(epochs, work.batch, RATE)
    handler = SyncServerHandler(net, rounds, work.per_round / work.clients)
    logging.getLogger().setLevel(logging.WARNING)
    pipeline = Timed(handler, trainer)
    pipeline.clock = Clock(args.warm)
    pipeline.main()
    extra: dict[str, object] = {"processes": 1, "threads": args.threads}
    if args.count:
        extra |= {f"{k}_per_round": v / rounds for k, v in counted.items()}
    pipeline.clock.report("FedLab", "fedlab", args.work, float((handler.model_parameters - flat(net)).norm()), extra)


if __name__ == "__main__":
    main()
