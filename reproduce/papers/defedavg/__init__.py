"""DeFedAvg."""
