"""Runs something in the peers' interpreter: environment, time limit, reasons for a missing result."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = "BENCHMARK_PEERS"
LIMIT = 600.0


class PeerError(Exception):
    """A peer gave no result; the message is the reason in a few words."""


class NotInstalled(PeerError):
    """An interpreter lacks the peer."""


def interpreters() -> list[str]:
    """The peers' Pythons."""
    pythons = [p for p in os.environ.get(VARIABLE, "").split(os.pathsep) if p]
    if not pythons:
        raise PeerError(f"set {VARIABLE} to a Python interpreter that has the peers installed, or to several with :")
    return pythons


def anywhere(arguments: list[str]) -> str:
    """Standard output of the first of the peers' Pythons that has what `arguments` import."""
    for python in interpreters():
        try:
            return execute(python, arguments)
        except NotInstalled:
            continue
    raise NotInstalled("not installed")


def execute(python: str, arguments: list[str]) -> str:
    """Standard output of the peers' Python; its files go to a folder that is deleted."""
    with tempfile.TemporaryDirectory(prefix="p") as folder:
        environment = os.environ | {
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "ignore",
            "CUDA_VISIBLE_DEVICES": "",
            "PFL_PYTORCH_DEVICE": "cpu",
            "FLWR_HOME": folder,
            "FLWR_TELEMETRY_ENABLED": "0",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_TMPDIR": folder,
        }
        try:
            process = subprocess.Popen(
                [python, *arguments],
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        except OSError as error:
            raise PeerError(f"{python}: {error.strerror}") from None
        before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        try:
            output, errors = process.communicate(timeout=LIMIT)
        except BaseException as error:  # whoever stops this process also stops the peer and its workers
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise PeerError(f"no result within {LIMIT:.0f} s") from None
            raise
        finally:
            signal.signal(signal.SIGTERM, before)
    if process.returncode:
        if "ModuleNotFoundError" in errors:
            raise NotInstalled("not installed")
        raise PeerError(reason(errors, process.returncode))
    return output


def reason(errors: str, code: int) -> str:
    """The first exception of a failed process, else the signal that torchrun names, else the exit status."""
    raised = re.findall(
        r"^(?:\[rank\d\]: )?((?!\S*ChildFailedError)[\w.]*(?:Error|Exception)\b.*)", errors, re.MULTILINE
    )
    signals = re.findall(r"Signal \d+ \(\w+\)|exitcode\s*: -?\d+", errors)
    return str([*raised, *signals, f"exit status {code}"][0])[:120].replace("|", "/")
