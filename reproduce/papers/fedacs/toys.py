"""The quadratic experiments: Fig. 4 (local solvers), Fig. 7 (benchmarks), and the plane of Figs. 2, 3, 5 and 8."""

from __future__ import annotations

from reproduce.algorithms.base import FedAvg, WeightedDraws
from reproduce.algorithms.ca_fedavg import CAFedAvg
from reproduce.algorithms.calibration import Calibration
from reproduce.algorithms.fedacs import FedACS
from reproduce.algorithms.fedau import FedAU
from reproduce.algorithms.fednova import FedNova
from reproduce.algorithms.fedprox import FedProx
from reproduce.algorithms.fedvarp import FedVARP
from reproduce.algorithms.os_sampling import OptimalSampling
from reproduce.algorithms.solvers import DecayFedAvg
from reproduce.clocks.rounds import Rounds
from reproduce.experiment import Experiment, Panel
from reproduce.problems import Quadratic
from reproduce.systems import System
from reproduce.systems import fedacs as systems

ALGORITHMS = ("fedacs", "fedavg", "ca_fedavg", "fedvarp", "fednova", "fedau", "os")
CALIBRATED = ("fedacs", "ca_fedavg", "fedvarp")
"""The algorithms whose rate appendix I.2 changes; for the others the factor is one."""

FIG4_PROBLEM = Quadratic(30, 10)
FIG4_PANELS = {"left": "homogeneous", "middle": "heterogeneous", "right": "time-varying"}
PLANE_SYSTEMS = {
    "toy2d": systems.plane(),
    "toy2d_comm_only": systems.plane(equal_work=True),
    "toy2d_comp_only": systems.plane(equal_links=True),
}
PLANE_RATE = 0.02


def benchmarks(lr: float, k: int, calibration: Calibration | None = None, probe_batch: int = 0) -> dict[str, FedAvg]:
    """The seven algorithms of section 6 with the common rate `lr` and `k` draws per round."""
    draws = WeightedDraws(k)
    return {
        "fedacs": FedACS(lr, draws, calibration=calibration),
        "fedavg": FedAvg(lr, draws),
        "ca_fedavg": CAFedAvg(lr, draws, calibration=calibration),
        "fedvarp": FedVARP(lr, draws, calibration=calibration),
        "fednova": FedNova(lr, draws),
        "fedau": FedAU(lr, draws),
        "os": OptimalSampling(lr, draws, probe_batch=probe_batch),
    }


def solvers(lr: float, k: int) -> dict[str, FedAvg]:
    """The five series of Fig. 4."""
    draws = WeightedDraws(k)
    return {
        "fedacs_sgd": FedACS(lr, draws),
        "fedavg_sgd": FedAvg(lr, draws),
        "fedavg_prox_sgd": FedProx(lr, draws, mu=1.0),
        "fedavg_decay_sgd": DecayFedAvg(lr, draws, decay=0.005),
        "fedavg_momentum_sgd": FedAvg(lr, draws, momentum=0.3),
    }


def fig4_panels(scale: str) -> tuple[Panel, ...]:
    """Homogeneous, heterogeneous and time-varying clients; one common rate, no calibration (the caption gives one)."""
    problem, k, clock, seeds, substitute = size(scale, FIG4_PROBLEM, 15)
    return tuple(
        Panel(
            f"fig4-{panel}",
            tuple(
                Experiment({"panel": panel, "algorithm": name}, problem, systems.figure4(system), algorithm, clock)
                for name, algorithm in solvers(0.001, k).items()
            ),
            seeds,
            substitute,
        )
        for panel, system in FIG4_PANELS.items()
    )


def fig7_systems() -> dict[str, System]:
    """The systems of appendix I.3.1, with T_m counted in local steps."""
    return {"static": systems.static("steps"), "dynamic": systems.dynamic("steps")}


def fig7_panels(scale: str) -> tuple[Panel, ...]:
    """All with the common rate of the caption (`calibrate` false), and the three that calibration changes again."""
    problem, k, clock, seeds, substitute = size(scale, Quadratic(20, 10), 6)
    plain, calibrated = benchmarks(0.002, k), benchmarks(0.002, k, Calibration())
    chosen = [(False, plain[name], name) for name in ALGORITHMS] + [(True, calibrated[n], n) for n in CALIBRATED]
    return tuple(
        Panel(
            f"fig7-{name}",
            tuple(
                Experiment({"system": name, "calibrate": c, "algorithm": n}, problem, system, a, clock)
                for c, a, n in chosen
            ),
            seeds,
            substitute,
        )
        for name, system in fig7_systems().items()
    )


def plane_panel(scale: str, system: str) -> Panel:
    """Three clients in the plane; the schematics of the paper drawn from simulated paths."""
    problem = Quadratic(3, 2, minimisers=((0.0, 0.0), (4.0, 0.0), (1.0, 3.0)), start=(4.5, 3.0))
    smoke = scale == "smoke"
    clock = Rounds(1000 if smoke else 2000, every=100, trace=2)
    original = FedVARP(PLANE_RATE, WeightedDraws(3), variant="original")
    chosen = benchmarks(PLANE_RATE, 3) | {"fedvarp_original": original}
    if system != "toy2d":
        chosen = {"fedavg": chosen["fedavg"]}
    experiments = tuple(
        Experiment({"system": system, "algorithm": name}, problem, PLANE_SYSTEMS[system], algorithm, clock)
        for name, algorithm in chosen.items()
    )
    substitute = "1,000 rounds" if smoke else ""
    return Panel(system.replace("_", "-"), experiments, tuple(range(4 if smoke else 8)), substitute)


def size(scale: str, problem: Quadratic, k: int) -> tuple[Quadratic, int, Rounds, tuple[int, ...], str]:
    """Problem, draws per round, clock, seeds and substitute; reduced equals paper scale, these runs are cheap."""
    if scale == "smoke":
        return Quadratic(6, 4), 3, Rounds(50, every=5, dense_last=10, trace=5), (0, 1), "6 clients in R^4, 50 rounds"
    return problem, k, Rounds(1000, every=10, dense_last=200, trace=20), tuple(range(20)), ""
