"""The digest of the code: what is in it, what is not and why, what changes it, and that Python's version does not."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from reproduce.declare import closure
from reproduce.runs import plan

PACKAGE = closure.PACKAGE
ROOMS = ("algorithms", "clocks", "data", "engine", "models", "modules", "partitions", "systems")
GOLDEN = '''
"""Docstring."""

from __future__ import annotations  # comment


class A:
    """Only a docstring."""


def f(x: int, *, y: str = "a" 'b') -> str:
    r"""Docstring
    of two lines."""
    if (z := x) != 0 and not (
        y
    ):
        return f"{x!r:>{z}} {'in' + f'{y}'} {{}}" f"{z}"
    LIMIT: float = 1e-3
    """What the constant is."""
    return rb"\\x" if x else (yield y)  # type: ignore
'''


@cache
def starts() -> dict[str, frozenset[str]]:
    """Job -> the modules that define its records."""
    jobs = (j for scale in plan.SCALES for j in plan.jobs(scale))
    return {
        j.output: frozenset(
            c.__module__ for e in j.experiments for c in e.classes if c.__module__.startswith("reproduce.")
        )
        for j in jobs
    }


def test_every_module_that_could_change_a_number_is_in_a_digest_or_on_the_list() -> None:
    covered = {file for start in set(starts().values()) for file in closure.files(start)}
    listed = {closure.path(module) for module in closure.HARMLESS}
    files = {f for room in ROOMS for f in (PACKAGE / room).rglob("*") if f.suffix in (".py", ".c", ".h")}
    unused = {PACKAGE / name for name in UNUSED}
    assert not covered & listed
    assert not covered & unused, "take it off the list"
    assert {str(f.relative_to(PACKAGE)) for f in files - covered - listed} == set(UNUSED)


UNUSED = {
    "models/network.py": "for users: modules of their own; in the digests of what is trained with them",
    "modules/check_translation.py": "likewise",
    "modules/structure.py": "likewise",
    "algorithms/server_optimizers.py": "for `play`; in the digests of what is trained with them",
    "algorithms/robust.py": "likewise",
    "clocks/attacks.py": "likewise",
    "partitions/skews.py": "likewise",
    "partitions/exported.py": "writes a partition; nothing is trained with it",
    "data/userdata.py": "a user's own data, for `play`; in the digests of what is trained on them",
    "data/userfiles.py": "reads them; likewise",
}
"""Modules of the rooms that no declared experiment uses."""


def test_what_is_on_the_list_exists_and_has_a_reason() -> None:
    assert all(closure.path(module).is_file() and reason for module, reason in closure.HARMLESS.items())


def test_no_module_is_imported_by_a_name_that_only_a_run_knows() -> None:
    for room in ROOMS:
        for file in (PACKAGE / room).rglob("*.py"):
            assert not {"import_module", "__import__", "exec", "eval"} & set(
                re.findall(r"\w+", file.read_text().replace("module.eval()", ""))
            )


def test_helpers_that_are_only_imported_are_in_the_digest() -> None:
    files = {str(f.relative_to(PACKAGE)) for f in closure.files(frozenset({"reproduce.algorithms.fedagrac"}))}
    assert {"engine/rule.py", "algorithms/base.py", "streams.py", "engine/trainer.py"} <= files
    assert {"engine/kernels/convnet.c", "engine/kernels/vectors.h", "data/embedded.py"} <= files
    assert not {"algorithms/scaffold.py", "runs/rates.py", "clocks/events.py", "systems/policies.py"} & files


@pytest.fixture(scope="module")
def digests(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, str]]:
    """digests(file, old, new): job -> code digest in a copy of the package where `old` reads `new`."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(PACKAGE, folder / "reproduce", ignore=shutil.ignore_patterns("__pycache__"))
    ask = (
        "import json; from reproduce.runs import plan; from reproduce.declare.experiment import code;"
        "print(json.dumps({j.paper + '/' + j.name: code(j.experiments) for j in plan.jobs('reduced')}))"
    )

    @cache
    def digests(name: str = "", old: str = "", new: str = "") -> dict[str, str]:
        file = folder / "reproduce" / name
        text = file.read_text() if name else ""
        assert old in text
        if name:
            file.write_text(text.replace(old, new, 1))
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        run = subprocess.run(
            [sys.executable, "-c", ask], cwd=folder, env=environment, capture_output=True, text=True, check=True
        )
        if name:
            file.write_text(text)
        return dict(json.loads(run.stdout))

    return digests


