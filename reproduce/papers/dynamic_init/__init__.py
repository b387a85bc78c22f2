"""Dynamic initial models: Chang, Han, Hosseinalipour, Chiang, Brinton, "Federated Learning with
Dynamic Client Arrival and Departure" (arXiv 2410.05662)."""

PROPOSED = ("proposed",)
