"""How long a user waits for six controllers of a real loop in one `compare`, cold and warm.

The vertical two-link arm with harmonic drives, friction that sticks, motor encoders at 1 kHz with
steps and noise, torques one sample late: PD, PID, cascade, computed torque, LQG and composite
control, each with its run, margins, stiffness margins along the motion, friction and noise. Whole
processes, from an empty cache of compiled code and again with it, as wall and processor time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

MODEL = "vertical-2r-drives"
KINDS = ("pd", "pid", "cascade", "computed-torque", "lqg", "composite")
COMMAND = ("compare", MODEL, *(f"drives-{kind}" for kind in KINDS), "--no-baseline", "--json")


def processor_time() -> float:
    """Processor time [s] of all processes that have ended here."""
    spent = os.times()
    return spent.children_user + spent.children_system


def measure(name: str, cache: str) -> None:
    """Print the times [s] of one command with a cache folder."""
    environment = os.environ | {"FLEXCTL_CACHE": cache}
    begun, before = time.perf_counter(), processor_time()
    subprocess.run(
        [sys.executable, "-m", "flexctl", *COMMAND],
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    wall, busy = time.perf_counter() - begun, processor_time() - before
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    print(f"{name}: {wall:5.1f} s, {busy:5.1f} s of processors ({cores} cores, load {load:.1f})")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("cold", "warm", "warm"):
            measure(kind, folder)
