"""FIARSE: Wu, X. Wang, Y. Wang, Liu, Su, Gao, "Model-Heterogeneous Federated Learning via Importance-Aware Submodel
Extraction" (arXiv 2407.19389, NeurIPS 2024)."""

PROPOSED = ("fiarse",)
