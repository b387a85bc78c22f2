"""`python tests/cluster/run.py [PAPER/NAME ...]`: smoke artifacts through SLURM, disturbed, against a local run.

Brings up a cluster of one node from Debian's packages, makes the artifacts (fedagrac/fig1 and fedagrac/fig2) through
`profiles/slurm` in a fresh copy, kills a training and the node's daemon in the middle, and compares every result to the
bit with that of plain Snakemake. Then it takes all seeds but one out of these results, as a repository may hold them,
and lets all jobs fail: cancelled, then in the training itself. The results must stay as they are, and the same command
must complete them. Ends with status 0 and says why where there is no SLURM. Needs snakemake-executor-plugin-slurm.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
import written
from one_node import OneNode, obstacle

ROOT = Path(__file__).parents[2]
ARTIFACTS = ("fedagrac/fig1", "fedagrac/fig2")
OFTEN = ("--slurm-init-seconds-before-status-checks", "5", "--seconds-between-status-checks", "5")
THROUGH_SLURM = ("--workflow-profile", "profiles/slurm", *OFTEN)
BROKEN = "\n\ndef train_job(*given: object) -> None:\n    raise RuntimeError('this node is broken')\n"


def main(artifacts: list[str]) -> int:
    """0 if every bit is the same, or if there is no SLURM here."""
    plugin = find_spec("snakemake_executor_plugin_slurm")
    lacking = obstacle() or ("" if plugin else "no snakemake-executor-plugin-slurm")
    if lacking:
        print(f"skipped: {lacking}")
        return 0
    targets = [f"figures/smoke/{name.replace('/', '_')}.png" for name in artifacts or ARTIFACTS]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o711)
        here, there = (_copy(folder / kind) for kind in ("local run", "a cluster run"))
        _snakemake(here, targets, "--cores", "2")
        print(f"local: {len(_contents(here))} results", flush=True)
        with OneNode(folder / "slurm") as cluster:
            done = threading.Event()
            disturbing = threading.Thread(target=_disturb, args=(cluster, there, done))
            disturbing.start()
            started = time.monotonic()
            try:
                _snakemake(there, targets, *THROUGH_SLURM, **cluster.environment)
            finally:
                done.set()
                disturbing.join()
            print(f"cluster: {len(_contents(there))} results in {time.monotonic() - started:.0f} s", flush=True)
            whole, found = _contents(here), _contents(there)
            lost = _fail(cluster, there, targets)
            again = _contents(there)
    changed = [job for job in whole if not whole[job] == found.get(job) == again.get(job)]
    print(f"{len(changed)} of {len(whole)} results differ{': ' if changed else ''}{', '.join(changed)}")
    return int(bool(changed) or bool(lost) or not whole)


def _fail(cluster: OneNode, folder: Path, targets: list[str]) -> list[str]:
    """The results of one seed each that do not survive jobs that fail; in the end all seeds are there."""
    results = sorted((folder / "results/smoke").glob("*/*.parquet"))
    for file in results:
        first = min(run.seed for run in written.runs(file))
        written.edit(file, lambda run, first=first: run if run.seed == first else None)
    before, training = {file: file.read_bytes() for file in results}, folder / "reproduce/runs/job.py"
    code, asked, lost = training.read_text(), (*THROUGH_SLURM, "--config", "budget=1"), []
    for way in ("cancelled", "broken"):
        done = threading.Event()
        cancelling = threading.Thread(target=_cancel, args=(cluster, done))
        if way == "cancelled":
            cancelling.start()
        else:
            training.write_text(code + BROKEN)
        try:
            _snakemake(folder, targets, *asked, fails=True, **cluster.environment)
        finally:
            done.set()
            training.write_text(code)
        lost += [f"{file.stem} ({way})" for file in results if not file.is_file() or file.read_bytes() != before[file]]
        print(
            f"{way}: of {len(results)} results {len(lost)} are lost or changed: {', '.join(lost) or 'none'}", flush=True
        )
    _snakemake(folder, targets, *asked, **cluster.environment)
    return lost


def _cancel(cluster: OneNode, done: threading.Event) -> None:
    """scancel for every job that runs, again and again."""
    while not done.wait(1):
        for job in cluster.ask("squeue", "-h", "-t", "R", "-o", "%i").split():
            cluster.ask("scancel", job)


def _copy(folder: Path) -> Path:
    """What git knows of this project, without results."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if not name.startswith(("results/", "figures/", "tables/")) and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def _snakemake(folder: Path, targets: list[str], *options: str, fails: bool = False, **more: str) -> None:
    environment = {**os.environ, **more, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
    environment |= {"REPRODUCE_CHECKPOINT": "0", "REPRODUCE_STORE": str(folder / "store")}
    command = [sys.executable, "-m", "snakemake", *targets, *options]
    log = folder / "snakemake.log"
    with log.open("w") as file:
        status = subprocess.run(command, cwd=folder, env=environment, stdout=file, stderr=file).returncode
    if bool(status) != fails:
        for file in (*folder.glob(".snakemake/slurm_logs/**/*.log"), log):
            print(f"--- {file}\n{file.read_text()}")
        raise SystemExit(f"snakemake ended with status {status}")


def _disturb(cluster: OneNode, folder: Path, done: threading.Event) -> None:
    """kill -9 for the first training that has written a checkpoint, then for the node's daemon."""
    while not done.wait(0.02):
        if list((folder / "store/checkpoints").glob("*.pt")):
            killed = [pid for pid in _trainings(folder) if _kill(pid)]
            if killed:
                print(
                    f"killed a training on the node; jobs: {cluster.ask('squeue', '-h', '-o', '%T').split()}",
                    flush=True,
                )
                break
    if not done.wait(3):
        cluster.restart("slurmd")
        print("killed slurmd and started it again", flush=True)


def _trainings(folder: Path) -> list[int]:
    """Processes that train in `folder`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if words[1:4] == [b"-m", b"reproduce", b"train"] and (process / "cwd").resolve() == folder.resolve():
                found.append(int(process.name))
        except OSError:
            continue
    return found


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _contents(folder: Path) -> dict[str, str]:
    """Job -> checksum of its rows."""
    from pyarrow import parquet

    from reproduce import store

    files = sorted((folder / "results/smoke").glob("*/*.parquet"))
    return {f"{f.parent.name}/{f.stem}": store.of_table(parquet.read_table(f)) for f in files}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