@pytest.mark.parametrize(
    ("name", "old", "new", "changed", "same"),
    [
        ("engine/rule.py", "return norms[steps]", "return 2 * norms[steps]", "fedacs/fig7-static", ""),
        ("algorithms/fedagrac.py", "def measured(", "def measured(*_, ", "fedagrac/fig1", "fedacs/fig7-static"),
        ("engine/kernels/softmax.c", "#include", "#define CONSTANT 2\n#include", "fedacs/fig7-static", ""),
        ("clocks/events.py", "EPSILON = 1e-9", "EPSILON = 1e-8", "defedavg/fashion-mnist-iid-n10", "fedagrac/fig1"),
        ("streams.py", "WORD = 2**32", "WORD = 2**31", "dynamic_init/mnist-n10-o00-a03", ""),
        ("runs/rates.py", "return bool(", "return 2 * bool(", "", "fedagrac/fig1"),
        ("report/metrics.py", "import numpy as np", "import cmath\nimport numpy as np", "", "fedagrac/fig1"),
        ("engine/rule.py", '"""The local rule', '"""THE LOCAL RULE', "", "fedagrac/fig1"),
        (
            "engine/rule.py",
            "velocity *= self.momentum\n",
            "velocity *= self.momentum  # slower\n\n",
            "",
            "fedagrac/fig1",
        ),
    ],
)
def test_a_changed_constant_changes_the_digests_that_use_it(
    digests: Callable[..., dict[str, str]], name: str, old: str, new: str, changed: str, same: str
) -> None:
    before, after = digests(), digests(name, old, new)
    assert not changed or before[changed] != after[changed]
    assert not same or before[same] == after[same]


def test_normal_form_of_a_fixed_source() -> None:
    """The same in Python 3.11 to 3.13, whose syntax trees have other fields and cut f-strings differently."""
    y, z = "FormattedValue(value=Name(id='y') conversion=-1)", "FormattedValue(value=Name(id='z') conversion=-1)"
    added = f"BinOp(left=Constant(value='in') op=Add() right=JoinedStr(values=[{y}]))"
    test = (
        "BoolOp(op=And() values=[Compare(left=NamedExpr(target=Name(id='z') value=Name(id='x')) ops=[NotEq()] "
        "comparators=[Constant(value=0)]) UnaryOp(op=Not() operand=Name(id='y'))])"
    )
    assert closure.normal(GOLDEN) == (
        "Module(body=[ImportFrom(module='__future__' names=[alias(name='annotations')] level=0) "
        "ClassDef(name='A' body=[]) FunctionDef(name='f' args=arguments("
        "args=[arg(arg='x' annotation=Name(id='int'))] kwonlyargs=[arg(arg='y' annotation=Name(id='str'))] "
        f"kw_defaults=[Constant(value='ab')]) body=[If(test={test} body=[Return(value=JoinedStr(values=["
        f"FormattedValue(value=Name(id='x') conversion=114 format_spec=JoinedStr(values=[Constant(value='>') {z}])) "
        f"Constant(value=' ') FormattedValue(value={added} conversion=-1) Constant(value=' {{}}') {z}]))]) "
        "AnnAssign(target=Name(id='LIMIT') annotation=Name(id='float') value=Constant(value=0.001) simple=1) "
        "Return(value=IfExp(test=Name(id='x') body=Constant(value=b'\\\\x') orelse=Yield(value=Name(id='y'))))] "
        "returns=Name(id='str'))])"
    )


@pytest.mark.parametrize(
    "change",
    [
        ("# comment", "# another"),
        ("Only a docstring", "Another"),
        ("of two lines", "of  three\n\n    lines"),
        ("What the constant is", "A limit"),
        ("        y\n    ):", "y):"),
    ],
)
def test_comments_docstrings_and_layout_do_not_enter(change: tuple[str, str]) -> None:
    assert change[0] in GOLDEN
    assert closure.normal(GOLDEN.replace(*change)) == closure.normal(GOLDEN)


@pytest.mark.parametrize("change", [("1e-3", "1e-2"), ("{x!r", "{x!s"), ("not (", "("), ("'in'", "'on'"), ("2*", "")])
def test_everything_else_does(change: tuple[str, str]) -> None:
    text = GOLDEN.replace("1e-3", "1e-3 + 2*0")
    assert change[0] in text
    assert closure.normal(text.replace(*change)) != closure.normal(text)


def test_imports_are_followed_wherever_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inner").mkdir()
    for name in ("a", "b", "c", "d", "typed", "other", "inner/__init__", "inner/e", "inner/f"):
        (tmp_path / f"{name}.py").write_text("")
    (tmp_path / "a.py").write_text(
        "import numpy, pkg.b as b\n"
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from pkg import typed\nelse:\n    from pkg import other\n"
        "def f():\n    try:\n        from pkg.c import x\n"
        "    except ImportError:\n        with x:\n            from . import d\n"
        "from pkg.inner import e\n"
    )
    (tmp_path / "inner/e.py").write_text("from .f import g\nfrom ..b import h\n")
    monkeypatch.setattr(closure, "PACKAGE", tmp_path.rename(tmp_path.with_name("pkg")))
    closure.imports.cache_clear()
    closure._find.cache_clear()
    found = {name.removeprefix("pkg").lstrip(".") for name in closure.imports("pkg.a")}
    assert {"b", "c", "d", "other", "inner", "inner.e"} <= found
    assert "typed" not in found
    assert {"pkg.inner.f", "pkg.b"} <= set(closure.imports("pkg.inner.e"))
    closure.imports.cache_clear()
    closure._find.cache_clear()
