"""Table 4: AlexNet for CIFAR-10."""

from reproduce.papers.fedagrac.architectures import Described, table
from reproduce.papers.fedagrac.settings import ALEXNET

LINES = Described(ALEXNET, (3, 32, 32), stride_of_pooling=True).lines
ARTIFACT = table(4, "AlexNet for CIFAR-10", "cifar10", "alexnet", LINES, ALEXNET.parameters)
