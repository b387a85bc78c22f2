"""Imports go downwards, those inside functions included: the picture in docs/architecture.md, read from the source."""

import re
from pathlib import Path

from reproduce.declare import closure

ROOMS = (
    ("errors", "streams", "text"),
    ("files",),
    ("declare",),
    ("settings",),
    ("store", "vision"),
    ("modules",),
    ("models",),
    ("data",),
    ("problem", "systems"),
    ("partitions",),
    ("engine",),
    ("algorithms",),
    ("clocks",),
    ("report",),
    ("papers",),
    ("verdicts",),
    ("runs",),
    ("pages", "play"),
    ("cli",),
    ("workflow",),
    ("__main__",),
)
"""From the bottom to the top; rooms of one floor do not know each other."""
FLOOR = {room: i for i, rooms in enumerate(ROOMS) for room in rooms}


def modules() -> list[str]:
    names = [".".join(f.relative_to(closure.PACKAGE).with_suffix("").parts) for f in closure.PACKAGE.rglob("*.py")]
    return sorted(f"reproduce.{name}".removesuffix(".__init__") for name in names if name != "__init__")


def room(module: str) -> str:
    return module.split(".")[1]


def test_a_module_imports_from_its_own_room_and_from_those_below() -> None:
    upwards = [
        (module, name)
        for module in modules()
        for name in closure.imports(module)
        if name != "reproduce" and room(name) != room(module) and FLOOR[room(name)] >= FLOOR[room(module)]
    ]
    assert not upwards


def test_every_room_is_in_the_picture() -> None:
    """The table of rooms in docs/architecture.md names all of them, from the top to the bottom."""
    text = Path("docs/architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]*`) \|", text.split("## Packages and layers")[1].split("\n## ")[0], flags=re.M)
    named = [[re.sub(r"(\.py|/.*)$", "", name) for name in re.findall(r"`([^`]+)`", row)] for row in rows]
    assert [set(names) for names in named] == [set(rooms) for rooms in reversed(ROOMS)]
