"""Compiled layers: C sources, how they are built, and what they serve.

`library.py` builds and loads them, `compiled.py` runs chains of layers (convnet.c, channels.c) and softmax
regression with few parameters (softmax.c). The permutations of batches are shuffle.c.
"""
