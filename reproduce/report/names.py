"""How the names in settings, results and claims are written in print."""

from __future__ import annotations

import re
from collections.abc import Mapping

from reproduce.report import named

NAMES = {
    "fedavg": "FedAvg", "fedprox": "FedProx", "scaffold": "SCAFFOLD", "fedacg": "FedACG", "moon": "MOON",
    "favano": "FAVANO", "asysg": "AsySG", "fedbuff": "FedBuff", "defedavg_iid": "DeFedAvg-IID",
    "defedavg_niid": "DeFedAvg-nIID", "fedacs": "FedACS", "ca_fedavg": "CA-FedAvg", "fedvarp": "FedVARP",
    "fednova": "FedNova", "fedau": "FedAU", "os": "OS", "fedagrac": "FedaGrac", "fedlin": "FedLin",
    "fedagrac_avg": "FedaGrac-avg", "fedagrac_first": "FedaGrac-first", "fedagrac_reverse": "FedaGrac-reverse",
    "heterofl": "HeteroFL", "fedrolex": "FedRolex", "scalefl": "ScaleFL", "fiarse": "FIARSE", "fjord": "FjORD",
    "fiarse_layerwise": "FIARSE (layer-wise)", "fiarse_released": "FIARSE (released)",
    "fiarse_sharding": "FIARSE (sharding-wise)", "fiarse_held": "FIARSE (counted by mask)",
    "scalefl_alone": "ScaleFL (weight 0)", "heterofl_fresh": "HeteroFL (fresh tests)",
    "fiarse_fresh": "FIARSE (fresh tests)", "heterofl_steps": "HeteroFL (fewer steps)",
    "fiarse_steps": "FIARSE (fewer steps)", "fiarse_by_layer": "FIARSE (per layer)",
    "fedrolex_first": "FedRolex (first window)", "heterofl_stepped": "HeteroFL (falling rate)",
    "fiarse_masked": "FIARSE (masked norms)", "scalefl_whole": "ScaleFL (all exits)",
    "heterofl_floored": "HeteroFL (widths down)", "heterofl_augmented": "HeteroFL (crops)",
    "heterofl_cropped": "HeteroFL (crops, tests too)", "fiarse_augmented": "FIARSE (crops)",
    "fiarse_cropped": "FIARSE (crops, tests too)",
    "pruning_greedy": "Pruning-greedy",
    "mnist": "MNIST", "fashion_mnist": "Fashion-MNIST", "fashion_mnist_cnn": "Fashion-MNIST",
    "svhn": "SVHN", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "cinic10": "CINIC-10",
    "tiny_imagenet": "TinyImageNet", "ag_news": "AG News",
    "iid": "IID", "noniid": "non-IID", "dp1": "DP1", "dp2": "DP2", "lr": "LR", "cnn": "CNN", "cnn2": "CNN",
    "mlp": "MLP", "small_mlp": "small MLP", "alexnet": "AlexNet", "vgg19": "VGG-19", "resnet18": "ResNet-18",
    "resnet34": "ResNet-34",
    "rpi4": "Raspberry Pi 4", "jetson_nano": "Jetson Nano", "gtx1080ti": "GTX 1080 Ti", "gtx2080ti": "GTX 2080 Ti",
    "rtx3080ti": "RTX 3080 Ti", "sgd": "SGD", "adamw": "AdamW", "nll": "NLL", "avg": "average",
    "label_overlap": "Overlap", "dirichlet_alpha": "α", "init_scheme": "Initialisation", "num_clients": "Clients",
    "model_size": "Size",
    "n": "n", "k_mean": "Mean K", "k_variance": "Var K", "k_mode": "Mode", "step_async": "Step asynchronism",
    "non_iid": "Non-IID", "eval_scope": "Evaluation", "cpu_time_seconds": "CPU time (s)",
    "max_memory_gb": "Memory (GB)",
    "computation_time_to_target_s": "Computation time (s)", "learning_rate_eta1": "Learning rate η",
}  # fmt: skip
UNITS = (("_pct", " (%)"), ("_percent", " (%)"), ("_seconds", " (s)"), ("_s", " (s)"), ("_gb", " (GB)"))


def pretty(name: object, names: Mapping[str, str] | None = None) -> str:
    """A value of a setting, an algorithm or a metric as it is printed; `names` comes before the common spellings."""
    text = format(name, ".10g") if isinstance(name, float) else str(name)
    if names and text in names:
        return names[text]
    if text in NAMES:
        return NAMES[text]
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)+", text):
        return named.titles().get(text, text) if text.islower() else text
    for ending, unit in UNITS:
        if text.endswith(ending):
            text = text.removesuffix(ending) + unit
            break
    return text.replace("_", " ")


def heading(column: str, names: Mapping[str, str] | None = None) -> str:
    """The name of a column in print, with a capital if it is a word and not set in `names`."""
    text = pretty(column, names)
    return text[:1].upper() + text[1:] if len(text) > 1 and column not in (names or {}) else text
