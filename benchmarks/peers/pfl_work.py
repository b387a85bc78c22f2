"""`python -m benchmarks.peers.pfl_work W1`: a work in Apple's pfl; starts its processes itself through torchrun."""

from __future__ import annotations

import os
import sys

import numpy as np
import torch
from pfl.aggregate.simulate import SimulatedBackend  # type: ignore[import-not-found]
from pfl.algorithm.base import NNAlgorithmParams  # type: ignore[import-not-found]
from pfl.algorithm.federated_averaging import FederatedAveraging  # type: ignore[import-not-found]
from pfl.callback.base import TrainingProcessCallback  # type: ignore[import-not-found]
from pfl.data.federated_dataset import FederatedDataset  # type: ignore[import-not-found]
from pfl.data.pytorch import PyTorchTensorDataset  # type: ignore[import-not-found]
from pfl.data.sampling import get_user_sampler  # type: ignore[import-not-found]
from pfl.hyperparam.base import NNTrainHyperParams  # type: ignore[import-not-found]
from pfl.metrics import Metrics, Weighted  # type: ignore[import-not-found]
from pfl.model.pytorch import PyTorchModel  # type: ignore[import-not-found]
from torch import Tensor, nn

from benchmarks.peers.common import RATE, Clock, arguments, count, counted, data_of, flat, network, work_of


class WithLoss(nn.Module):
    """A network with the two methods that pfl calls."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        return nn.functional.cross_entropy(self.net(x), y)

    @torch.no_grad()
    def metrics(self, x: Tensor, y: Tensor) -> dict[str, object]:
        """Called once, in the first warm round, which pfl always evaluates."""
        self.net.eval()
        loss = nn.functional.cross_entropy(self.net(x), y).item()
        self.net.train()
        return {"loss": Weighted(loss * len(y), len(y))}


class Ticker(TrainingProcessCallback):
    """Lets the clock tick after every central iteration."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def after_central_iteration(self, aggregate_metrics: object, model: object, *, central_iteration: int) -> object:
        self.clock.tick()
        return False, Metrics()


def main() -> None:
    parser = arguments()
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="intra-op threads per process")
    args = parser.parse_args()
    if args.processes > 1 and "TORCHELASTIC_RUN_ID" not in os.environ:
        launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={args.processes}", "--module"]
        os.execv(sys.executable, [sys.executable, *launch, "benchmarks.peers.pfl_work", *sys.argv[1:]])
    torch.set_num_threads(args.threads)
    np.random.seed(0)  # noqa: NPY002 (pfl samples users from numpy's global stream, alike in all processes)
    work, net = work_of(args.work), network(args.work)
    if args.count:
        count(net)
    start, module = flat(net), WithLoss(net)
    users = [PyTorchTensorDataset(xy, user_id=str(i)) for i, xy in enumerate(data_of(args.work))]
    federation = FederatedDataset(users.__getitem__, get_user_sampler("minimize_reuse", range(work.clients)))
    rounds, clock = args.warm + args.rounds, Clock(args.warm)
    epochs, rest = divmod(work.steps * work.batch, work.samples)
    assert rest == 0, "pfl counts local work in epochs"
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=rounds,
            evaluation_frequency=rounds + 1,
            train_cohort_size=work.per_round,
            val_cohort_size=0,
        ),
        SimulatedBackend(federation, None),
        PyTorchModel(module, torch.optim.SGD, torch.optim.SGD(module.parameters(), lr=1.0)),
        NNTrainHyperParams(local_batch_size=work.batch, local_num_epochs=epochs, local_learning_rate=RATE),
        callbacks=[Ticker(clock)],
        send_metrics_to_platform=False,
    )
    totals = torch.tensor([counted["steps"], counted["samples"]])
    rank, processes = 0, 1
    if torch.distributed.is_initialized():
        rank, processes = torch.distributed.get_rank(), torch.distributed.get_world_size()
        torch.distributed.all_reduce(totals)
        torch.distributed.destroy_process_group()
    if rank == 0:
        extra: dict[str, object] = {"processes": processes, "threads": args.threads}
        if args.count:
            steps, samples = (totals / rounds).tolist()
            extra |= {"steps_per_round": steps, "samples_per_round": samples}
        clock.report("pfl", "pfl", args.work, float((flat(net) - start).norm()), extra)


if __name__ == "__main__":
    main()
