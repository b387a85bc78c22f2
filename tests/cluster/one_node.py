"""A SLURM cluster of one node, this machine, in a folder of its own, without accounting."""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol")
SYSTEM = Path("/etc/slurm/slurm.conf")
"""Where SLURM's commands look, also inside jobs, to which Snakemake hands no variable of SLURM on."""
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
CONFIGURATION = """
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
SlurmdTimeout=300
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory={memory} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE OverSubscribe=NO State=UP
"""


def obstacle() -> str:
    """Why no cluster can be brought up here, or ""."""
    absent = [name for name in PROGRAMS if not shutil.which(name, path=PATH)]
    if absent:
        return f"no {', '.join(absent)}: apt-get install slurmctld slurmd slurm-client munge"
    if SYSTEM.exists():
        return f"{SYSTEM} is there: this machine belongs to a cluster"
    return "" if os.geteuid() == 0 else "SLURM's daemons want to be root"


class OneNode:
    """The cluster as a context, with a link to its configuration in the place of the system's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {"PATH": PATH}
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> "OneNode":
        for name in ("state", "spool"):
            (self.folder / name).mkdir(parents=True)
        self.folder.chmod(0o711)
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
        ports = {"controller": _free_port(), "daemon": _free_port()}
        host = socket.gethostname().split(".")[0]
        text = CONFIGURATION.format(host=host, folder=self.folder, memory=memory, **ports)
        (self.folder / "slurm.conf").write_text(text)
        SYSTEM.parent.mkdir(exist_ok=True)
        SYSTEM.symlink_to(self.folder / "slurm.conf")
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        places = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        options = [f"--{option}={self.folder}/munge.{name}" for option, name in places.items()]
        try:
            self.start("munged", "--foreground", "--force", *options)
            _until(lambda: (self.folder / "munge.socket").exists(), "munged")
            self.start("slurmctld", "-D")
            self.start("slurmd", "-D", "-N", host)
            _until(lambda: "idle" in self.ask("sinfo", "-h", "-o", "%T"), "an idle node")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in ("slurmd", "slurmctld", "munged"):
            if name in self.daemons:
                self.daemons[name].terminate()
                self.daemons[name].wait(60)
        SYSTEM.unlink(missing_ok=True)

    def start(self, name: str, *options: str) -> None:
        """Start a daemon, again if it was killed."""
        command = [str(shutil.which(name, path=PATH)), *options]
        log = (self.folder / f"{name}.out").open("ab")
        environment = {**os.environ, **self.environment}
        self.daemons[name] = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def restart(self, name: str) -> None:
        """kill -9, and the same command once more."""
        options = self.daemons[name].args[1:]  # type: ignore[index]
        self.daemons[name].send_signal(signal.SIGKILL)
        self.daemons[name].wait()
        self.start(name, *options)  # type: ignore[arg-type]

    def ask(self, *command: str) -> str:
        """What a command of SLURM prints."""
        run = subprocess.run(command, env={**os.environ, **self.environment}, capture_output=True, text=True)
        return run.stdout


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _until(true: object, what: str, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        if time.monotonic() > deadline:
            raise TimeoutError(f"no {what} after {seconds:.0f} s")
        time.sleep(0.5)
