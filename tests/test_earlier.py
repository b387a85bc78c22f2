"""The package as it was at a commit is unpacked with every Python 3.11, and nowhere but in its folder."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from reproduce.errors import UserError
from reproduce.runs import earlier


def archive(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tree:
        for member, content in members:
            member.size = len(content)
            tree.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname = kind, link
    return found


def test_it_is_unpacked_without_the_filters_of_newer_pythons(monkeypatch: pytest.MonkeyPatch) -> None:
    """They came with Python 3.11.4; Debian 12 has 3.11.2."""
    for name in ("data_filter", "fully_trusted_filter", "tar_filter"):
        monkeypatch.delattr(tarfile, name, raising=False)
    monkeypatch.setattr(tarfile.TarFile, "extractall", lambda *_, **__: pytest.fail("takes no filter there"))
    with earlier.Earlier("HEAD") as found:
        assert (found.folder / "reproduce/__init__.py").is_file()
        assert (found.folder / "reproduce/engine/kernels/convnet.c").is_file()
        assert (found.folder / "rows.py").is_file()
    assert not found.folder.exists()


@pytest.mark.parametrize(
    "odd",
    [
        member("../outside"),
        member("reproduce/../../outside"),
        member("reproduce/link", tarfile.SYMTYPE, "/etc/passwd"),
        member("reproduce/link", tarfile.LNKTYPE, "reproduce/a.py"),
        member("reproduce/pipe", tarfile.FIFOTYPE),
        member("reproduce/device", tarfile.CHRTYPE),
    ],
    ids=lambda m: f"{m.name} {m.type!r}",
)
def test_what_is_no_file_of_the_package_is_refused(odd: tarfile.TarInfo, tmp_path: Path) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    data = archive((member("reproduce/a.py"), b"1"), (odd, b"2" if odd.isfile() else b""))
    with tarfile.open(fileobj=io.BytesIO(data)) as tree, pytest.raises(UserError, match="is not a file of the package"):
        earlier._unpack(tree, folder)
    assert [f.relative_to(tmp_path).as_posix() for f in tmp_path.rglob("*") if f.is_file()] == ["inside/reproduce/a.py"]
