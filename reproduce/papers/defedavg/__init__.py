"""DeFedAvg: Wang, Li, Jin, Zhang, "Achieving Linear Speedup in Asynchronous Federated Learning" (arXiv 2402.11198)."""

PROPOSED = ("defedavg_iid", "defedavg_niid")
