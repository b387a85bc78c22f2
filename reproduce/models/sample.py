"""What one sample looks like to a model."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Sample(NamedTuple):
    """shape: (channels, height, width) of an image, (features,) of a table, (tokens,) of a text.

    dtype: "float" (of the arithmetic's precision) or "int64" (token ids). vocabulary: token ids are below it.
    """

    shape: tuple[int, ...]
    dtype: Literal["float", "int64"] = "float"
    vocabulary: int = 0

    def padded(self, pixels: int) -> Sample:
        """An image with so many pixels added on each side."""
        channels, height, width = self.shape
        return self._replace(shape=(channels, height + 2 * pixels, width + 2 * pixels))
