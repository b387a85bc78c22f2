"""Residual networks with other widths or masks: choices of fiarse."""

from __future__ import annotations

from dataclasses import dataclass

from reproduce.models.declared import ResNet, floor


@dataclass(frozen=True)
class FlooredResNet(ResNet):
    """A narrower form has floor(width * c) of c channels, one at least."""

    def kept_channels(self, channels: int) -> int:
        return floor(self.width, channels)


@dataclass(frozen=True)
class MaskedResNet(ResNet):
    """Masks may leave out every parameter, normalisation included."""

    @property
    def maskable(self) -> tuple[str, ...]:
        return tuple(self.shapes)
