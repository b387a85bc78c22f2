"""Reproduction of five federated-learning papers: one engine, from declaration to verdict."""

__version__ = "0.1.0"
