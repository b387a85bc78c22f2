"""The printed forms of names in settings, results and claims that several papers have, where `names.pretty` does not
find it itself; those of one paper are in its `paper.yaml`."""

NAMES = {
    "scaffold": "SCAFFOLD", "moon": "MOON",
    "mnist": "MNIST", "fashion_mnist": "Fashion-MNIST", "fashion_mnist_cnn": "Fashion-MNIST",
    "svhn": "SVHN", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "cinic10": "CINIC-10",
    "tiny_imagenet": "TinyImageNet", "ag_news": "AG News",
    "iid": "IID", "noniid": "non-IID", "lr": "LR", "cnn": "CNN", "cnn2": "CNN", "mlp": "MLP", "small_mlp": "small MLP",
    "alexnet": "AlexNet", "vgg19": "VGG-19", "resnet18": "ResNet-18", "resnet34": "ResNet-34",
    "sgd": "SGD", "adamw": "AdamW", "nll": "NLL", "avg": "average", "dirichlet_alpha": "α",
}  # fmt: skip
