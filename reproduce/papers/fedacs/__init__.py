"""FedACS: Weng, Ren, Xiao, Skoglund, "Heterogeneity-Aware Client Sampling" (arXiv 2505.11304 v1)."""

PROPOSED = ("fedacs",)
