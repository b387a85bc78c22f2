"""Table 2: how much of one fast device FedNova and FedaGrac can use beside nine slow ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reproduce.algorithms.fedagrac import Constant, FedaGrac
from reproduce.algorithms.fednova import FedNova
from reproduce.clocks.rounds import Rounds
from reproduce.declare import Artifact
from reproduce.experiment import Experiment, Panel
from reproduce.papers.fedagrac import settings
from reproduce.systems.work import DEVICE_RATIOS, DEVICES, DeviceClasses

if TYPE_CHECKING:
    import pandas as pd

    from reproduce.report.histories import Histories


@dataclass(frozen=True)
class Search:
    """The sweep over utilisations: `target` percent within `limit` rounds; the accuracy is that of round `rounds`."""

    utilisations: tuple[int, ...]
    ratios: tuple[float, ...]
    target: float
    limit: int
    rounds: int
    lam: float


SEARCHES = {
    "paper": Search(tuple(range(100, 0, -5)), tuple(DEVICE_RATIOS["default"].values()), 60.0, 50, 100, 0.1),
    "reduced": Search((100, 75, 50, 25), (20.0, 10.0, 3.0, 2.5), 55.0, 40, 60, 0.3),
    "smoke": Search((100, 50), (4.0, 3.0, 2.0, 1.5), 50.0, 3, 5, 0.3),
}
PHRASE = "K of slow devices 10, fast device 20, 10, 3, 2.5 times as fast, target 55 in 40 rounds, accuracy after 60"


def panels(scale: str) -> tuple[Panel, ...]:
    """One panel per slow device: all utilisations of both algorithms."""
    search = SEARCHES[scale]
    problem = settings.tiny("cnn2", settings.DP1) if scale == "smoke" else settings.fashion(settings.CNN2)
    rate = 0.3 if scale == "smoke" else 0.03
    algorithms = {"fednova": FedNova(rate), "fedagrac": FedaGrac(rate, calibration=Constant(search.lam))}
    found = []
    for device, ratio in zip(DEVICES, search.ratios, strict=True):
        labels = {
            "dataset": settings.dataset(problem),
            "model": "cnn2",
            "slow_device": device,
            "fast_device": "rtx3080ti",
        }
        experiments = tuple(
            Experiment(
                {**labels, "utilization": u, "algorithm": name},
                problem,
                settings.working(DeviceClasses(2 if scale == "smoke" else 10, ratio, u / 100)),
                algorithm,
                Rounds(search.rounds),
            )
            for name, algorithm in algorithms.items()
            for u in search.utilisations
        )
        substitute = PHRASE if scale == "reduced" else ""
        found.append(Panel(f"table2-{device}".replace("_", "-"), experiments, settings.seeds(scale), substitute))
    return settings.together("table2", found) if scale == "smoke" else tuple(found)


def cells(histories: Histories) -> pd.DataFrame:
    """The largest utilisation at which the target is reached in time, the rounds this takes, and the later accuracy.

    Nothing is assumed about the utilisations below the first that is accepted. None accepted: no utilisation and no
    accuracy, and the limit as a lower bound of the rounds.
    """
    import pandas as pd

    search = SEARCHES[histories.scale]
    frame = histories.frame[histories.frame["metric"] == "accuracy"]
    by = ["dataset", "model", "slow_device", "fast_device", "algorithm", "seed"]
    rows = []
    for key, runs in frame.groupby(by, sort=False):
        found, rounds, accuracy = float("nan"), float(search.limit), float("nan")
        for u in search.utilisations:
            run = runs[runs["utilization"] == u]
            good = run[(run["value"] >= search.target) & (run["round"] <= search.limit)]
            if len(good):
                found, rounds = float(u), float(good["round"].min())
                accuracy = float(run.loc[run["round"] == search.rounds, "value"].mean())
                break
        missed = found != found
        rows += [
            (*key, "utilization_percent", found, False),
            (*key, "rounds_to_60", rounds, missed),
            (*key, "accuracy_after_100_rounds", accuracy, False),
        ]
    return pd.DataFrame(rows, columns=[*by, "metric", "value", "censored"])


ARTIFACT = Artifact(
    "fedagrac",
    "table2",
    "Usable share of one fast device beside nine slow ones",
    panels,
    cells,
    rows=("slow_device", "algorithm"),
    columns=("metric",),
    notes=(
        "Utilisations are tried from 100 % downwards; the first at which the target is reached in time counts.",
        "The paper does not say how many steps the devices take. Ours: 10 on a slow one, on the fast one 100, 30, 3 "
        "and 2.5 times as many at full use (reduced: 20, 10, 3, 2.5), and λ = 0.1 (reduced: 0.3). Only the pattern can "
        "be compared, not the numbers.",
        "In the paper's last row FedNova reaches the target first (29 against 36 rounds).",
    ),
    options={
        "decimals": {"utilization_percent": 0, "rounds_to_60": 1, "accuracy_after_100_rounds": 2},
        "names": {
            "utilization_percent": "Utilisation (%)",
            "rounds_to_60": "Rounds to target",
            "accuracy_after_100_rounds": "Final accuracy (%)",
        },
    },
)
