"""FedaGrac: Wu, Guo, Wang, Zhang, Qu, Zhang, Liu, "From Deterioration to Acceleration"
(arXiv 2112.09355, IEEE TPDS 2023)."""

PROPOSED = ("fedagrac",)
