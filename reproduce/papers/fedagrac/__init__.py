"""FedaGrac."""
