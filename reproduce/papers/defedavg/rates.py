"""The learning rates of Table II, and the variants that we add to them.

A rate pair is (global, local); AsySG has no local and FAVANO no global rate (None).
"""

from __future__ import annotations

from collections.abc import Mapping

Pair = tuple[float | None, float | None]

PARTICIPANTS = (10, 20, 40, 80)
GROUPS: Mapping[str, tuple[str, ...]] = {
    "iid": ("fedavg", "favano", "asysg", "defedavg_iid"),
    "noniid": ("fedavg", "favano", "fedbuff", "defedavg_niid"),
}
PROPOSED: Mapping[str, str] = {"iid": "defedavg_iid", "noniid": "defedavg_niid"}

_LOW, _MID, _OLD = (1.0, 0.01), (0.1, 0.05), (1.0, 0.10)
_FEW: Mapping[tuple[str, str, str], tuple[Pair, Pair, Pair, Pair]] = {
    ("fashion_mnist", "iid", "fedavg"): (_OLD, _LOW, _LOW, _LOW),
    ("fashion_mnist", "iid", "favano"): ((None, 0.10),) * 4,
    ("fashion_mnist", "iid", "asysg"): ((0.1, None),) * 4,
    ("fashion_mnist", "iid", "defedavg_iid"): (_MID, _MID, _MID, _OLD),
    ("fashion_mnist", "noniid", "fedavg"): (_MID, _MID, _LOW, (0.1, 0.10)),
    ("fashion_mnist", "noniid", "favano"): ((None, 0.05),) * 4,
    ("fashion_mnist", "noniid", "fedbuff"): ((0.1, 0.005), (0.1, 0.01), (0.1, 0.01), _MID),
    ("fashion_mnist", "noniid", "defedavg_niid"): (_MID,) * 4,
    ("cifar10", "iid", "fedavg"): (_LOW,) * 4,
    ("cifar10", "iid", "favano"): ((None, 0.05),) * 4,
    ("cifar10", "iid", "asysg"): ((0.1, None),) * 4,
    ("cifar10", "iid", "defedavg_iid"): ((1.0, 0.05), (0.1, 0.01), _MID, _LOW),
    ("cifar10", "noniid", "fedavg"): (_LOW, _LOW, _MID, _MID),
    ("cifar10", "noniid", "favano"): ((None, 0.05),) * 4,
    ("cifar10", "noniid", "fedbuff"): ((0.1, 0.01), (0.1, 0.01), (0.1, 0.01), _MID),
    ("cifar10", "noniid", "defedavg_niid"): (_MID, (0.1, 0.10), _MID, _MID),
}

PRINTED: Mapping[tuple[str, str, str, int], Pair] = {
    (*key, n): pair for key, pairs in _FEW.items() for n, pair in zip(PARTICIPANTS, pairs, strict=True)
} | {(dataset, d, PROPOSED[d], 5): _MID for dataset in ("fashion_mnist", "cifar10") for d in GROUPS}
"""Table II: (dataset, distribution, algorithm, n) -> rates as printed; n = 5 is used in Fig. 6 only."""

EXTRA: Mapping[tuple[str, str, str, int], Pair] = {
    **{("fashion_mnist", "iid", "fedavg_lr_n10", n): _OLD for n in (20, 40, 80)},
    ("cifar10", "iid", "defedavg_iid_corrected", 10): _MID,
    ("cifar10", "iid", "defedavg_iid_corrected", 20): _MID,
    ("cifar10", "noniid", "defedavg_niid_corrected", 20): _MID,
}
"""Runs beside the printed ones: FedAvg with the rates of n = 10, which Table II gives up for n >= 20 although they are
in its grid; and (0.1, 0.05) where the printed rates do not fit the printed times."""

REDUCED: Mapping[str, Pair] = {
    "fedavg": (1.0, 0.1), "favano": (None, 0.1), "asysg": (0.1, None), "defedavg_iid": (0.1, 0.1),
    "fedbuff": (0.1, 0.1), "defedavg_niid": (0.1, 0.1), "defedavg_niid_hold": (0.1, 0.1),
}  # fmt: skip
"""Rates of the small network, for all n; non-IID FedAvg has (0.1, 0.1), the same as DeFedAvg-nIID."""
SMOKE: Mapping[str, Pair] = {
    "fedavg": (0.5, 0.1), "favano": (None, 0.1), "asysg": (0.5, None), "defedavg_iid": (0.5, 0.1),
    "fedbuff": (0.5, 0.1), "defedavg_niid": (0.5, 0.1), "defedavg_niid_hold": (0.5, 0.1),
}  # fmt: skip


def printed(dataset: str, distribution: str, n: int) -> dict[str, Pair]:
    """Algorithm -> rates of a column of Table II."""
    return {a: PRINTED[dataset, distribution, a, n] for a in GROUPS[distribution]}


def beside(dataset: str, distribution: str, n: int) -> dict[str, Pair]:
    """Algorithm -> rates of the variants in a column of Table I."""
    return {a: pair for (s, d, a, m), pair in EXTRA.items() if (s, d, m) == (dataset, distribution, n)}


def small(scale: str, distribution: str) -> dict[str, Pair]:
    """Algorithm -> rates at the scales below the paper's; the variant `hold` of DeFedAvg-nIID comes along."""
    table = SMOKE if scale == "smoke" else REDUCED
    names = GROUPS[distribution] + (("defedavg_niid_hold",) if distribution == "noniid" else ())
    chosen = {a: table[a] for a in names}
    if scale == "reduced" and distribution == "noniid":
        chosen["fedavg"] = (0.1, 0.1)
    return chosen
