"""Layout and text of Tables 1, 4 and 5: rounds and computation to a target accuracy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reproduce.declare import Artifact
from reproduce.experiment import Panel
from reproduce.papers.fedacs import network_cells
from reproduce.papers.fedacs.network_figures import title

if TYPE_CHECKING:
    import pandas as pd

    from reproduce.report.histories import Histories

ROUNDS, TIME = "rounds_to_target", "computation_time_to_target_s"
NOTES = (
    "Time: samples that the sampled clients went through until the target, heard or not, in seconds of the authors' "
    "GPU (2.43e-4 s per sample for MNIST and its stand-ins, 4.3e-4 s for CIFAR-10, 5.4e-4 s for CINIC-10, fitted to "
    "the FedAvg row of Table 1); the paper's seconds are measured and cannot be reproduced.",
    "The paper's dashes are dashes here; FedAU's rows are empty in the paper, whose text says that it does not settle.",
    "Learning rates are calibrated to equal expected step length per round (appendix I.2). The paper does not say "
    "whether locally or at the server, nor for which rounds: here the local rate, in every round anew.",
    "The local solver is plain SGD; T counts passes over the client's data. The paper's seconds per round contradict "
    "its own sampling rule: by (15) FedACS does about 0.35 of FedAvg's work per round; the printed times imply 0.79 to "
    "1.06.",
)
NAMES = {
    "rounds_to_target": "Rounds",
    "computation_time_to_target_s": "Time (s)",
    "rounds_to_target_ratio_printed": "Ratio of rounds to FedACS's",
    "computation_time_to_target_s_ratio_printed": "Ratio of time to FedACS's",
    "one_class_per_client": "one class per client",
    "image_blobs": "generated images",
    "fedacs_uncalibrated": "FedACS, not calibrated",
    "fedacs_calibrated_at_server": "FedACS, calibrated at the server",
    "fedacs_other_rate": "FedACS, rate 0.0001",
    "fedavg_other_rate": "FedAvg, rate 0.0001",
    "fednova_other_rate": "FedNova, rate 0.0001",
}


def artifact(
    name: str, heading: str, panels: Callable[[str], tuple[Panel, ...]], column: str, notes: tuple[str, ...]
) -> Artifact:
    """Table `name`, whose columns are the values of `column` ("dataset" or "dirichlet_alpha")."""

    def extra(histories: Histories, cells: pd.DataFrame) -> str:
        return "\n\n".join([accuracies(histories), work(cells), suspicious(name, column)])

    return Artifact(
        "fedacs",
        name,
        heading,
        panels,
        network_cells.to_target,
        rows=("algorithm",),
        columns=(column, "metric"),
        notes=(*notes, *NOTES),
        options={
            "labels": ("target_accuracy_pct",),
            "metrics": (ROUNDS, f"{ROUNDS}_ratio_printed", TIME, f"{TIME}_ratio_printed"),
            "decimals": {ROUNDS: 0, TIME: 1, f"{ROUNDS}_ratio_printed": 2, f"{TIME}_ratio_printed": 2},
            "names": NAMES,
            "extra_markdown": extra,
        },
    )


def accuracies(histories: Histories) -> str:
    """Markdown: the targets, final accuracies, and those of the classes of slow and fast clients."""
    import pandas as pd

    from reproduce.report.names import pretty

    found = pd.concat([network_cells.final_accuracy(histories), network_cells.halves(histories)], ignore_index=True)
    goals = network_cells.targets(histories)
    out = [
        "### Final accuracy (%)",
        "",
        "| Setting | Target | Algorithm | All classes | Slow clients' | Fast clients' |",
    ]
    out += ["| :--- | ---: | :--- | ---: | ---: | ---: |"]
    for labels, rows in found.groupby([*network_cells.SETTING, "algorithm"], sort=False):
        *setting, algorithm = (str(label) for label in labels)
        values = {m: r["value"] for m, r in rows.groupby("metric")}
        three = [_spread(values.get(f"{k}_accuracy")) for k in ("final", "slow_class", "fast_class")]
        goal = goals.get(tuple(setting))
        line = [title(setting[1], setting[2]), "" if goal is None else f"{goal:g}", pretty(algorithm, NAMES), *three]
        out.append("| " + " | ".join(line) + " |")
    classes = "Slow clients': mean accuracy on the classes held by the slow, badly connected first half of the clients."
    return "\n".join([*out, "", classes])


def _spread(values: Any) -> str:
    if values is None or not len(values):
        return ""
    deviation = f" ± {values.std(ddof=1):.1f}" if len(values) > 1 else ""
    return f"{values.mean():.1f}{deviation}"


def work(cells: pd.DataFrame) -> str:
    """Markdown: how much FedACS works per round, in units of FedAvg's work."""
    rows = cells[cells["metric"] == "work_per_round"]
    table = rows.groupby([*network_cells.SETTING, "algorithm"], sort=False)["value"].mean().unstack("algorithm")
    ratio = table["fedacs"] / table["fedavg"]
    lines = [
        f"- {title(str(dataset), str(alpha))}, {system} system: {value:.2f}"
        for system, dataset, alpha, value in ratio.reset_index().itertuples(index=False, name=None)
    ]
    return "\n".join(["### Work per round of FedACS, relative to FedAvg", "", *lines])


def suspicious(name: str, column: str) -> str:
    """Markdown: the ratios that the paper prints and that do not follow from the numbers beside them."""
    from reproduce.report.names import pretty
    from reproduce.report.tables import reported

    printed = reported("fedacs", name)
    assert printed is not None
    values = {(r[column], r["algorithm"], r["metric"]): r for r in printed.to_dict("records")}
    lines = []
    for (setting, algorithm, metric), row in values.items():
        if not metric.endswith("_ratio_printed") or row["paper"] != row["paper"]:
            continue
        plain = metric.removesuffix("_ratio_printed")
        ratio = values[setting, algorithm, plain]["paper"] / values[setting, "fedacs", plain]["paper"]
        if abs(ratio - row["paper"]) > 0.0051:
            where = pretty(setting) if column == "dataset" else f"α = {setting}"
            what = "rounds" if plain == ROUNDS else "time"
            verdict = "truncated" if int(ratio * 100) / 100 == row["paper"] else "wrong"
            lines.append(
                f"- {pretty(algorithm)}, {where}, {what}: printed {row['paper_text']}, the numbers give "
                f"{ratio:.3f} ({verdict})"
            )
    head = "### Ratios printed in the paper that its own numbers do not give"
    return "\n".join([head, "", *(lines or ["- none"])])
