"""FedACS."""
