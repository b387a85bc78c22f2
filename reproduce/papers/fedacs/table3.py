"""Table 3: networks and hyper-parameters, generated from the configuration that the experiments use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reproduce.declare import Artifact, no_panels
from reproduce.papers.fedacs import networks
from reproduce.problems.models import ConvNet

if TYPE_CHECKING:
    import pandas as pd

    from reproduce.report.histories import Histories

LOSSES = {"mnist": "nll", "cifar10": "cross_entropy", "cinic10": "cross_entropy"}
"""The paper's names; the negative log-likelihood of a log-softmax is the cross-entropy that the engine computes."""


def architecture(model: ConvNet) -> str:
    """The network in the letters of the paper: C convolution, R ReLU, M max-pooling, D dropout, L linear."""
    between = "RM" if model.activation else ""
    a, b = model.widths
    parts = [f"C({model.channels},{a})", f"{between}C({a},{b})"]
    for i, outputs in enumerate((*model.hidden, model.classes)):
        here = {"all": True, "first": i == 0, "last": i == len(model.hidden)}[model.dropout_at]
        before = between if i == 0 else "R" if model.activation else ""
        parts.append(f"{before}{'D' if model.dropout and here else ''}L({outputs})")
    return " - ".join(parts)


def cells(histories: Histories) -> pd.DataFrame:
    """All lines of the table, and the number of parameters of each network."""
    import pandas as pd

    rows: list[tuple[str, str, float, str]] = []
    models: list[ConvNet] = []
    for dataset, setting in networks.PAPER.items():
        model = setting.model
        assert isinstance(model, ConvNet)
        models.append(model)
        numbers: dict[str, Any] = {
            "learning_rate_eta1": setting.rate, "global_rounds": setting.rounds, "batch_size": setting.batch,
            "parameter_count": model.parameters,
        }  # fmt: skip
        words = {"network": "cnn", "architecture_code": architecture(model), "loss": LOSSES[dataset]}
        rows += [(dataset, metric, float("nan"), text) for metric, text in words.items()]
        rows += [(dataset, metric, float(number), "") for metric, number in numbers.items()]
    dropout = max(m.dropout for m in models)
    common = {
        "conv_kernel": models[0].kernel, "conv_stride": 1, "conv_padding": models[0].padding, "maxpool_kernel": 2,
        "maxpool_stride": 2, "dropout_probability": dropout,
    }  # fmt: skip
    assert all((m.kernel, m.padding) == (models[0].kernel, models[0].padding) for m in models)
    rows += [("all", metric, float(number), "") for metric, number in common.items()]
    frame = pd.DataFrame(rows, columns=["dataset", "metric", "value", "text"])
    return frame.assign(algorithm="all", seed=-1)


ARTIFACT = Artifact(
    "fedacs",
    "table3",
    "Networks and hyper-parameters",
    no_panels,
    cells,
    rows=("metric",),
    columns=("dataset",),
    notes=(
        "The letters: C(i,o) convolution, R ReLU, M max-pooling, D dropout, L(n) linear. The paper prints neither "
        "activations nor pooling for MNIST; taken literally that network is linear and has 786,480 parameters. Here it "
        "has those of the well-known example with the same widths.",
        "The paper prints two cells for the three data sets in the rows of loss, learning rate and batch size; here "
        "MNIST has the first, CIFAR-10 and CINIC-10 the second.",
        "Loss: the negative log-likelihood of the log-softmax and the cross-entropy of the outputs are one number.",
        "The paper calls the number of rounds T, which elsewhere counts local steps.",
    ),
    options={
        "metrics": (
            "network", "architecture_code", "parameter_count", "loss", "learning_rate_eta1", "global_rounds",
            "batch_size", "conv_kernel", "conv_stride", "conv_padding", "maxpool_kernel", "maxpool_stride",
            "dropout_probability",
        ),
        "decimals": {"learning_rate_eta1": 2, "dropout_probability": 1},
        "names": {
            "metric": "Item", "all": "All", "architecture_code": "Architecture", "parameter_count": "Parameters",
            "global_rounds": "Rounds", "conv_kernel": "Convolution kernel", "conv_stride": "Convolution stride",
            "conv_padding": "Convolution padding", "maxpool_kernel": "Max-pooling kernel",
            "maxpool_stride": "Max-pooling stride", "cross_entropy": "cross-entropy",
        },
    },
)  # fmt: skip
