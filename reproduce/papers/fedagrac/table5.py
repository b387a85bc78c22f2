"""Table 5: VGG-19 for CIFAR-10."""

from reproduce.papers.fedagrac.architectures import Described, grouped, table
from reproduce.papers.fedagrac.settings import VGG

LINES = grouped(Described(VGG, (3, 32, 32), stride_of_pooling=True).lines)
ARTIFACT = table(5, "VGG-19 for CIFAR-10, without normalisation", "cifar10", "vgg19", LINES, VGG.parameters)
