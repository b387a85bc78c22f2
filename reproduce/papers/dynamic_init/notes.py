"""What tables and figures say below their numbers: choices, sources, copied cells."""

from reproduce.declare.artifact import Doubt

WINDOW = (
    "The window is the one that reproduces the printed numbers: the last accuracy of the session before the "
    "transition, on that session's labels, and the first four rounds after it. The paper says 'initial rounds'; the "
    "five entries start one too early because the curve begins with the random model. The CSV also has the first 5 "
    "and the first 10 rounds of the session itself."
)
SESSIONS = (
    "First and second transition are the starts of sessions 3 and 4 (counted from 0, one pilot session): at the start "
    "of session 2 there is one stored model, and Proposed, Previous and Average coincide (with MOON "
    "nearly)."
)
FOURTH = "Second and fourth transition are the starts of sessions 4 and 6 (from 0, one pilot session), of one group."
MISLABELLED = (
    "The paper heads its columns first and second transition, but its numbers behave like those of sessions 4 and 6, "
    "the second and fourth, as in Table 5: they stand beside those. The CSV also has sessions 3 and 4 as "
    "accuracy_at_session_3_and_4_pct."
)
YOUNG = (
    "Transitions are those to the first sessions whose clients have been there before: sessions 3, 4, 5 with two "
    "groups of clients in turns (partial overlap, half), 4, 5, 6 with three (two shards, distinct). The paper's "
    "schedule is not known; its columns are not the same sessions for all algorithms, so that the order within a row "
    "can be compared, not the numbers."
)
TEN = "The numbers are means of the session's first ten rounds; the paper does not say of how many."
SEEDS = "The paper has one run of each setting, this table a mean over seeds."
ONCE = (
    "SCAFFOLD is what the authors' code runs: no control variate is applied, and the server's step is the local "
    "learning rate."
)
SCAFFOLD = (
    "SCAFFOLD is what the authors' code runs: no control variate is applied, and the server's step is the local "
    "learning rate. Continuous replaces the local algorithm and depends on it through the learning rate only; it was "
    "trained once per learning rate, and FedProx and FedACG repeat the numbers of FedAvg, as in print on MNIST and "
    "Fashion-MNIST (on the other data the printed rows of Continuous differ)."
)
SHARED = (
    "SCAFFOLD is what the authors' code runs: no control variate is applied, and the server's step is the local "
    "learning rate. Continuous replaces the local algorithm and depends on it through the learning rate only: it was "
    "trained once per learning rate, and algorithms with equal rates repeat its numbers."
)
LINEAR = (
    "The paper's MLP for MNIST and Fashion-MNIST is one linear layer of 7,850 parameters. With overlap 0.2 the groups "
    "hold the labels 0-4 and 4-8; label 9 is not used."
)
MLP = "The paper's MLP for MNIST and Fashion-MNIST is one linear layer of 7,850 parameters."
NORM = "Running statistics of normalisation layers are averaged like weights, by the server and by the schemes."
IMAGENET = (
    "At paper scale the ResNets start from ImageNet's weights, but for the classifier and the projection before it, as "
    "in the authors' code; the paper does not say so."
)
TEXTS = (
    "Texts are 64 token ids of 30,522: BERT's word pieces at paper scale, as in the paper, at smaller ones a hash of "
    "lower-case words. At the reduced scale FedProx and SCAFFOLD have a fifth of FedAvg's and FedACG's rate (FedProx "
    "diverges from 2 on): algorithms are not compared at equal rates."
)
EIGHTY = (
    "Overlap 0.6 is run as 0.8, the groups holding the classes 0-2 and 1-3: at 0.6 the first group would be that of "
    "overlap 0, and Tables 7, 15 and 16 of the paper say 0.8."
)
BASELINE = "The header names the previous model as the baseline, the text the average: both were run."
UNSEEN = (
    "The paper does not say which labels are unseen. Here the sessions are those of groups A B A B A C, A with the "
    "labels 0-3, B 4-7, C 8-9, all of the same size, Dirichlet parameter 0.7 inside a group."
)
SCALES = (
    "The paper does not say how the labels are distributed: FedAvg's SVHN row at R = 100 equals Table 9's with half "
    "of the labels, FedProx's Table 8's with partial overlap, so that these are run, for CIFAR-100 too."
)
PILOT = (
    "The random pilot is what the model factory returns: stored weights where the model starts from some, and a "
    "random classifier. The paper calls partial overlap slight overlap here."
)
MACHINE = (
    "User and system seconds of the processor for training and evaluation, of all schemes of a setting and one seed. "
    "What runs had in common was computed once and is divided among them. The paper's are of another machine and "
    "include loading; ours are all of one processor, that of most results here, which the provenance names: results of "
    "another one, and those from before this was recorded, have no number. Memory is the most that a process had; at "
    "paper scale a process trains one algorithm, at smaller scales all of a setting."
)
READINGS = (
    "Not a table of the paper. The setting of Table 3 with disjoint labels and Dirichlet parameter 0.3, one thing "
    "exchanged at a time; all rows of a data set (MOON, with another network, by itself) have the same partition, "
    "initial model and batches. With control variates SCAFFOLD has FedAvg's learning rate."
)
CURVES = (
    "Tested on the labels of the session's clients. Dotted lines: a session begins. The paper does not name the "
    "settings of its panels; these are from its tables."
)
MIXTURES = (
    "Top: which group trains, and the weight of each stored model in the initial model of a later session (FedAvg, "
    "mean over seeds; weights below 0.01 are not drawn)."
)

COPIED8 = (
    Doubt(
        {"label_distribution": ("partial_overlap",), "dataset": ("mnist",), "algorithm": ("fedprox",)},
        "FedProx, partial overlap, MNIST: the nine numbers are Table 9's of FedProx, half, CIFAR-100; the other "
        "algorithms have 91 to 94 here.",
    ),
    Doubt(
        {
            "label_distribution": ("two_shard",),
            "dataset": ("mnist", "fashion_mnist"),
            "algorithm": ("fedavg", "fedprox"),
        },
        "FedAvg and FedProx, two shards: the rows of MNIST and Fashion-MNIST are equal in all 18 numbers.",
    ),
)
COPIED10 = (
    Doubt(
        {"label_distribution": ("partial_overlap",)},
        "Partial overlap: the six numbers are Table 8's of FedAvg on SVHN; 92 % of 120 classes are not plausible.",
    ),
)
COPIED11 = (
    Doubt(
        {"algorithm": ("fedavg",), "transition": ("second", "third")},
        "FedAvg, second and third: FedProx's first and second. One sequence of sessions, read with another offset for "
        "each algorithm.",
    ),
    Doubt(
        {"algorithm": ("fedprox",), "transition": ("second", "third")},
        "FedProx, second and third: MOON's first and second (Fashion-MNIST within 0.01).",
    ),
)
