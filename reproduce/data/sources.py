"""The data sets of the papers: their official sizes, files, checksums, licences and citations.

A set can lie in the data folder in one of several layouts; the first one that is complete is read. A file is accepted
if its checksum is in the table here, or equals the one in the side file `<file>.sha256` that `data get` writes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from reproduce.declare.values import Sample
from reproduce.errors import unknown

VOCABULARY = 30_522
"""Token ids of texts, as many as BERT has."""
CIFAR_PAPER = "Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009"


@dataclass(frozen=True)
class File:
    """A file, or a tree of files, relative to the data folder; its SHA-256, if it is known."""

    path: str
    sha256: str = ""


@dataclass(frozen=True)
class Files:
    """Files that together hold a data set, and the function of `formats` that reads them."""

    reader: str
    files: tuple[File, ...]


@dataclass(frozen=True)
class Source:
    """A data set's files and properties; without `layouts` it is embedded in the package.

    shape: of one sample (H, W, C), (D,), or (length,) of tokens.
    """

    name: str
    kind: Literal["image", "table", "text"]
    shape: tuple[int, ...]
    classes: int
    train: int
    test: int
    papers: tuple[str, ...]
    licence: str
    citation: str
    layouts: tuple[Files, ...] = ()

    @property
    def embedded(self) -> bool:
        return not self.layouts

    @property
    def sizes(self) -> tuple[int, int]:
        """Training and test samples."""
        return self.train, self.test

    @property
    def sample(self) -> Sample:
        """Shape and type of one sample, as models see it."""
        if self.kind == "image":
            return Sample((self.shape[-1], *self.shape[:-1]))
        return Sample(self.shape, "int64", VOCABULARY) if self.kind == "text" else Sample(self.shape)


def _layout(reader: str, known: Mapping[str, str]) -> Files:
    """Files and their SHA-256; "" of trees of files, and of a file of which only a side file tells it."""
    return Files(reader, tuple(File(path, sha256) for path, sha256 in known.items()))


def _archive(name: str, sha256: str = "") -> Files:
    return _layout("read_npz", {f"{name}/{name}.npz": sha256})


def _torchvision(folder: str) -> Files:
    return _layout("read_torchvision", {folder: ""})


_ALL = (
    Source(
        "mnist", "image", (28, 28, 1), 10, 60_000, 10_000, ("fedacs", "dynamic_init"),
        "CC BY-SA 3.0", "LeCun, Bottou, Bengio, Haffner, Proc. IEEE 86 (1998)",
        (
            _archive("mnist", "3d13de1be2e392f184cd8e14b697784d5d6f6f6abb6f684eed76ea371c125fbd"),
            _torchvision("MNIST/raw"),
        ),
    ),
    Source(
        "fashion_mnist", "image", (28, 28, 1), 10, 60_000, 10_000, ("dynamic_init", "fedagrac", "defedavg"),
        "MIT", "Xiao, Rasul, Vollgraf, arXiv:1708.07747",
        (
            _archive("fashion_mnist", "05b2df4f66a708964af2122a7217c46254eb894bb32b808ff676046ae70a9ebf"),
            _torchvision("FashionMNIST/raw"),
        ),
    ),
    Source(
        "cifar10", "image", (32, 32, 3), 10, 50_000, 10_000,
        ("fedacs", "dynamic_init", "fedagrac", "fiarse", "defedavg"),
        "none stated by the authors", CIFAR_PAPER,
        (
            _archive("cifar10", "cc6f0cf8365b1b56824b64fb8d9e0ff72916bc3bf05f4986d64b9f49f5d166d6"),
            _torchvision("cifar-10-batches-py"),
        ),
    ),
    Source(
        "cifar100", "image", (32, 32, 3), 100, 50_000, 10_000, ("dynamic_init", "fiarse"),
        "none stated by the authors", CIFAR_PAPER,
        (
            _archive("cifar100", "a5892d2d2a07dd08c50249906e710ef118d9a21fc87e63e025fb98287fc32c03"),
            _torchvision("cifar-100-python"),
        ),
    ),
    Source(
        "a9a", "table", (123,), 2, 32_561, 16_281, ("fedagrac",),
        "CC BY 4.0 (UCI Adult, LIBSVM version)", "Platt 1998; Chang and Lin, LIBSVM, ACM TIST 2 (2011)",
        (_layout("read_libsvm", {
            "a9a/a9a.xz": "cea7c541c650d123ac692cb8e2244d1c2e82f67c75cbfeccdb25a4b6fc88ef72",
            "a9a/a9a.t.xz": "11dcdf09d2c3502c1e972986b8d8022b5adf895311e41e37e06e26ebc1ef45f3",
        }), _layout("read_libsvm", {
            "a9a/a9a": "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
            "a9a/a9a.t": "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9",
        }),),
    ),
    Source(
        "ag_news", "text", (64,), 4, 120_000, 7_600, ("dynamic_init", "fiarse"),
        "research, non-commercial use (A. Gulli's corpus)", "Zhang, Zhao, LeCun, NIPS 2015",
        (_layout("read_news", {
            "ag_news/train.csv": "76a0a2d2f92b286371fe4d4044640910a04a803fdd2538e0f3f29a5c6f6b672e",
            "ag_news/test.csv": "521465c2428ed7f02f8d6db6ffdd4b5447c1c701962353eb2c40d548c3c85699",
        }),),
    ),
    Source(
        "ag_news_subset", "text", (64,), 4, 15_171, 7_600, ("dynamic_init", "fiarse"),
        "research, non-commercial use (A. Gulli's corpus)", "Zhang, Zhao, LeCun, NIPS 2015; an eighth of the texts",
        (_layout("read_news", {
            "ag_news/train_subset.csv.xz": "ec89a3ce7f82038d8e2c844118dc29ff7ef04ec862139a950a78ecd80d3c109e",
            "ag_news/test.csv.xz": "b797f846079c25565eab8e6f9e407ee94f385662d04fd9d0c3b9f6008d0d022a",
        }),),
    ),
    Source(
        "svhn", "image", (32, 32, 3), 10, 73_257, 26_032, ("dynamic_init",),
        "non-commercial use", "Netzer, Wang, Coates, Bissacco, Wu, Ng, NIPS workshop 2011",
        (_layout("read_svhn", {
            "svhn/train_32x32.mat": "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
            "svhn/test_32x32.mat": "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
        }), _layout("read_svhn", {
            "train_32x32.mat": "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
            "test_32x32.mat": "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
        }),),
    ),
    Source(
        "cinic10", "image", (32, 32, 3), 10, 90_000, 90_000, ("fedacs",),
        "MIT (images: CIFAR-10 and ImageNet terms)", "Darlow, Crowley, Antoniou, Storkey, arXiv:1810.03505",
        (
            _archive("cinic10"),
            _layout("read_cinic10", dict.fromkeys(("cinic10/train", "cinic10/test"), "")),
        ),
    ),
    Source(
        "tiny_imagenet", "image", (64, 64, 3), 200, 100_000, 10_000, ("dynamic_init",),
        "ImageNet terms: non-commercial research",
        "Le and Yang, Tiny ImageNet Visual Recognition Challenge, CS231N 2015",
        (
            _archive("tiny_imagenet"),
            _layout("read_tiny_imagenet", dict.fromkeys(("tiny_imagenet/train", "tiny_imagenet/val"), "")),
        ),
    ),
    Source(
        "digits", "image", (8, 8, 1), 10, 1_437, 360, (),
        "CC BY 4.0 (UCI; in scikit-learn)", "Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI 1998",
    ),
    Source(
        "gaussian", "table", (20,), 10, 4_000, 2_000, (),
        "generated by this package", "reproduce.data.embedded",
    ),
)  # fmt: skip

SOURCES: dict[str, Source] = {source.name: source for source in _ALL}


def find_source(name: str) -> Source:
    """The record of a data set; raises UserError with the nearest names."""
    if name not in SOURCES:
        raise unknown("data set", name, SOURCES)
    return SOURCES[name]
