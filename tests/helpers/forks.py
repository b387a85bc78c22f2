"""Python programs as forks of one process that has imported what they import: Snakemake alone takes most of a start.

A fork has the folder, the environment, the words and the exit of `python -m MODULE`; nothing of this package is in it.
"""

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

SERVER = """
import json, os, runpy, signal, sys
import jsonschema, numpy, pandas, pyarrow.compute, pyarrow.parquet, smart_open, yaml, yte
import snakemake.assets, snakemake.cli, snakemake.report

for line in sys.stdin:
    child = os.fork()
    if not child:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
asked = json.loads(line)
signal.alarm(300)
for to, name, how in ((0, os.devnull, os.O_RDONLY), (1, asked["out"], os.O_WRONLY), (2, asked["err"], os.O_WRONLY)):
    os.dup2(os.open(name, how), to)
os.chdir(asked["folder"])
os.environ.clear()
os.environ.update(asked["environment"])
sys.path[0:1] = [os.getcwd(), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
sys.argv = asked["words"]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


@cache
def _server() -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-B", "-c", SERVER]
    server = subprocess.Popen(command, cwd=tempfile.gettempdir(), env=kept, stdin=-1, stdout=-1, text=True)
    atexit.register(server.communicate)
    return server


def run(
    folder: Path, module: str, words: Sequence[str], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """`python -m module words` in `folder`."""
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    command = [module, *map(str, words)]
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
        asked = {"folder": str(folder), "environment": dict(environment), "out": out.name, "err": err.name}
        server.stdin.write(json.dumps(asked | {"words": command}) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        return subprocess.CompletedProcess(command, code, *(Path(f.name).read_text("utf-8") for f in (out, err)))
