"""A discrete PID from MATLAB on the command line: a design file with a .mat file beside it."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import scipy.io

# 20 e + 5 int(e) + 6 s/(0.005 s + 1) e at 500 Hz, the derivative held, the integral summed up;
# in MATLAB: save pid.mat A B C D Ts
MATRICES = {
    "A": [[1.0, 0.0], [0.0, 0.67032]],
    "B": [[0.002], [0.32968]],
    "C": [[5.0, -1200.0]],
    "D": [[1220.0]],
    "Ts": 0.002,
}
DESIGN = """
summary = "Discrete PID of the hub angle"
source = "own"
model = "single-link-hub"
method = "state-space"
[reference]
kind = "cycloid"
from = [0.0]
to = [1.5707963267948966]
duration = 1.0
[state_space]
file = "pid.mat"
measures = ["joint1"]
sample_time = 0.002
[loop]
duration = 4.0
"""


def main() -> float:
    """Judge it beside a design of the catalogue; return its gain margin [dB]."""
    with tempfile.TemporaryDirectory() as folder:
        scipy.io.savemat(Path(folder) / "pid.mat", MATRICES)
        design = Path(folder) / "pid.toml"
        design.write_text(DESIGN)
        words = [
            "compare",
            "single-link-hub",
            str(design),
            "hub-pd",
            "--truth-modes",
            "2",
            "--json",
        ]
        done = subprocess.run(
            [sys.executable, "-m", "flexctl", *words], check=True, capture_output=True, text=True
        )
    found = json.loads(done.stdout)
    for one in found["evaluations"]:
        print(one["design"], "phase margin", one["margins"]["phase_deg"], "deg")
    return found["evaluations"][0]["margins"]["gain_db"][0]


if __name__ == "__main__":
    print(f"gain margin {main():.2f} dB")
