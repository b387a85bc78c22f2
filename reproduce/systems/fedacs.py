"""The systems of FedACS: static and dynamic (App. I.3.1), the three of Fig. 4, and the toy plane of its schematics."""

from __future__ import annotations

from reproduce.systems import System, link, work


def static(unit: work.Unit = "epochs", pairing: link.Pairing = "same") -> System:
    """T_m = 1, 3, 5, ... and success probabilities 0.60, 0.62, ...; 20 clients or fewer."""
    return System(work=work.Linear(1, 2, unit), link=link.StaticLink(0.60, 0.02, pairing))


def dynamic(unit: work.Unit = "epochs") -> System:
    """Slow clients with bad links in the first half, fast ones with good links in the second, redrawn every round."""
    return System(work=work.Halves(unit=unit), link=link.Halves())


def figure4(panel: str, pairing: link.Pairing = "same") -> System:
    """The panels of Fig. 4, 30 clients, work in steps: 'homogeneous', 'heterogeneous' (static), 'time-varying'."""
    panels = {
        "homogeneous": System(work=work.Steps(15), link=link.Same(0.2)),
        "heterogeneous": System(work=work.Linear(1, 1, "steps"), link=link.StaticLink(0.70, 0.01, pairing)),
        "time-varying": System(work=work.Halves(unit="steps"), link=link.Halves((0.2, 0.4), (0.0, 0.2))),
    }
    if panel not in panels:
        raise ValueError(f"Fig. 4 of FedACS has the panels {', '.join(panels)}; there is no '{panel}'")
    return panels[panel]


def plane(equal_links: bool = False, equal_work: bool = False) -> System:
    """Three clients in the plane (schematics of FedACS): 4, 5, 12 steps; success probabilities 0.95, 0.40, 0.60.

    `equal_links` loses nothing (computation bias alone), `equal_work` gives 5 steps to all (communication bias alone).
    """
    return System(
        work=work.Steps(5) if equal_work else work.PerClient((4, 5, 12)),
        link=link.Reliable() if equal_links else link.PerClient((0.05, 0.60, 0.40)),
    )
