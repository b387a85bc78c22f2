"""The overview picture: every figure and table once, a segment for each claim about it."""

import re
from collections import Counter

from matplotlib.patches import Rectangle

from reproduce.pages import overview
from reproduce.verdicts.scope import CHECK
from reproduce.verdicts.scoreboard import Verdict


def test_every_claim_is_a_segment_of_its_tile(boards: dict[str, list[Verdict]]) -> None:
    found = overview.tiles(boards["paper"])
    tiles = {t.artifact: t for mine in found.values() for t in mine}
    claims = [v for v in boards["paper"] if v.artifact in tiles and v.rests_on != CHECK]
    for artifact, tile in tiles.items():
        assert Counter(tile.verdicts) == Counter(v.verdict for v in claims if v.artifact == artifact)
    counts = Counter(v.verdict for v in claims)
    said = overview.alt(found)
    assert f"Of {len(claims)} claims" in said
    assert re.findall(r"(\d+) (?:supported|refuted)[,.]", said) == [str(counts["supported"]), str(counts["refuted"])]
    (ax,) = overview.figure(found).axes
    drawn = [p for p in ax.patches if isinstance(p, Rectangle)]
    assert len(drawn) == len(claims) + len(tiles) + len(overview.NAMES)
    colours = Counter(p.get_facecolor()[:3] for p in drawn if p.get_fill())
    assert sorted(colours.values()) == sorted(counts[v] + 1 for v in overview.NAMES)
