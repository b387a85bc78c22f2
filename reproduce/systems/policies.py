"""The policies of the event clock by the names of their algorithms."""

from reproduce.systems.arrivals import AsySG, DeFedAvgIID, FedBuff
from reproduce.systems.rounds import DeFedAvgNIID, Favano, FedAvg

__all__ = ["AsySG", "DeFedAvgIID", "DeFedAvgNIID", "Favano", "FedAvg", "FedBuff"]
