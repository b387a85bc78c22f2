"""Table 3: the convolutional network for Fashion-MNIST."""

from reproduce.papers.fedagrac.architectures import Described, table
from reproduce.papers.fedagrac.settings import CNN2

LINES = Described(CNN2, (1, 28, 28), stride_of_pooling=False).lines
ARTIFACT = table(3, "Convolutional network for Fashion-MNIST", "fashion_mnist", "cnn2", LINES, CNN2.parameters)
