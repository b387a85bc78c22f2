"""The tables and figures of FIARSE."""

from __future__ import annotations

from reproduce.declare import Artifact, Code, no_panels
from reproduce.papers.fiarse import runs

SHOWN = (*runs.MAIN, "pruning_greedy")

ARTIFACTS = (
    Artifact(
        "fiarse",
        "fig2",
        "Accuracies of the clients on their own test sets",
        runs.four_first,
        (Code("measures:clients"),),
        Code("pictures:histograms", {"algorithms": runs.MAIN}),
        stamp="Histograms: seed 0, 15 bins from the least to the greatest accuracy of a method; the statistics in "
        "the cells are of all seeds. ScaleFL is not part of this package yet.",
    ),
    Artifact(
        "fiarse",
        "fig3",
        "Global test accuracy of the submodels over the rounds",
        runs.compared,
        (Code("measures:curves", {"algorithms": SHOWN}),),
        Code("pictures:curves", {"algorithms": SHOWN}),
        columns=("dataset", "model_size", "metric"),
        labels=("target_accuracy",),
        stamp="Lines: mean over seeds; bands: one sample standard deviation. Batch statistics in evaluation, as in "
        "training. FedRolex is evaluated in the window of its last round; ScaleFL is not part of this package yet.",
    ),
    Artifact(
        "fiarse",
        "fig4",
        "Submodels of trained and of unseen sizes",
        runs.swept,
        (Code("measures:accuracy", {"scopes": ("global",), "algorithms": SHOWN, "trained": False, "average": False}),),
        Code("pictures:sweep", {"algorithms": SHOWN}),
        columns=("model_size",),
        stamp="19 sizes; markers: the four that were trained. Lines: mean over seeds; bands: one sample standard "
        "deviation. Slices keep ceil(sqrt(size) c) of c channels. ScaleFL is not part of this package yet.",
    ),
    Artifact(
        "fiarse",
        "table1",
        "Accuracy of four submodel sizes, 10 % of the clients per round",
        runs.four,
        (Code("measures:accuracy"),),
        rows=("dataset", "algorithm"),
        columns=("eval_scope", "model_size"),
        extra=Code("measures:leads"),
        notes=(
            "Rate 0.1 without momentum for all methods, as in the commands of the published code of FIARSE; the "
            "paper's grid (Table 3) is not searched.",
            "Local test sets have the clients' own label mixes. The published code draws new ones, under which local "
            "and global accuracy could hardly differ, while in the paper local is higher in all rows.",
            "Normalisation uses the statistics of the test batch (one client's samples), as in the published code.",
            "The published code does not apply the second term of eq. 3 (its mask is boolean, which PyTorch does not "
            "differentiate); FIARSE here applies it. Table 6 has both.",
            "The printed numbers: 0.04-point steps show that most are of one run and one round, not means of three "
            "seeds. FIARSE, CIFAR-10, local: 77.04 is printed, the four sizes average 77.40. HeteroFL, CIFAR-10, 1/4: "
            "72.18 is printed, 72.20 fits the average.",
            "ScaleFL and AG News (RoBERTa) are not part of this package yet.",
        ),
    ),
    Artifact(
        "fiarse",
        "table3",
        "Hyper-parameters of the paper scale",
        no_panels,
        (Code("configuration:cells"),),
        rows=("metric",),
        columns=("dataset", "option"),
        decimals=0,
        notes=(
            "The paper searches a grid and does not say how it selects; here all methods have the values of the "
            "commands in the published code, rate 0.1 and momentum 0. The other options of the grid are therefore not "
            "run.",
            "The commands of the published code make 100 local steps, which are 4 epochs; Table 3 says 5.",
            "AG News is not part of this package yet.",
        ),
    ),
    Artifact(
        "fiarse",
        "table6",
        "Ablation of FIARSE with four submodel sizes",
        runs.ablation,
        (Code("measures:accuracy", {"algorithms": ("fiarse", *runs.ABLATION)}),),
        rows=("dataset", "algorithm"),
        columns=("eval_scope", "model_size"),
        extra=Code("measures:leads"),
        notes=(
            "FIARSE (released) is what the published code computes: the mask follows the weights, but the gradient "
            "lacks the second term of eq. 3. The paper has no such row; which of the two its FIARSE rows are is not "
            "known.",
            "Pruning-greedy has one threshold for the whole model, so that only its local steps differ from FIARSE's.",
            "FIARSE (layer-wise) has a threshold for each of six groups (stem, four stages, classifier; at the reduced "
            "scale the same six), as in the published code; the paper's text says per layer.",
        ),
    ),
)
