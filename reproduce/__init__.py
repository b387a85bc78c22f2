"""Reproduction of five federated-learning papers: one engine, from declaration to verdict."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reproduce.api import train

__all__ = ["train"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`reproduce.train`, when it is asked for: importing `reproduce` reads neither torch nor pandas."""
    if name == "train":
        from reproduce.api import train

        return train
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
