"""The registry of looks: series that meet in a picture can be told apart, also in grey and with colour-blind eyes.

The rule: two series of one declared picture have different markers; colours at least `SEEN` apart for normal eyes; and
for every kind of eyes, and in greyscale, either colours at least `APART` apart or different line styles.
"""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from reproduce.declare.artifact import Artifact, Curves, Sheet
from reproduce.declare.paper import artifacts
from reproduce.report import styles

SEEN, APART = 17.0, 12.0
# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
EYES = {
    "normal": np.eye(3),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
    "greyscale": np.tile([0.2126, 0.7152, 0.0722], (3, 1)),
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def lab(color: str, eyes: str) -> np.ndarray:
    """CIELAB (D65) of a colour as these eyes see it."""
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    x, y, z = XYZ @ np.clip(EYES[eyes] @ linear, 0, 1) / np.array([0.95047, 1.0, 1.08883])
    fx, fy, fz = (t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in (x, y, z))
    return np.array([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)])


def distance(a: str, b: str, eyes: str) -> float:
    return float(np.linalg.norm(lab(a, eyes) - lab(b, eyes)))


def meetings() -> list[tuple[str, tuple[str, ...]]]:
    """(name, series) of every declared picture: what its runs are called, as far as it draws them."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for artifact in artifacts():
        if artifact.kind == "figure":
            for scale in ("paper", "reduced", "smoke"):
                for label in ("algorithm", "init_scheme"):
                    found.setdefault(artifact.id, set()).update(_together(artifact, scale, label))
    return [(name, series) for name, groups in found.items() for series in sorted(groups) if len(series) > 1]


def _together(artifact: Artifact, scale: str, label: str) -> set[tuple[str, ...]]:
    """The series that share an axes of a sheet, or the whole picture where its axes are not declared."""
    draw = artifact.draw
    axes, only = (draw.axes, draw.only) if isinstance(draw, Sheet) else ((), {})
    order = draw.order if isinstance(draw, Curves) else ()
    groups: dict[tuple[object, ...], list[str]] = {}
    for e in (e for panel in artifact.panels(scale) for e in panel.experiments if label in e.labels):
        if all(e.labels.get(k) in values for k, values in only.items()):
            name = str(e.labels[label])
            if (not order or name in order) and name in styles.known():
                groups.setdefault(tuple(e.labels[k] for k in axes), []).append(name)
    return {tuple(sorted(set(names))) for names in groups.values()}


SETUP = ("fedavg", "favano", "asysg", "fedbuff", "defedavg_iid", "defedavg_niid")


@pytest.mark.parametrize(("picture", "series"), [*meetings(), ("defedavg/setup", SETUP)])
def test_series_of_one_picture_can_be_told_apart(picture: str, series: tuple[str, ...]) -> None:
    found = styles.of(series)
    for a, b in combinations(series, 2):
        one, two = found[a], found[b]
        if one == two:  # one algorithm under two names, as `test_one_look_is_one_series` has it
            continue
        assert one.marker != two.marker, (a, b)
        assert distance(one.color, two.color, "normal") >= SEEN, (a, b)
        for eyes in EYES:
            apart = distance(one.color, two.color, eyes)
            assert apart >= APART or one.dashes != two.dashes, (a, b, eyes, apart)


def test_every_series_is_registered_or_a_variant_of_one_that_is() -> None:
    """An algorithm without a look would change its look from figure to figure."""
    for artifact in artifacts():
        for panel in artifact.panels("reduced") if artifact.kind == "figure" else ():
            for e in panel.experiments:
                name = str(e.labels.get("algorithm", "fedavg")).removeprefix("tuned_")
                assert styles.base(name), f"{artifact.id}: {name} has no look: a series of its paper"
                assert styles.base(str(e.labels.get("init_scheme", "proposed")))


def test_variants_have_the_colour_of_their_algorithm_and_a_line_of_their_own() -> None:
    found = styles.of(["fedavg", "fedavg_rate", "favano", "favano_parallel", "unheard"])
    assert found["fedavg_rate"].color == found["fedavg"].color
    assert found["favano_parallel"].color == found["favano"].color
    assert len({look.marker for look in found.values()}) == len(found)


@pytest.mark.parametrize("count", [2, 5, 9, 40])
@pytest.mark.parametrize("eyes", list(EYES))
def test_colours_in_order_are_in_order_for_all_eyes(count: int, eyes: str) -> None:
    """Lightness rises by equal steps or so, and never wraps."""
    light = [lab(color, eyes)[0] for color in styles.ramp(count)]
    steps = np.diff(light)
    assert (steps > 0.3 * (light[-1] - light[0]) / (count - 1)).all()
    assert light[-1] - light[0] > 43
