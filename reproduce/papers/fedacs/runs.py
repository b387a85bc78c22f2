"""The runs of FedACS's figures and tables: quadratics (Figs. 2 to 5, 7, 8) and networks (section 6, appendix I)."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from reproduce.algorithms.base import FedAvg, WeightedDraws
from reproduce.algorithms.fedacs import CAFedAvg, Calibration, DecayFedAvg, FedACS
from reproduce.algorithms.fedau import FedAU
from reproduce.algorithms.fednova import FedNova
from reproduce.algorithms.fedprox import FedProx
from reproduce.algorithms.fedvarp import FedVARP
from reproduce.algorithms.os_sampling import OptimalSampling
from reproduce.clocks.rounds import Rounds
from reproduce.data.batches import Shuffled
from reproduce.declare.experiment import Experiment, Label, Panel
from reproduce.papers.fedacs import settings
from reproduce.papers.fedacs.settings import Alpha, NetworkSetting, Toy
from reproduce.partitions.dirichlet import DirichletClass
from reproduce.partitions.labels import ClassPerClient
from reproduce.problem import Classification
from reproduce.systems import System, work

ALGORITHMS = ("fedacs", "fedavg", "ca_fedavg", "fedvarp", "fednova", "fedau", "os")
CALIBRATED = ("fedacs", "ca_fedavg", "fedvarp")
"""The algorithms whose rate appendix I.2 changes; for the others the factor is one."""


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


def toys(toy: Toy, name: str, runs: Iterable[tuple[Mapping[str, Label], System, FedAvg]]) -> Panel:
    """A panel of runs (labels, system, algorithm) on a quadratic."""
    found = tuple(Experiment(labels, toy.problem, system, a, toy.clock) for labels, system, a in runs)
    return Panel(name, found, toy.seeds, toy.substitute)


def solvers(k: int) -> dict[str, FedAvg]:
    """The five series of Fig. 4; one common rate, no calibration (the caption gives one)."""
    lr, draws = settings.RATES["fig4"], WeightedDraws(k)
    return {
        "fedacs_sgd": FedACS(lr, draws),
        "fedavg_sgd": FedAvg(lr, draws),
        "fedavg_prox_sgd": FedProx(lr, draws, mu=1.0),
        "fedavg_decay_sgd": DecayFedAvg(lr, draws, decay=0.005),
        "fedavg_momentum_sgd": FedAvg(lr, draws, momentum=0.3),
    }


def fig4(scale: str) -> tuple[Panel, ...]:
    """Homogeneous, heterogeneous and time-varying clients."""
    toy = settings.TOYS[scale]["fig4"]
    chosen = solvers(toy.draws)
    return tuple(
        toys(toy, f"fig4-{place}", [({"panel": place, "algorithm": n}, system, a) for n, a in chosen.items()])
        for place, system in settings.FIG4_SYSTEMS.items()
    )


def fig7(scale: str) -> tuple[Panel, ...]:
    """All with the common rate of the caption (`calibrate` false), and the three that calibration changes again."""
    toy = settings.TOYS[scale]["fig7"]
    plain, calibrated = (benchmarks(settings.RATES["fig7"], toy.draws, c) for c in (None, Calibration()))
    chosen = [(False, n, plain[n]) for n in ALGORITHMS] + [(True, n, calibrated[n]) for n in CALIBRATED]
    return tuple(
        toys(toy, f"fig7-{name}", [({"system": name, "calibrate": c, "algorithm": n}, system, a) for c, n, a in chosen])
        for name, system in settings.FIG7_SYSTEMS.items()
    )


def plane(scale: str, system: str) -> tuple[Panel, ...]:
    """Three clients in the plane; the schematics of the paper drawn from simulated paths."""
    toy, rate = settings.TOYS[scale]["plane"], settings.RATES["plane"]
    chosen = benchmarks(rate, toy.draws)
    chosen["fedvarp_original"] = FedVARP(rate, WeightedDraws(toy.draws), variant="original")
    if system != "toy2d":
        chosen = {"fedavg": chosen["fedavg"]}
    labelled = [({"system": system, "algorithm": n}, settings.PLANE_SYSTEMS[system], a) for n, a in chosen.items()]
    return (toys(toy, system.replace("_", "-"), labelled),)


VARIANTS = {"fedacs_uncalibrated": None, "fedacs_calibrated_at_server": Calibration(target="server")}
"""FedACS without the calibration of appendix I.2, and with the aggregate scaled instead of the local rate."""


def comparison(scale: str, system: str) -> tuple[Panel, ...]:
    """The panels of Figs. 6 and 9: all data sets in one system, and further seeds of single algorithms in it."""
    found = [(setting, panel(setting, system, setting.alpha)) for setting in settings.SETTINGS[scale]]
    further = (
        Panel(f"{whole.name}-more", tuple(e for e in whole.experiments if e.labels["algorithm"] == name), seeds)
        for setting, whole in found
        for where, name, seeds in setting.more
        if where == system
    )
    return *(whole for _, whole in found), *further


def imbalance(scale: str) -> tuple[Panel, ...]:
    """The panels of Fig. 10: the dynamic system at three levels of class imbalance."""
    return tuple(panel(setting, "dynamic", alpha) for setting in settings.SETTINGS[scale] for alpha in setting.alphas)


def panel(setting: NetworkSetting, system: str, alpha: Alpha) -> Panel:
    """The seven algorithms (and some variants) with one data set, partition and system, calibrated."""
    name = f"{setting.name.replace('_', '-')}-{system}"
    if alpha != setting.alpha:
        name += f"-alpha{alpha}".replace(".", "")
    experiments = tuple(experiment(setting, system, alpha, name, a) for name, a in algorithms(setting).items())
    return Panel(name, experiments, setting.seeds, setting.substitute)


def algorithms(setting: NetworkSetting) -> dict[str, FedAvg]:
    """The algorithms of section 6 with equal expected step lengths, and the variants."""
    found = benchmarks(setting.rate, setting.draws, Calibration(), probe_batch=setting.batch)
    found |= {name: benchmarks(setting.rate, setting.draws, c)["fedacs"] for name, c in VARIANTS.items()}
    if setting.other_rate:
        others = benchmarks(setting.other_rate, setting.draws, Calibration())
        found |= {f"{name}_other_rate": others[name] for name in ("fedacs", "fedavg", "fednova")}
    return found


def experiment(setting: NetworkSetting, system: str, alpha: Alpha, name: str, algorithm: FedAvg) -> Experiment:
    """A run with a network; its labels also say how it is measured."""
    problem = Classification(
        setting.data, setting.model, ClassPerClient() if alpha == settings.ONE_CLASS else DirichletClass(float(alpha)),
        setting.clients, Shuffled(setting.batch), mean=setting.mean, std=setting.std,
        train_samples=setting.train_samples, test_samples=setting.test_samples,
        subset_balanced=setting.train_samples > 0, evaluation_batch=1024,
    )  # fmt: skip
    labels = {"system": system, "dataset": setting.name, "dirichlet_alpha": str(alpha), "algorithm": name}
    measured: dict[str, Any] = {"tail": setting.tail, "seconds_per_sample": setting.seconds}
    if alpha in setting.targets:
        measured["target_accuracy_pct"] = setting.targets[alpha]
    clock = Rounds(setting.rounds, work=True, by_class=alpha == settings.ONE_CLASS)
    return Experiment(labels | measured, problem, _system(system, setting.clients), algorithm, clock)


def _system(name: str, clients: int) -> System:
    """The systems of appendix I.3.1; small steps for the four clients of the smoke scale."""
    found = {"static": settings.STATIC, "dynamic": settings.DYNAMIC}[name]
    if clients == 20:
        return found
    return replace(found, work=work.Halves((1, 2), (12, 16)) if name == "dynamic" else work.Linear(1, 6))
