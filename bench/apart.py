"""Programs measured in processes of their own, so that nothing that ran before counts."""

from __future__ import annotations

import subprocess
import sys

_PEAK = """
import re
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""
"""Prints the most memory that the process had; resource.getrusage would count that of the process that starts it."""


def run_apart(program: str, *arguments: str) -> tuple[list[str], float]:
    """Run a program of Python -> the lines it printed, and its largest resident memory in megabytes; on Linux."""
    command = [sys.executable, "-c", program + _PEAK, *arguments]
    *lines, kilobytes = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return lines, int(kilobytes) / 1024
