"""Table 4: rounds and computation to a target accuracy in the static system."""

from __future__ import annotations

from reproduce.experiment import Panel
from reproduce.papers.fedacs import network_tables, networks


def panels(scale: str) -> tuple[Panel, ...]:
    return networks.comparison(scale, "static")


ARTIFACT = network_tables.artifact(
    "table4",
    "Rounds and computation time to a target accuracy, static system",
    panels,
    "dataset",
    (
        "The row of OS has four numbers for six cells; their ratios place them at CIFAR-10 and CINIC-10, so that MNIST "
        "has the dashes. 72 rounds with ratio 1.06 stand for OS both here and in Table 1, for another data set.",
        "Appendix I.5.1 says that the others need 64 to 118 % more rounds on CIFAR-10; CA-FedAvg needs 49 %.",
        "The paper does not pair step counts with links; here client m has T = 2 m + 1 and success 0.60 + 0.02 m.",
    ),
)
