"""Every form of a user's data (`data_forms`) gives the same samples as plain arrays, or is refused in one line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_forms import FORMS

from reproduce.data.load import of_record
from reproduce.data.userdata import bring
from reproduce.errors import UserError


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_read_as_plain_arrays_or_refused_in_a_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("REPRODUCE_STORE", str(tmp_path / "store"))
    make, want = FORMS[name]
    given: Any = make()
    capfd.readouterr()
    if isinstance(want, str):
        with pytest.raises(UserError, match=want) as error:
            bring(given)
        assert "\n" not in str(error.value)
    else:
        found, number = of_record(bring(given, want.label, want.holder)), {n: i for i, n in enumerate(want.order)}
        for part, pixels, names in (("train", want.x, want.y), ("test", want.test_x, want.test_y)):
            x, y = getattr(found, f"{part}_x"), getattr(found, f"{part}_y")
            assert x.dtype == pixels.dtype
            assert np.array_equal(x, pixels)
            assert y.tolist() == [number[n] for n in names]
        assert (found.n_classes, found.note) == (len(want.order), want.note)
    assert capfd.readouterr() == ("", ""), "no library says more"
